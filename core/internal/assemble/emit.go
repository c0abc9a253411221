package assemble

import (
	"cmp"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
)

// Handlers change state and mark the changes. The assembler emits at two moments only: when a
// message has been applied, the spans that it completed (emit), and with a commit, the
// runs and the open calls that changed (emitChanged).

// outbox has the spans and the requests of the message at hand, until they are emitted. Only
// this file uses its Emitter.
type outbox struct {
	emitter  Emitter
	host     string // Settings.Host
	renamed  bool   // Settings.Renamed
	views    reconciler
	pending  []pending
	replays  []replay
	flushes  []uint64
	findings []finding
}

type replay struct {
	stream uint64
	run    RunRef
}

type finding struct{ format, kind string }

// pending is a span to be emitted.
type pending struct {
	kind  pendingKind
	group *group
	run   *run
	chat  *chat     // of chatClosed and chatOver
	call  completed // of callCompleted, callChanged and tokensKnown
}

type pendingKind uint8

const (
	chatClosed pendingKind = iota
	chatOver               // by a flush; its stream has yet to close it
	callCompleted
	callChanged // after it completed
	tokensKnown // of a completed call
	runEvicted
)

// replay requests that a stream is decoded again for the sake of a run.
func (o *outbox) replay(stream uint64, r RunRef) { o.replays = append(o.replays, replay{stream, r}) }

// flush requests that a stream is flushed again.
func (o *outbox) flush(stream uint64) { o.flushes = append(o.flushes, stream) }

// finding reports an anomaly.
func (o *outbox) finding(format, kind string) {
	o.findings = append(o.findings, finding{format, kind})
}

// Replayable reports whether the stream can be decoded again.
func (o *outbox) Replayable(stream uint64) bool { return o.emitter.Replayable(stream) }

// emit renders and emits the pending spans, and passes the requests on.
func (o *outbox) emit() {
	for i := range o.pending {
		p := &o.pending[i]
		g, r := p.group, p.run
		switch p.kind {
		case chatClosed:
			o.span(g, p.chat.render(&g.ids, r, msg.SpanClosed), r, 0)
		case chatOver:
			o.span(g, p.chat.render(&g.ids, r, msg.SpanIdle), r, 0)
		case runEvicted:
			o.ended(g, r)
		default:
			s := p.call.render(&g.ids, r)
			s.Shown, s.Amends = p.kind == callCompleted && p.call.Call.Shown, p.kind == tokensKnown
			o.span(g, s, r, p.call.Call.Moves)
		}
	}
	clear(o.pending)
	o.pending = o.pending[:0]
	for _, r := range o.replays {
		o.emitter.ReplayChildren(r.stream, r.run)
	}
	for _, s := range o.flushes {
		o.emitter.Flush(s)
	}
	for _, f := range o.findings {
		o.emitter.Finding(f.format, f.kind)
	}
	o.replays, o.flushes, o.findings = o.replays[:0], o.flushes[:0], o.findings[:0]
}

// send emits a span of a session, merged with those of its other views.
func (o *outbox) send(g *group, s msg.Span) {
	if o.renamed && g.Family != "" {
		o.takeBackFormerSpan(g, s)
	}
	if g.reconciles && !g.copied(s.Run) {
		o.views.span(g, s)
		return
	}
	o.emitter.Span(s)
}

// takeBackFormer takes back the rows of a message from before its format had a family: one whose
// id had the format in it, and a run that was named by the record of its prompt.
func (o *outbox) takeBackFormer(g *group, m *msg.Message) {
	if g.Family != "" {
		gone := *m
		takeBack(&gone, msg.NewID(g.key.Tenant, g.key.Format, g.key.Session, m.Key), m.Time)
		gone.Host.Ver++
		o.emitter.Message(gone)
	}
	if m.Kind == msg.User && m.Signal == msg.RunStart && m.Key != m.Run {
		o.emitter.Span(msg.Span{
			Tenant: g.key.Tenant, Source: m.Host.Source, Format: g.key.Format, Session: g.key.Session, Run: m.Run, TraceID: m.Host.TraceID,
			ID: g.ids.of(msg.SpanRun, m.Key), State: msg.SpanClosed, Start: m.Time, End: m.Time, Ver: m.Host.Ver | 1<<rankShift, Tombstone: true, Shown: true,
		})
	}
}

// takeBackFormerSpan takes back the span that had the format in its id.
func (o *outbox) takeBackFormerSpan(g *group, s msg.Span) {
	kind, names := msg.SpanTool, []string{s.Tool.CallID}
	switch {
	case ofRunKind(s.Kind):
		kind, names = msg.SpanRun, []string{s.Run, "agent:" + s.Run}
	case s.Kind == msg.SpanChat:
		kind, names = msg.SpanChat, []string{s.ResponseID}
	}
	s.Tombstone, s.Shown = true, true
	s.Ver++
	for _, name := range names {
		s.ID = msg.NewSpanID(g.key.Tenant, g.key.Format, g.key.Session, kind, name)
		o.emitter.Span(s)
	}
}

// span completes and emits a span of a run, and the tombstones of the spans that it replaces.
// moves counts the moves of the span itself, beside those of its run.
func (o *outbox) span(g *group, s msg.Span, r *run, moves int) {
	s.Tenant, s.Format, s.Session, s.Source = g.key.Tenant, g.key.Format, g.key.Session, r.Source
	s.TraceID = g.ids.trace(r.Root)
	s.Run, s.ParentRun = r.ID, r.Parent
	s.Client = r.Client
	s.Client.Host = cmp.Or(s.Client.Host, o.host)
	if s.Agent == (msg.Agent{}) {
		s.Agent = r.Agent
	}
	if s.Agent.Name == "" {
		s.Agent.Name = g.names.of(r)
	}
	s.Unnamed = r.Unnamed
	if r.Remote != nil && s.ParentRun == "" {
		s.ParentRun = r.Remote.Run
	}
	if moves += r.Moves; r.Copied { // above the row that was emitted if the copy was read before its original
		s.State, s.Tombstone, moves = msg.SpanClosed, true, mostMoves
	}
	s.Ver = g.view.version(spanVersion(g.Revision, &s, r.Copied || r.Linked && !r.Late, moves, r.Remote != nil))
	s.Shown = s.Shown || g.restarted && s.State != msg.SpanOpen && !s.Amends
	o.replaceProvisional(g, &s, r)
	o.send(g, s)
	if r.PriorRoot == "" || s.Amends {
		return
	}
	for _, root := range r.LeftRoots() {
		s.TraceID, s.Tombstone = g.ids.trace(root), true
		o.send(g, s)
	}
}

// emitChanged emits the runs that ended, and the open runs and calls that changed since the
// last commit, except past runs and their calls.
func (o *outbox) emitChanged(g *group, past map[string]bool) {
	for _, r := range g.Runs {
		switch {
		case r.Start == 0:
		case r.Ended != running && !r.Emitted:
			reporter{g}.endVerdict(r, nil)
			o.ended(g, r)
			r.Emitted, r.Shown = true, false
		case r.Ended == running && r.changed && !past[r.ID]:
			o.span(g, r.render(&g.ids), r, 0)
			r.Shown = true
		}
	}
	for _, c := range g.Open {
		r := g.Runs[c.Run]
		switch {
		case r.Ended != running && c.pending() && g.atWork(c, past):
			if c.changed || !c.Shown {
				o.span(g, c.render(&g.ids, r), r, c.Moves)
				c.Shown = true
			}
		case (!c.Emitted || r.changed) && (c.Lost || r.Ended != running && r.Ended != byTurn):
			reporter{g}.endVerdict(r, c)
			o.span(g, c.renderLost(&g.ids, r), r, c.Moves) // a result, if one follows, replaces it
			c.Emitted, c.Shown = true, false
		case r.Ended == running && c.changed && !past[r.ID]:
			o.span(g, c.render(&g.ids, r), r, c.Moves)
			c.Shown = true
		}
		c.changed = false
	}
	for _, r := range g.Runs {
		r.changed = false
	}
}

// atWork reports whether the run that a call in the background caused goes on: the result may follow, though the caller has ended.
func (rs *runs) atWork(c *call, past map[string]bool) bool {
	child := rs.Runs[c.Child]
	return c.Async && child != nil && child.Start != 0 && child.Ended == running && !past[c.Child]
}

// ended emits a run that ended, and the response that it left open.
func (o *outbox) ended(g *group, r *run) {
	state := msg.SpanClosed
	if r.Ended == bySilence {
		state = msg.SpanIdle
	}
	if r.Chat != nil {
		o.span(g, r.Chat.render(&g.ids, r, state), r, 0)
	}
	s := r.render(&g.ids)
	s.State, s.End, s.Shown = state, r.until(), r.Shown
	o.span(g, s, r, 0)
	o.dropStale(g, r)
}

// replaceProvisional makes a span replace the provisional one that was emitted in its place, of
// any start and version.
func (o *outbox) replaceProvisional(g *group, s *msg.Span, r *run) {
	state, isRun := final, ofRunKind(s.Kind)
	switch {
	case g.flushing, r.Before != nil && (s.State != msg.SpanClosed || s.Kind == msg.SpanChat || isRun):
		state = ofFlush
	case r.Inferred && (s.State != msg.SpanClosed || isRun):
		state = undated
	}
	at := slices.IndexFunc(g.Spans, func(e provisionalSpan) bool { return e.ID == s.ID })
	if at < 0 {
		if state == final {
			return
		}
		if len(g.Spans) >= maxProvisional {
			g.Spans = slices.Delete(g.Spans, 0, 1)
		}
		g.Spans = append(g.Spans, provisionalSpan{ID: s.ID, Run: s.Run, Kind: s.Kind, Root: r.Root, Start: s.Start, Seen: s.LastSeen, Ver: s.Ver, State: state})
		return
	}
	e := &g.Spans[at]
	higher := s.Ver > e.Ver || e.State == undated && e.Start == s.Start && order(s.Ver) >= order(e.Ver) // it replaces the row anyway
	if !higher {
		s.Ver = e.Ver + 1
	}
	s.LastSeen = max(s.LastSeen, e.Seen)
	s.Shown = s.Shown || s.State != msg.SpanOpen
	if trace := e.trace(g, r); e.Start != s.Start || trace != s.TraceID {
		gone := *s
		gone.TraceID, gone.Start, gone.Tombstone = trace, e.Start, true
		o.send(g, gone)
	}
	e.Root, e.Start, e.Seen, e.Ver, e.State = r.Root, s.Start, s.LastSeen, s.Ver, state
	if higher && state == final { // so does everything that follows
		g.Spans = slices.Delete(g.Spans, at, at+1)
	}
}

// ofRunKind reports whether a span of that kind is a run's own.
func ofRunKind(k msg.SpanKind) bool { return k == msg.SpanRun || k == msg.SpanWorkflow }

// dropStale emits tombstones for the provisional spans of a run that ended without them.
func (o *outbox) dropStale(g *group, r *run) {
	if r.Before != nil {
		return
	}
	for i := range g.Spans {
		e := &g.Spans[i]
		if e.Run != r.ID || e.State != stale || ofRunKind(e.Kind) {
			continue
		}
		e.Ver, e.State = e.Ver+2, final // above the version that it removes, and any that replaced it
		o.send(g, msg.Span{
			Tenant: g.key.Tenant, Format: g.key.Format, Session: g.key.Session, Source: r.Source, TraceID: e.trace(g, r), Run: r.ID,
			ID: e.ID, Kind: e.Kind, State: msg.SpanClosed, Start: e.Start, End: e.Start, LastSeen: e.Seen, Ver: e.Ver, Tombstone: true, Shown: true,
		})
	}
}
