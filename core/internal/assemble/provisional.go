package assemble

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
)

// What a flush gives is open: a text that goes on, arguments that are cut. Spans made of
// it are provisional: they show what is going on as long as nothing else is heard, and
// nothing is built on them. When the stream goes on, its runs are first put back to where
// they were. So the pauses of a stream do not show: its spans are those of a replay,
// which has none.

// maxGiven is how many provisional spans a group remembers.
const maxGiven = 256

// before is a run as it was when its stream was flushed.
type before struct {
	Stream uint64  `json:"stream"`
	Pos    uint64  `json:"pos"`            // of the flush
	Run    *run    `json:"run,omitempty"`  // nil: it was not known
	Turn   string  `json:"turn,omitempty"` // of the stream, if the run was not known
	Calls  []*call `json:"calls,omitempty"`
}

// given is a provisional span as it was given last. What comes in its place may begin at
// another time, and so be another row.
type given struct {
	ID    msg.SpanID   `json:"id"`
	Run   string       `json:"run"`
	Kind  msg.SpanKind `json:"kind"`
	Start int64        `json:"start"`
	Seen  int64        `json:"seen"`
	Ver   uint64       `json:"ver"`
	State givenState   `json:"state"`
}

type givenState uint8

const (
	provisional givenState = iota
	stale                  // its run was put back
	undated                // its run has no time yet that the protocol said
	final                  // it was given again, of what was heard
)

// keep keeps the run as it is, before what its stream has open is applied to it.
func (g *group) keep(r *run, stream, pos uint64) error {
	if r.Before != nil { // what came between was provisional too
		return nil
	}
	story := new(run)
	if err := again(r, story); err != nil {
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

// again makes a copy that shares nothing with the original.
func again(from, to any) error {
	b, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, to)
}

// foreseen are the ids that a flush would claim. The claim itself is for what a frame
// says: of two streams another may be the first by then.
type foreseen struct {
	stream, pos uint64
	claims      claims
}

// foresee renames the ids of a flush's message as their claim would.
func (g *group) foresee(m *msg.Message, stream uint64) error {
	if f := g.foreseen; f == nil || f.stream != stream || f.pos != m.Host.Ver {
		f = &foreseen{stream: stream, pos: m.Host.Ver}
		if err := again(&g.Claims, &f.claims); err != nil {
			return fmt.Errorf("assemble: session %s: %w", g.key.session, err)
		}
		g.foreseen = f
	}
	g.foreseen.claims.claim(m, stream)
	return nil
}

// suspend keeps what the message of a flush may change, and puts back what an earlier
// flush of the stream has changed.
func (g *group) suspend(out Emitter, m *msg.Message, stream uint64) error {
	pos := m.Host.Ver
	g.restore(out, func(b *before) bool { return b.Stream == stream && b.Pos != pos })
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

// resume puts back what was provisional, because a stream goes on or another one speaks
// of one of its runs; then what the first has open is to be given again.
func (g *group) resume(out Emitter, m *msg.Message, stream uint64) {
	g.foreseen = nil
	if r := g.Runs[m.Run]; r != nil && r.Before != nil && r.Before.Stream != stream {
		if other := r.Before.Stream; out.Replayable(other) {
			out.Flush(other)
			g.restore(out, func(b *before) bool { return b.Stream == other })
		} else { // nobody will say it better
			g.commit(other)
		}
	}
	g.restore(out, func(b *before) bool { return b.Stream == stream })
}

// restore puts runs back to where they were.
func (g *group) restore(out Emitter, which func(*before) bool) {
	if len(g.Kept) == 0 {
		return
	}
	g.Kept = slices.DeleteFunc(g.Kept, func(id string) bool {
		r := g.Runs[id]
		if r == nil || r.Before == nil {
			return true
		}
		if !which(r.Before) {
			return false
		}
		g.putBack(r)
		return true
	})
}

// putBack puts a run back to where it was, in the place that it has in the tree by now:
// that is for others to say as well.
func (g *group) putBack(r *run) {
	b := r.Before
	g.putBackCalls(r, b.Calls)
	for i := range g.Given {
		if e := &g.Given[i]; e.Run == r.ID && e.State == provisional {
			e.State = stale
		}
	}
	story := b.Run
	if story == nil {
		if g.alone(r) {
			delete(g.Runs, r.ID)
			g.Order = slices.DeleteFunc(g.Order, func(id string) bool { return id == r.ID })
			if g.Turns[b.Stream] == r.ID {
				g.turn(b.Stream, b.Turn)
			}
			return
		}
		story = new(run)
	}
	ended := story.Ended
	if r.Ended == bySilence || r.Ended == byCall {
		ended = max(ended, r.Ended)
	}
	if story.Forgotten && !r.Forgotten {
		g.Places++
	}
	r = r.retold(story)
	r.Ended, r.changed, r.Given = ended, true, false
	g.Runs[r.ID] = r
	g.ended(r)
}

// alone reports whether nothing of the tree hangs on the run.
func (g *group) alone(r *run) bool {
	if r.Above != nil || r.Was != "" {
		return false
	}
	for _, c := range g.Runs {
		if c != r && (c.Parent == r.ID || c.Root == r.ID) {
			return false
		}
	}
	return true
}

// turn sets the turn of a stream.
func (g *group) turn(stream uint64, run string) {
	if run == "" {
		delete(g.Turns, stream)
		return
	}
	g.Turns[stream] = run
}

// putBackCalls puts the open calls of a run back; those that were answered stay so, and
// what others said of a call holds.
func (g *group) putBackCalls(r *run, calls []*call) {
	for id, c := range g.Open {
		if c.Run != r.ID {
			continue
		}
		at := slices.IndexFunc(calls, func(k *call) bool { return k.ID == id })
		if at < 0 {
			delete(g.Open, id)
			if c.Child != "" {
				g.Links = append(g.Links, callLink{Call: c.ID, Child: c.Child, Link: c.Link, Confidence: c.Confidence})
			}
			continue
		}
		k := calls[at]
		k.Child, k.Link, k.Confidence, k.Async, k.Worked, k.Alive = c.Child, c.Link, c.Confidence, c.Async, c.Worked, c.Alive
		k.Shown, k.Lost, k.Given, k.changed = c.Shown, c.Lost, false, true
		g.Open[id] = k
	}
}

// commit says that what a stream has open will stay as it is: it has ended.
func (g *group) commit(stream uint64) {
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

// reconcile holds a span that is given against the provisional one that was given in its
// place: it is to stand, wherever that one lies.
func (g *group) reconcile(out Emitter, s *msg.Span, r *run) {
	state, isRun := final, s.ID == g.span(msg.SpanRun, r.ID)
	switch {
	case (g.flushing || r.Before != nil) && (s.State != msg.SpanClosed || s.Kind == msg.SpanChat || isRun): // no flush answers a call
		state = provisional
	case r.Inferred && (s.State != msg.SpanClosed || isRun):
		state = undated
	}
	at := slices.IndexFunc(g.Given, func(e given) bool { return e.ID == s.ID })
	if at < 0 {
		if state == final {
			return
		}
		if len(g.Given) >= maxGiven {
			g.Given = slices.Delete(g.Given, 0, 1)
		}
		g.Given = append(g.Given, given{ID: s.ID, Run: s.Run, Kind: s.Kind, Start: s.Start, Seen: s.LastSeen, Ver: s.Ver, State: state})
		return
	}
	e := &g.Given[at]
	above := s.Ver > e.Ver || e.State == undated && e.Start == s.Start // what replaces it anyway
	if !above {
		s.Ver = e.Ver + 1
	}
	s.LastSeen = max(s.LastSeen, e.Seen)
	s.Shown = s.Shown || s.State != msg.SpanOpen
	if e.Start != s.Start {
		gone := *s
		gone.Start, gone.Tombstone = e.Start, true
		out.Span(gone)
	}
	e.Start, e.Seen, e.Ver, e.State = s.Start, s.LastSeen, s.Ver, state
	if above && state == final { // as everything that comes of it
		g.Given = slices.Delete(g.Given, at, at+1)
	}
}

// takeBackStale takes back the provisional spans of a run that ends without them.
func (g *group) takeBackStale(out Emitter, r *run) {
	if r.Before != nil {
		return
	}
	for i := range g.Given {
		e := &g.Given[i]
		if e.Run != r.ID || e.State != stale || e.ID == g.span(msg.SpanRun, r.ID) {
			continue
		}
		e.Ver, e.State = e.Ver+2, final // above the one that it takes back, wherever that lies
		out.Span(msg.Span{
			Tenant: g.key.tenant, Format: g.key.format, Session: g.key.session, Source: r.Source, TraceID: g.trace(r.Root), Run: r.ID,
			ID: e.ID, Kind: e.Kind, State: msg.SpanClosed, Start: e.Start, End: e.Start, LastSeen: e.Seen, Ver: e.Ver, Tombstone: true, Shown: true,
		})
	}
}
