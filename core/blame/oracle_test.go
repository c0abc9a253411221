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
	list, wide := make([]Span, 1+r.IntN(14)), r.IntN(20) == 0
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
		s.Step = s.Kind == Run && r.IntN(4) == 0
		s.Name, s.Agent = string(rune('a'+r.IntN(2))), string(rune('x'+r.IntN(2)))
		s.Start = 1000 + r.Int64N(30)
		s.End = s.Start + r.Int64N(20) - 1
		if wide {
			s.End += 100
		}
		if i > 0 && r.IntN(4) == 0 { // reported together
			s.End = list[r.IntN(i)].End + r.Int64N(3)/2
		}
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

// randomCalls makes a turn whose calls are reported together as often as not, some of
// them of agents at work below, some in the background.
func randomCalls(r *rand.Rand) []Span {
	run := Span{ID: "s0", Kind: Run, Name: "lead", Start: 1000, End: 1040 + r.Int64N(20)}
	list := []Span{run}
	end := 1010 + r.Int64N(30)
	for i := 1; i < 3+r.IntN(6); i++ {
		c := Span{ID: fmt.Sprint("s", i), Parent: "s0", Kind: Kind(1 + r.IntN(3)), Name: string(rune('a' + r.IntN(3))), Start: 1000 + r.Int64N(30), Async: r.IntN(3) == 0}
		c.End = c.Start + r.Int64N(30)
		if r.IntN(2) == 0 {
			c.Start, c.End = min(c.Start, end), end
		}
		list = append(list, c)
		if c.Kind == Delegation && r.IntN(3) > 0 {
			from := c.Start + r.Int64N(3)
			list = append(list, Span{ID: fmt.Sprint("r", i), Parent: c.ID, Kind: Run, Name: "scout", Start: from, End: from + r.Int64N(max(c.End-from, 1)+2)})
		}
	}
	return list
}

// The oracle asks for every instant by itself, by the rules of the package comment,
// with nothing but loops.

// shown is when the work below n was done; false when none shows.
func shown(n *Node) (int64, bool) {
	done := int64(0)
	for _, c := range n.children {
		if c.Start < c.Reported {
			done = max(done, min(c.Reported, n.Reported))
		}
	}
	return done, done > n.Start
}

func isCall(n *Node) bool {
	return (n.Kind == Tool || n.Kind == Delegation) && n.Start < n.Reported && !n.Open
}

func isAside(n *Node) bool { return n.Kind == Delegation && n.Async }

// reported reports whether the calls were reported together.
func reported(a, b *Node) bool {
	apart := max(a.Reported-b.Reported, b.Reported-a.Reported) * 100
	return a != b && isCall(a) && isCall(b) && !isAside(a) && !isAside(b) && apart <= a.Reported-a.Start && apart <= b.Reported-b.Start
}

// delivered is from when on n's caller waited for the work in the background whose
// result a call brought.
func delivered(n, d *Node) (from int64, ok bool) {
	done, shows := shown(d)
	for _, c := range n.children {
		_, more := shown(c)
		if shows && !d.Open && c.Reported < n.Reported && isCall(c) && !isAside(c) && !more && c.Reported == d.Reported && c.Start < done && (!ok || c.Start < from) {
			from, ok = c.Start, true
		}
	}
	return max(from, d.Start), ok
}

// waitedFor reports whether the instant of the child's time may be its caller's: of
// all but work in the background that ended in a gap.
func waitedFor(n, c *Node, t int64) bool {
	if t < c.Start || t >= c.Reported {
		return false
	}
	done, shows := shown(c)
	switch {
	case isAside(c):
		from, ok := delivered(n, c)
		return ok && from <= t && t < done
	case !isCall(c): // of an open one, too
		return true
	case shows:
		return t < done || !slices.ContainsFunc(n.children, func(o *Node) bool { return reported(o, c) })
	}
	return !slices.ContainsFunc(n.children, func(o *Node) bool {
		later, more := shown(o)
		if from, ok := delivered(n, o); isAside(o) && ok && o.Reported == c.Reported {
			return from <= t && t < later
		}
		return reported(o, c) && more && o.Start <= t && t < later
	})
}

type stretchOf struct {
	n        *Node
	from, to int64
}

// stretches are the times in which the children of n may gate it.
func stretches(n *Node) (out []stretchOf) {
	lo, hi := n.Start, n.Reported
	for _, c := range n.children {
		lo, hi = min(lo, c.Start), max(hi, c.Reported)
	}
	free := func(t int64) bool {
		return !slices.ContainsFunc(n.children, func(c *Node) bool { return waitedFor(n, c, t) })
	}
	for _, c := range n.children {
		open := false
		for t := lo; t < hi; t++ {
			has := waitedFor(n, c, t)
			if has && !open {
				out = append(out, stretchOf{c, t, t})
			}
			if open = has; has {
				out[len(out)-1].to = t + 1
			}
		}
		if _, ok := delivered(n, c); !isAside(c) || c.Open || ok || c.Start == c.Reported {
			continue
		}
		from, follows := c.Reported, false
		for from > max(c.Start, n.Start) && from <= n.Reported && free(from-1) {
			from--
		}
		for t := c.Reported; t < n.Reported; t++ {
			follows = follows || !free(t)
		}
		if from < c.Reported && follows {
			out = append(out, stretchOf{c, from, c.Reported})
		}
	}
	return out
}

// holder is the step that has the instant t of n's time from..to; nil is a gap.
func holder(steps []stretchOf, t, to int64) *Node {
	var h *stretchOf
	for at := to; at > t; at-- { // the instant at-1
		if h != nil && h.from < at {
			continue
		}
		h = nil
		for i := range steps {
			c := &steps[i]
			if c.from < at && at <= c.to && (h == nil || c.to < h.to ||
				c.to == h.to && (c.from < h.from || c.from == h.from && order(c.n, h.n) < 0)) {
				h = c
			}
		}
	}
	if h == nil {
		return nil
	}
	return h.n
}

// gapAround is the gap of n that the instant t is in.
func gapAround(steps []stretchOf, t, from, to int64) (int64, int64) {
	free := func(t int64) bool {
		return from <= t && t < to && !slices.ContainsFunc(steps, func(c stretchOf) bool { return c.from <= t && t < c.to })
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

// oracle remembers the stretches of each node.
type oracle map[*Node][]stretchOf

func (o *oracle) steps(n *Node) []stretchOf {
	list, ok := (*o)[n]
	if !ok {
		list = stretches(n)
		(*o)[n] = list
	}
	return list
}

type slot struct {
	node   *Node
	bucket Bucket
}

func (o *oracle) ownSlot(n *Node, t, from, to int64) slot {
	for _, w := range n.Waits {
		if w.From <= t && t < w.To {
			return slot{n, Wait}
		}
	}
	a, b := gapAround(o.steps(n), t, from, to)
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
	case Run:
		if n.Step && len(n.children) == 0 {
			return slot{n, ToolTime}
		}
	case Delegation:
		if !slices.ContainsFunc(n.children, func(c *Node) bool { return c.End > c.Start }) {
			return slot{n, SubAgent}
		}
	}
	return slot{n, Idle}
}

// at is who has the instant, in all depth or only as far as another agent.
func (o *oracle) at(n *Node, t, from, to int64, deep bool) slot {
	h := holder(o.steps(n), t, to)
	if h == nil {
		return o.ownSlot(n, t, from, to)
	}
	if !deep && n.Kind != Delegation && (h.Kind == Delegation || h.Kind == Run && (!h.Step || len(h.children) > 0)) {
		return slot{h, SubAgent}
	}
	// How long h has the time is how far the loop goes without another holder.
	a, b := t, t+1
	for a > from && holder(o.steps(n), a-1, to) == h {
		a--
	}
	for b < to && holder(o.steps(n), b, to) == h {
		b++
	}
	return o.at(h, t, a, b, deep)
}

// length replays n's time from..to by the rules of the package comment.
func (o *oracle) lengthOf(n *Node, from, to int64, gone func(slot) bool) int64 {
	type step struct {
		n    *Node
		a, b int64
		late int64 // when the caller began to wait for it
	}
	var steps []step
	for _, c := range o.steps(n) {
		begin := c.from
		if isAside(c.n) {
			begin = c.n.Start
		}
		if a, b := max(begin, from), min(c.to, to); a < b {
			steps = append(steps, step{n: c.n, a: a, b: b, late: c.from})
		}
		if a, b := max(c.from, from), min(c.to, to); begin < c.from && a < b { // the caller begins to wait
			steps = append(steps, step{a: a, b: b, late: c.from})
		}
	}
	// waited is how long a step waited when the last end before it was at e.
	waited := func(e, begin int64) (sum int64) {
		for t := e; t < begin; t++ {
			busy := slices.ContainsFunc(steps, func(s step) bool { return max(s.a, s.late) <= t && t < s.b })
			if busy || !gone(o.ownSlot(n, t, from, to)) {
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
		if mine >= 0 && steps[mine].n != nil && steps[mine].n.Start < steps[mine].late && isAside(steps[mine].n) {
			return end + begin - e
		}
		return end + waited(e, begin)
	}
	order := make([]int, len(steps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return int(steps[i].a - steps[j].a) })
	// The response that a call is part of is the last that had begun, if it went on.
	asked, begun := make([]int, len(steps)), make([]int64, len(steps))
	for at, i := range order {
		asked[i] = -1
		if s := steps[i]; s.n != nil && (s.n.Kind == Tool || s.n.Kind == Delegation) && s.a == s.n.Start {
			for _, j := range slices.Backward(order[:at]) {
				if r := steps[j]; r.n != nil && r.n.Kind == Chat {
					if r.a < s.a && s.a < r.b {
						asked[i] = j
					}
					break
				}
			}
		}
	}
	for _, i := range order {
		done[i] = after(steps[i].a, i)
		if j := asked[i]; j >= 0 {
			ended := int64(0)
			for k, s := range steps {
				if k != i && s.b <= steps[i].a {
					ended = max(ended, done[k])
				}
			}
			done[i] = max(ended, begun[j]+o.lengthOf(steps[j].n, steps[j].a, steps[i].a, gone))
		}
		if begun[i] = done[i]; steps[i].n != nil {
			done[i] += o.lengthOf(steps[i].n, steps[i].a, steps[i].b, gone)
		}
	}
	return after(to, -1)
}

// TestOracle holds the split, the critical path and the savings against
// the oracle.
func TestOracle(t *testing.T) {
	outlived := 0
	shifted, circles, saved, awaited, parts, cut := 0, 0, 0, 0, 0, 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 1))
		spans := randomSpans(r)
		if seed%2 == 0 {
			spans = randomCalls(r)
		}
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
			for _, c := range n.children {
				if c.background() && c.Reported >= n.End {
					outlived++
				}
			}
			for _, p := range n.Path() {
				for at := p.Node; at != n; at = at.parent {
					if at.background() && (at.Open || at.Reported >= at.parent.Reported) {
						t.Fatalf("seed %d: %s is on the path of %s and outlived its caller", seed, at.ID, n.ID)
					}
				}
			}
			for i, s := range n.steps {
				switch {
				case s.background():
					awaited++
				case s.End < s.Reported:
					cut++
				case slices.ContainsFunc(n.steps[:i], func(o step) bool { return o.Node == s.Node }):
					parts++
				}
			}
			o := oracle{}
			for _, c := range n.Bottlenecks(2) {
				g := c.Group
				want := min(c.Time, n.Wall()-o.lengthOf(n, n.Start, n.End, func(s slot) bool { return (Segment{Node: s.node, Bucket: s.bucket}).group() == g }))
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
	if shifted < 100 || circles < 100 || saved < 1000 || outlived < 200 || awaited < 50 || parts < 50 || cut < 50 {
		t.Errorf("the generator is dull: %d shifts, %d traces of several roots, %d savings, %d that outlive their caller, %d waits for the background, %d calls in parts, %d cut",
			shifted, circles, saved, outlived, awaited, parts, cut)
	}
}

// TestIdsAreOnlyNames: the story of a trace does not depend on its ids.
func TestIdsAreOnlyNames(t *testing.T) {
	story := func(spans []Span) (out []string) {
		for _, n := range New(spans).Roots() {
			for _, p := range n.Path() {
				out = append(out, fmt.Sprint(p.group(), p.From, p.To))
			}
			for _, c := range n.Bottlenecks(3) {
				out = append(out, fmt.Sprint(c.Group, c.Time, c.Steps, c.Saves))
			}
		}
		return out
	}
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 2))
		var spans []Span
		for i, s := range randomSpans(r) { // no circles, and no id twice
			s.ID = fmt.Sprint("s", i)
			if i == 0 || s.Parent == s.ID || slices.IndexFunc(spans, func(p Span) bool { return p.ID == s.Parent }) < 0 {
				s.Parent = ""
			}
			spans = append(spans, s)
			if r.IntN(3) == 0 { // one like it beside it
				s.ID = fmt.Sprint("t", i)
				spans = append(spans, s)
			}
		}
		want := story(spans)
		for range 4 {
			other := slices.Clone(spans)
			names := r.Perm(len(other))
			renamed := make(map[string]string)
			for i, s := range other {
				renamed[s.ID] = fmt.Sprint("r", names[i])
			}
			for i := range other {
				other[i].ID, other[i].Parent = renamed[other[i].ID], renamed[other[i].Parent]
			}
			if got := story(other); !slices.Equal(got, want) {
				t.Fatalf("seed %d: under other ids\n%s\nwant\n%s", seed, got, want)
			}
		}
	}
}

func check(t *testing.T, seed uint64, n *Node) {
	t.Helper()
	var want Split
	o := oracle{}
	for i := n.Start; i < n.End; i++ {
		want[o.at(n, i, n.Start, n.End, false).bucket]++
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
			if s := o.at(n, i, n.Start, n.End, true); s.node != p.Node || s.bucket != p.Bucket {
				t.Errorf("seed %d: %s at %d: %s %s, want %s %s", seed, n.ID, i, p.Node.ID, p.Bucket, s.node.ID, s.bucket)
			}
		}
		now = p.To
	}
	if now != n.End {
		t.Errorf("seed %d: %s: path ends at %d, want %d", seed, n.ID, now, n.End)
	}
	if same := n.WhatIf(func(Segment) bool { return false }); same != n.Wall() {
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
