package conformance

import (
	"context"

	"github.com/earshot-dev/earshot/core/msg"
)

// interleaved is one of the streams that C6 decodes in turns.
type interleaved struct {
	c    *Case
	want *run
	s    Stream
	at   int // the next frame
	got  []msg.Message
}

// interleave is C6. One process decodes many streams, and a request may carry
// batches of several.
func interleave(ctx context.Context, r *runner) error {
	for range 3 {
		turns := []*interleaved{{c: r.c, want: r.base}, {c: r.c, want: r.base}}
		for range min(2, len(r.suite.Cases)-1) {
			other := &r.suite.Cases[r.rand.IntN(len(r.suite.Cases))]
			want, err := r.play(ctx, r.suite.Subject, other.Stream, other.Frames, playOptions{})
			if err != nil {
				continue // C1 of that case reports it
			}
			turns = append(turns, &interleaved{c: other, want: want})
		}
		if err := r.decodeInterleaved(ctx, turns); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) decodeInterleaved(ctx context.Context, turns []*interleaved) error {
	for _, t := range turns {
		var err error
		if t.s, err = r.open(ctx, r.suite.Subject, t.c.Stream, nil); err != nil {
			return err
		}
		defer t.s.Close()
	}
	for left := turns; len(left) > 0; {
		r.rand.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		active := left[:1+r.rand.IntN(len(left))]
		streams, batches := make([]Stream, len(active)), make([]Batch, len(active))
		for i, t := range active {
			n := min(r.groupSize(), len(t.c.Frames)-t.at)
			streams[i], batches[i] = t.s, Batch{Frames: t.c.Frames[t.at : t.at+n]}
			t.at += n
		}
		answers, err := r.decodeGroup(ctx, streams, batches)
		if err != nil {
			return callError(err, 0)
		}
		var unfinished []*interleaved
		for i, t := range active {
			t.got = append(t.got, answers[i].Messages...)
		}
		for _, t := range left {
			if t.at < len(t.c.Frames) {
				unfinished = append(unfinished, t)
			}
		}
		left = unfinished
	}
	const reason = "decoding other streams between its frames changes the output of a stream"
	alone := rules{"D1", "D1"}
	for _, t := range turns {
		if err := alone.differ(reason, t.want.emitted, items(t.got)); err != nil {
			return err
		}
		open, err := r.flush(ctx, t.s)
		if err != nil {
			return err
		}
		if err := alone.differ(reason, t.want.flushed, items(open)); err != nil {
			return err
		}
	}
	return nil
}

// groupSize returns the number of frames of a stream for one request.
func (r *runner) groupSize() int {
	if r.cautiousSizes() == nil {
		return 1
	}
	return 1 + r.rand.IntN(4)
}

func (r *runner) decodeGroup(ctx context.Context, streams []Stream, batches []Batch) ([]Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, r.suite.timeout())
	defer cancel()
	return decodeGroup(ctx, streams, batches)
}
