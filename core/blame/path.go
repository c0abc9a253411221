package blame

import (
	"cmp"
	"slices"
)

// Segment is a stretch of time with its node and its bucket. A gap between steps belongs
// to the node above the steps.
type Segment struct {
	Node     *Node
	Bucket   Bucket
	From, To int64
}

// Split is the node's wall time by bucket.
func (n *Node) Split() (s Split) {
	for _, piece := range n.Shallow() {
		s[piece.Bucket] += piece.To - piece.From
	}
	return s
}

// Shallow is the critical path with the work of another agent as one segment, whose node is the
// delegation: contiguous segments from the node's start to its end, in order.
func (n *Node) Shallow() []Segment {
	p := splitter{shallow: true}
	p.split(n, n.Start, n.End)
	return p.segments
}

// Path is the critical path through the node and everything below it: contiguous
// segments from its start to its end, in order.
func (n *Node) Path() []Segment {
	p := splitter{}
	p.split(n, n.Start, n.End)
	return p.segments
}

// splitter splits time into segments.
type splitter struct {
	shallow  bool // another agent is one segment
	segments []Segment
}

func (p *splitter) add(n *Node, b Bucket, from, to int64) {
	if from >= to {
		return
	}
	if i := len(p.segments) - 1; i >= 0 {
		if last := &p.segments[i]; last.Node == n && last.Bucket == b && last.To == from {
			last.To = to
			return
		}
	}
	p.segments = append(p.segments, Segment{n, b, from, to})
}

func (p *splitter) split(n *Node, from, to int64) {
	if len(n.steps) == 0 {
		p.own(n, from, to)
		return
	}
	for _, s := range criticalSegments(n.steps, from, to) {
		switch {
		case s.Node == nil:
			p.own(n, s.From, s.To)
		case p.shallow && n.Kind != Delegation && (s.Node.Kind == Delegation || s.Node.Kind == Run && !s.Node.function()):
			p.add(s.Node, SubAgent, s.From, s.To)
		default:
			p.split(s.Node, s.From, s.To)
		}
	}
}

// criticalSegments covers the time with the steps that gate and with gaps, whose Node is
// nil, without overlap.
func criticalSegments(steps []step, from, to int64) []Segment {
	if len(steps) == 0 {
		return []Segment{{From: from, To: to}}
	}
	byEnd := slices.Clone(steps)
	slices.Reverse(byEnd) // of two equal steps the first must be on top
	slices.SortStableFunc(byEnd, func(a, b step) int {
		if c := cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.from, b.from)); c != 0 {
			return -c
		}
		return -order(a.Node, b.Node)
	})
	// running has the steps that end at or after the time, the first to end on top:
	// time runs backwards, so each step that is pushed ends before all steps below it.
	var out []Segment
	var running []step
	for at := to; at > from; {
		for len(byEnd) > 0 && byEnd[0].to >= at {
			running, byEnd = append(running, byEnd[0]), byEnd[1:]
		}
		for len(running) > 0 && running[len(running)-1].from >= at {
			running = running[:len(running)-1]
		}
		piece := Segment{From: from, To: at}
		switch {
		case len(running) > 0:
			top := running[len(running)-1]
			piece.Node, piece.From = top.Node, max(from, top.from)
		case len(byEnd) > 0:
			piece.From = max(from, byEnd[0].to)
		}
		out = append(out, piece)
		at = piece.From
	}
	slices.Reverse(out)
	return out
}

// own splits the time that a node spends outside its steps: the whole time of a node
// without steps, or a gap between steps.
func (p *splitter) own(n *Node, from, to int64) {
	retried := n.lastRetry(from, to)
	first := n.FirstToken
	if n.Kind != Chat {
		first = 0
	}
	cuts := append(make([]int64, 0, 8), from, to) // on the stack
	for _, at := range []int64{retried, first} {
		if from < at && at < to {
			cuts = append(cuts, at)
		}
	}
	for _, w := range n.Waits {
		for _, at := range []int64{w.From, w.To} {
			if from < at && at < to {
				cuts = append(cuts, at)
			}
		}
	}
	slices.Sort(cuts)
	for i, at := range cuts[:len(cuts)-1] {
		p.add(n, n.bucketAt(at, retried, first), at, cuts[i+1])
	}
}

// lastRetry returns the time of the last retry: the last one of a step, the last one
// inside a gap.
func (n *Node) lastRetry(from, to int64) int64 {
	last := int64(0)
	for _, at := range n.Retries {
		if n.Kind != Run && at > n.Start || at > from && at <= to {
			last = max(last, min(at, n.End))
		}
	}
	return last
}

func (n *Node) bucketAt(at, retried, first int64) Bucket {
	for _, w := range n.Waits {
		if w.From <= at && at < w.To {
			return Wait
		}
	}
	switch {
	case at < retried:
		return Retry
	case n.Kind == Chat && at < first:
		return ModelTTFT
	case n.Kind == Chat:
		return ModelStream
	case n.Kind == Tool || n.function():
		return ToolTime
	case n.opaque():
		return SubAgent
	}
	return Idle
}

// function reports whether the node is a workflow step that a function executes.
func (n *Node) function() bool { return n.Step && len(n.children) == 0 }

// opaque reports whether the node is a delegation whose agent left no record, or none
// that has a duration.
func (n *Node) opaque() bool {
	if n.Kind != Delegation {
		return false
	}
	for _, c := range n.children {
		if c.Start < c.End {
			return false
		}
	}
	return true
}
