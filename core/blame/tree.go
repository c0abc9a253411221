package blame

import (
	"cmp"
	"slices"
	"strings"
)

// Tree is the spans of a trace, each below its parent. It is immutable.
type Tree struct {
	nodes  map[string]*Node
	roots  []*Node
	shifts []Shift
}

// Node is a span in its tree.
type Node struct {
	Span
	// Reported is when the end of a call was reported, which may be later than its End.
	Reported int64

	parent   *Node
	children []*Node
	number   int
	look     look
	steps    []step // of the children, in the order in which they began
	workEnd  int64  // the end of the last child that took time; zero without one

	reportedWith []*Node // see ReportedWith
}

// Parent is the node above; nil for a root.
func (n *Node) Parent() *Node { return n.parent }

// Children returns the nodes below, by their start, equal starts by their content.
// Callers must not change the slice.
func (n *Node) Children() []*Node { return n.children }

// Number is how many nodes come before it in the tree, each parent before its children.
func (n *Node) Number() int { return n.number }

// Wall is the node's wall time in nanoseconds.
func (n *Node) Wall() int64 { return n.End - n.Start }

// Shift is a run that was moved because of clock skew.
type Shift struct {
	ID  string // of the run
	By  int64  // nanoseconds; negative is earlier
	Why string
}

// New builds the tree. Of two spans with one id the first counts; a cycle of parents is
// broken at its earliest span.
func New(spans []Span) *Tree {
	t := &Tree{nodes: make(map[string]*Node, len(spans))}
	list := make([]*Node, 0, len(spans))
	nodes := make([]Node, len(spans)) // one allocation for all of them
	for i, s := range spans {
		if _, ok := t.nodes[s.ID]; ok {
			continue
		}
		s.End = max(s.End, s.Start)
		n := &nodes[i]
		n.Span = s
		t.nodes[s.ID] = n
		list = append(list, n)
	}
	slices.SortFunc(list, byStart)
	for _, n := range list {
		n.parent = t.nodes[n.Span.Parent]
	}
	breakCycles(list)
	for _, n := range list {
		if n.parent == nil {
			t.roots = append(t.roots, n)
		} else {
			n.parent.children = append(n.parent.children, n)
		}
	}
	for _, r := range t.roots {
		r.sortChildren()
		t.correctClocks(r, 0)
		extendOpen(r)
		distributePauses(r)
		r.sortChildren()
		r.findSteps()
	}
	slices.SortStableFunc(t.roots, order)
	next := 0
	for _, r := range t.roots {
		next = r.count(next)
	}
	return t
}

// count numbers n and all below it, and returns the number that follows.
func (n *Node) count(next int) int {
	n.number = next
	next++
	for _, c := range n.children {
		next = c.count(next)
	}
	return next
}

func byStart(a, b *Node) int {
	if c := cmp.Compare(a.Start, b.Start); c != 0 {
		return c
	}
	return strings.Compare(a.ID, b.ID)
}

// look is how far the search for cycles is with a node.
type look uint8

const (
	fresh look = iota
	here
	done
)

// breakCycles makes the earliest span of each cycle a root.
func breakCycles(order []*Node) {
	var path []*Node
	for _, n := range order {
		path = path[:0]
		at := n
		for at != nil && at.look == fresh {
			at.look = here
			path = append(path, at)
			at = at.parent
		}
		if at != nil && at.look == here {
			cycle := path[slices.Index(path, at):]
			slices.MinFunc(cycle, byStart).parent = nil
		}
		for _, w := range path {
			w.look = done
		}
	}
}

// extendOpen extends spans without an end of their own to the end of their last child,
// background work excepted.
func extendOpen(n *Node) {
	for _, c := range n.children {
		extendOpen(c)
	}
	if n.Open || n.background() {
		for _, c := range n.children {
			if !c.background() {
				n.End = max(n.End, c.End)
			}
		}
	}
}

// sortChildren sorts the children of n and of all nodes below it.
func (n *Node) sortChildren() {
	for _, c := range n.children {
		c.sortChildren()
	}
	slices.SortStableFunc(n.children, order)
}

// correctClocks moves n by that many nanoseconds, and each run below it by its own clock
// skew on top.
func (t *Tree) correctClocks(n *Node, by int64) {
	n.shift(by)
	for _, c := range n.children {
		d := int64(0)
		if c.Kind == Run {
			start, over := c.Start+by, c.End+by-n.End
			switch {
			case start < n.Start:
				d = n.Start - start
				t.shifts = append(t.shifts, Shift{c.ID, d, "it began before its call"})
			case n.Kind == Delegation && !n.Open && !n.Async && over > 0 && start > n.Start: // else it has no end to go by
				d = -min(over, start-n.Start)
				t.shifts = append(t.shifts, Shift{c.ID, d, "it answered after its call's result"})
			}
		}
		t.correctClocks(c, by+d)
	}
}

func (n *Node) shift(by int64) {
	if by == 0 {
		return
	}
	n.Start += by
	n.End += by
	if n.FirstToken != 0 {
		n.FirstToken += by
	}
	n.Waits, n.Retries = slices.Clone(n.Waits), slices.Clone(n.Retries)
	for i := range n.Waits {
		n.Waits[i].From += by
		if n.Waits[i].To != 0 {
			n.Waits[i].To += by
		}
	}
	for i := range n.Retries {
		n.Retries[i] += by
	}
}

// distributePauses copies a run's pauses and retries to the model turns and tools that
// were running at the time.
func distributePauses(n *Node) {
	n.Waits = slices.Clone(n.Waits)
	for i := range n.Waits {
		if n.Waits[i].To == 0 {
			n.Waits[i].To = n.End
		}
	}
	for _, c := range n.children {
		if n.Kind == Run && (c.Kind == Chat || c.Kind == Tool) {
			for _, w := range n.Waits {
				if from, to := max(w.From, c.Start), min(w.To, c.End); from < to {
					c.Waits = append(slices.Clone(c.Waits), Interval{From: from, To: to})
				}
			}
			for _, at := range n.Retries {
				if c.Kind == Chat && c.Start < at && at <= c.End {
					c.Retries = append(slices.Clone(c.Retries), at)
				}
			}
		}
		distributePauses(c)
	}
}

// Roots are the nodes without a parent, by their start.
func (t *Tree) Roots() []*Node { return t.roots }

// Node returns the node with that id; nil when there is none.
func (t *Tree) Node(id string) *Node { return t.nodes[id] }

// Shifts are the runs that were moved, parents first.
func (t *Tree) Shifts() []Shift { return t.shifts }
