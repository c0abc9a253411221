package assemble

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// A flush emits open messages: a text that goes on, arguments that are cut. Their spans are
// provisional: they show the work that is going on while nothing else is known, and nothing
// is built on them. When the stream goes on, its runs are first restored. So the pauses of a
// stream do not show: its spans are those of a replay, which has none.

// maxProvisional is the number of provisional spans that a group remembers.
const maxProvisional = 256

// provisional is a group's memory of flushes.
type provisional struct {
	Kept  []string          `json:"kept,omitempty"`  // the runs that are provisional
	Spans []provisionalSpan `json:"given,omitempty"` // that were emitted of such runs
}

// before is a run as it was when its stream was flushed.
type before struct {
	Stream uint64  `json:"stream"`
	Pos    uint64  `json:"pos"`            // of the flush
	Run    *run    `json:"run,omitempty"`  // nil: it was not known
	Turn   string  `json:"turn,omitempty"` // of the stream, if the run was not known
	Calls  []*call `json:"calls,omitempty"`
}

// provisionalSpan is a provisional span as it was emitted last. The span that replaces it may
// begin at another time, and so be another row.
type provisionalSpan struct {
	ID    msg.SpanID       `json:"id"`
	Run   string           `json:"run"`
	Kind  msg.SpanKind     `json:"kind"`
	Root  string           `json:"root,omitempty"` // of its trace, which a message that follows may change; the run's if empty
	Start int64            `json:"start"`
	Seen  int64            `json:"seen"`
	Ver   uint64           `json:"ver"`
	State provisionalState `json:"state"`
}

// trace is the trace in which the span was emitted.
func (e *provisionalSpan) trace(g *group, r *run) msg.TraceID {
	if e.Root == "" {
		return g.ids.trace(r.Root)
	}
	return g.ids.trace(e.Root)
}

type provisionalState uint8

const (
	ofFlush provisionalState = iota
	stale                    // its run was restored
	undated                  // the protocol has stated no time of its run yet
	final                    // it was emitted again, from messages of the stream
)

// restorer copies the runs of a session before a flush, and restores them.
type restorer struct{ *group }

// keep copies the run as it is, before the open messages of its stream are applied to it.
func (g restorer) keep(r *run, stream, pos uint64) error {
	if r.Before != nil { // the messages since were provisional too
		return nil
	}
	story := new(run)
	if err := clone(r, story); err != nil {
		return fmt.Errorf("assemble: run %s: %w", r.ID, err)
	}
	b := &before{Stream: stream, Pos: pos, Run: story}
	for _, c := range g.Open {
		if c.Run == r.ID {
			kept := *c
			kept.Events = slices.Clone(c.Events)
			b.Calls = append(b.Calls, &kept)
		}
	}
	r.Before = b
	g.Kept = append(g.Kept, r.ID)
	return nil
}

// clone copies state so that the copy shares nothing with the original.
func clone(from, to any) error {
	b, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, to)
}

// foreseen are the ids that a flush would claim. Only a frame claims them: another stream
// may be the first by then.
type foreseen struct {
	stream, pos uint64
	claims      link.Claims
}

// foresee renames the ids of a flush's message as their claim would.
func (g restorer) foresee(m *msg.Message, stream uint64) error {
	if f := g.foreseen; f == nil || f.stream != stream || f.pos != m.Host.Ver {
		f = &foreseen{stream: stream, pos: m.Host.Ver}
		if err := clone(&g.Claims, &f.claims); err != nil {
			return fmt.Errorf("assemble: session %s: %w", g.key.Session, err)
		}
		g.foreseen = f
	}
	g.foreseen.claims.Claim(m, stream, g.begunBy)
	return nil
}

// suspend copies the run that the message of a flush may change, and restores those that an
// earlier flush of the stream has changed.
func (g restorer) suspend(m *msg.Message, stream uint64) error {
	pos := m.Host.Ver
	g.restore(func(b *before) bool { return b.Stream == stream && b.Pos != pos })
	if m.Run == "" {
		return nil
	}
	if r := g.Runs[m.Run]; r != nil {
		return g.keep(r, stream, pos)
	}
	turn := g.Turns[stream]
	if prev := g.Runs[turn]; prev != nil { // it may end with the new one
		if err := g.keep(prev, stream, pos); err != nil {
			return err
		}
	}
	g.fresh = &before{Stream: stream, Pos: pos, Turn: turn}
	return nil
}

// resume restores provisional runs, because a stream goes on or another one has a message of
// one of its runs; then the open messages of the first are to be flushed again.
func (g restorer) resume(m *msg.Message, stream uint64) {
	if r := g.Runs[m.Run]; r != nil && r.Before != nil && r.Before.Stream != stream {
		if other := r.Before.Stream; g.out.Replayable(other) {
			g.out.flush(other)
			g.restore(func(b *before) bool { return b.Stream == other })
		} else { // no frame will replace it
			g.keepOpen(other)
		}
	}
	g.restore(func(b *before) bool { return b.Stream == stream })
}

// restore restores provisional runs to their state before the flush.
func (g restorer) restore(which func(*before) bool) {
	for again := true; again; { // a run that was not known before goes after those that the same flush put below it
		again = false
		g.Kept = slices.DeleteFunc(g.Kept, func(id string) bool {
			r := g.Runs[id]
			if r == nil || r.Before == nil || r.Before.Run != nil || !which(r.Before) || !g.isolated(r) {
				return false
			}
			g.restoreRun(r)
			again = true
			return true
		})
	}
	g.Kept = slices.DeleteFunc(g.Kept, func(id string) bool {
		r := g.Runs[id]
		if r == nil || r.Before == nil {
			return true
		}
		if !which(r.Before) {
			return false
		}
		g.restoreRun(r)
		return true
	})
}

// restoreRun restores a run in the place that it has by now, which other streams may have
// changed.
func (g restorer) restoreRun(r *run) {
	b := r.Before
	g.restoreCalls(r, b.Calls)
	for i := range g.Spans {
		if e := &g.Spans[i]; e.Run == r.ID && e.State == ofFlush {
			e.State = stale
		}
	}
	story := b.Run
	if story == nil {
		if g.isolated(r) {
			reporter(g).endVerdict(r, nil)
			g.drop(r.ID)
			if g.Turns[b.Stream] == r.ID {
				g.Turns[b.Stream] = b.Turn
			}
			return
		}
		story = new(run)
	}
	ended := story.Ended
	if r.Ended == bySilence || r.Ended == byCall {
		ended = max(ended, r.Ended)
	}
	if story.Stub && !r.Stub {
		g.Stubs++
	}
	r = r.withStory(story)
	r.Ended = ended
	r.touch()
	g.Runs[r.ID] = r
	g.endByCall(r)
}

// restoreCalls restores the open calls of a run; completed ones stay so, and the facts that
// other streams stated of a call stay.
func (g restorer) restoreCalls(r *run, calls []*call) {
	for id, c := range g.Open {
		if c.Run != r.ID {
			continue
		}
		at := slices.IndexFunc(calls, func(k *call) bool { return k.ID == id })
		if at < 0 {
			reporter(g).endVerdict(r, c)
			delete(g.Open, id)
			if c.Child != "" {
				g.Facts = append(g.Facts, link.Fact{Call: c.ID, Edge: c.Edge})
			}
			continue
		}
		k := calls[at]
		k.Edge, k.Async, k.Worked, k.Alive, k.Shown, k.Lost = c.Edge, c.Async, c.Worked, c.Alive, c.Shown, c.Lost
		k.Judged.Mark = c.Judged.Mark
		k.touch()
		g.Open[id] = k
	}
}

// keepOpen makes the provisional runs of a stream final: it has ended.
func (g restorer) keepOpen(stream uint64) {
	g.Kept = slices.DeleteFunc(g.Kept, func(id string) bool {
		r := g.Runs[id]
		if r != nil && r.Before != nil && r.Before.Stream != stream {
			return false
		}
		if r != nil {
			r.Before, g.dirty = nil, true
		}
		return true
	})
}
