package llmmessage

import (
	"slices"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// call is a tool call that is not over.
type call struct {
	ID      string
	Name    string
	Base    string   // what tells it from other calls: tool and arguments
	Run     string   `json:",omitempty"`
	Parent  string   `json:",omitempty"` // run
	Agent   string   `json:",omitempty"`
	Steps   []string // under which it is known; none while only a snapshot has told of it
	HasDone bool     `json:",omitempty"` // it has its result
}

// named is a call under the id that snapshots have for it.
type named struct{ ID, Call string }

// baseOf is what an event and a snapshot both say of a call: its tool, and its
// arguments, however they are written.
func (d *stream) baseOf(tool string, args jsonv.Value) string {
	var doc jsonv.Doc
	if args.Is(jsonv.String) { // as the model wrote them
		text := []byte(args.Str())
		if len(text) == 0 {
			text = []byte("{}")
		}
		if doc.Parse(text) == nil {
			args = doc.Root()
		}
	}
	body := canonical(nil, args)
	if !args.Exists() {
		body = []byte("{}")
	}
	return tool + ":" + msg.HashKey(string(body))[:16]
}

// toolCall decodes the beginning of a call.
func (d *stream) toolCall(e *event) {
	e.wake()
	name := ident(first(e.meta, "tool", "tool_name"))
	args := e.meta.Get("args")
	if name == "" { // as the documents have it
		name, args = ident(first(e.content, "tool_name", "tool")), e.content.Get("arguments")
	}
	if name == "" {
		d.strange(e)
		return
	}
	base := d.baseOf(name, args)
	if c := e.s.within(e.step, base); c != nil {
		c.Steps = append(c.Steps, e.step)
		e.about(c).SetAttr("step_id", e.step)
		return
	}
	c := e.s.shown(base)
	if c == nil {
		id := base + nth(e.s.Given.give("call:"+base))
		c = e.s.open(call{ID: id, Name: name, Base: base, Run: e.s.Turn.Run, Agent: e.s.Agent})
		if p := e.s.only(); p != nil {
			c.Run, c.Parent, c.Agent = p.Call, e.s.Turn.Run, p.Agent
		}
	}
	c.Steps = []string{e.step}
	m := e.of(c, msg.ToolCall, "call:"+c.ID)
	m.Role = msg.RoleAssistant
	m.Tool.Arguments = args.JSON()
	m.SetAttr("step_id", e.step)
}

// open remembers a call until its result comes.
func (s *session) open(c call) *call {
	if len(s.Calls) == maxCalls {
		s.Calls = slices.Delete(s.Calls, 0, 1)
	}
	s.Calls = append(s.Calls, c)
	return &s.Calls[len(s.Calls)-1]
}

// shown finds the call that a snapshot has told of before the events did.
func (s *session) shown(base string) *call {
	for i := range s.Calls {
		if c := &s.Calls[i]; c.Base == base && len(c.Steps) == 0 {
			return c
		}
	}
	return nil
}

// within finds the call of which the event tells once more, from within: the tools
// of a session are wrapped anew in each turn, and every wrapping speaks. Nothing has
// come between, the call is the same, and its step is the next.
func (s *session) within(step, base string) *call {
	if len(s.Calls) == 0 || s.handing() > 0 {
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
	name := ident(first(e.meta, "tool", "tool_name"))
	if i < 0 {
		if s.Turn.Run == "" {
			e.wake()
		}
		c := call{ID: "step:" + s.Turn.Run + "/" + e.step, Name: name, Run: s.Turn.Run, Agent: s.Agent}
		if e.step == "" {
			c.ID = e.key()
		}
		d.result(e, &c)
		return
	}
	c := s.Calls[i]
	rest := slices.DeleteFunc(slices.Clone(c.Steps), func(step string) bool { return step == e.step })
	done := c.HasDone
	if len(rest) == 0 {
		s.Calls = slices.Delete(s.Calls, i, i+1)
	} else {
		s.Calls[i].Steps, s.Calls[i].HasDone = rest, true
	}
	if done { // of the wrapping around it
		e.about(&c).SetAttr("step_id", e.step)
		return
	}
	d.waited(e, c.ID)
	d.result(e, &c)
}

// result gives the result of a call, once.
func (d *stream) result(e *event, c *call) {
	h := d.hash([]byte(c.ID))
	if e.s.Done.has(h) {
		e.about(c)
		return
	}
	e.s.Done.add(h, maxDone)
	m := e.of(c, msg.ToolResult, "result:"+c.ID)
	m.Role = msg.RoleTool
	m.Content = e.content.Text()
	status := first(e.meta, "status")
	if e.content.Is(jsonv.Object) { // as the documents have it
		m.Content = e.content.Get("result").Text()
		if !status.Exists() {
			status = e.content.Get("status")
		}
	}
	if status.Equal("failed") || status.Equal("error") {
		reason := e.meta.Get("error")
		m.IsError, m.Tool.ErrorType = true, errorClass(reason.Str())
		if text := m.Content.String(); reason.Exists() && (text == "" || text == "None") {
			m.Content = reason.Text()
		} else {
			m.SetAttr("error", cut(reason.Str(), maxAttr))
		}
	}
	m.SetAttr("data", small(e.meta.Get("data")))
	m.SetAttr("step_id", e.step)
}

// errorClass is the class of a tool's error, as far as its words tell.
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

// of adds a message of a call, in its run.
func (e *event) of(c *call, kind msg.Kind, key string) *msg.Message {
	m := e.give(kind, key)
	m.Run, m.ParentRun, m.Agent.Name = c.Run, c.Parent, c.Agent
	if c.Parent != "" {
		m.Delegation.Link = msg.ByParent
	}
	m.Tool.CallID, m.Tool.Name = c.ID, c.Name
	return m
}

// about adds a status that concerns a call.
func (e *event) about(c *call) *msg.Message {
	m := e.of(c, msg.Status, e.key())
	m.Hidden = true
	m.SetAttr("type", e.name)
	return m
}
