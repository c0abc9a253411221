package conformance

import (
	"bytes"
	"context"
	"errors"
	"sort"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// run is what a decoder gave for frames.
type run struct {
	messages []msg.Message // Frame is the index among all frames
	problems []msg.Problem
	open     []msg.Message // what Flush gave at the end
	// said and left are messages and open as they are compared, early is what Flush
	// gave before, when it was called after each batch.
	said, left, early []item
	snapshots         [][]byte // after each batch, when asked for
}

// folded is what a reader of the tables sees.
func (r *run) folded() []item { return fold(r.said, r.left) }

// foldedMessages is the same, for who changes them before they are compared.
func (r *run) foldedMessages() []msg.Message {
	return msg.Fold(append(r.messages[:len(r.messages):len(r.messages)], r.open...))
}

// before returns what the frames before i gave.
func (r *run) before(i int) []item {
	n := sort.Search(len(r.messages), func(j int) bool { return int(r.messages[j].Frame) >= i })
	return r.said[:n]
}

// how says how frames are played. The zero value gives them one by one.
type how struct {
	batch     func() int // the number of frames of the next batch
	poison    bool
	flushes   bool // Flush after each batch
	snapshots bool // a snapshot after each batch
	restart   bool // resume from that snapshot after each batch
	from      []byte
}

// play opens a stream, decodes the frames, flushes and closes. The error names
// the rule that the decoder broke by failing.
func (r *runner) play(ctx context.Context, s Subject, st decoder.Stream, frames []frame.Frame, h how) (*run, error) {
	stream, err := r.open(ctx, s, st, h.from)
	if err != nil {
		return nil, err
	}
	defer func() { stream.Close() }()
	out := &run{}
	for at := 0; at < len(frames); {
		n := 1
		if h.batch != nil {
			n = min(max(h.batch(), 1), len(frames)-at)
		}
		snap := h.snapshots || h.restart
		a, err := r.decode(ctx, stream, Batch{Frames: frames[at : at+n], Poison: h.poison, Snapshot: snap}, at)
		if err != nil {
			return nil, err
		}
		out.messages = append(out.messages, a.Messages...)
		out.problems = append(out.problems, a.Problems...)
		if h.flushes {
			open, err := r.flush(ctx, stream)
			if err != nil {
				return nil, err
			}
			out.early = append(out.early, items(open)...)
		}
		if h.snapshots {
			out.snapshots = append(out.snapshots, a.Snapshot)
		}
		if h.restart {
			stream.Close()
			again, err := r.open(ctx, s, st, a.Snapshot)
			if err != nil {
				return nil, err
			}
			stream = again
		}
		at += n
	}
	out.open, err = r.flush(ctx, stream)
	out.said, out.left = items(out.messages), items(out.open)
	return out, err
}

func (r *runner) open(ctx context.Context, s Subject, st decoder.Stream, from []byte) (Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, r.suite.timeout())
	defer cancel()
	stream, err := s.Open(ctx, st, bytes.Clone(from))
	if err != nil {
		rule := "D9"
		if from != nil {
			rule = "D2"
		}
		return nil, breaks(rule, "a stream cannot be opened: %v", err)
	}
	return stream, nil
}

// decode decodes a batch whose first frame has the index at, and numbers what
// comes of it from there.
func (r *runner) decode(ctx context.Context, s Stream, b Batch, at int) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, r.suite.timeout())
	defer cancel()
	a, err := s.Decode(ctx, b)
	if err != nil {
		return a, died(err, at)
	}
	last := int32(-1)
	for i := range a.Messages {
		f := &a.Messages[i].Frame
		if n := int32(len(b.Frames)); n > 0 && (*f < max(last, 0) || *f >= n) {
			return a, breaks("D2", "a message names frame %d, after %d, in a batch of %d frames", *f, last, n)
		}
		last = *f
		*f += int32(at)
	}
	for i := range a.Problems {
		p := &a.Problems[i]
		p.Frame += int32(at)
		if p.Reason == reasonPanic {
			return a, breaks("D8", "panics at frame %d: %s", p.Frame, p.Detail)
		}
	}
	return a, nil
}

// flush asks for what is open.
func (r *runner) flush(ctx context.Context, s Stream) ([]msg.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, r.suite.timeout())
	defer cancel()
	a, err := s.Decode(ctx, Batch{Flush: true})
	if err != nil {
		return nil, died(err, 0)
	}
	if len(a.Problems) > 0 {
		return nil, breaks("D10", "Flush gives a problem: %s", a.Problems[0].Reason)
	}
	for i := range a.Messages {
		m := &a.Messages[i]
		m.Frame = 0
		if m.Complete != msg.Partial {
			return nil, &broken{"D10", "Flush gives a message that is not incomplete", line(m)}
		}
	}
	return a.Messages, nil
}

func died(err error, at int) error {
	var f *Failure
	if errors.As(err, &f) {
		moved := *f
		moved.Frame += at
		return breaks("D9", "gives up %v", &moved)
	}
	return breaks("D9", "is gone: %v", err)
}

// pace returns batch sizes for checks that need not care: frames come one by one
// where that costs nothing, so that a decoder whose messages do not survive a
// batch (C7) fails there and not everywhere.
func (r *runner) pace() func() int {
	if _, ok := r.suite.Subject.(*Local); ok {
		return nil
	}
	return r.sizes(8)
}

// sizes returns batch sizes for how.batch: random ones up to n.
func (r *runner) sizes(n int) func() int { return func() int { return 1 + r.rand.IntN(n) } }

func whole() int { return 1 << 30 }

// sample returns up to n of the numbers 0 to limit, in order, with the ends.
func (r *runner) sample(limit, n int) []int {
	if limit < n {
		out := make([]int, limit+1)
		for i := range out {
			out[i] = i
		}
		return out
	}
	step := float64(limit) / float64(n-1)
	out := make([]int, 0, n)
	for i := range n {
		at := int(float64(i) * step)
		if i > 0 && i < n-1 {
			at += r.rand.IntN(max(int(step), 1))
		}
		out = append(out, min(at, limit))
	}
	out[n-1] = limit
	return out
}
