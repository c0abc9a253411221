package conformance

import "context"

// aliasing is C7. The host reuses a frame's buffer once the batch is decoded, and
// reads the messages only then.
func aliasing(ctx context.Context, r *runner) error {
	poisoned, err := r.play(ctx, r.suite.Subject, r.c.Stream, r.c.Frames, playOptions{poison: true})
	if err != nil {
		return err
	}
	if err := (rules{"D3", "D3"}).differ("the output changes when the frame's bytes are overwritten after the call",
		r.base.folded(), poisoned.folded()); err != nil {
		return err
	}
	for _, size := range []func() int{whole, r.sizes(3), r.sizes(40)} {
		late, err := r.play(ctx, r.suite.Subject, r.c.Stream, r.c.Frames, playOptions{batch: size})
		if err != nil {
			return err
		}
		if err := (rules{"D12", "D12"}).differ("messages change after they were returned: those read after the batch differ",
			r.base.emitted, late.emitted); err != nil {
			return err
		}
	}
	return nil
}
