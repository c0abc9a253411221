package conformance

import "context"

// aliasing is C7. A buffer is somebody else's as soon as the batch is done, and
// messages are read only then.
func aliasing(ctx context.Context, r *runner) error {
	poisoned, err := r.play(ctx, r.suite.Subject, r.c.Stream, r.c.Frames, how{poison: true})
	if err != nil {
		return err
	}
	if err := (rules{"D3", "D3"}).differ("the output changes when the frame's bytes are overwritten after the call",
		r.base.folded(), poisoned.folded()); err != nil {
		return err
	}
	for _, size := range []func() int{whole, r.sizes(3), r.sizes(40)} {
		late, err := r.play(ctx, r.suite.Subject, r.c.Stream, r.c.Frames, how{batch: size})
		if err != nil {
			return err
		}
		if err := (rules{"D12", "D12"}).differ("messages change after they were returned: read after the batch they are not what they were",
			r.base.said, late.said); err != nil {
			return err
		}
	}
	return nil
}
