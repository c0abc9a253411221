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

// run is the output of a decoder for frames.
type run struct {
	messages []msg.Message // Frame is the index among all frames
	problems []msg.Problem
	open     []msg.Message // the messages of the last Flush
	// emitted and flushed are the items of messages and open; flushedEarly those of every
	// earlier Flush, when flushes is set.
	emitted, flushed, flushedEarly []item
	snapshots                      [][]byte // after each batch, when asked for
}

// folded returns the messages that remain in the tables.
func (r *run) folded() []item { return fold(r.emitted, r.flushed) }

// foldedMessages returns the same as messages, which a check may change before it
// compares them.
func (r *run) foldedMessages() []msg.Message {
	return msg.Fold(append(r.messages[:len(r.messages):len(r.messages)], r.open...))
}

// before returns the messages of the frames before i.
func (r *run) before(i int) []item {
	n := sort.Search(len(r.messages), func(j int) bool { return int(r.messages[j].Frame) >= i })
	return r.emitted[:n]
}

// playOptions control how play decodes frames. The zero value decodes them one by one.
type playOptions struct {
	batch     func() int // the number of frames of the next batch
	poison    bool
	flushes   bool   // Flush after each batch
	snapshots bool   // a snapshot after each batch
	restart   bool   // resume from that snapshot after each batch
	from      []byte // the snapshot to open the stream from
}

// play opens a stream, decodes the frames, flushes and closes. The error names
// the rule that the decoder broke by failing.
func (r *runner) play(ctx context.Context, s Subject, st decoder.Stream, frames []frame.Frame, h playOptions) (*run, error) {
	stream, err := r.open(ctx, s, st, h.from)
	if err != nil {
		return nil, err
	}
	defer func() { stream.Close() }()
	out := &run{}
	batches := h.batches(frames)
	if h.restart {
		at := 0
		for ; len(batches) > 1; batches = batches[1:] {
			a, err := r.decode(ctx, stream, batches[0], at)
			if err != nil {
				return nil, err
			}
			out.add(a)
			at += len(batches[0].Frames)
			stream.Close()
			again, err := r.open(ctx, s, st, a.Snapshot)
			if err != nil {
				return nil, err
			}
			stream = again
		}
	}
	answers, err := r.decodeAll(ctx, stream, batches)
	if err != nil {
		return nil, err
	}
	last := len(batches) - 1
	for i, a := range answers[:last] {
		if batches[i].Flush {
			out.flushedEarly = append(out.flushedEarly, items(a.Messages)...)
			continue
		}
		out.add(a)
		if h.snapshots {
			out.snapshots = append(out.snapshots, a.Snapshot)
		}
	}
	out.open = answers[last].Messages
	out.emitted, out.flushed = items(out.messages), items(out.open)
	return out, nil
}

func (r *run) add(a Answer) {
	r.messages = append(r.messages, a.Messages...)
	r.problems = append(r.problems, a.Problems...)
}

// batches are the batches of the frames, and a flush.
func (h *playOptions) batches(frames []frame.Frame) (all []Batch) {
	for at := 0; at < len(frames); {
		n := 1
		if h.batch != nil {
			n = min(max(h.batch(), 1), len(frames)-at)
		}
		all = append(all, Batch{Frames: frames[at : at+n], Poison: h.poison, Snapshot: h.snapshots || h.restart})
		if h.flushes {
			all = append(all, Batch{Flush: true})
		}
		at += n
	}
	return append(all, Batch{Flush: true})
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
		return nil, violates(rule, "a stream cannot be opened: %v", err)
	}
	return stream, nil
}

// decode decodes a batch whose first frame has the index at, and adds at to the frame
// numbers of the output.
func (r *runner) decode(ctx context.Context, s Stream, b Batch, at int) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, r.suite.timeout())
	defer cancel()
	a, err := s.Decode(ctx, b)
	if err != nil {
		return a, callError(err, at)
	}
	return a, a.settle(len(b.Frames), at)
}

// decodeAll decodes batches, the first of which has the first frame.
func (r *runner) decodeAll(ctx context.Context, s Stream, batches []Batch) ([]Answer, error) {
	answers, failed := decodeAll(ctx, r.suite.timeout(), s, batches)
	at := 0
	for i := range answers {
		if batches[i].Flush {
			if err := answers[i].flushed(); err != nil {
				return nil, err
			}
			continue
		}
		if err := answers[i].settle(len(batches[i].Frames), at); err != nil {
			return nil, err
		}
		at += len(batches[i].Frames)
	}
	if failed != nil {
		return nil, callError(failed, at)
	}
	return answers, nil
}

// settle checks the answer to a batch of n frames whose first one has the index at, and adds at to the frame numbers.
func (a *Answer) settle(n, at int) error {
	last := int32(-1)
	for i := range a.Messages {
		f := &a.Messages[i].Frame
		if n > 0 && (*f < max(last, 0) || *f >= int32(n)) {
			return violates("D2", "a message names frame %d, after %d, in a batch of %d frames", *f, last, n)
		}
		last = *f
		*f += int32(at)
	}
	for i := range a.Problems {
		p := &a.Problems[i]
		p.Frame += int32(at)
		if p.Reason == reasonPanic {
			return violates("D8", "panics at frame %d: %s", p.Frame, p.Detail)
		}
	}
	return nil
}

// flush returns the open messages.
func (r *runner) flush(ctx context.Context, s Stream) ([]msg.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, r.suite.timeout())
	defer cancel()
	a, err := s.Decode(ctx, Batch{Flush: true})
	if err != nil {
		return nil, callError(err, 0)
	}
	return a.Messages, a.flushed()
}

// flushed checks the answer to a flush.
func (a *Answer) flushed() error {
	if len(a.Problems) > 0 {
		return violates("D10", "Flush reports a problem: %s", a.Problems[0].Reason)
	}
	for i := range a.Messages {
		m := &a.Messages[i]
		m.Frame = 0
		if m.Complete != msg.Partial {
			return &violation{"D10", "Flush emits a message that is not incomplete", line(m)}
		}
	}
	return nil
}

func callError(err error, at int) error {
	var f *Failure
	if errors.As(err, &f) {
		moved := *f
		moved.Frame += at
		return violates("D9", "returns an error %v", &moved)
	}
	return violates("D9", "fails to answer: %v", err)
}

// cautiousSizes returns batch sizes for checks that do not depend on them: single frames
// where that is cheap, so that a decoder whose messages change within a batch fails C7
// only and not every check.
func (r *runner) cautiousSizes() func() int {
	if _, ok := r.suite.Subject.(*Local); ok {
		return nil
	}
	return r.sizes(8)
}

// sizes returns random batch sizes up to n, for playOptions.batch.
func (r *runner) sizes(n int) func() int { return func() int { return 1 + r.rand.IntN(n) } }

func whole() int { return 1 << 30 }

// times is how often a check of n rounds repeats a case: a sixth of them if the suite is
// sparse.
func (r *runner) times(n int) int {
	if r.suite.Sparse {
		return max(n/6, 1)
	}
	return n
}

// sample returns up to n of the numbers 0 to limit, in order, with both ends; a sixth of
// that if the suite is sparse.
func (r *runner) sample(limit, n int) []int {
	n = max(r.times(n), 2)
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
