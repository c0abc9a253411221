package conversation

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Delegation is a call that may hand work over to another agent. A decoder whose calls do so embeds it in the place of
// Call: the messages about the call then have the same key of their parent and name the same agent.
type Delegation struct {
	Call
	Task  bool   `json:",omitempty"` // it hands work over
	To    string `json:",omitempty"` // the agent that works
	Child string `json:",omitempty"` // its run, by its id in the protocol, once it is known
	Async bool   `json:",omitempty"` // it works in the background: the result is only that it has begun
}

// On writes the call into a message.
func (d *Delegation) On(m *msg.Message) {
	d.Call.On(m)
	if d.Task {
		m.Delegation.To, m.Delegation.Async = d.To, d.Async
	}
}

// Called makes the message the call with these arguments. The task is the work, if it hands work over.
func (d *Delegation) Called(m *msg.Message, arguments msg.Text, task jsonv.Value) {
	m.Kind, m.Tool.Arguments = msg.ToolCall, arguments
	if d.On(m); d.Task {
		m.Kind, m.Delegation.Task = msg.Delegation, task.Text()
	}
}

// About makes the message one about the call.
func (d *Delegation) About(m *msg.Message) *msg.Message {
	m.ParentKey = "call:" + d.ID
	d.On(m)
	return m
}

// Result makes the message the result of the call, which names the run that the call caused.
func (d *Delegation) Result(m *msg.Message) *msg.Message {
	m.Kind, m.Role = msg.ToolResult, msg.RoleTool
	if d.Task {
		m.Kind = msg.DelegationResult
		Causes(m, d.Child)
	}
	return d.About(m)
}
