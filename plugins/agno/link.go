package agno

import (
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// Which of a team's open calls a member's run answers is not on the wire: the run
// names the team's run and no call. With one open call there is nothing to choose.
// With several (a model may delegate in parallel) the member that a call names
// decides, then their order; the answer of a call, which repeats what its child
// said, puts right what the order got wrong, as far as it is not already told.

// kid is a run that a delegation caused.
type kid struct {
	Run        string
	Name       string         `json:",omitempty"`
	Link       msg.LinkMethod `json:",omitempty"`
	Confidence uint8          `json:",omitempty"`
	Guess      bool           `json:",omitempty"`
	Answer     hash           `json:",omitempty"` // of what it said, when it is over
	End        int64          `json:",omitempty"` // Unix ns, when it is over
	ID         string         `json:",omitempty"` // the agent's
}

// handed is a delegation, for children that are only told at the end of the team's
// run.
type handed struct {
	Call  string
	To    string
	Task  hash
	Many  bool `json:",omitempty"`
	Child bool `json:",omitempty"` // has one
}

// Confidence in percent of the ways to find a child's call.
const (
	byMember = 95 // the only open call that names the member
	byAnswer = 90 // the call's result is what the child said
	byGuess  = 50
)

// pair finds the call of the parent p that caused r.
func (s *stream) pair(p, r *run) {
	r.Link = msg.ByParent
	open := p.delegations(func(c *call) bool { return true })
	free := p.delegations(func(c *call) bool { return c.Many || len(c.Children) == 0 })
	if len(open) == 0 {
		return
	}
	if len(free) == 0 {
		free = open
	}
	fits := pick(free, func(c *call) bool { return names(c.To, r.Agent) })
	if len(fits) == 0 {
		fits = pick(free, func(c *call) bool { return c.Many })
	}
	if len(fits) == 0 {
		fits = free
	}
	c := fits[0]
	known := s.assigned(p, r)
	if known != nil && slices.Contains(fits, known) {
		c = known
	}
	// A call that order gave to another child of the same name may be this one's.
	n := len(fits) + len(p.delegations(func(o *call) bool {
		return !slices.Contains(fits, o) && len(o.Children) > 0 && o.Children[0].Guess && slug(o.To) == slug(c.To)
	}))
	switch {
	case len(open) == 1:
	case n == 1:
		r.Confidence = byMember
	case known == c && s.book.answers[r.ID].by == msg.ByPrompt:
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
	s.adopt(p, c, r)
}

// assigned returns the call that a stored child was found to answer, if it is open.
func (s *stream) assigned(p, r *run) *call {
	if s.book == nil {
		return nil
	}
	a, ok := s.book.answers[r.ID]
	if !ok {
		return nil
	}
	return s.open(p, useOf(a.tool))
}

// delegations returns the open delegations that are so.
func (r *run) delegations(so func(*call) bool) []*call {
	return pick(r.Calls, func(c *call) bool { return c.Delegates && !c.Inferred && so(c) })
}

func pick(calls []*call, so func(*call) bool) []*call {
	var out []*call
	for _, c := range calls {
		if so(c) {
			out = append(out, c)
		}
	}
	return out
}

// match finds the call of a run that is rebuilt: here its task is known, and the
// calls of its parent may be over.
func (s *stream) match(p, r *run, input msg.Text) {
	r.Link = msg.ByParent
	open := p.delegations(func(*call) bool { return true })
	if len(open) == 1 {
		s.pair(p, r)
		return
	}
	said := s.hashOf(input)
	find := func(by msg.LinkMethod, confidence uint8, ok func(*handed) bool) {
		for i := range p.Handed {
			if h := &p.Handed[i]; r.Call == "" && (!h.Child || h.Many) && ok(h) {
				h.Child = true
				r.Call, r.Link, r.Confidence = h.Call, by, confidence
			}
		}
	}
	find(msg.ByPrompt, 0, func(h *handed) bool { return h.Task == said })
	find(msg.ByParent, byMember, func(h *handed) bool { return names(h.To, r.Agent) })
	find(msg.ByOrder, byGuess, func(*handed) bool { return true })
	for _, c := range open {
		if c.ID == r.Call {
			s.adopt(p, c, r)
			return
		}
	}
	s.linked(p, r)
}

// linked says of a call that is over which run it caused.
func (s *stream) linked(p, r *run) {
	i := slices.IndexFunc(p.Handed, func(h handed) bool { return h.Call == r.Call })
	if i < 0 || p.Handed[i].Many {
		return
	}
	m := s.status(p, "", "link", p.Last)
	m.Key, m.Tool.CallID, m.Signal = "link:"+r.Call, r.Call, msg.Link
	m.Delegation.To, m.Delegation.ToID = s.delegate(&call{To: p.Handed[i].To, Children: []kid{{ID: r.Agent.ID, Name: r.Agent.Name}}})
	m.Delegation.ChildRun, m.Delegation.Link, m.Delegation.Confidence = r.ID, r.Link, r.Confidence
}

// adopt notes a child of the call of p.
func (s *stream) adopt(p *run, c *call, r *run) {
	if len(c.Children) >= maxCalls {
		c.Children = c.Children[1:]
	}
	c.Children = append(c.Children, kid{Run: r.ID, ID: r.Agent.ID, Name: r.Agent.Name, Link: r.Link, Confidence: r.Confidence, Guess: r.Guess})
	s.delegation(p, c, true)
}

// names reports whether work for that member is addressed to the agent.
func names(member string, a msg.Agent) bool {
	to := slug(member)
	return to != "" && (to == slug(a.ID) || to == slug(a.Name))
}

// hand remembers a delegation.
func (s *stream) hand(r *run, c *call) {
	if len(r.Handed) >= maxCalls {
		r.Handed = r.Handed[1:]
	}
	for _, o := range r.Calls {
		if o.Delegates {
			o.Beside, c.Beside = true, true
		}
	}
	r.Handed = append(r.Handed, handed{Call: c.ID, To: c.To, Task: noText.add([]byte(c.Task)), Many: c.Many})
}

// childOver notes what a child said, in the call that caused it.
func (s *stream) childOver(r *run, answer hash, at stamp) {
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

// answer makes a result the result of a delegation.
func (s *stream) answer(r *run, c *call, m *msg.Message) {
	m.Kind, m.Hidden, m.Tool.Internal = msg.DelegationResult, false, true
	m.Delegation.To, m.Delegation.ToID = s.delegate(c)
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

// confirm holds the child that order gave to a call against the call's result, and
// gives it the one that said so.
func (r *run) confirm(c *call, said hash) {
	mine := &c.Children[0]
	if mine.Answer == said {
		mine.Confidence, mine.Guess = byAnswer, false
		return
	}
	var other *kid
	for _, o := range r.Calls {
		if o != c && len(o.Children) == 1 && o.Children[0].Guess && o.Children[0].Answer == said {
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
