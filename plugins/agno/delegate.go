package agno

import (
	"cmp"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
)

// draft has the fields of a delegation that is emitted again when its member is known.
type draft struct {
	Arguments string
	Model     string `json:",omitempty"`
	Provider  string `json:",omitempty"`
	Reply     string `json:",omitempty"`
}

// emitDelegation emits a delegation. The model writes the id of a member; the display name is
// in the member's own events. The delegation is partial until an event of its member or the
// result arrives, so that every message has the same name for an agent.
func (s *stream) emitDelegation(r *run, c *call, complete bool) {
	if c.Draft == nil {
		return
	}
	m := s.addCall(r, c)
	m.Kind, m.Tool.Internal = msg.Delegation, true
	m.Tool.Arguments = msg.Plain(c.Draft.Arguments)
	m.Model, m.Provider, m.ResponseID = c.Draft.Model, c.Draft.Provider, c.Draft.Reply
	m.Delegation.Task = msg.Plain(c.Task)
	m.Delegation.To, m.Delegation.ToID = s.delegateOf(c)
	if len(c.Children) == 1 && !c.Many && !c.Children[0].Guess { // the result may correct a guess
		k := c.Children[0]
		m.Delegation.ChildRun, m.Delegation.Link, m.Delegation.Confidence = k.Run, k.Link, k.Confidence
	}
	if c.Inferred {
		m.Complete = msg.Summary
		m.SetAttr("inferred", "true")
	}
	if !complete {
		m.Complete = msg.Partial
		return
	}
	c.Draft = nil
}

// inferDelegation adds a delegation between a stored team and a run below it, when the stored
// form has none of the team's calls: the parent_run_id of the run proves the delegation.
func (s *stream) inferDelegation(p, r *run, at stamp) {
	if s.index == nil || r.Call != "" || len(p.Handed) > 0 || !p.Begun || p.Agent.Kind == msg.KindWorkflow || p == r {
		return
	}
	v := s.index.runs[r.ID]
	if made := stampOf(v.Get("created_at")); made.NS != 0 {
		at = made
	}
	r.Call, r.Link = msg.InferredCall(r.ID), msg.ByParent
	c := &call{
		ID: r.Call, Name: "delegate_task_to_member", At: at, Delegates: true, Inferred: true, To: cmp.Or(r.Agent.ID, r.Agent.Name), Task: inputOf(v).String(),
		Children: []childRun{{Run: r.ID, ID: r.Agent.ID, Name: r.Agent.Name, Link: msg.ByParent}}, Draft: &draft{},
	}
	p.Calls = append(p.Calls, c)
	s.emitDelegation(p, c, true)
}

// emitInferredResult emits the result of an inferred delegation when its child ends.
func (s *stream) emitInferredResult(r *run, failed bool, at stamp) {
	p := s.runs[r.Parent]
	if s.index == nil || p == nil || r.Call != msg.InferredCall(r.ID) {
		return
	}
	i := slices.IndexFunc(p.Calls, func(c *call) bool { return c.ID == r.Call })
	if i < 0 {
		return
	}
	c := p.Calls[i]
	p.Calls = slices.Delete(p.Calls, i, i+1)
	m := s.addMessage(p, msg.DelegationResult, "", at)
	m.Key, m.Role = "result:"+c.ID, msg.RoleTool
	m.Tool.CallID, m.Tool.Name, m.Tool.Internal = c.ID, c.Name, true
	m.Content, m.IsError = asText(s.index.runs[r.ID].Get("content")), failed
	m.Delegation.To, m.Delegation.ToID = s.delegateOf(c)
	m.Delegation.ChildRun, m.Delegation.Link = r.ID, msg.ByParent
	m.Complete = msg.Summary
	m.SetAttr("inferred", "true")
}

// delegateOf returns the name and the id of the member that a call delegates to.
func (s *stream) delegateOf(c *call) (name, id string) {
	if len(c.Children) == 1 {
		k := c.Children[0]
		if k.Name != "" && k.Name != k.ID && (!k.Guess || namesAgent(c.To, msg.Agent{ID: k.ID, Name: k.Name})) {
			if k.ID == "" {
				return k.Name, c.To
			}
			return k.Name, k.ID
		}
	}
	return s.memberName(c.To)
}

// memberName returns the display name and the id of the member that a call names, or the name
// in the call when no event named that member.
func (s *stream) memberName(written string) (name, id string) {
	if a, ok := s.agents.Of[slug(written)]; ok {
		return a.Name, a.ID
	}
	return written, ""
}

// agentNames has the agents of earlier events by their ids and by their names.
type agentNames struct {
	Of    map[string]msg.Agent `json:",omitempty"`
	Order []string             `json:",omitempty"`
}

// maxNames limits the names in the state.
const maxNames = 512

// learn notes an agent's name.
func (n *agentNames) learn(a msg.Agent) {
	if a.ID == "" || a.Name == "" || a.ID == a.Name {
		return
	}
	for _, known := range [...]string{slug(a.ID), slug(a.Name)} {
		if _, ok := n.Of[known]; ok {
			continue
		}
		if n.Of == nil {
			n.Of = make(map[string]msg.Agent)
		}
		n.Of[known] = a
		if n.Order = append(n.Order, known); len(n.Order) > maxNames {
			delete(n.Of, n.Order[0])
			n.Order = slices.Delete(n.Order, 0, 1)
		}
	}
}

// endDelegation ends a delegation that has its result, and its child runs, which may have no
// end event of their own.
func (s *stream) endDelegation(r *run, c *call, result msg.Text, at stamp) {
	if s.index != nil && len(c.Children) == 0 {
		if !c.Beside {
			s.index.latestEnd = at
		}
		s.reloadCalled(r, c)
		s.index.latestEnd = stamp{}
	}
	for i := range c.Children {
		if child := s.runs[c.Children[i].Run]; child != nil && child != r {
			done := at
			if c.Beside { // the result's time is that of the slowest delegation
				done = stamp{}
			}
			s.endUnannounced(child, done)
		}
	}
	if len(c.Children) == 1 && c.Children[0].Guess {
		r.confirmChild(c, s.hashOf(result))
	}
	s.emitDelegation(r, c, true)
}

// endUnannounced ends a run without an end event when its caller continues: with its stored
// object, or with the text so far. A run whose start was announced has its own end event.
func (s *stream) endUnannounced(r *run, at stamp) {
	if s.index != nil {
		if v, ok := s.index.runs[r.ID]; ok && !v.Get("status").Equal("PAUSED") {
			r.Last = at.or(r.Last)
			s.finish(r, v)
			return
		}
	}
	if r.Joined || r.Announced || r.Ceased {
		return
	}
	s.closePiece(r, "", r.Last, msg.Complete)
	s.recordChildEnd(r, r.Said.Hash, r.Last)
	s.emitPlaceholders(r, &event{at: r.Last})
	s.flushUsage(r)
	s.emitStop(r, &event{at: r.Last}, "completed")
	r.Ceased = true
}

// delegationDuration returns how long a delegate worked, in nanoseconds; 0 when it worked
// until its result was reported. AGNO reports the results of parallel delegations together,
// when the last one ends. took is the measured duration; for a member with a streamed answer
// it ends when the answer begins.
func (c *call) delegationDuration(took int64, at stamp) int64 {
	const second = int64(1e9)
	until := at.NS
	if len(c.Children) == 1 && c.Beside && c.Children[0].End != 0 {
		until = min(until, c.Children[0].End)
	}
	lasted := max(until-c.At.NS, 0)
	switch {
	case c.At.NS == 0:
	case took > lasted-second && took < lasted+second: // the same, and finer
		return took
	case until < at.NS:
		return max(lasted, 1)
	case c.Beside && len(c.Children) == 0 && took >= second && took < lasted: // of a member without events
		return took
	}
	return 0
}
