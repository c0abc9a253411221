package llmmessage

import (
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// call is a tool call that has not ended, or whose id in the protocol is not known.
type call struct {
	ID      string
	Name    string
	Model   string    `json:",omitempty"` // the model's id for it, which only snapshots have
	To      string    `json:",omitempty"` // the agent that it delegates to
	Base    string    // its signature, see callSignature
	Run     string    `json:",omitempty"`
	Parent  string    `json:",omitempty"` // run
	Agent   string    `json:",omitempty"`
	Steps   []string  // ids of the events that began it; none while only a snapshot has it
	HasDone bool      `json:",omitempty"` // it has its result
	Told    eventInfo `json:",omitzero"`  // from the event that began it
	Result  eventInfo `json:",omitzero"`
}

// eventInfo is the part of a call, or of its result, that an event has and a snapshot does not.
type eventInfo struct {
	Heard bool   `json:",omitempty"`
	At    at     `json:",omitzero"`
	Step  string `json:",omitempty"`
	Sum   uint64 `json:",omitempty"` // of the content
	Class string `json:",omitempty"` // of the error
	Error string `json:",omitempty"`
	Data  string `json:",omitempty"`
}

// identifiedCall is a call with the id that it has in snapshots.
type identifiedCall struct {
	ID, Call string
	To       string `json:",omitempty"`
}

// delegate returns the agent that a call delegates to, and the task: the tool named task runs a
// sub-agent within the session. to is empty for any other call.
func delegate(tool string, args jsonv.Value) (to string, work msg.Text) {
	if tool != "task" || !args.Get("description").Is(jsonv.String) {
		return "", msg.Text{}
	}
	return ident.Of(args.Get("subagent_type")), msg.Plain(args.Get("description").Str())
}

// callSignature is equal for the event and the snapshot of a call: its tool and a hash of its
// arguments, in any notation.
func (d *stream) callSignature(tool string, args jsonv.Value) string {
	var doc jsonv.Doc
	args = arguments(&doc, args)
	body := canonical(nil, args)
	if !args.Exists() {
		body = []byte("{}")
	}
	return tool + ":" + msg.HashKey(string(body))[:16]
}

// arguments parses arguments that are a string of JSON, as the model wrote them.
func arguments(doc *jsonv.Doc, args jsonv.Value) jsonv.Value {
	if !args.Is(jsonv.String) {
		return args
	}
	text := []byte(args.PeekStr())
	if len(text) == 0 {
		text = []byte("{}")
	}
	if doc.Parse(text) != nil {
		return args
	}
	return doc.Root()
}

// toolCall decodes the beginning of a call.
func (d *stream) toolCall(e *event) {
	e.ensureTurn()
	name := ident.Of(e.meta.First("tool", "tool_name"))
	args := e.meta.Get("args")
	if name == "" { // as the documents have it
		name, args = ident.Of(e.content.First("tool_name", "tool")), e.content.Get("arguments")
	}
	if name == "" {
		d.addUnknownEvent(e)
		return
	}
	e.content.Equal("Calling tool: " + name)
	base := d.callSignature(name, args)
	if c := e.s.wrappedCall(e.step, base); c != nil {
		c.Steps = append(c.Steps, e.step)
		e.addCallStatus(c).SetAttr("step_id", e.step)
		return
	}
	c := e.s.callFromSnapshot(base)
	if c == nil {
		id := base + nth(e.s.Given.emit("call:"+base))
		c = e.s.addOpenCall(call{ID: id, Name: name, Base: base, Run: e.s.Turn.Run, Agent: e.s.Agent})
		if p := e.s.onlyPhase(); p != nil {
			c.Run, c.Parent, c.Agent = p.Call, e.s.Turn.Run, p.Agent
		}
	}
	c.Steps = []string{e.step}
	c.Told = eventInfo{Heard: true, At: e.at, Step: e.step}
	e.addCall(c, args, args.JSON())
}

// addCall emits the beginning of a call, with the facts that events and snapshots have had so
// far.
func (e *event) addCall(c *call, args jsonv.Value, written msg.Text) {
	m := e.addForCall(c, msg.ToolCall, "call:"+c.ID)
	m.Role, m.Tool.Arguments = msg.RoleAssistant, written
	var work msg.Text
	if c.To, work = delegate(c.Name, args); c.To != "" {
		m.Kind, m.Delegation.To, m.Delegation.Task = msg.Delegation, c.To, work
	}
	e.setCompleteness(m, c, &c.Told)
	m.SetAttr("step_id", c.Told.Step)
}

// setCompleteness marks how much of a call is known: an event lacks the model's id, a snapshot
// lacks the time. With both the call is complete.
func (e *event) setCompleteness(m *msg.Message, c *call, t *eventInfo) {
	m.Tool.ProtocolID, m.Complete = c.Model, msg.Complete
	switch {
	case c.Model == "" && c.Base != "":
		m.Tool.ProtocolID, m.Complete = msg.UnknownID, msg.Summary
	case !t.Heard:
		m.Complete = msg.Summary
	}
	if t.At.Time != 0 {
		m.Time, m.Precision = t.At.Time, t.At.Precision
	}
}

// addOpenCall remembers a call until its result arrives.
func (s *session) addOpenCall(c call) *call {
	if len(s.Calls) == maxCalls {
		s.Calls = slices.Delete(s.Calls, 0, 1)
	}
	s.Calls = append(s.Calls, c)
	return &s.Calls[len(s.Calls)-1]
}

// callFromSnapshot finds a call that a snapshot had before its event arrived.
func (s *session) callFromSnapshot(base string) *call {
	for i := range s.Calls {
		if c := &s.Calls[i]; c.Base == base && len(c.Steps) == 0 {
			return c
		}
	}
	return nil
}

// wrappedCall finds the call that the event repeats: in each turn a session wraps its tools
// once more, and every wrapper sends events of its own. Such an event follows without another
// call in between, has the same signature, and the next step number.
func (s *session) wrappedCall(step, base string) *call {
	if len(s.Calls) == 0 || s.activePhases() > 0 {
		return nil
	}
	c := &s.Calls[len(s.Calls)-1]
	if len(c.Steps) == 0 {
		return nil
	}
	last := c.Steps[len(c.Steps)-1]
	if c.HasDone || c.Base != base || len(c.Steps) >= 64 || stepNumber(step) < 0 || stepNumber(step) != stepNumber(last)+1 {
		return nil
	}
	return c
}

// stepNumber is the number in a step's id: step_<n>_<tool>; -1 when there is none.
func stepNumber(step string) int {
	rest, ok := strings.CutPrefix(step, "step_")
	number, _, ok2 := strings.Cut(rest, "_")
	n, err := strconv.Atoi(number)
	if !ok || !ok2 || err != nil {
		return -1
	}
	return n
}

// toolResult decodes the end of a call.
func (d *stream) toolResult(e *event) {
	s := e.s
	i := slices.IndexFunc(s.Calls, func(c call) bool { return slices.Contains(c.Steps, e.step) })
	tool := e.meta.First("tool", "tool_name")
	if i < 0 {
		if s.Turn.Run == "" {
			e.ensureTurn()
		}
		c := call{ID: "step:" + s.Turn.Run + "/" + e.step, Name: ident.Of(tool), Run: s.Turn.Run, Agent: s.Agent}
		if e.step == "" {
			c.ID = e.key()
		}
		d.addEventResult(e, &c)
		return
	}
	c := s.Calls[i]
	tool.Equal(c.Name)
	if c.Model == "" && !c.HasDone {
		defer func() { s.addUnidentified(c) }()
	}
	rest := slices.DeleteFunc(slices.Clone(c.Steps), func(step string) bool { return step == e.step })
	done := c.HasDone
	if len(rest) == 0 {
		s.Calls = slices.Delete(s.Calls, i, i+1)
	} else {
		s.Calls[i].Steps, s.Calls[i].HasDone = rest, true
	}
	if done { // the event of an outer wrapper
		d.markRepeatedResult(e, &c.Result)
		e.addCallStatus(&c).SetAttr("step_id", e.step)
		return
	}
	d.endWaits(e, c.ID)
	d.addEventResult(e, &c)
	if len(rest) > 0 {
		s.Calls[i].Result = c.Result
	}
}

// markRepeatedResult marks the fields of an event as read that repeat a result.
func (d *stream) markRepeatedResult(e *event, was *eventInfo) {
	text := []byte(e.content.PeekStr())
	if !e.content.Is(jsonv.String) {
		text = e.content.Peek()
	}
	if d.hash(text) == was.Sum {
		e.content.MarkRead()
	}
	e.meta.Get("error").Equal(was.Error)
	if data := e.meta.Get("data"); string(data.Peek()) == was.Data {
		data.MarkRead()
	}
}

// addUnidentified remembers a call that has its result until a snapshot has its id.
func (s *session) addUnidentified(c call) {
	c.Steps, c.HasDone = nil, true
	if len(s.Nameless) == maxNameless {
		s.Nameless = slices.Delete(s.Nameless, 0, 1)
	}
	s.Nameless = append(s.Nameless, c)
}

// addEventResult emits the result of a call, once.
func (d *stream) addEventResult(e *event, c *call) {
	h := d.hash([]byte(c.ID))
	if e.s.Done.has(h) {
		e.addCallStatus(c)
		return
	}
	e.s.Done.add(h, maxDone)
	m := e.addResult(c)
	status, result := e.meta.First("status"), e.content
	if result.Is(jsonv.Object) { // as the documents have it
		result = e.content.Get("result")
		if !status.Exists() {
			status = e.content.Get("status")
		}
	}
	m.Content = result.Text()
	if status.Equal("failed") || status.Equal("error") {
		reason := e.meta.Get("error")
		m.IsError, m.Tool.ErrorType = true, errorClass(reason.PeekStr())
		if text := m.Content.String(); reason.Exists() && (text == "" || text == "None") {
			m.Content = reason.Text()
		} else {
			c.Result.Error = excerpt(reason)
		}
	}
	c.Result.Heard, c.Result.At, c.Result.Step, c.Result.Class = true, e.at, e.step, m.Tool.ErrorType
	c.Result.Sum, c.Result.Data = d.hash([]byte(m.Content.String())), shortJSON(e.meta.Get("data"))
	e.setEventFields(m, c)
}

// addResult adds the result of a call.
func (e *event) addResult(c *call) *msg.Message {
	m := e.addForCall(c, msg.ToolResult, "result:"+c.ID)
	m.Role = msg.RoleTool
	if c.To != "" {
		m.Kind, m.Delegation.To = msg.DelegationResult, c.To
	}
	return m
}

// setEventFields sets the fields of a result that only its event has.
func (e *event) setEventFields(m *msg.Message, c *call) {
	e.setCompleteness(m, c, &c.Result)
	m.SetAttr("error", c.Result.Error)
	m.SetAttr("data", c.Result.Data)
	m.SetAttr("step_id", c.Result.Step)
}

// errorClass derives the class of a tool's error from its text.
func errorClass(reason string) string {
	switch r := strings.ToLower(reason); {
	case strings.Contains(r, "timed out") || strings.Contains(r, "timeout"):
		return "timeout"
	case strings.Contains(r, "denied") || strings.Contains(r, "not confirmed") || strings.Contains(r, "rejected by user") || strings.Contains(r, "cancelled by user"):
		return "denied"
	case strings.Contains(r, "unknown tool"):
		return "not_found"
	case strings.Contains(r, "invalid json") || strings.Contains(r, "validation"):
		return "validation"
	}
	return "tool_error"
}

// addForCall adds a message of a call, in its run.
func (e *event) addForCall(c *call, kind msg.Kind, key string) *msg.Message {
	m := e.add(kind, key)
	m.Run, m.ParentRun, m.Agent.Name = c.Run, c.Parent, c.Agent
	if c.Parent != "" {
		m.Delegation.Link = msg.ByParent
	}
	m.Tool.CallID, m.Tool.Name, m.Tool.ProtocolID = c.ID, c.Name, c.Model
	return m
}

// addCallStatus adds a status that concerns a call.
func (e *event) addCallStatus(c *call) *msg.Message {
	m := e.addForCall(c, msg.Status, e.key())
	m.Hidden = true
	m.SetAttr("type", e.name)
	return m
}
