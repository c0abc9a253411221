package blame

import (
	"cmp"
	"slices"
	"strings"
)

// step is a time in which a node may gate the node above it.
type step struct {
	*Node
	from, to int64
	// since is when the work began that is waited for: before from where the caller did
	// something else first.
	since int64
}

// together is the part of its duration by which the end of a call may differ from that
// of another to count as reported together with it: one in so many.
const together = 100

// neighbours is how many calls on each side are looked at for those that were reported
// together with one. More do not change what is said.
const neighbours = 100

// call reports whether the node's end is that of a report, which may come later than
// what it did.
func (n *Node) call() bool { return n.Kind == Tool || n.Kind == Delegation }

// background reports whether the node's caller went on meanwhile.
func (n *Node) background() bool { return n.Kind == Delegation && n.Async }

// Shows reports whether there is work below the node that took time.
func (n *Node) shows() bool { return n.done > n.Start }

// Done is when the work of the node was done, as far as it shows: of a call when the
// last of what is below it ended, else its End.
func (n *Node) Done() int64 {
	if n.call() && n.shows() {
		return n.done
	}
	return n.End
}

// With are the calls that were reported together with a call and of which nothing
// shows either how long they took, in the order of their starts. Not to be changed.
func (n *Node) With() []*Node { return n.with }

// Waited reports whether the node's time is its caller's: a delegation in the
// background has none unless the caller demonstrably waited for it.
func (n *Node) Waited() bool {
	return n.parent == nil || !n.background() || slices.ContainsFunc(n.parent.steps, func(s step) bool { return s.Node == n })
}

// settle notes when the work below a node was done, and finds its steps.
func (n *Node) settle() {
	n.Reported = n.End
	for _, c := range n.children {
		c.settle()
		if c.Start < c.End {
			n.done = max(n.done, min(c.End, n.End))
		}
	}
	var calls, asides []*Node
	for _, c := range n.children {
		switch {
		case c.Start == c.End:
		case c.background():
			if !c.Open { // else nobody knows when it ended, so nobody waited for that
				asides = append(asides, c)
			}
		case c.call() && !c.Open: // the end of one without a result is no report
			calls = append(calls, c)
		default:
			n.steps = append(n.steps, step{c, c.Start, c.End, c.Start})
		}
	}
	slices.SortFunc(calls, func(a, b *Node) int { return cmp.Or(cmp.Compare(a.End, b.End), order(a, b)) })
	n.reports(calls, asides)
	n.awaits(asides)
	slices.SortStableFunc(n.steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.from, b.from), order(a.Node, b.Node))
	})
}

// reports makes steps of the calls that the caller waited for, which are in the order
// of their ends, and of the work in the background whose result came with one's.
func (n *Node) reports(calls, asides []*Node) {
	known := make(map[int64][]step) // by end: work in the background that a call waited for
	for _, d := range asides {
		from := int64(-1)
		for i, _ := slices.BinarySearchFunc(calls, d.End, func(c *Node, end int64) int { return cmp.Compare(c.End, end) }); i < len(calls) && calls[i].End == d.End; i++ {
			if c := calls[i]; c.End < n.End && d.shows() && !c.shows() && c.Start < d.done && (from < 0 || c.Start < from) {
				from = c.Start
			}
		}
		if from >= 0 {
			s := step{d, max(from, d.Start), d.done, d.Start}
			known[d.End] = append(known[d.End], s)
			n.steps = append(n.steps, s)
		}
	}
	var early []*Node
	for i, c := range calls {
		beside := reportedWith(calls, i)
		if c.shows() {
			to := c.End
			if len(beside) > 0 {
				to, early = c.done, append(early, c)
			}
			n.steps = append(n.steps, step{c, c.Start, to, c.Start})
			continue
		}
		work := slices.Clone(known[c.End])
		for _, o := range beside {
			if o.shows() {
				work = append(work, step{o, o.Start, o.done, o.Start})
			} else {
				c.with = append(c.with, o)
			}
		}
		slices.SortFunc(c.with, order)
		n.steps = append(n.steps, c.less(work)...)
	}
	for _, c := range early { // not before all are compared
		c.End = c.done
	}
}

// reportedWith are the calls that were reported together with the i-th.
func reportedWith(calls []*Node, i int) (out []*Node) {
	c := calls[i]
	near := func(o *Node) bool { return max(o.End-c.End, c.End-o.End) <= c.Wall()/together }
	both := func(o *Node) {
		if max(o.End-c.End, c.End-o.End) <= o.Wall()/together {
			out = append(out, o)
		}
	}
	for k := i - 1; k >= max(0, i-neighbours) && near(calls[k]); k-- {
		both(calls[k])
	}
	for k := i + 1; k < min(len(calls), i+1+neighbours) && near(calls[k]); k++ {
		both(calls[k])
	}
	return out
}

// less is the node's time without that of the work.
func (n *Node) less(work []step) (out []step) {
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

// awaits makes steps of the work in the background that the caller waited for with
// nothing else to do: it ended in a gap, and a step came behind.
func (n *Node) awaits(asides []*Node) {
	if len(asides) == 0 {
		return
	}
	var gap []Piece
	for _, p := range gates(n.steps, n.Start, n.End) {
		if p.Node == nil && p.To < n.End {
			gap = append(gap, p)
		}
	}
	for _, d := range asides {
		i, _ := slices.BinarySearchFunc(gap, d.End, func(p Piece, end int64) int { return cmp.Compare(p.To, end) })
		if i < len(gap) && gap[i].From < d.End && !slices.ContainsFunc(n.steps, func(s step) bool { return s.Node == d }) {
			n.steps = append(n.steps, step{d, max(gap[i].From, d.Start), d.End, d.Start})
		}
	}
}

// order orders nodes by what they are, not by their ids: two that it cannot tell
// apart have the same story.
func order(a, b *Node) int {
	if c := cmp.Or(
		cmp.Compare(a.Start, b.Start), cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name), strings.Compare(a.To, b.To), strings.Compare(a.Agent, b.Agent),
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
