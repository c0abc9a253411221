package letta

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// No id on the wire links a run to its call in another agent's session, so both have a
// correlation id or prompt that both sides can compute (msg.Delegate.CorrelationID,
// CorrelationPrompt):
//
//   - a message to one agent has its receiver and its text, and a message to many, whose
//     call does not have the receivers, its sender and its text;
//   - a run in another run's count has the run's id.

// sentTo is the correlation prompt of a call that sends a message to one agent, and of the
// run that the message begins; empty when the agent or the text is unknown.
func sentTo(agent, text string) string { return correlationPrompt("to", agent, text) }

// sentBy is the correlation prompt of a call that sends a message to many agents, and of the
// runs that the message begins.
func sentBy(agent, text string) string { return correlationPrompt("by", agent, text) }

func correlationPrompt(way, agent, text string) string {
	const most = 64 << 10 // bytes of a text that is hashed
	if text = strings.TrimSpace(text); agent == "" || text == "" || len(text) > most {
		return ""
	}
	return "letta:letter:" + msg.HashKey(way, agent, text)
}

// setCorrelationID sets the correlation id of a run, by which the count of another run refers
// to it.
func (r *run) setCorrelationID(m *msg.Message) {
	r.Named, m.Delegation.CorrelationID = true, correlationID(r.ID)
}

func correlationID(id string) string { return "letta:run:" + id }

// sleeptime is the tool and the delegate of runs that the server begins itself.
const sleeptime = "sleeptime"

// sleeptimeRuns emits a delegation for each other run in a count: a run of a sleeptime agent,
// to which the server has handed the conversation at its end and for whose result no agent
// waits. The count has the ids of these runs and nothing else.
func (d *stream) sleeptimeRuns(r *run, ids jsonv.Value) {
	const most = 64
	n := 0
	for v := range ids.Elems() {
		id := ident.Of(v)
		if id == "" || id == r.ID || d.find(id) != nil { // a known run began before
			continue
		}
		if n++; n > most {
			return
		}
		call := sleeptime + ":" + id
		m := d.addMessage(r, msg.Delegation, "call:"+call)
		m.Hidden = true
		m.Tool.CallID, m.Tool.Name, m.Tool.Internal = call, sleeptime, true
		m.Delegation = msg.Delegate{To: sleeptime, ChildRun: id, Link: msg.ByNativeID, Async: true, CorrelationID: correlationID(id)}
		m = d.addMessage(r, msg.DelegationResult, "result:"+call)
		m.ParentKey, m.Hidden = "call:"+call, true
		m.Tool.CallID, m.Tool.Name, m.Tool.Internal = call, sleeptime, true
		m.Delegation = msg.Delegate{To: sleeptime, ChildRun: id, Link: msg.ByNativeID, Async: true}
	}
}
