package blame

import (
	"cmp"
	"slices"
)

// Piece is a stretch of time with the node that had it and what it was spent on.
// A gap between steps belongs to the node that they are steps of.
type Piece struct {
	Node     *Node
	Bucket   Bucket
	From, To int64
}

// Split is the node's wall time by bucket.
func (n *Node) Split() (s Split) {
	p := painter{shallow: true}
	p.paint(n, n.Start, n.End)
	for _, piece := range p.pieces {
		s[piece.Bucket] += piece.To - piece.From
	}
	return s
}

// Path is the critical path through the node and everything below it: pieces
// without a gap between them from its start to its end, in order.
func (n *Node) Path() []Piece {
	p := painter{}
	p.paint(n, n.Start, n.End)
	return p.pieces
}

// painter paints time, piece by piece.
type painter struct {
	shallow bool // another agent is one piece
	pieces  []Piece
}

func (p *painter) put(n *Node, b Bucket, from, to int64) {
	if from >= to {
		return
	}
	if i := len(p.pieces) - 1; i >= 0 {
		if last := &p.pieces[i]; last.Node == n && last.Bucket == b && last.To == from {
			last.To = to
			return
		}
	}
	p.pieces = append(p.pieces, Piece{n, b, from, to})
}

func (p *painter) paint(n *Node, from, to int64) {
	for _, s := range gates(n.steps, from, to) {
		switch {
		case s.Node == nil:
			p.own(n, s.From, s.To)
		case p.shallow && n.Kind != Delegation && (s.Node.Kind == Delegation || s.Node.Kind == Run && !s.Node.function()):
			p.put(s.Node, SubAgent, s.From, s.To)
		default:
			p.paint(s.Node, s.From, s.To)
		}
	}
}

// gates tiles the time with the steps that gate, and with gaps, whose Node is
// nil.
func gates(steps []step, from, to int64) []Piece {
	if len(steps) == 0 {
		return []Piece{{From: from, To: to}}
	}
	byEnd := slices.Clone(steps)
	slices.Reverse(byEnd) // of two that nothing tells apart the first is to be on top
	slices.SortStableFunc(byEnd, func(a, b step) int {
		return -cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.from, b.from), order(a.Node, b.Node))
	})
	// Running has the steps that end at or after the time, the first to end on top:
	// as the time runs backwards, each that is added ends before all that are there.
	var out []Piece
	var running []step
	for at := to; at > from; {
		for len(byEnd) > 0 && byEnd[0].to >= at {
			running, byEnd = append(running, byEnd[0]), byEnd[1:]
		}
		for len(running) > 0 && running[len(running)-1].from >= at {
			running = running[:len(running)-1]
		}
		piece := Piece{From: from, To: at}
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

// own paints time that a node has for itself: a step's own, or a gap between
// steps.
func (p *painter) own(n *Node, from, to int64) {
	retried := n.lastRetry(from, to)
	first := n.FirstToken
	if n.Kind != Chat {
		first = 0
	}
	cuts := []int64{from, to}
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
		p.put(n, n.bucketAt(at, retried, first), at, cuts[i+1])
	}
}

// lastRetry is the last retry that the time was lost to: of a step's retries the
// last, of a gap's those within.
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
	case n.unseen():
		return SubAgent
	}
	return Idle
}

// function reports whether the node is a step of a workflow that a function does.
func (n *Node) function() bool { return n.Step && len(n.children) == 0 }

// unseen reports whether the node is a delegation of whose agent nothing was
// heard, or not more than a word.
func (n *Node) unseen() bool {
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
