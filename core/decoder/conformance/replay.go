package conformance

import "context"

// replay is C5. After a crash the stream is resumed from the last snapshot that
// was kept, and what was decoded after it comes again.
func replay(ctx context.Context, r *runner) error {
	frames, want := r.c.Frames, r.base.folded()
	out := rules{keys: "D5", rest: "D2"}
	if !r.suite.Subject.Describe().Snapshots {
		again, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, how{batch: r.pace()})
		if err != nil {
			return err
		}
		for _, i := range r.sample(len(frames), 48) {
			if err := out.differ("a replay from the beginning does not fold to the same", want,
				fold(r.base.before(i), again.said, again.left)); err != nil {
				return err
			}
		}
		return nil
	}
	taken, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, how{snapshots: true})
	if err != nil {
		return err
	}
	if err := out.differ("taking snapshots changes the output", r.base.said, taken.said); err != nil {
		return err
	}
	for _, at := range r.sample(len(frames), 48) {
		var from []byte
		if at > 0 {
			from = taken.snapshots[at-1]
		}
		rest, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames[at:], how{from: from, batch: r.pace()})
		if err != nil {
			return err
		}
		for _, overlap := range []int{0, 1, 2, len(frames)} {
			got := fold(r.base.before(min(at+overlap, len(frames))), rest.said, rest.left)
			if err := out.differ("a stream resumed from a snapshot does not fold to the same", want, got); err != nil {
				return err
			}
		}
	}
	// A snapshot of a decoder that was itself restored is as good as any.
	often, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, how{restart: true})
	if err != nil {
		return err
	}
	return out.differ("a stream resumed after every frame does not fold to the same", want, often.folded())
}
