package conformance

import (
	"context"

	"github.com/earshot-dev/earshot/core/msg"
)

// prefix is C3. A stream may be cut off anywhere.
func prefix(ctx context.Context, r *runner) error {
	if err := complete(r.base.said); err != nil {
		return err
	}
	for _, n := range r.sample(len(r.c.Frames), 96) {
		part, err := r.play(ctx, r.suite.Subject, r.c.Stream, r.c.Frames[:n], how{batch: r.pace()})
		if err != nil {
			return err
		}
		if err := (rules{"D4", "D4"}).differ("what the first frames give depends on those that follow", r.base.before(n), part.said); err != nil {
			return err
		}
		if err := stays(part, r.base); err != nil {
			return err
		}
	}
	return nil
}

// complete checks that no complete message is given again with other words.
func complete(said []item) error {
	done := make(map[string]item)
	for _, it := range said {
		if it.complete != msg.Complete {
			continue
		}
		if before, ok := done[it.id]; ok && before.line != it.line {
			return &broken{"D6", "a complete message is given again, changed", diff([]item{before}, []item{it})}
		}
		done[it.id] = it
	}
	return nil
}

// stays checks that what was complete in a part of the stream is the same in the
// whole, and that what was open keeps its key.
func stays(part, all *run) error {
	final := make(map[string]string)
	for _, it := range all.folded() {
		final[it.id] = it.line
	}
	for _, it := range part.said {
		if it.complete == msg.Complete && final[it.id] != it.line {
			return &broken{"D6", "a message that was complete in a prefix is not the same in the whole", it.line}
		}
	}
	for _, it := range part.left {
		if final[it.id] == "" {
			return &broken{"D5", "Flush gives an open message whose key never comes again: it would stay behind as a row of its own", it.line}
		}
	}
	return nil
}
