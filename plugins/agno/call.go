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
	Delegates bool   `json:",omitempty"`
	Many      bool   `json:",omitempty"` // hands work to several members at once
	To        string `json:",omitempty"` // as the model wrote it
	Task      string `json:",omitempty"`
	Children  []kid  `json:",omitempty"`
	Waits     bool   `json:",omitempty"` // for a person, or for a result from outside
	Nameless  bool   `json:",omitempty"` // the protocol gave it no id
	Args      hash   `json:",omitempty"` // of the arguments
	Draft     *draft `json:",omitempty"` // of a delegation that is not complete
	Inferred  bool   `json:",omitempty"` // nothing tells of it but its child
	Beside    bool   `json:",omitempty"` // another delegation of its run was open at the same time
}

// use is a tool call as an event or a stored message tells it.
type use struct {
	id        jsonv.Value
	name      string
	named     jsonv.Value
	args      jsonv.Value
	result    jsonv.Value
	text      func(jsonv.Value) msg.Text // of the result
	failed    bool
	refused   bool // a person said no
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
		name:      cmp.Or(glance(tool.Get("tool_name")), "unknown"),
		named:     tool.Get("tool_name"),
		args:      tool.Get("tool_args"),
		result:    tool.Get("result"),
		text:      written,
		failed:    tool.Get("tool_call_error").Bool(),
		refused:   tool.Get("confirmed").Is(jsonv.False),
		metrics:   tool.Get("metrics"),
		confirmed: tool.Get("confirmed"),
	}
}

func (s *stream) toolStarted(r *run, e *event) { s.issue(r, useOf(e.tool), e.at) }

func (s *stream) toolCompleted(r *run, e *event, failed bool) {
	u := useOf(e.tool)
	u.failed = u.failed || failed
	if blank(u.result) {
		u.result = e.v.Get("error")
	}
	made := u.name + "("
	if c := e.content; strings.HasPrefix(c.PeekStr(), made) && strings.Contains(c.PeekStr(), ") completed") {
		c.MarkRead() // made of the call
	}
	m := s.result(r, u, e.at)
	if m == nil { // told before
		leave(e.tool, "tool_call_id", "tool_name", "tool_args", "result")
		leave(e.v, "error")
		return
	}
	m.Attachments = attachments(e.v)
	s.repeats(e.v.Get("error"), s.hashOf(m.Content))
}

// issue gives a call when it is first told.
func (s *stream) issue(r *run, u use, at stamp) *call {
	id, nameless := r.callID(u)
	early := slices.Index(r.Early, id)
	if early < 0 && r.knows(id) {
		s.recall(r, u, id)
		return nil
	}
	u.mark()
	s.close(r, id, at, msg.Complete)
	r.after(id)
	if nameless {
		r.Nameless++
	}
	c := &call{ID: id, Name: u.name, Nameless: nameless, At: at}
	c.Args = s.hashOf(glimpse(u.args))
	if to, task, many, ok := r.delegation(u); ok {
		c.Delegates, c.Many, c.To, c.Task = true, many, to, task.String()
		c.Draft = &draft{Arguments: written(u.args).String(), Model: r.Model, Provider: r.Provider, Reply: r.Reply}
		s.hand(r, c)
		s.delegation(r, c, early >= 0 || many)
	} else {
		m := s.called(r, c)
		m.Tool.Arguments = written(u.args)
		m.Tool.Internal = isInternal(u.name)
		m.Hidden = m.Tool.Internal
		m.Model, m.Provider, m.ResponseID = r.Model, r.Provider, r.Reply
	}
	if early >= 0 {
		r.Early = slices.Delete(r.Early, early, early+1)
		return nil
	}
	if len(r.Calls) >= maxCalls {
		s.delegation(r, r.Calls[0], true)
		r.Calls = r.Calls[1:]
	}
	r.Calls = append(r.Calls, c)
	return c
}

// called adds a call.
func (s *stream) called(r *run, c *call) *msg.Message {
	m := s.add(r, msg.ToolCall, "", c.At)
	m.Key, m.Role = "call:"+c.ID, msg.RoleAssistant
	m.Tool.CallID, m.Tool.Name = c.ID, c.Name
	return m
}

// result gives a call's result when it is first told.
func (s *stream) result(r *run, u use, at stamp) *msg.Message {
	c := s.open(r, u)
	if c != nil {
		s.recall(r, u, c.ID)
	} else {
		id, nameless := r.callID(u)
		if nameless || r.knows(id) {
			return nil // told before: a failed call is told twice
		}
		u.mark()
		c = &call{ID: id, Name: u.name, At: at}
		c.To, _, c.Many, c.Delegates = r.delegation(u)
		if len(r.Early) >= maxCalls {
			r.Early = r.Early[1:]
		}
		r.Early = append(r.Early, id)
		if r.Joined && r.Said.size() == 0 {
			r.after(id) // the first of the calls, as results come in their order
		}
	}
	text := u.text(u.result)
	if c.Delegates {
		s.returned(r, c, text, at)
	}
	m := s.add(r, msg.ToolResult, "", at)
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
		s.answer(r, c, m)
		took = c.worked(took, at)
		if to := glance(u.args.Get("member_id")); m.Delegation.ChildRun == "" && to != "" && slug(to) != slug(c.To) {
			m.Delegation.To, m.Delegation.ToID = s.member(to) // who answers, where it is not who was asked
		}
	} else {
		m.SetAttr("duration", number(u.metrics.Get("duration")))
	}
	m.Tool.Duration = took
	r.settle(c)
	return m
}

// measured is how long a call took by its metrics, in nanoseconds, to the microsecond:
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

// settle notes that the call is over.
func (r *run) settle(c *call) {
	r.Calls = slices.DeleteFunc(r.Calls, func(o *call) bool { return o == c })
	if len(r.Over) >= maxCalls {
		r.Over = r.Over[1:]
	}
	r.Over = append(r.Over, c.ID)
}

// open returns the open call that a result is of. One without an id is of the call with
// the same arguments, else of the one to the same member, else of the oldest.
func (s *stream) open(r *run, u use) *call {
	if id := glance(u.id); id != "" {
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
	args := s.hashOf(glimpse(u.args))
	for _, c := range calls {
		if c.Args == args {
			return c
		}
	}
	to, _, _, _ := r.delegation(u)
	for _, c := range calls {
		if to != "" && slug(c.To) == slug(to) {
			return c
		}
	}
	return calls[0]
}

// recall marks what a report of an open call says of it and the call has said.
func (s *stream) recall(r *run, u use, id string) {
	for _, c := range r.Calls {
		if c.ID == id {
			ident(u.id)
			u.named.Equal(c.Name)
			if c.Args == 0 || s.hashOf(glimpse(u.args)) == c.Args { // 0: of a snapshot that has none
				u.args.MarkRead()
			}
		}
	}
}

// mark marks the call's id and name, which are given.
func (u *use) mark() {
	ident(u.id)
	ident(u.named)
}

// blank reports whether a value has no text.
func blank(v jsonv.Value) bool { return !v.Exists() || v.Equal("") }

func (r *run) knows(id string) bool {
	return slices.Contains(r.Over, id) || slices.ContainsFunc(r.Calls, func(c *call) bool { return c.ID == id })
}

// callID returns the id of a call, or one by its order in the run when the
// protocol gives none.
func (r *run) callID(u use) (id string, nameless bool) {
	if id = glance(u.id); id != "" {
		return r.unique(id), false
	}
	return r.ID + "/call/" + strconv.Itoa(r.Nameless), true
}

// unique makes a call's id unique in the session. Most providers' are; some count
// the calls of a run (functions.search:0).
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
	return delegates(tool) != toNobody
}

// reach is how many members a delegation tool hands work to.
type reach uint8

const (
	toNobody reach = iota
	toOne
	toMany
)

// delegates tells the delegation tools of all versions.
func delegates(tool string) reach {
	switch tool {
	case "delegate_task_to_member", // 2.0 on
		"transfer_task_to_member", "forward_task_to_member", // 1.x
		"execute_task": // tasks mode
		return toOne
	case "delegate_task_to_members", "run_member_agents", "execute_tasks_parallel":
		return toMany
	}
	return toNobody
}

// everyone stands for the members that a call does not name.
const everyone = "*"

// delegation reads to whom a call hands what.
func (r *run) delegation(u use) (to string, task msg.Text, many, ok bool) {
	kind := delegates(u.name)
	if kind == toNobody {
		return "", msg.Text{}, false, false
	}
	to = glance(u.args.Get("member_id"))
	if to == "" && kind == toMany {
		to = everyone
	}
	switch task = glimpse(u.args.First("task", "task_description", "expected_output")); {
	case !task.IsZero():
	case u.args.Get("task_id").Exists():
		task = msg.Plain(r.taskText(glance(u.args.Get("task_id"))))
	case u.args.Get("task_ids").Exists():
		var all []string
		for id := range u.args.Get("task_ids").Elems() {
			all = append(all, r.taskText(glance(id)))
		}
		task = msg.Plain(strings.Join(all, "\n"))
	}
	return to, task, kind == toMany, true
}

// task is one of a team that works by a list of tasks.
type task struct {
	ID   string
	Text string
}

// taskText returns what a task is, or its id when that was not told.
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
