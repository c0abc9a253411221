package pipeline

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
)

// replay is a run whose stream is decoded again from its beginning because the run's trace
// has changed.
type replay struct {
	stream uint64
	run    assemble.RunRef
}

// replays are the runs that the assembler has asked to be decoded again. It asks once, and its state of that
// moment has the reason no more: what is asked for and not done is in the same checkpoint.
type replays struct {
	pending []replay // of the batch at hand
	// awaited have a stream that is not open, because at a start its source has yet to find it, because it was
	// closed, as that of a document is, or because it is gone. They are decoded again when it is opened.
	awaited map[uint64][]assemble.RunRef // by their streams
	unasked bool                         // the sources were not asked for all of them
	early   bool                         // the sources may have yet to find their files, as at a start
	asked   time.Time                    // when they were
	changed bool                         // since the last checkpoint
}

// maxAwaited bounds the streams that are to be decoded again when they are opened.
const maxAwaited = 10_000

// replaysKey is the key of their state among those of sessions, which have several parts.
const replaysKey = "replays"

func (q *replays) ask(r replay) {
	q.pending = append(q.pending, r)
	q.changed = true
}

// await keeps a run until its stream is open. It reports whether there was room.
func (q *replays) await(r replay) bool {
	runs, ok := q.awaited[r.stream]
	if !ok && len(q.awaited) >= maxAwaited {
		return false
	}
	if !slices.Contains(runs, r.run) {
		q.awaited[r.stream] = append(runs, r.run)
	}
	q.unasked = true
	return true
}

// opened reports whether a run of the batch at hand has a stream that is open.
func (q *replays) opened(x *accounts) bool {
	return slices.ContainsFunc(q.pending, func(r replay) bool { return x.named[r.stream] != nil })
}

// done ends the batch at hand: its runs are being decoded again, or await their stream.
func (q *replays) done() { q.pending, q.changed = q.pending[:0], true }

// take returns the runs of a stream, which is open now, or forgotten.
func (q *replays) take(stream uint64) []assemble.RunRef {
	runs := q.awaited[stream]
	if runs != nil {
		delete(q.awaited, stream)
		q.changed = true
	}
	return runs
}

// erase drops the runs of sessions.
func (q *replays) erase(session func(tenant, session string) bool) {
	is := func(r assemble.RunRef) bool { return session(r.Tenant, r.Session) }
	q.pending = slices.DeleteFunc(q.pending, func(r replay) bool { return is(r.run) })
	for stream, runs := range q.awaited {
		if q.awaited[stream] = slices.DeleteFunc(runs, is); len(q.awaited[stream]) == 0 {
			delete(q.awaited, stream)
		}
	}
	q.changed = true
}

// askSources has the sources of files open awaited streams again, at most once in a while: each looks at all of its files.
func (q *replays) askSources(files *fileSources, now time.Time) {
	if !q.unasked || now.Sub(q.asked) < slowEvery || q.early && !files.found() {
		return
	}
	q.unasked, q.early, q.asked = false, false, now
	streams := make(map[uint64]struct{}, len(q.awaited))
	for name := range q.awaited {
		streams[name] = struct{}{}
	}
	files.again(streams)
}

// load takes what the last checkpoint has. Nothing is open yet: all of it is awaited.
func (q *replays) load(check Checkpoint) error {
	state, err := check.Group(replaysKey)
	if err == nil && len(state) > 0 {
		err = json.Unmarshal(state, &q.awaited)
	}
	if err != nil {
		return fmt.Errorf("pipeline: runs to decode again: %w", err)
	}
	q.unasked = len(q.awaited) > 0
	q.early = q.unasked
	return nil
}

// checkpoint adds what is to be done to a checkpoint, if that has changed since the last.
func (q *replays) checkpoint(d *checkpoint.Delta) error {
	if !q.changed {
		return nil
	}
	q.changed = false
	g := checkpoint.Group{Key: replaysKey}
	if all := q.all(); len(all) > 0 {
		var err error
		if g.State, err = json.Marshal(all); err != nil {
			return fmt.Errorf("pipeline: runs to decode again: %w", err)
		}
	}
	d.Groups = append(d.Groups, g)
	return nil
}

// all are the runs by their streams, whether these are open or not.
func (q *replays) all() map[uint64][]assemble.RunRef {
	all := make(map[uint64][]assemble.RunRef, len(q.awaited))
	for stream, runs := range q.awaited {
		all[stream] = slices.Clone(runs)
	}
	for _, r := range q.pending {
		if !slices.Contains(all[r.stream], r.run) {
			all[r.stream] = append(all[r.stream], r.run)
		}
	}
	return all
}
