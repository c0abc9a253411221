package legion

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// call is a tool call that may yet be spoken of. Exported fields are its state.
type call struct {
	id string

	Seq    uint64 `json:"seq"`
	Issued bool   `json:"issued,omitempty"` // its message was given; else only a result or a sub-agent told of it
	Name   string `json:"name,omitempty"`
	To     string `json:"to,omitempty"` // of a delegation
	Run    string `json:"run,omitempty"`
	Parent string `json:"parent,omitempty"` // run
	Caused string `json:"caused,omitempty"` // by which call its run exists

	Delegates bool      `json:"delegates,omitempty"`
	Launched  bool      `json:"launched,omitempty"` // its sub-agent works in the background; the result comes later
	Task      string    `json:"task,omitempty"`     // the sub-agent's id
	Wait      waitState `json:"wait,omitempty"`
	Request   string    `json:"request,omitempty"` // for permission
	Denied    bool      `json:"denied,omitempty"`
	Done      doneState `json:"done,omitempty"`
	Ended     int64     `json:"ended,omitempty"` // ns
	Error     string    `json:"error,omitempty"`

	Child *lane `json:"child,omitempty"` // the sub-agent's run
}

type waitState uint8

const (
	notAsked waitState = iota
	waiting
	answered
)

type doneState uint8

const (
	ongoing doneState = iota
	endOnly           // it is over, but its result was not told
	done
)

// meet returns a call that is spoken of for the first time.
func (r *record) meet(id string) *call {
	s := r.s
	if len(s.Calls) >= maxOpen+maxDone {
		r.forget(s.oldest())
	}
	r.d.clock++
	c := r.sc.newCall()
	*c = call{id: id, Seq: r.d.clock, Run: s.Top.Run}
	s.Calls[id] = c
	return c
}

func (s *session) oldest() (found *call) {
	for _, c := range s.Calls {
		if found == nil || c.Seq < found.Seq {
			found = c
		}
	}
	return found
}

// inOrder returns the calls, the oldest first.
func (s *session) inOrder() []*call {
	return slices.SortedFunc(maps.Values(s.Calls), func(a, b *call) int { return cmp.Compare(a.Seq, b.Seq) })
}

// forget drops a call, after giving the tokens of its sub-agent that were not
// given yet.
func (r *record) forget(c *call) {
	if c.Child != nil {
		c.Child.settle(r.out, r.s)
	}
	s := r.s
	delete(s.Calls, c.id)
	if len(s.Done) > 0 && s.Done[0] == c.id {
		s.Done = s.Done[1:]
	} else if i := slices.Index(s.Done, c.id); i > 0 {
		s.Done = slices.Delete(s.Done, i, i+1)
	}
	r.sc.release(c)
}

// laneOf returns the run of the sub-agent that the call caused; the turn for no
// call.
func (r *record) laneOf(parent jsonv.Value) *lane {
	id := peek(parent)
	if len(id) == 0 {
		return &r.s.Top
	}
	c := r.s.Calls[string(id)]
	if c == nil {
		c = r.meet(string(id))
		r.parent = parent
	} else {
		parent.MarkRead()
	}
	if c.Child == nil {
		c.Child = &lane{Run: c.id, Parent: c.Run, Call: c.id, Agent: c.To}
	}
	return c.Child
}

// issue gives a tool call, or the delegation that it is, when it is first told.
func (r *record) issue(id, name, input jsonv.Value, at stamp, response string) *call {
	known := chars(id)
	if len(known) == 0 {
		return nil
	}
	c := r.s.Calls[string(known)]
	if c != nil && c.Issued { // told again
		name.Equal(c.Name)
		input.MarkRead()
		return c
	}
	r.speak()
	m := r.add(msg.ToolCall, msg.RoleAssistant)
	m.Key = "call:" + string(known) // the id in it is remembered
	m.Tool.CallID = m.Key[len("call:"):]
	m.Tool.Name = r.sc.name(name)
	if m.Tool.Name == "" {
		m.Tool.Name = "unknown"
	}
	m.Tool.Server = serverOf(m.Tool.Name)
	m.Tool.Arguments = input.JSON()
	m.Model, m.Provider, m.ResponseID = r.lane.Model, providerOf(r.lane.Model), response
	at = at.or(r.at)
	m.Time, m.Precision = at.ns, at.precision
	if c == nil {
		c = r.meet(m.Tool.CallID)
	}
	c.Issued, c.Name = true, m.Tool.Name
	c.Run, c.Parent, c.Caused = r.lane.Run, r.lane.Parent, r.lane.Call
	if d, ok := r.sc.delegation(c.Name, input); ok {
		d.Link = m.Delegation.Link
		m.Kind, m.Delegation = msg.Delegation, d
		c.Delegates, c.To = true, d.To
		if c.Child != nil { // it spoke before its call was told
			c.Child.Agent, c.Child.Parent = d.To, c.Run
		}
	} else if s, ok := spawn.Call(c.Name, r.s.Dir, input); ok {
		s.On(m)
		c.Delegates, c.To = true, s.Agent
	}
	return c
}

// outcome is how a call ended.
type outcome struct {
	text      msg.Text
	files     []msg.Attachment
	failed    bool
	errorType string // where the protocol says
	bare      bool   // only that it ended is told; a record with the text may follow
	at        stamp
}

// finish gives a call's result, once: the first that has a text, or one without
// until then.
func (r *record) finish(id []byte, o outcome) {
	c := r.s.Calls[string(id)]
	if c == nil { // an orphan
		c = r.meet(string(id))
		c.Run, c.Parent, c.Caused = r.lane.Run, r.lane.Parent, r.lane.Call
	}
	if c.Done == done || c.Done == endOnly && o.bare {
		return
	}
	if c.Done == ongoing {
		r.over(c)
	}
	m := r.out.Add()
	m.Session, m.Kind, m.Role = r.s.id, msg.ToolResult, msg.RoleTool
	r.sc.key = append(append(r.sc.key[:0], "result:"...), id...)
	m.Key = r.sc.str(r.sc.key)
	m.Tool.CallID, m.Tool.Name, m.Tool.Server = c.id, c.Name, serverOf(c.Name)
	m.Run, m.ParentRun, m.ParentCall = c.Run, c.Parent, c.Caused
	if c.Caused != "" {
		m.Delegation.Link = msg.ByNativeID
	}
	m.Content, m.Attachments = o.text, o.files
	o.at = o.at.or(r.at)
	m.Time, m.Precision = o.at.ns, o.at.precision
	if c.Done == endOnly { // the end was told before: it stands
		o.failed, o.errorType = o.failed || c.Error != "", cmp.Or(c.Error, o.errorType)
		m.Time = c.Ended
	}
	if m.IsError = o.failed; o.failed {
		m.Tool.ErrorType = cmp.Or(o.errorType, c.errorType(o.text))
	}
	m.Complete = msg.Complete
	if o.bare {
		m.Complete = msg.Summary
	}
	if c.Delegates {
		m.Kind = msg.DelegationResult
		m.Delegation.To = c.To
		if c.Child != nil {
			m.Delegation.ChildRun, m.Delegation.Link = c.Child.Run, msg.ByNativeID
		}
		if c.To == spawn.Codex {
			raw, _ := o.text.Alias()
			m.Delegation.CorrelationID = spawn.Output(raw)
		}
	}
	c.Ended, c.Error, c.Done = m.Time, m.Tool.ErrorType, done
	if m.Complete == msg.Summary {
		c.Done = endOnly
	}
}

// over is what the end of a call brings: its sub-agent has ended too, and the
// call may be forgotten after a while.
func (r *record) over(c *call) {
	if c.Child != nil {
		c.Child.settle(r.out, r.s)
	}
	s := r.s
	if len(s.Done) >= maxDone {
		r.forget(s.Calls[s.Done[0]])
	}
	s.Done = append(s.Done, c.id)
}

// errorType classes a failure that the protocol only calls an error.
func (c *call) errorType(text msg.Text) string {
	head := opening(text)
	switch {
	case c.Denied,
		bytes.HasPrefix(head, []byte("User denied permission")),
		bytes.HasPrefix(head, []byte("The user doesn't want to")):
		return "denied"
	case bytes.HasPrefix(head, []byte("[Request interrupted")):
		return "interrupted"
	case bytes.HasPrefix(head, []byte("<tool_use_error>InputValidationError")):
		return "validation"
	}
	return "tool_error"
}

// ask and answer are the wait for a permission.
func (r *record) ask(c *call, request jsonv.Value, at stamp) {
	if c.Wait != notAsked || c.Done != ongoing {
		return
	}
	c.Wait, c.Request = waiting, string(chars(request))
	r.wait(c, msg.WaitStart, "wait:", at)
}

func (r *record) answer(c *call, granted bool, at stamp) {
	if c.Wait != waiting {
		return
	}
	c.Wait, c.Denied = answered, !granted
	decision := "deny"
	if granted {
		decision = "allow"
	}
	r.wait(c, msg.WaitEnd, "waited:", at).SetAttr("decision", decision)
}

func (r *record) wait(c *call, signal msg.Signal, prefix string, at stamp) *msg.Message {
	m := r.add(msg.Status, msg.NoRole)
	m.Key = prefix + c.id
	m.Run, m.ParentRun, m.ParentCall = c.Run, c.Parent, c.Caused
	m.Signal, m.Hidden = signal, true
	m.Tool.CallID, m.Tool.Name = c.id, c.Name
	at = at.or(r.at)
	m.Time, m.Precision = at.ns, at.precision
	m.SetAttr("type", "permission")
	return m
}

// serverOf returns the server of an MCP tool, mcp__<server>__<tool>.
func serverOf(tool string) string {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return ""
	}
	server, _, _ := strings.Cut(rest, "__")
	return server
}

func providerOf(model string) string {
	if strings.HasPrefix(model, "claude") {
		return "anthropic"
	}
	return ""
}
