package conformance

import (
	"context"

	"github.com/earshot-dev/earshot/core/msg"
)

// turn is one of the streams that are decoded in turns.
type turn struct {
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
		turns := []*turn{{c: r.c, want: r.base}, {c: r.c, want: r.base}}
		for range min(2, len(r.suite.Cases)-1) {
			other := &r.suite.Cases[r.rand.IntN(len(r.suite.Cases))]
			want, err := r.play(ctx, r.suite.Subject, other.Stream, other.Frames, how{})
			if err != nil {
				continue // its own C1 says so
			}
			turns = append(turns, &turn{c: other, want: want})
		}
		if err := r.inTurns(ctx, turns); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) inTurns(ctx context.Context, turns []*turn) error {
	for _, t := range turns {
		var err error
		if t.s, err = r.open(ctx, r.suite.Subject, t.c.Stream, nil); err != nil {
			return err
		}
		defer t.s.Close()
	}
	for left := turns; len(left) > 0; {
		r.rand.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		now := left[:1+r.rand.IntN(len(left))]
		streams, batches := make([]Stream, len(now)), make([]Batch, len(now))
		for i, t := range now {
			n := min(r.some(), len(t.c.Frames)-t.at)
			streams[i], batches[i] = t.s, Batch{Frames: t.c.Frames[t.at : t.at+n]}
			t.at += n
		}
		answers, err := r.group(ctx, streams, batches)
		if err != nil {
			return died(err, 0)
		}
		var still []*turn
		for i, t := range now {
			t.got = append(t.got, answers[i].Messages...)
		}
		for _, t := range left {
			if t.at < len(t.c.Frames) {
				still = append(still, t)
			}
		}
		left = still
	}
	const reason = "a stream gives something else when others are decoded between its frames"
	alone := rules{"D1", "D1"}
	for _, t := range turns {
		if err := alone.differ(reason, t.want.said, items(t.got)); err != nil {
			return err
		}
		open, err := r.flush(ctx, t.s)
		if err != nil {
			return err
		}
		if err := alone.differ(reason, t.want.left, items(open)); err != nil {
			return err
		}
	}
	return nil
}

// some is how many frames of a stream come at once.
func (r *runner) some() int {
	if r.pace() == nil {
		return 1
	}
	return 1 + r.rand.IntN(4)
}

func (r *runner) group(ctx context.Context, streams []Stream, batches []Batch) ([]Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, r.suite.timeout())
	defer cancel()
	return group(ctx, streams, batches)
}
