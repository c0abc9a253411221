package conformance

import (
	"context"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
)

// determinism is C12. The same frames read again, an hour later and from another
// place of the file, give the same.
func determinism(ctx context.Context, r *runner) error {
	again := func(what string) error {
		other, err := r.play(ctx, r.suite.Subject, r.c.Stream, r.c.Frames, how{})
		if err != nil {
			return err
		}
		return same(what, r.base, other)
	}
	// Maps are walked in another order each time, so one more run is not enough.
	for range 4 {
		if err := again("a second run over the same frames gives something else"); err != nil {
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
	other, err := r.play(ctx, r.suite.Subject, r.c.Stream, moved, how{})
	if err != nil {
		return err
	}
	return same("frames read at another time, from another place, give something else", r.base, other)
}

// same compares two runs in everything.
func same(reason string, want, got *run) error {
	out := rules{keys: "D5", rest: "D4"}
	if err := out.differ(reason, want.said, got.said); err != nil {
		return err
	}
	if err := out.differ(reason, want.left, got.left); err != nil {
		return err
	}
	if err := out.differ(reason, want.complaints(), got.complaints()); err != nil {
		return err
	}
	frame := func(a, b msg.Message) bool { return a.Frame == b.Frame }
	if !slices.EqualFunc(want.messages, got.messages, frame) {
		return breaks("D4", "%s: messages name another frame", reason)
	}
	return nil
}
