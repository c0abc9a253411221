package llmmessage

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// call is a tool call. Its ID is its signature, with the number of its occurrence.
type call struct {
	conversation.Call
	Signature string
	Model     string   `json:",omitempty"` // the model's id for it, which only snapshots have
	To        string   `json:",omitempty"` // the agent that it delegates to
	Run       string   `json:",omitempty"`
	Parent    string   `json:",omitempty"` // run
	Agent     string   `json:",omitempty"`
	Steps     []string `json:",omitempty"` // ids of the events that began it and have no result
	Begin     evidence `json:",omitzero"`
	Result    evidence `json:",omitzero"`
	// Identified means that its result was emitted with the model's id.
	Identified bool `json:",omitempty"`
}

// evidence is the part of a call, or of its result, that an event has and a snapshot does not.
type evidence struct {
	Event bool              `json:",omitempty"` // there was an event
	At    conversation.Time `json:",omitzero"`
	Step  string            `json:",omitempty"`
	Text  uint64            `json:",omitempty"` // hash of the text
	Same  uint64            `json:",omitempty"` // hash of the members that the events of wrappers repeat
	Class string            `json:",omitempty"` // of the error
	Error string            `json:",omitempty"`
	Data  string            `json:",omitempty"`
}

// arguments reads the arguments of a call, which a snapshot has as a string of JSON, as the
// model wrote them. The signature is equal for the event and the snapshot of a call: its tool
// and a hash of its arguments, in any notation.
func arguments(tool string, v jsonv.Value) (args any, signature string) {
	raw := v.Peek()
	if v.Is(jsonv.String) {
		raw = []byte(v.PeekStr())
	}
	if len(raw) > 0 && json.Unmarshal(raw, &args) != nil {
		args = v.PeekStr()
	}
	if args == nil {
		args = map[string]any{}
	}
	return args, tool + ":" + msg.HashKey(string(canonical(nil, args)))[:16]
}

// canonical appends JSON so that equal documents become equal bytes: members in order, no
// space, numbers and strings in one form.
func canonical(dst []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		dst = append(dst, '{')
		for _, key := range slices.Sorted(maps.Keys(v)) {
			dst = append(canonical(append(strconv.AppendQuote(dst, key), ':'), v[key]), ',')
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for _, item := range v {
			dst = append(canonical(dst, item), ',')
		}
		return append(dst, ']')
	case string:
		return strconv.AppendQuote(dst, v)
	case float64:
		return strconv.AppendFloat(dst, v, 'g', -1, 64)
	case bool:
		return strconv.AppendBool(dst, v)
	}
	return append(dst, "null"...)
}

// delegate returns the agent that a call delegates to, and the task: the tool named task runs a
// sub-agent within the session. to is empty for any other call.
func delegate(tool string, args any) (to string, task msg.Text) {
	members, _ := args.(map[string]any)
	if text, ok := members["description"].(string); ok && tool == "task" {
		to, _ = members["subagent_type"].(string)
		return ident.Bounded(to), msg.Plain(text)
	}
	return "", msg.Text{}
}

// toolCall decodes the beginning of a call.
func (e *event) toolCall() {
	s := e.s
	e.ensureTurn()
	name, written := ident.Of(e.meta.First("tool", "tool_name")), e.meta.Get("args")
	if name == "" { // as the documents have it
		name, written = ident.Of(e.content.First("tool_name", "tool")), e.content.Get("arguments")
	}
	if name == "" {
		e.unknown(e.name, e.Root)
		return
	}
	e.content.Equal("Calling tool: " + name)
	args, sign := arguments(name, written)
	if c := s.Calls.Newest(func(*call) bool { return true }); c != nil && c.Signature == sign && s.Phases.count() == 0 && c.isWrapped(e.step) {
		c.Steps = append(c.Steps, e.step)
		c.status(e)
		return
	}
	c := s.Calls.Oldest(func(c *call) bool { return c.Signature == sign && len(c.Steps) == 0 })
	if c == nil { // no snapshot was faster
		c = &call{Call: conversation.Call{ID: s.Emitted.emit(sign), Name: name}, Signature: sign, Run: s.Turn.Run, Agent: s.Agent}
		if p := s.Phases.only(); p != nil {
			c.Run, c.Parent, c.Agent = p.Call, s.Turn.Run, p.Agent
		}
		s.Calls.Add(c)
	}
	c.Steps, c.Begin = []string{e.step}, evidence{Event: true, At: e.at, Step: e.step}
	c.emit(e, args, written.JSON())
}

// isWrapped reports whether the step is a wrapper of the call: in each turn a session wraps its
// tools once more, and every wrapper sends events of its own. Such an event follows without
// another call in between, has the same signature, and the next step number.
func (c *call) isWrapped(step string) bool {
	const deepest = 64
	if len(c.Steps) == 0 || len(c.Steps) >= deepest {
		return false
	}
	n, ok := stepNumber(step)
	last, _ := stepNumber(c.Steps[len(c.Steps)-1])
	return ok && n == last+1
}

// stepNumber is the number in a step's id: step_<n>_<tool>.
func stepNumber(step string) (n int, ok bool) {
	_, err := fmt.Sscanf(step, "step_%d_", &n)
	return n, err == nil && n >= 0
}

// toolResult decodes the end of a call.
func (e *event) toolResult() {
	s, tool := e.s, e.meta.First("tool", "tool_name")
	same := e.hash(e.content.Peek(), e.meta.Peek())
	for c := range s.Calls.All() {
		if !slices.Contains(c.Steps, e.step) {
			continue
		}
		tool.Equal(c.Name)
		c.Steps = slices.DeleteFunc(c.Steps, func(step string) bool { return step == e.step })
		if s.Calls.GetOpen(c.ID) != nil {
			s.Calls.End(c)
			s.Waits.end(e, c.ID)
			c.result(e, same)
			return
		}
		if c.Result.Same == same { // of an outer wrapper
			e.content.MarkRead()
			e.meta.MarkRead()
		}
		c.status(e)
		return
	}
	if s.Turn.Run == "" {
		e.ensureTurn()
	}
	id := "step:" + s.Turn.Run + "/" + e.step
	if e.step == "" {
		id = e.key()
	}
	c := &call{Call: conversation.Call{ID: id, Name: ident.Of(tool)}, Run: s.Turn.Run, Agent: s.Agent}
	c.result(e, same)
}

// result emits the result that an event has, once.
func (c *call) result(e *event, same uint64) {
	if !e.s.Done.Add(e.hash([]byte(c.ID)), maxDone) {
		c.status(e)
		return
	}
	status, result := e.meta.Get("status"), e.content
	if result.Is(jsonv.Object) { // as the documents have it
		result, status = e.content.Get("result"), jsonv.Or(status, e.content.Get("status"))
	}
	text, r := result.Text(), &c.Result
	if status.In("failed", "error") {
		reason := e.meta.Get("error")
		r.Class = errorClass(reason.PeekStr())
		if s := text.String(); reason.Exists() && (s == "" || s == "None") {
			text = reason.Text()
		} else {
			r.Error = conversation.Excerpt(reason)
		}
	}
	r.Event, r.At, r.Step, r.Same, r.Text = true, e.at, e.step, same, e.hash([]byte(text.String()))
	r.Data = conversation.ShortJSON(e.meta.Get("data"))
	c.emitResult(e, text)
}

// add adds a message of the call, in its run.
func (c *call) add(e *event, kind msg.Kind, key string) *msg.Message {
	m := e.add(kind, key)
	m.Run, m.ParentRun, m.Agent.Name = c.Run, c.Parent, c.Agent
	if c.Parent != "" {
		m.Delegation.Link = msg.ByParent
	}
	m.Tool.CallID, m.Tool.Name, m.Tool.ProtocolID = c.ID, c.Name, c.Model
	return m
}

// status adds a status of a wrapper of the call.
func (c *call) status(e *event) {
	record.Hide(c.add(e, msg.Status, e.key()), e.name).SetAttr("step_id", e.step)
}

// emit emits the beginning of the call, with the facts that events and snapshots have had so
// far.
func (c *call) emit(e *event, args any, written msg.Text) {
	m := c.add(e, msg.ToolCall, "call:"+c.ID)
	m.Role, m.Tool.Arguments = msg.RoleAssistant, written
	var task msg.Text
	if c.To, task = delegate(c.Name, args); c.To != "" {
		m.Kind, m.Delegation.To, m.Delegation.Task = msg.Delegation, c.To, task
	}
	c.Begin.set(m, c)
}

// emitResult emits the result of the call in the same way.
func (c *call) emitResult(e *event, text msg.Text) *msg.Message {
	m := c.add(e, msg.ToolResult, "result:"+c.ID)
	m.Role, m.Content = msg.RoleTool, text
	if c.To != "" {
		m.Kind, m.Delegation.To = msg.DelegationResult, c.To
	}
	m.IsError, m.Tool.ErrorType = c.Result.Class != "", c.Result.Class
	c.Result.set(m, c)
	c.Identified = c.Model != ""
	return m
}

// set marks how much of a call is known: an event lacks the model's id, a snapshot lacks the
// time. With both the call is complete.
func (t *evidence) set(m *msg.Message, c *call) {
	if unidentified := c.Model == "" && c.Signature != ""; unidentified || !t.Event {
		m.Complete = msg.Summary
		if unidentified {
			m.Tool.ProtocolID = msg.UnknownID
		}
	}
	if t.At.Nanos != 0 {
		t.At.Set(m)
	}
	m.SetAttr("error", t.Error)
	m.SetAttr("data", t.Data)
	m.SetAttr("step_id", t.Step)
}

// errorClass derives the class of a tool's error from its text.
func errorClass(reason string) string {
	return conversation.ErrorClass(strings.ToLower(reason), "timed out", "timeout", "timeout", "timeout", "denied", "denied",
		"not confirmed", "denied", "rejected by user", "denied", "cancelled by user", "denied",
		"unknown tool", "not_found", "invalid json", "validation", "validation", "validation")
}

// waits are the questions to the user that have no answer, oldest first.
type waits []wait

// wait is a question for which a call, or a plan, waits.
type wait struct {
	Step string
	Call string `json:",omitempty"`
	Run  string `json:",omitempty"`
}

// ask decodes the question whether a tool may run, or a plan be carried out.
func (w *waits) ask(e *event) {
	e.ensureTurn()
	s, asked := e.s, wait{Step: e.step, Run: e.s.Turn.Run}
	m := e.notice(e.text(), "scope")
	m.Hidden, m.Signal = false, msg.WaitStart
	if tool := ident.Of(e.meta.Get("tool_name")); tool != "" {
		_, sign := arguments(tool, e.meta.Get("tool_args"))
		c := s.Calls.Oldest(func(c *call) bool { return c.Signature == sign })
		if c == nil {
			c = s.Calls.Oldest(func(c *call) bool { return c.Name == tool })
		}
		if c != nil {
			asked.Call, asked.Run = c.ID, c.Run
			m.Run, m.ParentRun = c.Run, c.Parent
		}
		m.Tool.CallID, m.Tool.Name = asked.Call, tool
	}
	m.SetAttr("step_id", e.step)
	m.SetAttr("tool_description", conversation.Excerpt(e.meta.Get("tool_description")))
	*w = bounded.Push(*w, asked, maxWaits)
}

// answer decodes the user's answer to a question.
func (w *waits) answer(e *event) {
	m := e.notice(e.content.First("feedback", "reason").Text())
	if yes := e.content.First("confirmed", "approved"); yes.Is(jsonv.True) || yes.Is(jsonv.False) {
		m.SetAttr("confirmed", string(yes.Raw()))
	}
	m.SetAttr("step_id", e.step)
	if asked, ok := bounded.Take((*[]wait)(w), func(asked wait) bool { return asked.Step == e.step }); ok {
		asked.end(m)
	}
}

// end ends the waits that a call's result, or the next step of a plan, proves to be over: on
// the server's side of the connection alone the user's answer is missing.
func (w *waits) end(e *event, call string) {
	*w = slices.DeleteFunc(*w, func(asked wait) bool {
		if asked.Call == call {
			m := record.Hide(e.add(msg.Status, "waited:"+asked.Step), "agent.user_confirm")
			m.SetAttr("step_id", asked.Step)
			asked.end(m)
		}
		return asked.Call == call
	})
}

func (asked wait) end(m *msg.Message) {
	m.Signal, m.Tool.CallID, m.Run = msg.WaitEnd, asked.Call, asked.Run
}
