package agno

import (
	"cmp"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
)

// draft is what a delegation that is not complete will say.
type draft struct {
	Arguments string
	Model     string `json:",omitempty"`
	Provider  string `json:",omitempty"`
	Reply     string `json:",omitempty"`
}

// delegation gives a delegation. The model writes the id of a member, and the display
// name comes with the member's own events; so that an agent has one name wherever it is
// met, a delegation is incomplete until its member is heard, has answered, or will not.
func (s *stream) delegation(r *run, c *call, complete bool) {
	if c.Draft == nil {
		return
	}
	m := s.called(r, c)
	m.Kind, m.Tool.Internal = msg.Delegation, true
	m.Tool.Arguments = msg.Plain(c.Draft.Arguments)
	m.Model, m.Provider, m.ResponseID = c.Draft.Model, c.Draft.Provider, c.Draft.Reply
	m.Delegation.Task = msg.Plain(c.Task)
	m.Delegation.To, m.Delegation.ToID = s.delegate(c)
	if len(c.Children) == 1 && !c.Many && !c.Children[0].Guess { // a guess may be put right by the result
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

// infer puts a delegation between a stored team and a run below it, if the stored form
// has none of the team's calls: the run itself says that it was handed work.
func (s *stream) infer(p, r *run, at stamp) {
	if s.book == nil || r.Call != "" || len(p.Handed) > 0 || !p.Begun || p.Agent.Kind == msg.KindWorkflow || p == r {
		return
	}
	v := s.book.objects[r.ID]
	if made := stampOf(v.Get("created_at")); made.NS != 0 {
		at = made
	}
	r.Call, r.Link = msg.InferredCall(r.ID), msg.ByParent
	c := &call{
		ID: r.Call, Name: "delegate_task_to_member", At: at, Delegates: true, Inferred: true, To: cmp.Or(r.Agent.ID, r.Agent.Name), Task: inputOf(v).String(),
		Children: []kid{{Run: r.ID, ID: r.Agent.ID, Name: r.Agent.Name, Link: msg.ByParent}}, Draft: &draft{},
	}
	p.Calls = append(p.Calls, c)
	s.delegation(p, c, true)
}

// inferred gives the result of a delegation that was inferred, when its child is over.
func (s *stream) inferred(r *run, failed bool, at stamp) {
	p := s.runs[r.Parent]
	if s.book == nil || p == nil || r.Call != msg.InferredCall(r.ID) {
		return
	}
	i := slices.IndexFunc(p.Calls, func(c *call) bool { return c.ID == r.Call })
	if i < 0 {
		return
	}
	c := p.Calls[i]
	p.Calls = slices.Delete(p.Calls, i, i+1)
	m := s.add(p, msg.DelegationResult, "", at)
	m.Key, m.Role = "result:"+c.ID, msg.RoleTool
	m.Tool.CallID, m.Tool.Name, m.Tool.Internal = c.ID, c.Name, true
	m.Content, m.IsError = written(s.book.objects[r.ID].Get("content")), failed
	m.Delegation.To, m.Delegation.ToID = s.delegate(c)
	m.Delegation.ChildRun, m.Delegation.Link = r.ID, msg.ByParent
	m.Complete = msg.Summary
	m.SetAttr("inferred", "true")
}

// delegate returns the name and the id of whom a call hands work to.
func (s *stream) delegate(c *call) (name, id string) {
	if len(c.Children) == 1 {
		k := c.Children[0]
		if k.Name != "" && k.Name != k.ID && (!k.Guess || names(c.To, msg.Agent{ID: k.ID, Name: k.Name})) {
			if k.ID == "" {
				return k.Name, c.To
			}
			return k.Name, k.ID
		}
	}
	return s.member(c.To)
}

// member returns the display name and the id of a member that a model wrote of, or what
// it wrote when no name was heard.
func (s *stream) member(written string) (name, id string) {
	if a, ok := s.names.Of[slug(written)]; ok {
		return a.Name, a.ID
	}
	return written, ""
}

// roster has the agents that were heard, under their ids and their names.
type roster struct {
	Of    map[string]msg.Agent `json:",omitempty"`
	Order []string             `json:",omitempty"`
}

// maxNames is how many names are remembered.
const maxNames = 512

// learn notes an agent's name.
func (n *roster) learn(a msg.Agent) {
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

// returned settles a delegation that has its result: what its child has said is over,
// also when no event of the child's ends it.
func (s *stream) returned(r *run, c *call, result msg.Text, at stamp) {
	if s.book != nil && len(c.Children) == 0 {
		if !c.Beside {
			s.book.until = at
		}
		s.caused(r, c)
		s.book.until = stamp{}
	}
	for i := range c.Children {
		if child := s.runs[c.Children[i].Run]; child != nil && child != r {
			done := at
			if c.Beside { // the result does not say when it was
				done = stamp{}
			}
			s.over(child, done)
		}
	}
	if len(c.Children) == 1 && c.Children[0].Guess {
		r.confirm(c, s.hashOf(result))
	}
	s.delegation(r, c, true)
}

// over ends a run that no event ends, now that its caller goes on: as it is stored, or
// with what it has said so far. One whose start was announced says its end itself.
func (s *stream) over(r *run, at stamp) {
	if s.book != nil {
		if v, ok := s.book.objects[r.ID]; ok && !v.Get("status").Equal("PAUSED") {
			r.Last = at.or(r.Last)
			s.finish(r, v)
			return
		}
	}
	if r.Joined || r.Announced || r.Ceased {
		return
	}
	s.close(r, "", r.Last, msg.Complete)
	s.childOver(r, r.Said.Hash, r.Last)
	s.apiece(r, &event{at: r.Last})
	s.counted(r)
	s.stop(r, &event{at: r.Last}, "completed")
	r.Ceased = true
}

// worked is how long a delegate worked, in nanoseconds; 0 when that is until its result
// was reported. Results of delegations that ran beside each other are reported together,
// when the last one is done. took is what was measured: of a member whose answer is
// streamed only the moment that it took to begin.
func (c *call) worked(took int64, at stamp) int64 {
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
	case c.Beside && len(c.Children) == 0 && took >= second && took < lasted: // of a member that was not heard
		return took
	}
	return 0
}
