package conformance

import (
	"context"

	"github.com/earshot-dev/earshot/core/msg"
)

// prefix is C3. A stream may end after any frame.
func prefix(ctx context.Context, r *runner) error {
	if err := completeUnchanged(r.base.emitted); err != nil {
		return err
	}
	for _, n := range r.sample(len(r.c.Frames), 96) {
		part, err := r.play(ctx, r.suite.Subject, r.c.Stream, r.c.Frames[:n], playOptions{batch: r.cautiousSizes()})
		if err != nil {
			return err
		}
		if err := (rules{"D4", "D4"}).differ("the output of the first frames depends on the frames after them", r.base.before(n), part.emitted); err != nil {
			return err
		}
		if err := prefixHolds(part, r.base); err != nil {
			return err
		}
	}
	return nil
}

// completeUnchanged checks that no complete message is emitted again with other content.
func completeUnchanged(said []item) error {
	done := make(map[string]item)
	for _, it := range said {
		if it.complete != msg.Complete {
			continue
		}
		if before, ok := done[it.id]; ok && before.line != it.line {
			return &violation{"D6", "a complete message is emitted again, changed", diff([]item{before}, []item{it})}
		}
		done[it.id] = it
	}
	return nil
}

// prefixHolds checks that a message that is complete in a part of the stream is the
// same in the whole, and that an open message keeps its key.
func prefixHolds(part, all *run) error {
	final := make(map[string]string)
	for _, it := range all.folded() {
		final[it.id] = it.line
	}
	for _, it := range part.emitted {
		if it.complete == msg.Complete && final[it.id] != it.line {
			return &violation{"D6", "a message that is complete in a prefix differs in the whole stream", it.line}
		}
	}
	for _, it := range part.flushed {
		if final[it.id] == "" {
			return &violation{"D5", "Flush emits an open message whose key the whole stream does not have: its row would never be replaced", it.line}
		}
	}
	return nil
}
