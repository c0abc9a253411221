package blame

import (
	"cmp"
	"slices"
)

// Tree is the spans of a trace, each below its parent. It is not changed by use.
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
	steps    []step  // of the children, in the order in which they began
	done     int64   // when the last child that took time ended; zero when there is none
	with     []*Node // see With
}

// Parent is the node above; nil for a root.
func (n *Node) Parent() *Node { return n.parent }

// Children are the nodes below, by their start, and of equal ones by what they are.
// Not to be changed.
func (n *Node) Children() []*Node { return n.children }

// Wall is the node's wall time in nanoseconds.
func (n *Node) Wall() int64 { return n.End - n.Start }

// Shift is a run that was moved because its clock was off.
type Shift struct {
	ID  string // of the run
	By  int64  // nanoseconds; negative is earlier
	Why string
}

// New puts spans into a tree. Of two with one id the first counts; a circle of
// parents is opened at the span in it that began first.
func New(spans []Span) *Tree {
	t := &Tree{nodes: make(map[string]*Node, len(spans))}
	list := make([]*Node, 0, len(spans))
	for _, s := range spans {
		if _, ok := t.nodes[s.ID]; ok {
			continue
		}
		s.End = max(s.End, s.Start)
		n := &Node{Span: s}
		t.nodes[s.ID] = n
		list = append(list, n)
	}
	slices.SortFunc(list, byStart)
	for _, n := range list {
		n.parent = t.nodes[n.Span.Parent]
	}
	openCircles(list)
	for _, n := range list {
		if n.parent == nil {
			t.roots = append(t.roots, n)
		} else {
			n.parent.children = append(n.parent.children, n)
		}
	}
	for _, r := range t.roots {
		r.arrange()
		t.repair(r, 0)
		stretch(r)
		handDown(r)
		r.arrange()
		r.settle()
	}
	slices.SortStableFunc(t.roots, order)
	return t
}

func byStart(a, b *Node) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID))
}

// openCircles makes the first span of every circle a root.
func openCircles(order []*Node) {
	const fresh, here, done = 0, 1, 2
	state := make(map[*Node]int, len(order))
	for _, n := range order {
		var way []*Node
		at := n
		for at != nil && state[at] == fresh {
			state[at] = here
			way = append(way, at)
			at = at.parent
		}
		if at != nil && state[at] == here {
			circle := way[slices.Index(way, at):]
			slices.MinFunc(circle, byStart).parent = nil
		}
		for _, w := range way {
			state[w] = done
		}
	}
}

// stretch lets what has no end of its own last as long as what is below it, but for
// work in the background.
func stretch(n *Node) {
	for _, c := range n.children {
		stretch(c)
	}
	if n.Open || n.background() {
		for _, c := range n.children {
			if !c.background() {
				n.End = max(n.End, c.End)
			}
		}
	}
}

// arrange puts the children of n, and of all below it, in order.
func (n *Node) arrange() {
	for _, c := range n.children {
		c.arrange()
	}
	slices.SortStableFunc(n.children, order)
}

// repair moves n by that much, and the runs below it whose clocks are off further.
func (t *Tree) repair(n *Node, by int64) {
	n.move(by)
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
		t.repair(c, by+d)
	}
}

func (n *Node) move(by int64) {
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

// handDown gives a run's pauses and retries to the model turns and tools that
// they fell into.
func handDown(n *Node) {
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
		handDown(c)
	}
}

// Roots are the nodes without a parent, by their start.
func (t *Tree) Roots() []*Node { return t.roots }

// Node returns the node with that id; nil when there is none.
func (t *Tree) Node(id string) *Node { return t.nodes[id] }

// Shifts are the runs that were moved, parents first.
func (t *Tree) Shifts() []Shift { return t.shifts }
