package conformance

import (
	"context"
	"runtime"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
)

// lifecycle is C11.
func lifecycle(ctx context.Context, r *runner) error {
	if err := fresh(ctx, r); err != nil || !r.steady {
		return err
	}
	for _, step := range []func(context.Context, *runner) error{flushing, closing, leaving} {
		if err := step(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// fresh: a decoder has nothing to say before its first frame, whatever another
// one has seen.
func fresh(ctx context.Context, r *runner) error {
	first, err := r.open(ctx, r.suite.Subject, r.c.Stream, nil)
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := r.open(ctx, r.suite.Subject, r.c.Stream, nil)
	if err != nil {
		return err
	}
	defer second.Close()
	if _, err := r.decode(ctx, first, Batch{Frames: r.c.Frames}, 0); err != nil {
		return err
	}
	for range 2 {
		open, err := r.flush(ctx, second)
		if err != nil {
			return err
		}
		if len(open) > 0 {
			return &broken{"D1", "a decoder that has seen no frame gives a message", line(&open[0])}
		}
	}
	return nil
}

// flushing: Flush changes nothing, and says the same twice.
func flushing(ctx context.Context, r *runner) error {
	often, err := r.play(ctx, r.suite.Subject, r.c.Stream, r.c.Frames, how{flushes: true})
	if err != nil {
		return err
	}
	const changed = "calling Flush after each frame changes what comes later"
	same := rules{"D5", "D10"}
	if err := same.differ(changed, r.base.said, often.said); err != nil {
		return err
	}
	if err := same.differ(changed, r.base.left, often.left); err != nil {
		return err
	}
	// What an early Flush gave is replaced by what is complete later, or by what
	// the last Flush gives.
	late := fold(often.early, often.said, often.left)
	if err := same.differ("messages of an early Flush are left over", sorted(r.base.folded()), sorted(late)); err != nil {
		return err
	}
	st, err := r.open(ctx, r.suite.Subject, r.c.Stream, nil)
	if err != nil {
		return err
	}
	defer st.Close()
	if _, err := r.decode(ctx, st, Batch{Frames: r.c.Frames}, 0); err != nil {
		return err
	}
	for range 2 {
		open, err := r.flush(ctx, st)
		if err != nil {
			return err
		}
		if err := same.differ("Flush says something else when it is called again", r.base.left, items(open)); err != nil {
			return err
		}
	}
	return nil
}

// closing: the frames that say that the stream ended have no data to be bad. They may
// complete what is open.
func closing(ctx context.Context, r *runner) error {
	last := r.c.Frames[len(r.c.Frames)-1]
	if last.Kind != frame.Event && last.Kind != frame.Text {
		return nil
	}
	end := frame.Frame{Kind: frame.Close, At: last.At, Pos: last.End, End: last.End}
	lost := end
	lost.Name = frame.Lost
	for _, ends := range [][]frame.Frame{{end}, {lost}, {end, lost}} {
		closed, err := r.play(ctx, r.suite.Subject, r.c.Stream, append(r.c.Frames[:len(r.c.Frames):len(r.c.Frames)], ends...), how{})
		if err != nil {
			return err
		}
		if len(closed.problems) > len(r.base.problems) {
			return breaks("D8", "a close frame, which has no data, gives the problem %s", closed.problems[len(closed.problems)-1].Reason)
		}
		if err := complete(append(r.base.said[:len(r.base.said):len(r.base.said)], closed.said...)); err != nil {
			return err
		}
	}
	return nil
}

// leaving: a decoder starts nothing that goes on without it. Goroutines are seen
// only in this process, and others come and go in it: one that comes with every
// decoder is meant.
func leaving(ctx context.Context, r *runner) error {
	if _, ok := r.suite.Subject.(*Local); !ok {
		return nil
	}
	const decoders = 20
	before := runtime.NumGoroutine()
	for range decoders {
		if _, err := r.play(ctx, r.suite.Subject, r.c.Stream, r.c.Frames[:1], how{}); err != nil {
			return err
		}
	}
	// One that is on its way out is given the time to go.
	late := time.After(500 * time.Millisecond)
	for runtime.NumGoroutine() >= before+decoders {
		select {
		case <-late:
			return breaks("D4", "%d decoders leave %d goroutines behind", decoders, runtime.NumGoroutine()-before)
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}
