package conformance

import (
	"context"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
)

// determinism is C12. The same frames, read an hour later and from another position in
// the file, have the same output.
func determinism(ctx context.Context, r *runner) error {
	again := func(reason string) error {
		other, err := r.play(ctx, r.suite.Subject, r.c.Stream, r.c.Frames, playOptions{})
		if err != nil {
			return err
		}
		return sameRun(reason, r.base, other)
	}
	// The order of a map changes with each iteration, so one more run is not enough.
	for range 4 {
		if err := again("a second run over the same frames has other output"); err != nil {
			return err
		}
	}
	moved := slices.Clone(r.c.Frames)
	for i := range moved {
		f := &moved[i]
		f.At += int64(time.Hour)
		f.Pos += 1 << 40
		f.End += 1 << 40
	}
	other, err := r.play(ctx, r.suite.Subject, r.c.Stream, moved, playOptions{})
	if err != nil {
		return err
	}
	return sameRun("the output depends on the time of reading or on the position in the file", r.base, other)
}

// sameRun compares the messages, problems and frame numbers of two runs.
func sameRun(reason string, want, got *run) error {
	out := rules{keys: "D5", rest: "D4"}
	if err := out.differ(reason, want.emitted, got.emitted); err != nil {
		return err
	}
	if err := out.differ(reason, want.flushed, got.flushed); err != nil {
		return err
	}
	if err := out.differ(reason, want.problemItems(), got.problemItems()); err != nil {
		return err
	}
	frame := func(a, b msg.Message) bool { return a.Frame == b.Frame }
	if !slices.EqualFunc(want.messages, got.messages, frame) {
		return violates("D4", "%s: messages name another frame", reason)
	}
	return nil
}
