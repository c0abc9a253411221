package agno

import (
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// The wire does not link a member's run to one of the team's open calls: the run names the
// team's run and no call. One open call is the caller. Of several (a model may delegate in
// parallel) the member that a call names decides, then their order. The result of a call
// repeats the text of its child, so it corrects the order for delegations that are not
// emitted as complete yet.

// childRun is a run that a delegation caused.
type childRun struct {
	Run        string
	Name       string         `json:",omitempty"`
	Link       msg.LinkMethod `json:",omitempty"`
	Confidence uint8          `json:",omitempty"`
	Guess      bool           `json:",omitempty"`
	Answer     hash           `json:",omitempty"` // of its text, when it is over
	End        int64          `json:",omitempty"` // Unix ns, when it is over
	ID         string         `json:",omitempty"` // the agent's
}

// delegationRef is a delegation, for children that appear only in the last event of the
// team's run.
type delegationRef struct {
	Call  string
	To    string
	Task  hash
	Many  bool `json:",omitempty"`
	Child bool `json:",omitempty"` // its child is known
}

// Confidence in percent of the ways to find a child's call.
const (
	byMember = 95 // the only open call that names the member
	byAnswer = 90 // the call's result is the child's text
	byGuess  = 50
)

// linkCall finds the call of the parent p that caused r.
func (s *stream) linkCall(p, r *run) {
	r.Link = msg.ByParent
	open := p.delegations(func(c *call) bool { return true })
	free := p.delegations(func(c *call) bool { return c.Many || len(c.Children) == 0 })
	if len(open) == 0 {
		return
	}
	if len(free) == 0 {
		free = open
	}
	fits := pick(free, func(c *call) bool { return namesAgent(c.To, r.Agent) })
	if len(fits) == 0 {
		fits = pick(free, func(c *call) bool { return c.Many })
	}
	if len(fits) == 0 {
		fits = free
	}
	c := fits[0]
	known := s.assignedCall(p, r)
	if known != nil && slices.Contains(fits, known) {
		c = known
	}
	// A call that has another child of the same name by order alone may be this run's call.
	n := len(fits) + len(p.delegations(func(o *call) bool {
		return !slices.Contains(fits, o) && len(o.Children) > 0 && o.Children[0].Guess && slug(o.To) == slug(c.To)
	}))
	switch {
	case len(open) == 1:
	case n == 1:
		r.Confidence = byMember
	case known == c && s.index.calls[r.ID].by == msg.ByPrompt:
		r.Link = msg.ByPrompt
	default:
		r.Link, r.Guess, r.Confidence = msg.ByOrder, true, uint8(100/n)
	}
	r.Call = c.ID
	for i := range p.Handed {
		if p.Handed[i].Call == c.ID {
			p.Handed[i].Child = true
		}
	}
	s.attachChild(p, c, r)
}

// assignedCall returns the call that was assigned to a stored child, if it is open.
func (s *stream) assignedCall(p, r *run) *call {
	if s.index == nil {
		return nil
	}
	a, ok := s.index.calls[r.ID]
	if !ok {
		return nil
	}
	return s.openCall(p, useOf(a.tool))
}

// delegations returns the open delegations that match.
func (r *run) delegations(match func(*call) bool) []*call {
	return pick(r.Calls, func(c *call) bool { return c.Delegates && !c.Inferred && match(c) })
}

func pick(calls []*call, match func(*call) bool) []*call {
	var out []*call
	for _, c := range calls {
		if match(c) {
			out = append(out, c)
		}
	}
	return out
}

// linkStored finds the call of a run that is decoded from messages: its task is known, and
// the calls of its parent may be over.
func (s *stream) linkStored(p, r *run, input msg.Text) {
	r.Link = msg.ByParent
	open := p.delegations(func(*call) bool { return true })
	if len(open) == 1 {
		s.linkCall(p, r)
		return
	}
	task := s.hashOf(input)
	find := func(by msg.LinkMethod, confidence uint8, ok func(*delegationRef) bool) {
		for i := range p.Handed {
			if h := &p.Handed[i]; r.Call == "" && (!h.Child || h.Many) && ok(h) {
				h.Child = true
				r.Call, r.Link, r.Confidence = h.Call, by, confidence
			}
		}
	}
	find(msg.ByPrompt, 0, func(h *delegationRef) bool { return h.Task == task })
	find(msg.ByParent, byMember, func(h *delegationRef) bool { return namesAgent(h.To, r.Agent) })
	find(msg.ByOrder, byGuess, func(*delegationRef) bool { return true })
	for _, c := range open {
		if c.ID == r.Call {
			s.attachChild(p, c, r)
			return
		}
	}
	s.emitLink(p, r)
}

// emitLink emits the child run of a call that is over.
func (s *stream) emitLink(p, r *run) {
	i := slices.IndexFunc(p.Handed, func(h delegationRef) bool { return h.Call == r.Call })
	if i < 0 || p.Handed[i].Many {
		return
	}
	m := s.addStatus(p, "", "link", p.Last)
	m.Key, m.Tool.CallID, m.Signal = "link:"+r.Call, r.Call, msg.Link
	m.Delegation.To, m.Delegation.ToID = s.delegateOf(&call{To: p.Handed[i].To, Children: []childRun{{ID: r.Agent.ID, Name: r.Agent.Name}}})
	m.Delegation.ChildRun, m.Delegation.Link, m.Delegation.Confidence = r.ID, r.Link, r.Confidence
}

// attachChild adds a child to the call of p.
func (s *stream) attachChild(p *run, c *call, r *run) {
	if len(c.Children) >= maxCalls {
		c.Children = c.Children[1:]
	}
	c.Children = append(c.Children, childRun{Run: r.ID, ID: r.Agent.ID, Name: r.Agent.Name, Link: r.Link, Confidence: r.Confidence, Guess: r.Guess})
	s.emitDelegation(p, c, true)
}

// namesAgent reports whether member is the id or the name of the agent.
func namesAgent(member string, a msg.Agent) bool {
	to := slug(member)
	return to != "" && (to == slug(a.ID) || to == slug(a.Name))
}

// rememberDelegation adds a delegation to the run's state.
func (s *stream) rememberDelegation(r *run, c *call) {
	if len(r.Handed) >= maxCalls {
		r.Handed = r.Handed[1:]
	}
	for _, o := range r.Calls {
		if o.Delegates {
			o.Beside, c.Beside = true, true
		}
	}
	r.Handed = append(r.Handed, delegationRef{Call: c.ID, To: c.To, Task: noText.add([]byte(c.Task)), Many: c.Many})
}

// recordChildEnd notes the text and the end of a child in the call that caused it.
func (s *stream) recordChildEnd(r *run, answer hash, at stamp) {
	p := s.runs[r.Parent]
	if p == nil {
		return
	}
	for _, c := range p.Calls {
		for i := range c.Children {
			if k := &c.Children[i]; k.Run == r.ID {
				k.Answer, k.ID, k.Name, k.End = answer, r.Agent.ID, r.Agent.Name, at.NS
			}
		}
	}
	if p.Agent.Kind == msg.KindWorkflow {
		if len(p.Steps) >= 16 {
			p.Steps = p.Steps[1:]
		}
		p.Steps = append(p.Steps, answer)
	}
}

// fillDelegationResult makes m the result of a delegation.
func (s *stream) fillDelegationResult(r *run, c *call, m *msg.Message) {
	m.Kind, m.Hidden, m.Tool.Internal = msg.DelegationResult, false, true
	m.Delegation.To, m.Delegation.ToID = s.delegateOf(c)
	switch len(c.Children) {
	case 0:
		if text := m.Content.String(); strings.HasPrefix(text, "Member with ID ") && strings.Contains(text, " not found") {
			m.IsError, m.Tool.ErrorType = true, "not_found"
		}
	case 1:
		k := c.Children[0]
		m.Delegation.ChildRun, m.Delegation.Link, m.Delegation.Confidence = k.Run, k.Link, k.Confidence
	}
}

// confirmChild compares the call's result with the text of the child that order chose. When
// another call's child has that text, the two calls swap their children.
func (r *run) confirmChild(c *call, answer hash) {
	mine := &c.Children[0]
	if mine.Answer == answer {
		mine.Confidence, mine.Guess = byAnswer, false
		return
	}
	var other *childRun
	for _, o := range r.Calls {
		if o != c && len(o.Children) == 1 && o.Children[0].Guess && o.Children[0].Answer == answer {
			if other != nil {
				return
			}
			other = &o.Children[0]
		}
	}
	if other != nil {
		*mine, *other = *other, *mine
		mine.Link, mine.Confidence, mine.Guess = msg.ByPrompt, byAnswer, false
	}
}
