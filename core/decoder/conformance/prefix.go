package conformance

import (
	"context"

	"github.com/earshot-dev/earshot/core/msg"
)

// prefix is C3. A stream may be cut off anywhere.
func prefix(ctx context.Context, r *runner) error {
	if err := complete(r.base.messages); err != nil {
		return err
	}
	for _, n := range r.sample(len(r.c.Frames), 96) {
		part, err := r.play(ctx, r.suite.Subject, r.c.Stream, r.c.Frames[:n], how{batch: r.pace()})
		if err != nil {
			return err
		}
		if err := (rules{"D4", "D4"}).differ("what the first frames give depends on those that follow", items(r.base.before(n)), items(part.messages)); err != nil {
			return err
		}
		if err := stays(part, r.base); err != nil {
			return err
		}
	}
	return nil
}

// complete checks that no complete message is given again with other words.
func complete(messages []msg.Message) error {
	done := make(map[string]string)
	for i := range messages {
		m := &messages[i]
		if m.Complete != msg.Complete {
			continue
		}
		id := m.Session + " " + m.Key
		l := line(m)
		if before, ok := done[id]; ok && before != l {
			return &broken{"D6", "a complete message is given again, changed", diff([]item{{id, before}}, []item{{id, l}})}
		}
		done[id] = l
	}
	return nil
}

// stays checks that what was complete in a part of the stream is the same in the
// whole, and that what was open keeps its key.
func stays(part, all *run) error {
	final := make(map[string]*msg.Message)
	list := all.folded()
	for i := range list {
		final[list[i].Session+" "+list[i].Key] = &list[i]
	}
	for _, m := range part.messages {
		id := m.Session + " " + m.Key
		if m.Complete == msg.Complete && (final[id] == nil || line(final[id]) != line(&m)) {
			return &broken{"D6", "a message that was complete in a prefix is not the same in the whole", line(&m)}
		}
	}
	for _, m := range part.open {
		if final[m.Session+" "+m.Key] == nil {
			return &broken{"D5", "Flush gives an open message whose key never comes again: it would stay behind as a row of its own", line(&m)}
		}
	}
	return nil
}
