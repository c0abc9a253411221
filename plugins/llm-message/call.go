package llmmessage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// call is a tool call. Its ID is its signature, with the number of its occurrence; its ProtocolID
// is the model's id for it, which only snapshots have.
type call struct {
	conversation.Call
	place
	Signature string           `json:",omitempty"`
	To        string           `json:",omitempty"` // the agent that it delegates to
	Sum       conversation.Sum `json:",omitempty"` // of its item in a snapshot, or of the task in its start event
	Steps     []string         `json:",omitempty"` // ids of the events that began it and have no result
	Begin     evidence         `json:",omitzero"`
	Result    evidence         `json:",omitzero"`
	// Identified means that its result was emitted with the model's id.
	Identified bool `json:",omitempty"`

	// Of a call that a pipeline makes:
	Task   string `json:",omitempty"` // its name, unique in the turn
	Title  string `json:",omitempty"`
	Worker string `json:",omitempty"` // the agent that works on it, where its name is known
}

// newCall is a call of the agent whose event or memory it is.
func (d *stream) newCall(key, name, signature string) *call {
	return &call{Call: conversation.Call{ID: key, Name: name}, place: d.place(), Signature: signature}
}

// evidence is the part of a call, or of its result, that an event has and a snapshot does not.
type evidence struct {
	Event bool              `json:",omitempty"` // there was an event
	At    conversation.Time `json:",omitzero"`
	Step  string            `json:",omitempty"`
	Text  conversation.Sum  `json:",omitempty"`
	Same  conversation.Sum  `json:",omitempty"` // of the members that the events of wrappers repeat
	Class string            `json:",omitempty"` // of the error
	Error string            `json:",omitempty"`
	Data  string            `json:",omitempty"`
}

// arguments reads the arguments of a call, which a snapshot has as a string of JSON, as the
// model wrote them. The signature is equal for the event and the snapshot of a call: its tool
// and a hash of its arguments, in any notation. The tool named task hands its description over to a
// sub-agent within the session: then the delegate has a name.
func arguments(tool string, v jsonv.Value) (to msg.Delegate, signature string) {
	raw := v.Peek()
	if v.Is(jsonv.String) {
		raw = v.Chars()
	}
	var args any
	if len(raw) > 0 && json.Unmarshal(raw, &args) != nil {
		args = v.PeekStr()
	}
	if args == nil {
		args = map[string]any{}
	}
	members, _ := args.(map[string]any)
	if task, ok := members["description"].(string); ok && tool == "task" {
		agent, _ := members["subagent_type"].(string)
		to = msg.Delegate{To: ident.Bounded(agent), Task: msg.Plain(task)}
	}
	return to, tool + ":" + msg.HashKey(string(canonical(nil, args)))[:16]
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
	case nil:
		return append(dst, "null"...)
	}
	return fmt.Append(dst, v) // a number or a boolean
}

// toolCall decodes the beginning of a call.
func toolCall(d *stream) {
	s := d.s
	d.ensureTurn()
	name, written := ident.Of(d.meta.First("tool", "tool_name")), d.meta.Get("args")
	if name == "" { // as the documents have it
		name, written = ident.Of(d.content.First("tool_name", "tool")), d.content.Get("arguments")
	}
	if name == "" {
		d.unknown(d.name, d.Root)
		return
	}
	d.content.Equal("Calling tool: " + name)
	to, sign := arguments(name, written)
	if c := s.Calls.Newest(func(c *call) bool { return c.Task == "" }); c != nil && c.Signature == sign && !s.inPhase() && c.isWrapped(d.step) {
		c.Steps = append(c.Steps, d.step)
		c.status(d)
		return
	}
	c := s.Calls.Oldest(func(c *call) bool { return c.Signature == sign && len(c.Steps) == 0 })
	if c == nil { // no snapshot was faster
		c = d.newCall(s.Emitted.emit(sign), name, sign)
		s.Calls.Add(c)
	}
	c.Steps, c.Begin = []string{d.step}, evidence{Event: true, At: d.At, Step: d.step}
	c.emit(d, to, written.JSON())
}

// isWrapped reports whether the step is a wrapper of the call: in each turn a session wraps its
// tools once more, and every wrapper sends events of its own. Such an event follows without
// another call in between, has the same signature, and the next step number: step_<n>_<tool>.
func (c *call) isWrapped(step string) bool {
	const deepest = 64
	if len(c.Steps) == 0 || len(c.Steps) >= deepest {
		return false
	}
	var last int
	_, _ = fmt.Sscanf(c.Steps[len(c.Steps)-1], "step_%d_", &last)
	return strings.HasPrefix(step, fmt.Sprintf("step_%d_", last+1))
}

// toolResult decodes the end of a call, or of a wrapper of it, which repeats the result. A call has one result.
func toolResult(d *stream) {
	s, tool := d.s, d.meta.First("tool", "tool_name")
	same, isOuter := sumOf(d.content.Peek(), d.meta.Peek()), false
	c := s.Calls.Find(func(c *call) bool { return slices.Contains(c.Steps, d.step) })
	if c == nil {
		if s.Turn.Run == "" {
			d.ensureTurn()
		}
		c = &call{Call: conversation.Call{ID: "step:" + s.Turn.Run + "/" + d.step, Name: ident.Of(tool)}, place: s.turnPlace()}
		if d.step == "" {
			c.ID = d.key()
		}
	} else {
		tool.Equal(c.Name)
		c.Steps = slices.DeleteFunc(c.Steps, func(step string) bool { return step == d.step })
		if isOuter = s.Calls.GetOpen(c.ID) == nil; !isOuter {
			s.Calls.End(c)
			d.endWaits(c.ID)
		}
	}
	if isOuter || !s.Emitted.once("result:"+c.ID) {
		if c.Result.Same == same {
			d.content.MarkRead()
			d.meta.MarkRead()
		}
		c.status(d)
		return
	}
	status, result := d.meta.Get("status"), d.content
	if result.Is(jsonv.Object) { // as the documents have it
		result, status = d.content.Get("result"), jsonv.Or(status, d.content.Get("status"))
	}
	text, r := result.Text(), &c.Result
	if status.In("failed", "error") {
		reason := d.meta.Get("error")
		r.Class = errorClass(reason.PeekStr())
		if s := text.String(); reason.Exists() && (s == "" || s == "None") {
			text = reason.Text()
		} else {
			r.Error = conversation.Excerpt(reason)
		}
	}
	r.Event, r.At, r.Step, r.Same, r.Text = true, d.At, d.step, same, conversation.SumOfText(text)
	r.Data = conversation.ShortJSON(d.meta.Get("data"))
	c.emitResult(d, text)
}

// add adds a message of the call.
func (c *call) add(d *stream, kind msg.Kind, key string) *msg.Message {
	m := d.addTo(c.place, kind, key)
	m.Tool.CallID, m.Tool.Name, m.Tool.ProtocolID, m.Tool.Internal = c.ID, c.Name, c.ProtocolID, c.Task != ""
	if c.isPhase() {
		conversation.Causes(m, c.ID)
	}
	return m
}

// status adds a status of a wrapper of the call.
func (c *call) status(d *stream) {
	record.Hide(c.add(d, msg.Status, d.key()), d.name).SetAttr("step_id", d.step)
}

// emit emits the beginning of the call, with the facts that events and snapshots have had so
// far.
func (c *call) emit(d *stream, to msg.Delegate, written msg.Text) *msg.Message {
	m := c.add(d, msg.ToolCall, "call:"+c.ID)
	m.Role, m.Tool.Arguments = msg.RoleAssistant, written
	if c.To = to.To; c.To != "" {
		m.Kind, m.Delegation.To, m.Delegation.Task = msg.Delegation, c.To, to.Task
	}
	c.Begin.set(m, c)
	return m
}

// emitResult emits the result of the call in the same way.
func (c *call) emitResult(d *stream, text msg.Text) *msg.Message {
	m := c.add(d, msg.ToolResult, "result:"+c.ID)
	m.Role, m.Content = msg.RoleTool, text
	if c.To != "" {
		m.Kind, m.Delegation.To = msg.DelegationResult, c.To
	}
	m.IsError, m.Tool.ErrorType = c.Result.Class != "", c.Result.Class
	c.Result.set(m, c)
	c.Identified = c.ProtocolID != ""
	return m
}

// set marks how much of a call is known: an event lacks the model's id, a snapshot lacks the
// time. With both the call is complete.
func (t *evidence) set(m *msg.Message, c *call) {
	if unidentified := c.ProtocolID == "" && c.Signature != ""; unidentified || !t.Event {
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

// ask decodes the question whether a tool may run, or a plan be carried out.
func ask(d *stream) {
	d.ensureTurn()
	s, asked := d.s, conversation.Wait{ID: d.step, Run: d.s.Turn.Run}
	m := d.notice(d.text(), "scope")
	m.Hidden, m.Signal = false, msg.WaitStart
	if tool := ident.Of(d.meta.Get("tool_name")); tool != "" {
		_, sign := arguments(tool, d.meta.Get("tool_args"))
		same, alike := func(c *call) bool { return c.Signature == sign }, func(c *call) bool { return c.Name == tool }
		if c := cmp.Or(s.Calls.Oldest(same), s.Calls.Oldest(alike)); c != nil {
			asked.Call, asked.Run = c.ID, c.Run
			m.Run, m.ParentRun = c.Run, c.Parent
		}
		m.Tool.CallID, m.Tool.Name = asked.Call, tool
	}
	m.SetAttr("step_id", d.step)
	m.SetAttr("tool_description", conversation.Excerpt(d.meta.Get("tool_description")))
	s.Waits.Ask(asked)
}

// answer decodes the user's answer to a question.
func answer(d *stream) {
	m := d.notice(d.content.First("feedback", "reason").Text())
	if yes := d.content.First("confirmed", "approved"); yes.Is(jsonv.True) || yes.Is(jsonv.False) {
		m.SetAttr("confirmed", string(yes.Raw()))
	}
	m.SetAttr("step_id", d.step)
	if asked, ok := d.s.Waits.Answer(d.step); ok {
		endWait(m, asked)
	}
}

// endWaits ends the waits that a call's result, or the next step of a plan, proves to be over: on
// the server's side of the connection alone the user's answer is missing.
func (d *stream) endWaits(call string) {
	d.s.Waits = slices.DeleteFunc(d.s.Waits, func(asked conversation.Wait) bool {
		if asked.Call == call {
			m := record.Hide(d.add(msg.Status, "waited:"+asked.ID), "agent.user_confirm")
			m.SetAttr("step_id", asked.ID)
			endWait(m, asked)
		}
		return asked.Call == call
	})
}

func endWait(m *msg.Message, asked conversation.Wait) {
	m.Signal, m.Tool.CallID, m.Run = msg.WaitEnd, asked.Call, asked.Run
}
