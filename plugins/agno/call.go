package agno

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// calls are the tool calls of a run, the oldest first: those without a result, and the last ones with it.
type calls struct {
	List     []*call `json:",omitempty"`
	Tasks    []task  `json:",omitempty"`
	Nameless int     `json:",omitempty"` // calls without an id so far
}

// call is a tool call.
type call struct {
	conversation.Call
	At       conversation.Time
	Over     bool             `json:",omitempty"` // it has its result
	Early    bool             `json:",omitempty"` // it has that alone: the call did not arrive
	Waits    bool             `json:",omitempty"` // for a person, or for a result from outside
	Nameless bool             `json:",omitempty"` // the protocol has no id for it
	Args     conversation.Sum `json:",omitempty"` // of the arguments
	delegation
}

// get returns the call with that id, or nil.
func (t *calls) get(id string) *call {
	return bounded.Find(t.List, func(c *call) bool { return c.ID == id })
}

// open returns the calls without a result.
func (t *calls) open() []*call { return bounded.All(t.List, func(c *call) bool { return !c.Over }) }

func (t *calls) add(r *run, c *call) {
	t.List = append(t.List, c)
	t.bound(r, c.Over)
}

// bound evicts the oldest call beyond maxCalls, of those with a result or of those without.
func (t *calls) bound(r *run, over bool) {
	if len(t.List) <= maxCalls {
		return
	}
	if list := bounded.All(t.List, func(c *call) bool { return c.Over == over }); len(list) > maxCalls {
		t.remove(list[0])
		list[0].delegate(r, true)
	}
}

func (t *calls) remove(c *call) {
	t.List = slices.DeleteFunc(t.List, func(o *call) bool { return o == c })
}

// use is what an event or a stored message says of a call.
type use struct {
	id, named, args, result, metrics jsonv.Value

	name    string
	text    func(jsonv.Value) msg.Text // of the result
	failed  bool
	refused bool // a person denied it
}

// use reads the tool object of an event, a call that a message makes, or the message of a result:
//
//	{"tool_call_id":"c1","tool_name":"web_search","tool_args":{"query":"…"},"tool_call_error":false,
//	 "result":"…","metrics":{"duration":0.01},"child_run_id":null,"requires_confirmation":null, …}
//	{"id":"c1","function":{"name":"web_search","arguments":"{\"query\":\"…\"}"}}
//	{"role":"tool","tool_call_id":"c1","tool_name":"web_search","tool_args":{"query":"…"},"content":"…","tool_call_error":false}
//
// Arguments that are a string of JSON are valid until the next call is read.
func (s *stream) use(tool jsonv.Value) use {
	u := use{
		id: callID(tool), named: tool.Get("tool_name"), args: tool.Get("tool_args"), result: tool.Get("result"), metrics: tool.Get("metrics"),
		text: asText, failed: tool.Get("tool_call_error").Bool(), refused: tool.Get("confirmed").Is(jsonv.False),
	}
	if f := tool.Get("function"); f.Exists() {
		u.named, u.args = f.Get("name"), f.Get("arguments")
		if u.args.Is(jsonv.String) && s.inner.Parse([]byte(u.args.Str())) == nil {
			u.args = s.inner.Root()
		}
	}
	if !u.result.Exists() {
		u.result, u.text = tool.Get("content"), textOf
	}
	u.name = cmp.Or(ident.PeekOrNumber(u.named), "unknown")
	return u
}

func callID(tool jsonv.Value) jsonv.Value { return tool.First("tool_call_id", "id") }

// member returns the member that the call names.
func (u use) member() string { return ident.PeekOrNumber(u.args.Get("member_id")) }

// completed ends a call. 2.9 reports a failed one twice: ToolCallCompleted, ToolCallError.
func (t *calls) completed(r *run, e *event) {
	tool := e.tool()
	u := r.s.use(tool)
	if e.said && measured(u.metrics) == 0 {
		u.metrics = e.of.metricsOf(ident.PeekOrNumber(u.id))
	}
	u.failed = u.failed || string(e.name) == "ToolCallError"
	if blank(u.result) {
		u.result = e.v.Get("error")
	}
	if c := e.content.PeekStr(); strings.HasPrefix(c, u.name+"(") && strings.Contains(c, ") completed") {
		e.content.MarkRead() // a sentence made of the call
	}
	m := t.result(r, u, e.at)
	if m == nil { // emitted before
		tool.Skip("tool_call_id", "tool_name", "tool_args", "result")
		e.v.Skip("error")
		return
	}
	if !e.said {
		m.Attachments = attachments(e.v)
	}
	markRepeat(e.v.Get("error"), conversation.SumOfText(m.Content))
}

// start emits a call at its first event.
func (t *calls) start(r *run, u use, at conversation.Time) {
	id, next, nameless := t.id(r, u)
	known := t.get(id)
	early := known != nil && known.Early
	if known != nil && known.Over && !early && id != next {
		id, known = next, nil
	}
	if known != nil && !early {
		known.mark(u)
		return
	}
	ident.Of(u.id)
	ident.Of(u.named)
	r.Text.close(r, at, msg.Complete)
	r.Text.follow(id)
	c := &call{Call: u.call(id), Nameless: nameless, At: at, Args: sumOf(u.args), Over: early, delegation: t.delegation(u)}
	if nameless {
		t.Nameless++
	}
	if c.Delegates {
		c.Draft = &draft{Arguments: str(u.args), Model: r.Model, Provider: r.Provider, Reply: r.Usage.Reply}
		for _, o := range t.open() {
			if o.Delegates {
				o.Parallel, c.Parallel = true, true
			}
		}
		c.delegate(r, early || c.Many)
	} else {
		m := r.answered(msg.ToolCall, "call:"+id, at)
		c.describe(m)
		m.Tool.Arguments = asText(u.args)
	}
	if early {
		t.remove(known)
	}
	t.add(r, c)
}

// describe makes the message one about the call.
func (c *call) describe(m *msg.Message) {
	m.Tool.CallID, m.Tool.Name, m.Tool.ProtocolID = c.ID, c.Name, c.ProtocolID
	_, m.Tool.Internal = machinery[c.Name]
	m.Hidden = m.Tool.Internal
}

// result emits the result of a call. It returns nil for a result that was emitted before.
func (t *calls) result(r *run, u use, at conversation.Time) *msg.Message {
	c := t.of(u, r)
	if c != nil {
		c.mark(u)
	} else {
		id, _, nameless := t.id(r, u)
		if nameless || t.get(id) != nil {
			return nil
		}
		ident.Of(u.id)
		ident.Of(u.named)
		c = &call{Call: u.call(id), At: at, Early: true, delegation: t.delegation(u)}
		t.add(r, c)
		if r.Joined && r.Text.size() == 0 {
			r.Text.follow(id) // the first of the calls, as results arrive in their order
		}
	}
	text, took := u.text(u.result), measured(u.metrics)
	if c.Delegates {
		t.endDelegation(r, c, text, at)
	}
	m := r.add(msg.ToolResult, "result:"+c.ID, at)
	c.describe(m)
	m.Role, m.Content, m.IsError = msg.RoleTool, text, u.failed
	switch {
	case u.refused:
		m.IsError, m.Tool.ErrorType = true, "denied"
	case u.failed:
		m.Tool.ErrorType = "tool_error"
	}
	if c.Delegates {
		c.delegated(r, m)
		took = c.lasted(took, at)
		if to := u.member(); m.Delegation.ChildRun == "" && to != "" && slug(to) != slug(c.To) {
			m.Delegation.To, m.Delegation.ToID = r.s.Names.of(to) // the member that answers, where it is another than the one asked
		}
	} else {
		m.SetAttr("duration", u.metrics.Get("duration").Digits())
	}
	m.Tool.Duration = took
	c.Over, c.Task = true, ""
	t.bound(r, true)
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

// of returns the open call of a result: by id; without an id the call with the same
// arguments, else the one to the same member, else the oldest.
func (t *calls) of(u use, r *run) *call {
	if id, _, nameless := t.id(r, u); !nameless {
		if c := t.get(id); c != nil && !c.Over {
			return c
		}
		return nil
	}
	to, args := t.delegation(u).To, sumOf(u.args)
	for _, fits := range [...]func(*call) bool{
		func(c *call) bool { return c.Args == args },
		func(c *call) bool { return to != "" && slug(c.To) == slug(to) },
		func(*call) bool { return true },
	} {
		if i := slices.IndexFunc(t.List, func(c *call) bool { return !c.Over && c.Nameless && c.Name == u.name && fits(c) }); i >= 0 {
			return t.List[i]
		}
	}
	return nil
}

// mark marks the fields that a later report of an open call repeats as read.
func (c *call) mark(u use) {
	if c == nil || c.Over {
		return
	}
	ident.Of(u.id)
	u.named.Equal(c.Name)
	if sumOf(u.args) == c.Args {
		u.args.MarkRead()
	}
}

// id returns the id of a call, unique in the session, and the id of the next call that the model names alike. Most
// providers' ids are unique; one that counts has the run before it, and a number after it where the provider counts
// the calls of each response (functions.search:0). A call without an id has one made of its run and its ordinal.
func (t *calls) id(r *run, u use) (id, next string, nameless bool) {
	own := ident.PeekOrNumber(u.id)
	if own == "" {
		id = r.key("call/" + strconv.Itoa(t.Nameless))
		return id, id, true
	}
	id = ident.Within(r.ID, own)
	next = id
	if first := id; first != own {
		for n := 1; t.get(next) != nil; n++ {
			id, next = next, first+"/"+strconv.Itoa(n)
		}
	}
	return id, next, false
}

// call returns the call with that id.
func (u use) call(id string) conversation.Call {
	c := conversation.Call{ID: id, Name: u.name}
	if own := ident.PeekOrNumber(u.id); own != id {
		c.ProtocolID = own
	}
	return c
}

// machinery are the tools of the framework itself, and to how many members they delegate: none, one or many.
var machinery = conversation.Rules(map[string]int{
	"think analyze reasoning_step create_task update_task_status list_tasks add_task_note mark_all_complete": 0,
	"delegate_task_to_member execute_task":                              1, // since 2.0, the latter in the tasks mode
	"transfer_task_to_member forward_task_to_member":                    1, // of 1.x
	"delegate_task_to_members run_member_agents execute_tasks_parallel": many,
})

const many = 2

// task is an entry in the task list of a team.
type task struct {
	ID   string
	Text string
}

// task returns the text of a task, or its id when no event described the task.
func (t *calls) task(v jsonv.Value) string {
	id := ident.PeekOrNumber(v)
	if i := slices.IndexFunc(t.Tasks, func(k task) bool { return k.ID == id }); i >= 0 {
		return t.Tasks[i].Text
	}
	return id
}

// learnTask notes the task of an event.
func (t *calls) learnTask(v jsonv.Value) {
	id := ident.OrNumber(v.Get("task_id"))
	if id == "" || t.task(v.Get("task_id")) != id {
		return
	}
	t.Tasks = bounded.Push(t.Tasks, task{id, cmp.Or(v.Get("description").PeekStr(), v.Get("title").PeekStr())}, maxTasks)
}
