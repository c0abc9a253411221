package assemble

import "github.com/earshot-dev/earshot/core/msg"

// A form of a conversation that has runs and no calls lets a decoder infer delegations:
// each child run was handed work (msg.InferredCall). Where another form has told of the
// call itself, the inferred one would be a second one.

// yield hides an inferred delegation, or its result, whose call was told, and puts the
// child below that call.
func (g *group) yield(m *msg.Message) {
	if m.ParentCall != "" && m.ParentCall == msg.InferredCall(m.Run) {
		if call, ok := g.caller(m.Run); ok {
			m.ParentCall = call
		}
	}
	d := &m.Delegation
	if m.Kind != msg.Delegation && m.Kind != msg.DelegationResult || d.ChildRun == "" || m.Tool.CallID != msg.InferredCall(d.ChildRun) {
		return
	}
	if _, ok := g.caller(d.ChildRun); ok || g.Forgot && g.Done[m.Tool.CallID].Run == "" && g.Open[m.Tool.CallID] == nil {
		m.Kind, m.Hidden, m.Tool.CallID = msg.Status, true, ""
		m.SetAttr("type", "inferred_delegation")
	}
}

// caller returns the call that caused a run, unless it was inferred.
func (g *group) caller(run string) (string, bool) {
	inferred := msg.InferredCall(run)
	if r := g.Runs[run]; r != nil && r.Call != "" && r.Call != inferred {
		return r.Call, true
	}
	for _, c := range g.Open {
		if c.Child == run && c.ID != inferred {
			return c.ID, true
		}
	}
	for id, d := range g.Done {
		if d.Child == run && id != inferred {
			return id, true
		}
	}
	return "", false
}

// history hides a message that comes without its run if runs were heard, which tell it. It
// reports whether that is so for good.
func (g *group) history(m *msg.Message, stream uint64) bool {
	if len(g.Order) > 0 {
		m.Hidden = true
		return true
	}
	g.History = stream
	return false
}

// supersede has such messages given again, now that there is a run.
func (g *group) supersede(out Emitter) {
	if g.History != 0 && out.Replayable(g.History) {
		out.ReplayChildren(g.History, RunRef{Tenant: g.key.tenant, Format: g.key.format, Session: g.key.session})
	}
	g.History = 0
}
