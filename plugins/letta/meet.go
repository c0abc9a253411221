package letta

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// No id on the wire joins a run to what caused it in another agent's session, so calls and
// runs go by names that both sides can make (msg.Delegate.MeetID, MeetPrompt):
//
//   - a letter by its receiver and its text, and a letter to many, whose call does not
//     know the receivers, by its sender and its text;
//   - a run that another run's count names by the run's id.

// sentTo is the name of a call that sends a letter to one agent, and of the run that the
// letter begins; empty when one of both is not known.
func sentTo(agent, text string) string { return letterName("to", agent, text) }

// sentBy is the name of a call that sends a letter to many agents, and of the runs that the
// letter begins.
func sentBy(agent, text string) string { return letterName("by", agent, text) }

func letterName(way, agent, text string) string {
	const most = 64 << 10 // bytes of a text that is hashed
	if text = strings.TrimSpace(text); agent == "" || text == "" || len(text) > most {
		return ""
	}
	return "letta:letter:" + msg.HashKey(way, agent, text)
}

// meets names the run of m, so that a count of another run that names it finds it.
func (r *run) meets(m *msg.Message) {
	r.Named, m.Delegation.CorrelationID = true, runName(r.ID)
}

func runName(id string) string { return "letta:run:" + id }

// sleeptime is the tool and the delegate of runs that the server itself begins.
const sleeptime = "sleeptime"

// background gives the runs that a count names beside its own: those of agents to which the
// server has handed the conversation when it was over (sleeptime agents), and for which
// nobody waits. The count says which runs they are, and nothing else.
func (d *stream) background(r *run, ids jsonv.Value) {
	const most = 64
	n := 0
	for v := range ids.Elems() {
		id := ident.Of(v)
		if id == "" || id == r.ID || d.find(id) != nil { // one that is known was there before
			continue
		}
		if n++; n > most {
			return
		}
		call := sleeptime + ":" + id
		m := d.give(r, msg.Delegation, "call:"+call)
		m.Hidden = true
		m.Tool.CallID, m.Tool.Name, m.Tool.Internal = call, sleeptime, true
		m.Delegation = msg.Delegate{To: sleeptime, ChildRun: id, Link: msg.ByNativeID, Async: true, CorrelationID: runName(id)}
		m = d.give(r, msg.DelegationResult, "result:"+call)
		m.ParentKey, m.Hidden = "call:"+call, true
		m.Tool.CallID, m.Tool.Name, m.Tool.Internal = call, sleeptime, true
		m.Delegation = msg.Delegate{To: sleeptime, ChildRun: id, Link: msg.ByNativeID, Async: true}
	}
}
