package blame

import (
	"cmp"
	"slices"
	"strings"
)

// step is the time in which a node may gate its parent.
type step struct {
	*Node
	from, to int64
	// since is when the awaited work began: before from if the caller did something
	// else first.
	since int64
}

// reportTolerance is the divisor of a call's duration by which its end may differ from
// that of another call, to count as reported together with it.
const reportTolerance = 100

// maxNeighbours is the number of calls on each side that are compared with a call. A
// higher number does not change the label.
const maxNeighbours = 100

// call reports whether the node's end is the time of a report, which may be later than
// the end of its work.
func (n *Node) call() bool { return n.Kind == Tool || n.Kind == Delegation }

// background reports whether the node's caller continued meanwhile.
func (n *Node) background() bool { return n.Kind == Delegation && n.Async }

// showsWork reports whether a node below took time.
func (n *Node) showsWork() bool { return n.workEnd > n.Start }

// WorkEnd returns the end of the node's work as far as records show it: for a call the
// end of the last node below it, else End.
func (n *Node) WorkEnd() int64 {
	if n.call() && n.showsWork() {
		return n.workEnd
	}
	return n.End
}

// ReportedWith returns the calls that were reported together with a call and whose own
// duration no record shows either, in the order of their starts. Callers must not change
// the slice.
func (n *Node) ReportedWith() []*Node { return n.reportedWith }

// Waited reports whether the caller waited for the node: always, except for a delegation
// in the background that the caller did not demonstrably wait for.
func (n *Node) Waited() bool {
	return n.parent == nil || !n.background() || slices.ContainsFunc(n.parent.steps, func(s step) bool { return s.Node == n })
}

// findSteps computes when the work below a node ended, and its steps.
func (n *Node) findSteps() {
	n.Reported = n.End
	for _, c := range n.children {
		c.findSteps()
		if c.Start < c.End {
			n.workEnd = max(n.workEnd, min(c.End, n.End))
		}
	}
	var calls, asides []*Node
	for _, c := range n.children {
		switch {
		case c.Start == c.End:
		case c.background():
			if !c.Open { // without an end no caller can have waited for it
				asides = append(asides, c)
			}
		case c.call() && !c.Open: // the end of a call without a result is no report
			calls = append(calls, c)
		default:
			n.steps = append(n.steps, step{c, c.Start, c.End, c.Start})
		}
	}
	slices.SortFunc(calls, func(a, b *Node) int {
		if c := cmp.Compare(a.End, b.End); c != 0 {
			return c
		}
		return order(a, b)
	})
	n.addReported(calls, asides)
	n.addAwaited(asides)
	slices.SortStableFunc(n.steps, func(a, b step) int {
		if c := cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.from, b.from)); c != 0 {
			return c
		}
		return order(a.Node, b.Node)
	})
}

// addReported adds steps for the calls that the caller waited for, which are in the order
// of their ends, and for background work whose result arrived together with one of them.
func (n *Node) addReported(calls, asides []*Node) {
	known := make(map[int64][]step) // by end: work in the background that a call waited for
	for _, d := range asides {
		from := int64(-1)
		for i, _ := slices.BinarySearchFunc(calls, d.End, func(c *Node, end int64) int { return cmp.Compare(c.End, end) }); i < len(calls) && calls[i].End == d.End; i++ {
			if c := calls[i]; c.End < n.End && d.showsWork() && !c.showsWork() && c.Start < d.workEnd && (from < 0 || c.Start < from) {
				from = c.Start
			}
		}
		if from >= 0 {
			s := step{d, max(from, d.Start), d.workEnd, d.Start}
			known[d.End] = append(known[d.End], s)
			n.steps = append(n.steps, s)
		}
	}
	var early []*Node
	for i, c := range calls {
		beside := reportedWith(calls, i)
		if c.showsWork() {
			to := c.End
			if len(beside) > 0 {
				to, early = c.workEnd, append(early, c)
			}
			n.steps = append(n.steps, step{c, c.Start, to, c.Start})
			continue
		}
		work := slices.Clone(known[c.End])
		for _, o := range beside {
			if o.showsWork() {
				work = append(work, step{o, o.Start, o.workEnd, o.Start})
			} else {
				c.reportedWith = append(c.reportedWith, o)
			}
		}
		slices.SortFunc(c.reportedWith, order)
		n.steps = append(n.steps, c.without(work)...)
	}
	for _, c := range early { // not before all are compared
		c.End = c.workEnd
	}
}

// reportedWith returns the calls that were reported together with the i-th.
func reportedWith(calls []*Node, i int) (out []*Node) {
	c := calls[i]
	near := func(o *Node) bool { return max(o.End-c.End, c.End-o.End) <= c.Wall()/reportTolerance }
	both := func(o *Node) {
		if max(o.End-c.End, c.End-o.End) <= o.Wall()/reportTolerance {
			out = append(out, o)
		}
	}
	for k := i - 1; k >= max(0, i-maxNeighbours) && near(calls[k]); k-- {
		both(calls[k])
	}
	for k := i + 1; k < min(len(calls), i+1+maxNeighbours) && near(calls[k]); k++ {
		both(calls[k])
	}
	return out
}

// without returns the node's time without the time of the work.
func (n *Node) without(work []step) (out []step) {
	slices.SortFunc(work, func(a, b step) int { return cmp.Compare(a.from, b.from) })
	at := n.Start
	for _, w := range work {
		if at < min(w.from, n.End) {
			out = append(out, step{n, at, min(w.from, n.End), at})
		}
		at = max(at, w.to)
	}
	if at < n.End {
		out = append(out, step{n, at, n.End, at})
	}
	return out
}

// addAwaited adds steps for background work that an otherwise idle caller waited for: the
// work ended in a gap, and a step followed.
func (n *Node) addAwaited(asides []*Node) {
	if len(asides) == 0 {
		return
	}
	var gap []Segment
	for _, p := range criticalSegments(n.steps, n.Start, n.End) {
		if p.Node == nil && p.To < n.End {
			gap = append(gap, p)
		}
	}
	for _, d := range asides {
		i, _ := slices.BinarySearchFunc(gap, d.End, func(p Segment, end int64) int { return cmp.Compare(p.To, end) })
		if i < len(gap) && gap[i].From < d.End && !slices.ContainsFunc(n.steps, func(s step) bool { return s.Node == d }) {
			n.steps = append(n.steps, step{d, max(gap[i].From, d.Start), d.End, d.Start})
		}
	}
}

// order compares nodes by their content, never by their ids: two equal nodes have equal
// subtrees, so either order has the same result.
func order(a, b *Node) int {
	if c := cmp.Compare(a.Start, b.Start); c != 0 { // as nearly always: the rest is compared only where it decides
		return c
	}
	if c := cmp.Or(
		cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name), strings.Compare(a.To, b.To), strings.Compare(a.Agent, b.Agent),
		cmp.Compare(a.End, b.End), cmp.Compare(a.FirstToken, b.FirstToken), cmp.Compare(len(a.children), len(b.children)),
	); c != 0 {
		return c
	}
	for i := range a.children {
		if c := order(a.children[i], b.children[i]); c != 0 {
			return c
		}
	}
	return 0
}
