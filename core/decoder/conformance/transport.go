package conformance

import (
	"context"
	"fmt"
)

// transport is C8. The output does not depend on how the host reaches the decoder.
func transport(ctx context.Context, r *runner) error {
	if len(r.suite.Twins) == 0 {
		return skipped("the decoder is reached in one way only")
	}
	want := r.suite.Subject.Describe()
	for _, twin := range r.suite.Twins {
		got := twin.Describe()
		if a, b := fmt.Sprintf("%+v %t", want.Info, want.Snapshots), fmt.Sprintf("%+v %t", got.Info, got.Snapshots); a != b {
			return &violation{"D4", fmt.Sprintf("the descriptions differ: %s, %s", want.Where, got.Where), "- " + a + "\n+ " + b}
		}
		for _, size := range []func() int{nil, whole, r.sizes(5)} {
			other, err := r.play(ctx, twin, r.c.Stream, r.c.Frames, playOptions{batch: size, poison: true})
			if err != nil {
				return err
			}
			if err := sameRun(fmt.Sprintf("the output differs: %s, %s", want.Where, got.Where), r.base, other); err != nil {
				return err
			}
		}
		if !want.Snapshots {
			continue
		}
		other, err := r.play(ctx, twin, r.c.Stream, r.c.Frames, playOptions{restart: true, batch: r.sizes(5)})
		if err != nil {
			return err
		}
		if err := (rules{keys: "D5", rest: "D2"}).differ(fmt.Sprintf("resumed streams differ: %s, %s", want.Where, got.Where),
			r.base.folded(), other.folded()); err != nil {
			return err
		}
	}
	return nil
}
