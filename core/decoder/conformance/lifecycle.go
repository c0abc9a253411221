package conformance

import (
	"context"
	"runtime"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
)

// lifecycle is C11. Flush changes no state, a close frame is not a bad frame, and decoders
// share no state.
func lifecycle(ctx context.Context, r *runner) error {
	if err := checkFresh(ctx, r); err != nil || !r.steady {
		return err
	}
	for _, step := range []func(context.Context, *runner) error{checkFlush, checkCloseFrames, checkGoroutines} {
		if err := step(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// checkFresh checks that a decoder has no open message before its first frame, even
// after another decoder of the process has decoded the case.
func checkFresh(ctx context.Context, r *runner) error {
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
			return &violation{"D1", "Flush emits a message of a decoder that has decoded no frame", line(&open[0])}
		}
	}
	return nil
}

// checkFlush checks that Flush changes no state and that a second call emits the same.
func checkFlush(ctx context.Context, r *runner) error {
	often, err := r.play(ctx, r.suite.Subject, r.c.Stream, r.c.Frames, playOptions{flushes: true})
	if err != nil {
		return err
	}
	const changed = "calling Flush after each frame changes the later output"
	same := rules{"D5", "D10"}
	if err := same.differ(changed, r.base.emitted, often.emitted); err != nil {
		return err
	}
	if err := same.differ(changed, r.base.flushed, often.flushed); err != nil {
		return err
	}
	// A later complete message or the last Flush replaces each message of an early
	// Flush.
	late := fold(often.flushedEarly, often.emitted, often.flushed)
	if err := same.differ("messages of an early Flush are never replaced", sorted(r.base.folded()), sorted(late)); err != nil {
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
		if err := same.differ("a second call of Flush emits other messages", r.base.flushed, items(open)); err != nil {
			return err
		}
	}
	return nil
}

// checkCloseFrames checks that a frame for the end of the stream, which has no data, is
// not a bad frame. It may complete open messages.
func checkCloseFrames(ctx context.Context, r *runner) error {
	last := r.c.Frames[len(r.c.Frames)-1]
	if last.Kind != frame.Event && last.Kind != frame.Text {
		return nil
	}
	end := frame.Frame{Kind: frame.Close, At: last.At, Pos: last.End, End: last.End}
	lost := end
	lost.Name = frame.Lost
	for _, ends := range [][]frame.Frame{{end}, {lost}, {end, lost}} {
		closed, err := r.play(ctx, r.suite.Subject, r.c.Stream, append(r.c.Frames[:len(r.c.Frames):len(r.c.Frames)], ends...), playOptions{})
		if err != nil {
			return err
		}
		if len(closed.problems) > len(r.base.problems) {
			return violates("D8", "a close frame, which has no data, is reported as the problem %s", closed.problems[len(closed.problems)-1].Reason)
		}
		if err := completeUnchanged(append(r.base.emitted[:len(r.base.emitted):len(r.base.emitted)], closed.emitted...)); err != nil {
			return err
		}
	}
	return nil
}

// checkGoroutines checks that no goroutine outlives its decoder. The suite can count
// goroutines of this process only, where others start and end too: it reports a leak
// when each decoder leaves at least one.
func checkGoroutines(ctx context.Context, r *runner) error {
	if _, ok := r.suite.Subject.(*Local); !ok {
		return nil
	}
	const decoders = 20
	before := runtime.NumGoroutine()
	for range decoders {
		if _, err := r.play(ctx, r.suite.Subject, r.c.Stream, r.c.Frames[:1], playOptions{}); err != nil {
			return err
		}
	}
	// A goroutine that is about to end has 500 ms to do so.
	timeout := time.After(500 * time.Millisecond)
	for runtime.NumGoroutine() >= before+decoders {
		select {
		case <-timeout:
			return violates("D4", "%d decoders leave %d goroutines behind", decoders, runtime.NumGoroutine()-before)
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}
