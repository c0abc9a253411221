package agno

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// call is a tool call without a result.
type call struct {
	ID        string
	Name      string
	At        stamp
	Delegates bool       `json:",omitempty"`
	Many      bool       `json:",omitempty"` // delegates to several members at once
	To        string     `json:",omitempty"` // as the model wrote it
	Task      string     `json:",omitempty"`
	Children  []childRun `json:",omitempty"`
	Waits     bool       `json:",omitempty"` // for a person, or for a result from outside
	Nameless  bool       `json:",omitempty"` // the protocol has no id for it
	Args      hash       `json:",omitempty"` // of the arguments
	Draft     *draft     `json:",omitempty"` // of a delegation that is not complete
	Inferred  bool       `json:",omitempty"` // derived from its child run; the stored form has no such call
	Beside    bool       `json:",omitempty"` // another delegation of its run was open at the same time
}

// use is a tool call in an event or a stored message.
type use struct {
	id        jsonv.Value
	name      string
	named     jsonv.Value
	args      jsonv.Value
	result    jsonv.Value
	text      func(jsonv.Value) msg.Text // of the result
	failed    bool
	refused   bool // a person denied it
	metrics   jsonv.Value
	confirmed jsonv.Value
}

// useOf reads the tool object of an event:
//
//	{"tool_call_id":"c1","tool_name":"web_search","tool_args":{"query":"…"},"tool_call_error":false,
//	 "result":"…","metrics":{"duration":0.01},"child_run_id":null,"requires_confirmation":null, …}
func useOf(tool jsonv.Value) use {
	return use{
		id:        tool.Get("tool_call_id"),
		name:      cmp.Or(peekID(tool.Get("tool_name")), "unknown"),
		named:     tool.Get("tool_name"),
		args:      tool.Get("tool_args"),
		result:    tool.Get("result"),
		text:      asText,
		failed:    tool.Get("tool_call_error").Bool(),
		refused:   tool.Get("confirmed").Is(jsonv.False),
		metrics:   tool.Get("metrics"),
		confirmed: tool.Get("confirmed"),
	}
}

func (s *stream) toolStarted(r *run, e *event) { s.startCall(r, useOf(e.tool), e.at) }

func (s *stream) toolCompleted(r *run, e *event, failed bool) {
	u := useOf(e.tool)
	u.failed = u.failed || failed
	if blank(u.result) {
		u.result = e.v.Get("error")
	}
	made := u.name + "("
	if c := e.content; strings.HasPrefix(c.PeekStr(), made) && strings.Contains(c.PeekStr(), ") completed") {
		c.MarkRead() // a sentence made of the call
	}
	m := s.emitResult(r, u, e.at)
	if m == nil { // emitted before
		markCopies(e.tool, "tool_call_id", "tool_name", "tool_args", "result")
		markCopies(e.v, "error")
		return
	}
	m.Attachments = attachments(e.v)
	s.markRepeat(e.v.Get("error"), s.hashOf(m.Content))
}

// startCall emits a call at its first event. It returns nil for a call that is known.
func (s *stream) startCall(r *run, u use, at stamp) *call {
	id, nameless := r.callID(u)
	early := slices.Index(r.Early, id)
	if early < 0 && r.knows(id) {
		s.markCall(r, u, id)
		return nil
	}
	u.markRead()
	s.closePiece(r, id, at, msg.Complete)
	r.setAfter(id)
	if nameless {
		r.Nameless++
	}
	c := &call{ID: id, Name: u.name, Nameless: nameless, At: at}
	c.Args = s.hashOf(peekText(u.args))
	if to, task, many, ok := r.readDelegation(u); ok {
		c.Delegates, c.Many, c.To, c.Task = true, many, to, task.String()
		c.Draft = &draft{Arguments: asText(u.args).String(), Model: r.Model, Provider: r.Provider, Reply: r.Reply}
		s.rememberDelegation(r, c)
		s.emitDelegation(r, c, early >= 0 || many)
	} else {
		m := s.addCall(r, c)
		m.Tool.Arguments = asText(u.args)
		m.Tool.Internal = isInternal(u.name)
		m.Hidden = m.Tool.Internal
		m.Model, m.Provider, m.ResponseID = r.Model, r.Provider, r.Reply
	}
	if early >= 0 {
		r.Early = slices.Delete(r.Early, early, early+1)
		return nil
	}
	if len(r.Calls) >= maxCalls {
		s.emitDelegation(r, r.Calls[0], true)
		r.Calls = r.Calls[1:]
	}
	r.Calls = append(r.Calls, c)
	return c
}

// addCall adds a call.
func (s *stream) addCall(r *run, c *call) *msg.Message {
	m := s.addMessage(r, msg.ToolCall, "", c.At)
	m.Key, m.Role = "call:"+c.ID, msg.RoleAssistant
	m.Tool.CallID, m.Tool.Name = c.ID, c.Name
	return m
}

// emitResult emits the result of a call. It returns nil for a result that was emitted before.
func (s *stream) emitResult(r *run, u use, at stamp) *msg.Message {
	c := s.openCall(r, u)
	if c != nil {
		s.markCall(r, u, c.ID)
	} else {
		id, nameless := r.callID(u)
		if nameless || r.knows(id) {
			return nil // emitted before: 2.9 reports a failed call twice
		}
		u.markRead()
		c = &call{ID: id, Name: u.name, At: at}
		c.To, _, c.Many, c.Delegates = r.readDelegation(u)
		if len(r.Early) >= maxCalls {
			r.Early = r.Early[1:]
		}
		r.Early = append(r.Early, id)
		if r.Joined && r.Said.size() == 0 {
			r.setAfter(id) // the first of the calls, as results arrive in their order
		}
	}
	text := u.text(u.result)
	if c.Delegates {
		s.endDelegation(r, c, text, at)
	}
	m := s.addMessage(r, msg.ToolResult, "", at)
	m.Key, m.Role = "result:"+c.ID, msg.RoleTool
	m.Tool.CallID, m.Tool.Name = c.ID, c.Name
	m.Tool.Internal = isInternal(c.Name)
	m.Hidden = m.Tool.Internal
	m.Content, m.IsError = text, u.failed
	switch {
	case u.refused:
		m.IsError, m.Tool.ErrorType = true, "denied"
	case u.failed:
		m.Tool.ErrorType = "tool_error"
	}
	took := measured(u.metrics)
	if c.Delegates {
		s.fillDelegationResult(r, c, m)
		took = c.delegationDuration(took, at)
		if to := peekID(u.args.Get("member_id")); m.Delegation.ChildRun == "" && to != "" && slug(to) != slug(c.To) {
			m.Delegation.To, m.Delegation.ToID = s.memberName(to) // the member that answers, where it is another than the one asked
		}
	} else {
		m.SetAttr("duration", number(u.metrics.Get("duration")))
	}
	m.Tool.Duration = took
	r.closeCall(c)
	return m
}

// measured is the duration of a call in its metrics, in nanoseconds, to the microsecond:
//
//	{"duration":0.004}    {"start_time":1770000000.25,"end_time":1770000005.15,"duration":4.9}
func measured(metrics jsonv.Value) int64 {
	seconds := metrics.Get("duration").Float()
	if begin, end := metrics.Get("start_time"), metrics.Get("end_time"); seconds == 0 && begin.Is(jsonv.Number) && end.Is(jsonv.Number) {
		seconds = end.Float() - begin.Float()
	}
	if !(seconds > 0 && seconds < 1e9) {
		return 0
	}
	return max(int64(math.Round(seconds*1e6)), 1) * 1e3
}

// closeCall notes that the call is over.
func (r *run) closeCall(c *call) {
	r.Calls = slices.DeleteFunc(r.Calls, func(o *call) bool { return o == c })
	if len(r.Over) >= maxCalls {
		r.Over = r.Over[1:]
	}
	r.Over = append(r.Over, c.ID)
}

// openCall returns the open call of a result: by id; without an id the call with the same
// arguments, else the one to the same member, else the oldest.
func (s *stream) openCall(r *run, u use) *call {
	if id := peekID(u.id); id != "" {
		id = r.unique(id)
		for _, c := range r.Calls {
			if c.ID == id {
				return c
			}
		}
		return nil
	}
	calls := pick(r.Calls, func(c *call) bool { return c.Nameless && c.Name == u.name })
	if len(calls) == 0 {
		return nil
	}
	args := s.hashOf(peekText(u.args))
	for _, c := range calls {
		if c.Args == args {
			return c
		}
	}
	to, _, _, _ := r.readDelegation(u)
	for _, c := range calls {
		if to != "" && slug(c.To) == slug(to) {
			return c
		}
	}
	return calls[0]
}

// markCall marks the fields that a later report of an open call repeats as read.
func (s *stream) markCall(r *run, u use, id string) {
	for _, c := range r.Calls {
		if c.ID == id {
			ident(u.id)
			u.named.Equal(c.Name)
			if c.Args == 0 || s.hashOf(peekText(u.args)) == c.Args { // 0: the snapshot has no hash
				u.args.MarkRead()
			}
		}
	}
}

// markRead marks the call's id and name as read, because the message has both.
func (u *use) markRead() {
	ident(u.id)
	ident(u.named)
}

// blank reports whether a value has no text.
func blank(v jsonv.Value) bool { return !v.Exists() || v.Equal("") }

func (r *run) knows(id string) bool {
	return slices.Contains(r.Over, id) || slices.ContainsFunc(r.Calls, func(c *call) bool { return c.ID == id })
}

// callID returns the id of a call. A call without an id has one made of its run and its
// ordinal.
func (r *run) callID(u use) (id string, nameless bool) {
	if id = peekID(u.id); id != "" {
		return r.unique(id), false
	}
	return r.ID + "/call/" + strconv.Itoa(r.Nameless), true
}

// unique makes a call's id unique in the session. Most providers' ids are; some count the
// calls of a run (functions.search:0).
func (r *run) unique(id string) string {
	if len(id) < 12 || strings.ContainsAny(id, ".:") {
		return r.ID + "/" + id
	}
	return id
}

// isInternal reports whether a tool is the framework's own machinery.
func isInternal(tool string) bool {
	switch tool {
	case "think", "analyze", "reasoning_step",
		"create_task", "update_task_status", "list_tasks", "add_task_note", "mark_all_complete":
		return true
	}
	return delegates(tool) != toNone
}

// reach is the number of members that a tool delegates to.
type reach uint8

const (
	toNone reach = iota
	toOne
	toMany
)

// delegates returns how many members the tool delegates to, for the tools of all versions.
func delegates(tool string) reach {
	switch tool {
	case "delegate_task_to_member", // 2.0 on
		"transfer_task_to_member", "forward_task_to_member", // 1.x
		"execute_task": // tasks mode
		return toOne
	case "delegate_task_to_members", "run_member_agents", "execute_tasks_parallel":
		return toMany
	}
	return toNone
}

// everyone is the member of a call that names none.
const everyone = "*"

// readDelegation returns the member and the task of a call, and whether it delegates.
func (r *run) readDelegation(u use) (to string, task msg.Text, many, ok bool) {
	kind := delegates(u.name)
	if kind == toNone {
		return "", msg.Text{}, false, false
	}
	to = peekID(u.args.Get("member_id"))
	if to == "" && kind == toMany {
		to = everyone
	}
	switch task = peekText(u.args.First("task", "task_description", "expected_output")); {
	case !task.IsZero():
	case u.args.Get("task_id").Exists():
		task = msg.Plain(r.taskText(peekID(u.args.Get("task_id"))))
	case u.args.Get("task_ids").Exists():
		var all []string
		for id := range u.args.Get("task_ids").Elems() {
			all = append(all, r.taskText(peekID(id)))
		}
		task = msg.Plain(strings.Join(all, "\n"))
	}
	return to, task, kind == toMany, true
}

// task is an entry in the task list of a team.
type task struct {
	ID   string
	Text string
}

// taskText returns the text of a task, or its id when no event described the task.
func (r *run) taskText(id string) string {
	for _, t := range r.Tasks {
		if t.ID == id {
			return t.Text
		}
	}
	return id
}

func (r *run) learnTask(v jsonv.Value) {
	id := ident(v.Get("task_id"))
	if id == "" || slices.ContainsFunc(r.Tasks, func(t task) bool { return t.ID == id }) {
		return
	}
	if len(r.Tasks) >= maxTasks {
		r.Tasks = r.Tasks[1:]
	}
	text := v.Get("description").PeekStr()
	if text == "" {
		text = v.Get("title").PeekStr()
	}
	r.Tasks = append(r.Tasks, task{id, text})
}
