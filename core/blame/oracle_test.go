package blame

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomSpans makes a trace of small numbers: overlapping, empty and
// out-of-range steps, orphans, circles, ids that come twice, clocks that are off.
func randomSpans(r *rand.Rand) []Span {
	list := make([]Span, 1+r.IntN(14))
	for i := range list {
		s := &list[i]
		s.ID = fmt.Sprint("s", i)
		if r.IntN(30) == 0 {
			s.ID = "s0"
		}
		switch {
		case r.IntN(20) == 0:
			s.Parent = "nowhere"
		case i > 0 && r.IntN(10) > 0:
			s.Parent = fmt.Sprint("s", r.IntN(i))
		case r.IntN(3) == 0:
			s.Parent = fmt.Sprint("s", r.IntN(len(list))) // perhaps itself
		}
		s.Kind = Kind(r.IntN(4))
		s.Name, s.Agent = string(rune('a'+r.IntN(2))), string(rune('x'+r.IntN(2)))
		s.Start = 1000 + r.Int64N(30)
		s.End = s.Start + r.Int64N(20) - 1
		s.Open, s.Async = r.IntN(12) == 0, r.IntN(8) == 0
		if r.IntN(3) == 0 {
			s.FirstToken = s.Start + r.Int64N(12) - 2
		}
		for range r.IntN(3) {
			w := Interval{From: s.Start + r.Int64N(16) - 3}
			if r.IntN(4) > 0 {
				w.To = w.From + r.Int64N(6)
			}
			s.Waits = append(s.Waits, w)
		}
		for range r.IntN(3) {
			s.Retries = append(s.Retries, s.Start+r.Int64N(16)-3)
		}
	}
	return list
}

// The oracle asks for every instant by itself, as the package comment says it,
// with nothing but loops.

// holder is the step that has the instant t of n's time from..to; nil is a gap.
func holder(n *Node, t, to int64) *Node {
	var h *Node
	for at := to; at > t; at-- { // the instant at-1
		if h != nil && h.Start < at {
			continue
		}
		h = nil
		for _, c := range n.children {
			if c.Start < at && at <= c.End && (h == nil || c.End < h.End ||
				c.End == h.End && (c.Start < h.Start || c.Start == h.Start && c.ID < h.ID)) {
				h = c
			}
		}
	}
	return h
}

// gapAround is the gap of n that the instant t is in.
func gapAround(n *Node, t, from, to int64) (int64, int64) {
	free := func(t int64) bool {
		return from <= t && t < to && !slices.ContainsFunc(n.children, func(c *Node) bool { return c.Start <= t && t < c.End })
	}
	a, b := t, t+1
	for free(a - 1) {
		a--
	}
	for free(b) {
		b++
	}
	return a, b
}

type slot struct {
	node   *Node
	bucket Bucket
}

func ownSlot(n *Node, t, from, to int64) slot {
	for _, w := range n.Waits {
		if w.From <= t && t < w.To {
			return slot{n, Wait}
		}
	}
	a, b := gapAround(n, t, from, to)
	for _, at := range n.Retries {
		if t < at && (n.Kind != Run && at > n.Start || n.Kind == Run && a < at && at <= b) {
			return slot{n, Retry}
		}
	}
	switch n.Kind {
	case Chat:
		if t < n.FirstToken {
			return slot{n, ModelTTFT}
		}
		return slot{n, ModelStream}
	case Tool:
		return slot{n, ToolTime}
	case Delegation:
		if !slices.ContainsFunc(n.children, func(c *Node) bool { return c.End > c.Start }) {
			return slot{n, SubAgent}
		}
	}
	return slot{n, Idle}
}

// at is who has the instant, in all depth or only as far as another agent.
func at(n *Node, t, from, to int64, deep bool) slot {
	h := holder(n, t, to)
	if h == nil {
		return ownSlot(n, t, from, to)
	}
	if !deep && n.Kind != Delegation && (h.Kind == Delegation || h.Kind == Run) {
		return slot{h, SubAgent}
	}
	// How long h has the time is how far the loop goes without another holder.
	a, b := t, t+1
	for a > from && holder(n, a-1, to) == h {
		a--
	}
	for b < to && holder(n, b, to) == h {
		b++
	}
	return at(h, t, a, b, deep)
}

// length replays n's time from..to as the package comment says it.
func lengthOf(n *Node, from, to int64, gone func(slot) bool) int64 {
	type step struct {
		n    *Node
		a, b int64
	}
	var steps []step
	for _, c := range n.children {
		if a, b := max(c.Start, from), min(c.End, to); a < b {
			steps = append(steps, step{n: c, a: a, b: b})
		}
	}
	// waited is how long a step waited when the last end before it was at e.
	waited := func(e, begin int64) (sum int64) {
		for t := e; t < begin; t++ {
			busy := slices.ContainsFunc(steps, func(s step) bool { return s.a <= t && t < s.b })
			if busy || !gone(ownSlot(n, t, from, to)) {
				sum++
			}
		}
		return sum
	}
	done := make([]int64, len(steps))
	after := func(begin int64, mine int) int64 {
		e, end := from, int64(0)
		for j, s := range steps {
			if j != mine && s.b <= begin {
				e, end = max(e, s.b), max(end, done[j])
			}
		}
		return end + waited(e, begin)
	}
	order := make([]int, len(steps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return int(steps[i].a - steps[j].a) })
	for _, i := range order {
		done[i] = after(steps[i].a, i) + lengthOf(steps[i].n, steps[i].a, steps[i].b, gone)
	}
	return after(to, -1)
}

// TestOracle holds the split, the critical path and what could be saved against
// the oracle.
func TestOracle(t *testing.T) {
	shifted, circles, saved := 0, 0, 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 1))
		spans := randomSpans(r)
		tree := New(spans)
		shifted += len(tree.Shifts())
		if len(tree.Roots()) > 1 {
			circles++
		}
		seen := 0
		var visit func(n *Node)
		visit = func(n *Node) {
			seen++
			check(t, seed, n)
			for _, c := range n.Culprits(2) {
				g := c.Group
				want := n.Wall() - lengthOf(n, n.Start, n.End, func(s slot) bool { return (Piece{Node: s.node, Bucket: s.bucket}).group() == g })
				if c.Saves != want || c.Saves < 0 {
					t.Fatalf("seed %d: %s without %v saves %d, want %d", seed, n.ID, g, c.Saves, want)
				}
				if c.Saves > 0 {
					saved++
				}
			}
			for _, c := range n.children {
				if c.parent != n {
					t.Fatalf("seed %d: %s has a parent that is not above it", seed, c.ID)
				}
				visit(c)
			}
		}
		for _, n := range tree.Roots() {
			visit(n)
		}
		if want := len(tree.nodes); seen != want {
			t.Fatalf("seed %d: %d of %d spans are in the tree", seed, seen, want)
		}
		if t.Failed() {
			return
		}
	}
	if shifted < 100 || circles < 100 || saved < 1000 {
		t.Errorf("the generator is dull: %d shifts, %d traces of several roots, %d savings", shifted, circles, saved)
	}
}

func check(t *testing.T, seed uint64, n *Node) {
	t.Helper()
	var want Split
	for i := n.Start; i < n.End; i++ {
		want[at(n, i, n.Start, n.End, false).bucket]++
	}
	got := n.Split()
	if got != want || got.Total() != n.Wall() {
		t.Errorf("seed %d: %s: split %v, want %v, wall %d", seed, n.ID, got, want, n.Wall())
	}
	now := n.Start
	for _, p := range n.Path() {
		if p.From != now || p.To <= p.From {
			t.Errorf("seed %d: %s: path %d-%d after %d", seed, n.ID, p.From, p.To, now)
		}
		for i := p.From; i < p.To; i++ {
			if s := at(n, i, n.Start, n.End, true); s.node != p.Node || s.bucket != p.Bucket {
				t.Errorf("seed %d: %s at %d: %s %s, want %s %s", seed, n.ID, i, p.Node.ID, p.Bucket, s.node.ID, s.bucket)
			}
		}
		now = p.To
	}
	if now != n.End {
		t.Errorf("seed %d: %s: path ends at %d, want %d", seed, n.ID, now, n.End)
	}
	if same := n.Without(func(Piece) bool { return false }); same != n.Wall() {
		t.Errorf("seed %d: %s: replay takes %d, want %d", seed, n.ID, same, n.Wall())
	}
}

func TestMillisAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 5000 {
		var s Split
		for b := range s {
			if r.IntN(3) > 0 {
				s[b] = r.Int64N(5_000_000)
			}
		}
		ms, total := s.Millis()
		if ms.Total() != total || total != (s.Total()+500_000)/1_000_000 {
			t.Fatalf("%v: %v, total %d", s, ms, total)
		}
		for b := range s {
			if d := s[b] - ms[b]*1_000_000; d <= -1_000_000 || d >= 1_000_000 || s[b] == 0 && ms[b] != 0 {
				t.Fatalf("%v: %v", s, ms)
			}
		}
	}
}
