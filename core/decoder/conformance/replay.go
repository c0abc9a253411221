package conformance

import "context"

// replay is C5. After a crash the host resumes the stream from the last stored snapshot,
// and frames that were decoded after it are decoded again.
func replay(ctx context.Context, r *runner) error {
	frames, want := r.c.Frames, r.base.folded()
	out := rules{keys: "D5", rest: "D2"}
	if !r.suite.Subject.Describe().Snapshots {
		again, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, playOptions{batch: r.cautiousSizes()})
		if err != nil {
			return err
		}
		for _, i := range r.sample(len(frames), 48) {
			if err := out.differ("a replay from the beginning does not fold to the same messages", want,
				fold(r.base.before(i), again.emitted, again.flushed)); err != nil {
				return err
			}
		}
		return nil
	}
	taken, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, playOptions{snapshots: true})
	if err != nil {
		return err
	}
	if err := out.differ("taking snapshots changes the output", r.base.emitted, taken.emitted); err != nil {
		return err
	}
	for _, at := range r.sample(len(frames), 48) {
		var from []byte
		if at > 0 {
			from = taken.snapshots[at-1]
		}
		rest, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames[at:], playOptions{from: from, batch: r.cautiousSizes()})
		if err != nil {
			return err
		}
		for _, overlap := range []int{0, 1, 2, len(frames)} {
			got := fold(r.base.before(min(at+overlap, len(frames))), rest.emitted, rest.flushed)
			if err := out.differ("a stream resumed from a snapshot does not fold to the same messages", want, got); err != nil {
				return err
			}
		}
	}
	// A decoder that was itself restored takes snapshots too.
	often, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, playOptions{restart: true})
	if err != nil {
		return err
	}
	return out.differ("a stream resumed after every frame does not fold to the same messages", want, often.folded())
}
