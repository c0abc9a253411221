package legion

import (
	"bytes"
	"cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// call is a tool call of which a record may follow.
type call struct {
	conversation.Call
	Issued bool   `json:",omitempty"` // its message was emitted; else only a result or a sub-agent named it
	To     string `json:",omitempty"` // of a delegation
	Run    string `json:",omitempty"`
	Parent string `json:",omitempty"` // run
	Caused string `json:",omitempty"` // the call by which its run exists

	Delegates bool      `json:",omitempty"`
	Launched  bool      `json:",omitempty"` // its sub-agent works in the background; the result follows
	Task      string    `json:",omitempty"` // the sub-agent's id
	Wait      waitState `json:",omitempty"`
	Request   string    `json:",omitempty"` // for permission
	Denied    bool      `json:",omitempty"`
	Done      doneState `json:",omitempty"`
	Ended     int64     `json:",omitempty"` // ns
	Error     string    `json:",omitempty"`

	Child *lane `json:",omitempty"` // the sub-agent's run
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
	endOnly           // it has ended, and no record had its result
	done
)

// of makes the message one of the run that made the call.
func (c *call) of(m *msg.Message) {
	m.Run, m.ParentRun, m.ParentCall = c.Run, c.Parent, c.Caused
	m.Tool.CallID, m.Tool.Name = c.ID, c.Name
}

// in records the run that made the call.
func (c *call) in(l *lane) { c.Run, c.Parent, c.Caused = l.ID, l.Parent, l.Call }

// addCall adds a call of which this is the first record.
func (r *record) addCall(id string) *call {
	c := r.sc.newCall()
	*c = call{Call: conversation.Call{ID: id}, Run: r.s.Top.ID}
	_, evicted := r.s.Calls.Add(c)
	r.drop(evicted)
	return c
}

// drop takes back a call that the table has dropped, if any.
func (r *record) drop(c *call) {
	if c != nil {
		r.childDone(c)
		r.sc.free = append(r.sc.free, c)
	}
}

// childDone emits the tokens of the sub-agent of a call.
func (r *record) childDone(c *call) {
	if c.Child != nil {
		c.Child.settle(r.out, r.s)
	}
}

// laneOf returns the run of the sub-agent that the call caused; the turn for no call.
func (r *record) laneOf(parent jsonv.Value) *lane {
	id := parent.Chars()
	if len(id) == 0 {
		return &r.s.Top
	}
	c := r.s.Calls.Get(string(id))
	if c == nil {
		c = r.addCall(string(id))
		r.parent = parent
	} else {
		parent.MarkRead()
	}
	if c.Child == nil {
		c.Child = &lane{Run: conversation.Run{ID: c.ID, Child: true, Parent: c.Run, Call: c.ID, Link: msg.ByNativeID}, Agent: c.To}
	}
	return c.Child
}

// issue emits a tool call, or the delegation that it is, with its first record.
func (r *record) issue(id, name, input jsonv.Value, at stamp, response string) *call {
	callID := read(id)
	if len(callID) == 0 {
		return nil
	}
	c := r.s.Calls.Get(string(callID))
	if c != nil && c.Issued { // repeated
		name.Equal(c.Name)
		input.MarkRead()
		return c
	}
	r.wake()
	m := r.add(msg.ToolCall, msg.RoleAssistant)
	m.Key = "call:" + string(callID) // the id in it is remembered
	m.Tool.CallID = m.Key[len("call:"):]
	m.Tool.Name = cmp.Or(r.sc.name(name), "unknown")
	m.Tool.Server = conversation.ToolServer(m.Tool.Name)
	m.Tool.Arguments = input.JSON()
	r.lane.answer(m, response)
	at.or(r.at).Set(m)
	if c == nil {
		c = r.addCall(m.Tool.CallID)
	}
	c.Issued, c.Name = true, m.Tool.Name
	c.in(r.lane)
	if d, ok := r.sc.delegation(c.Name, input); ok {
		d.Link = m.Delegation.Link
		m.Kind, m.Delegation = msg.Delegation, d
		c.Delegates, c.To = true, d.To
		if c.Child != nil { // its messages precede the call
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
	errorType string // by the protocol
	bare      bool   // only the end is known; a record with the text may follow
	at        stamp
}

// finish emits a call's result once: the first with a text, or one without until then.
func (r *record) finish(id []byte, o outcome) {
	c := r.s.Calls.Get(string(id))
	if c == nil { // the call precedes the stream
		c = r.addCall(string(id))
		c.in(r.lane)
	}
	if c.Done == done || c.Done == endOnly && o.bare {
		return
	}
	if c.Done == ongoing {
		r.childDone(c)
		r.drop(r.s.Calls.End(c))
	}
	m := r.out.Add()
	m.Session, m.Kind, m.Role = r.s.ID, msg.ToolResult, msg.RoleTool
	r.sc.key = append(append(r.sc.key[:0], "result:"...), id...)
	m.Key = r.sc.str(r.sc.key)
	c.of(m)
	m.Tool.Server = conversation.ToolServer(c.Name)
	if c.Caused != "" {
		m.Delegation.Link = msg.ByNativeID
	}
	m.Content, m.Attachments = o.text, o.files
	o.at.or(r.at).Set(m)
	if c.Done == endOnly { // the end that was recorded before counts
		o.failed, o.errorType = o.failed || c.Error != "", cmp.Or(c.Error, o.errorType)
		m.Time = c.Ended
	}
	if m.IsError = o.failed; o.failed {
		m.Tool.ErrorType = cmp.Or(o.errorType, c.errorType(o.text))
	}
	c.Done, m.Complete = done, msg.Complete
	if o.bare {
		c.Done, m.Complete = endOnly, msg.Summary
	}
	if c.Delegates {
		m.Kind = msg.DelegationResult
		m.Delegation.To = c.To
		if c.Child != nil {
			m.Delegation.ChildRun, m.Delegation.Link = c.Child.ID, msg.ByNativeID
		}
		if c.To == spawn.Codex {
			raw, _ := o.text.Alias()
			m.Delegation.CorrelationID = spawn.Output(raw)
		}
	}
	c.Ended, c.Error = m.Time, m.Tool.ErrorType
}

// errorType returns the class of a failure that the protocol only calls an error.
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

// ask begins the wait for a permission, and answer ends it.
func (r *record) ask(c *call, request jsonv.Value, at stamp) {
	if c.Wait != notAsked || c.Done != ongoing {
		return
	}
	c.Wait, c.Request = waiting, string(read(request))
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
	m.Key = prefix + c.ID
	c.of(m)
	m.Signal, m.Hidden = signal, true
	at.or(r.at).Set(m)
	m.SetAttr("type", "permission")
	return m
}
