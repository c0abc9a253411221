package blame

import (
	"cmp"
	"slices"
	"strings"
)

// Group is the time of one tool, one model or one agent in one bucket. For a delegation
// Name is the delegate. For calls that were reported together, where no record shows
// which of them took the time, Name has all their names.
type Group struct {
	Bucket Bucket
	Kind   Kind
	Name   string
	Agent  string
}

func (p Segment) group() Group {
	return Group{p.Bucket, p.Node.Kind, p.Node.Label(), p.Node.Agent}
}

// Label names the node: the tool, the model or the agent, the delegate of a delegation;
// with the calls that it was reported together with, "a or b".
func (n *Node) Label() string {
	if len(n.reportedWith) == 0 {
		return n.label()
	}
	names := []string{n.label()}
	for _, o := range n.reportedWith {
		names = append(names, o.label())
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " or ")
}

func (n *Node) label() string {
	if n.Kind == Delegation && n.To != "" {
		return n.To
	}
	return n.Name
}

// Bottleneck is a group with its part of a critical path.
type Bottleneck struct {
	Group
	Time  int64 // ns on the path
	Steps int   // spans that have it
	Worst *Node // the one of them that has most
	Saves int64 // ns by which the whole would be shorter without the group, at most Time
}

// Bottlenecks are the groups of the node's critical path, the one with most time
// first, at most limit of them.
func (n *Node) Bottlenecks(limit int) []Bottleneck {
	type part struct {
		g Group
		n *Node
	}
	spent := make(map[part]int64)
	groups := make(map[Group]*Bottleneck)
	var order []*Bottleneck
	for _, piece := range n.Path() {
		g := piece.group()
		c := groups[g]
		if c == nil {
			c = &Bottleneck{Group: g}
			groups[g] = c
			order = append(order, c)
		}
		k := part{g, piece.Node}
		if spent[k] == 0 {
			c.Steps++
		}
		spent[k] += piece.To - piece.From
		c.Time += piece.To - piece.From
		if c.Worst == nil || spent[k] > spent[part{g, c.Worst}] {
			c.Worst = piece.Node
		}
	}
	slices.SortStableFunc(order, func(a, b *Bottleneck) int { return cmp.Compare(b.Time, a.Time) })
	out := make([]Bottleneck, 0, min(limit, len(order)))
	for _, c := range order[:min(limit, len(order))] {
		// Work of the group off the path may also have delayed later steps; that part of
		// the saving does not count.
		c.Saves = min(c.Time, n.Wall()-n.WhatIf(func(p Segment) bool { return p.group() == c.Group }))
		out = append(out, *c)
	}
	return out
}

// WhatIf returns the wall time of the node if the segments for which gone is true had
// taken no time, on the critical path and off it.
func (n *Node) WhatIf(gone func(Segment) bool) int64 {
	return (&replay{gone: gone}).length(n, n.Start, n.End)
}

type replay struct{ gone func(Segment) bool }

// own returns the time that the node spends outside its steps, without the removed
// segments.
func (r *replay) own(n *Node, from, to int64) (left int64) {
	var p splitter
	p.own(n, from, to)
	for _, piece := range p.segments {
		if !r.gone(piece) {
			left += piece.To - piece.From
		}
	}
	return left
}

// length returns the duration of the node's time from..to in the replay.
func (r *replay) length(n *Node, from, to int64) int64 {
	type replayed struct {
		node     *Node
		from, to int64
		begin    int64 // in the replay, since from
		end      int64 // likewise
		aside    bool  // it ran in the background while the caller did other work first
		waits    bool  // no work: the caller begins to wait for background work
	}
	var steps []replayed
	for _, c := range n.steps {
		s := replayed{node: c.Node, from: max(c.since, from), to: min(c.to, to), aside: c.since < c.from}
		if s.from < s.to {
			steps = append(steps, s)
		}
		if s.from, s.waits = max(c.from, from), true; s.aside && s.from < s.to {
			s.aside = false
			steps = append(steps, s)
		}
	}
	slices.SortStableFunc(steps, func(a, b replayed) int { return cmp.Compare(a.from, b.from) })
	if len(steps) == 0 {
		return r.own(n, from, to)
	}
	ends := make([]int, len(steps))
	for i := range ends {
		ends[i] = i
	}
	slices.SortFunc(ends, func(a, b int) int { return cmp.Compare(steps[a].to, steps[b].to) })
	saved := r.saved(n, from, to)
	// Steps are in the order in which they began. The steps that have ended when one
	// begins had begun before it, so their replay is known. A gap between steps starts
	// at an end and ends at a start, so the time saved between an end and a start is the
	// sum over whole gaps. Work in the background may begin in the middle of a gap; its
	// start does not move.
	ended, now, atEnded, atStart := from, int64(0), saved, saved
	pass := func(until int64) {
		for len(ends) > 0 && steps[ends[0]].to <= until {
			s := &steps[ends[0]]
			ended, now, ends = max(ended, s.to), max(now, s.end), ends[1:]
		}
		atEnded, atStart = atEnded.until(ended), atStart.until(until)
	}
	var response *replayed // that began last
	for i := range steps {
		s := &steps[i]
		pass(s.from)
		s.begin = now + s.from - ended
		if !s.aside {
			s.begin -= atStart.sum - atEnded.sum
		}
		if response != nil && s.node.call() && s.from == s.node.Start && response.from < s.from && s.from < response.to {
			s.begin = max(now, response.begin+r.length(response.node, response.from, s.from))
		}
		if s.end = s.begin; !s.waits {
			s.end += r.length(s.node, s.from, s.to)
		}
		if s.node.Kind == Chat {
			response = s
		}
	}
	pass(to)
	return now + to - ended - (atStart.sum - atEnded.sum)
}

// gaps are the gaps of a node in which the replay saves time; sum is the saving of the
// gaps already passed.
type gaps struct {
	left []gap
	sum  int64
}

type gap struct{ to, saved int64 }

func (g gaps) until(t int64) gaps {
	for len(g.left) > 0 && g.left[0].to <= t {
		g.sum += g.left[0].saved
		g.left = g.left[1:]
	}
	return g
}

func (r *replay) saved(n *Node, from, to int64) (g gaps) {
	for _, s := range criticalSegments(n.steps, from, to) {
		if s.Node == nil {
			if saved := s.To - s.From - r.own(n, s.From, s.To); saved > 0 {
				g.left = append(g.left, gap{s.To, saved})
			}
		}
	}
	return g
}
