package assemble

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/verdict"
)

// Emitter receives the spans and the requests of the assembler.
type Emitter interface {
	// Span receives a span that ended, was ended by rule, changed, or (State Open) is still
	// running at a commit.
	Span(s msg.Span)
	// ReplayChildren requests that the run's stream is decoded again from its beginning,
	// because its trace has changed. Before the first frame, the caller calls ResetRun. The
	// stream may not be Replayable yet; if it becomes so, the caller calls Rejoin.
	ReplayChildren(stream uint64, r RunRef)
	// Verdict receives a verdict that was made or resolved.
	Verdict(v msg.Verdict)
	// Replayable reports whether the stream can be decoded again.
	Replayable(stream uint64) bool
	// Flush requests that the open messages of the stream are passed to ApplyOpen again:
	// their spans were withdrawn.
	Flush(stream uint64)
	// Message receives a message that another view of its conversation has changed: a
	// tombstone, or tokens that the other knows better.
	Message(m msg.Message)
	// Finding receives the kind of an anomaly that was detected; it is an event of the run's
	// span as well. A stream that is decoded again has it again.
	Finding(format, kind string)
}

// RunRef names a run.
type RunRef struct{ Tenant, Format, Session, Run string }

// Named is the run as the stream's decoder names it: the id may have been in use.
func (r *RunRef) Named(stream uint64) string { return link.Unclaimed(r.Run, stream) }

func (r *RunRef) key() link.Key {
	return link.Key{Tenant: r.Tenant, Format: r.Format, Session: r.Session}
}

// Store has the groups that the assembler does not hold.
type Store interface {
	// Group returns the state that Commit returned for the key; nil when there is none.
	Group(key string) ([]byte, error)
}

// Settings are the rules by which silence ends a run.
type Settings struct {
	// IdleRun ends a run with nothing open, IdleCall a call without a result and the run
	// that waits for it.
	IdleRun, IdleCall time.Duration
	// Replay is set if an earlier process used the same store. If that was killed, its last
	// spans may be with the exporters and not in the store: spans that were open then and end
	// now, at once, have to be closed where they were shown.
	Replay bool
	// LocalIDs reports whether ids of a format are unique in their stream only; nil: none
	// are. See link.Claims.
	LocalIDs func(format string) bool
	// Unique reports whether ids of a format's turns are unique everywhere, so that a turn of two sessions is
	// a copy; nil: those of none are.
	Unique func(format string) bool
	// Begun returns when the file of a stream was written last before it was read first, Unix ns; 0, or nil: that is not known.
	Begun func(stream uint64) int64
	// Chains reports whether messages of a format may name a response in place of their session and run; nil: those of
	// none do. See Resolve.
	Chains func(format string) bool
	// View returns the view that a format is; nil: each is the only one of its conversations.
	View func(format string) View
	// Reconciles reports whether a family has several views, which are to be merged.
	Reconciles func(family string) bool
	// Hops returns the hops that a recording of the format has; nil: none has any.
	Hops func(format string) Hops
	// ShowsDelegates reports whether a format, as its agents write it by default, has the work of their delegates; nil: none has.
	ShowsDelegates func(format string) bool
	// Serves reports whether bytes of a stream of the format show the life of its server, not that of a run; nil: none do.
	Serves func(format string) bool
	// Read are the hops of all formats that are read: for the others nothing is remembered.
	Read Hops
	// Renamed is set by a backfill: the rows of views that were stored before there were
	// families, and so under other ids, are taken back.
	Renamed bool
	// Host is the machine of runs whose protocol names none.
	Host string
	// Verdicts are the rules of verdicts; the default ones when zero.
	Verdicts verdict.Rules
	// HistoryRead reports whether all that was written before it was read has been applied; nil: that is never known.
	HistoryRead func() bool
	// LastBytes returns when bytes of a stream arrived last that is open and read live; 0:
	// it is none. nil: none is.
	LastBytes func(stream uint64) int64
}

// Assembler holds the open state of all sessions. It is used by one goroutine.
type Assembler struct {
	settings   Settings
	store      Store
	out        outbox
	groups     map[link.Key]*group
	evicted    map[link.Key]idleTimer
	last       *group              // that was used last
	exchanges  map[uint64]exchange // by stream
	signatures signatures
	learning   learning
	copies     copies
	commits    int  // how often Commit was called
	ended      bool // silence has ended something since
}

// New returns an assembler whose state is in the store.
func New(s Settings, store Store, out Emitter) *Assembler {
	if s.IdleRun <= 0 {
		s.IdleRun = 30 * time.Minute
	}
	if s.IdleCall <= 0 {
		s.IdleCall = 6 * time.Hour
	}
	if s.Verdicts == (verdict.Rules{}) {
		s.Verdicts = verdict.DefaultRules()
	}
	return &Assembler{
		learning: learning{Judge: verdict.Judge{Rules: s.Verdicts, History: verdict.NewHistory()}},
		settings: s, store: store, out: outbox{emitter: out, host: s.Host, renamed: s.Renamed, views: reconciler{store: store, emitter: out, facts: make(map[string]*fact)}},
		copies: copies{store: store, turns: make(map[string]*turn)},
		groups: make(map[link.Key]*group), evicted: make(map[link.Key]idleTimer), exchanges: make(map[uint64]exchange),
	}
}

// Apply takes the next message of a stream, whose name is the same after a restart, and sets
// Host.ID, Parent, TraceID, SpanID and Ver, which on entry holds the position. The caller
// sets Tenant, Format, Source, Time and Observed. was is the time under which an incomplete
// version of the message was emitted, if that was another one; that row needs a tombstone.
//
// alive is when the message's sender was at work, Unix ns: silence counts from there. It may
// be long before now, when the message is read.
func (a *Assembler) Apply(m *msg.Message, stream uint64, revision uint32, now time.Time, alive int64) (was int64, err error) {
	g, key := a.last, link.Key{Tenant: m.Host.Tenant, Format: m.Host.Format, Session: m.Session}
	if g == nil || g.key != key { // most messages are of the session of the message before
		if g, err = a.group(key); err != nil {
			return 0, err
		}
	}
	if g.local && g.Claims.Claim(m, stream, g.begunBy) {
		a.out.finding(m.Host.Format, link.ReusedID)
	}
	g.foreseen = nil
	is, err := forks{a}.claim(g, m, stream)
	if err != nil {
		return 0, err
	}
	if len(g.Kept) > 0 {
		restorer{g}.resume(m, stream)
	}
	return a.apply(g, m, is, stream, revision, now, alive)
}

// ApplyOpen is Apply for the messages of a flush. Their spans are provisional: the assembler
// withdraws them before the stream goes on.
func (a *Assembler) ApplyOpen(m *msg.Message, stream uint64, revision uint32, now time.Time, alive int64) (was int64, err error) {
	g, err := a.group(link.Key{Tenant: m.Host.Tenant, Format: m.Host.Format, Session: m.Session})
	if err != nil {
		return 0, err
	}
	if g.local {
		if err := (restorer{g}).foresee(m, stream); err != nil {
			return 0, err
		}
	}
	is, err := forks{a}.claim(g, m, stream)
	if err != nil {
		return 0, err
	}
	if err := (restorer{g}).suspend(m, stream); err != nil {
		return 0, err
	}
	g.flushing = true
	was, err = a.apply(g, m, is, stream, revision, now, alive)
	g.flushing = false
	if r := g.Runs[m.Run]; r != nil && g.fresh != nil {
		r.Before, g.Kept = g.fresh, append(g.Kept, r.ID)
	}
	g.fresh = nil
	return was, err
}

// apply applies a message to its session, links it across sessions, and emits the spans that
// it completed.
func (a *Assembler) apply(g *group, m *msg.Message, is original, stream uint64, revision uint32, now time.Time, alive int64) (was int64, err error) {
	if is == unsure { // below every version of the row
		m.Host.ID, m.Host.Ver = msg.NewID(m.Host.Tenant, g.ids.key.Format, m.Session, m.Key), 1
		takeBack(m, m.Host.ID, m.Time)
		return 0, nil
	}
	g.dirty, g.unjudged, g.read, g.Revision, g.alive = true, true, now, revision, alive
	h := &m.Host
	h.ID = msg.NewID(h.Tenant, g.ids.key.Format, m.Session, m.Key)
	if m.ParentKey != "" {
		h.Parent = msg.NewID(h.Tenant, g.ids.key.Format, m.Session, m.ParentKey)
	}
	final := m.Run != "" && !g.flushing && is != copied // a call whose arguments are cut is not made yet
	joins := final && a.settings.Read != (Hops{})
	var made madeCall
	if joins {
		if err := (hops{a}).begin(g, m, stream, now); err != nil {
			return 0, err
		}
		made = callBefore(g, m)
	}
	if d := &m.Delegation; final && g.hops == (Hops{}) && (d.CorrelationID != "" || d.CorrelationPrompt != "") && ofRun(m) {
		fresh := g.Runs[m.Run] == nil // before anything of it is emitted
		handler{g}.runOf(m, stream).Correlates = true
		if err := a.correlateRun(g, m, fresh, now); err != nil {
			return 0, err
		}
	}
	linked := handler{g}.handle(m, stream)
	if is != copied {
		a.setExchange(g, m, stream)
	}
	switch r := g.Runs[m.Run]; {
	case r == nil:
	case is == copied:
		r.Copied = true
	case is == extended: // above the row that was emitted if the copy was read before its original
		r.Moves = mostMoves
	}
	if final && m.Tool.CallID != "" && m.Signal != msg.RunStart {
		if c := g.get(m.Tool.CallID); c != nil && (c.CorrelationID != "" || c.CorrelationPrompt != "") {
			if err := a.correlateCall(g, m, c, now); err != nil {
				return 0, err
			}
		}
	}
	if joins {
		if err := (hops{a}).causes(g, m, made, now); err != nil {
			return 0, err
		}
	}
	moves := 0
	if r := g.Runs[m.Run]; r != nil {
		moves = r.Moves
	}
	if is == copied { // above the row that was emitted if the copy was read before its original
		takeBack(m, h.ID, m.Time)
		m.Complete, linked, moves = msg.Complete, true, mostMoves
	}
	h.Ver = Version(revision, m.Complete, linked, int64(h.Ver)) | uint64(min(moves, maxMoves))<<movesShift
	h.Ver = g.view.version(h.Ver)
	if _, err := a.passEnds(g); err != nil {
		return 0, err
	}
	if m.Complete == msg.Partial || len(g.Partial) > 0 {
		was = g.replaced(m)
	}
	if a.settings.Renamed && g.view.Family != "" {
		a.out.takeBackFormer(g, m)
	}
	if g.reconciles && is != copied {
		a.out.views.message(g, m)
	}
	a.out.emit()
	return was, a.out.views.failed()
}

// group returns a group, which it reads from the store if need be.
func (a *Assembler) group(key link.Key) (*group, error) {
	g := a.groups[key]
	if g == nil {
		state, err := a.store.Group(key.String())
		if err != nil {
			return nil, fmt.Errorf("assemble: session %s: %w", key.Session, err)
		}
		if g, err = openGroup(key, state); err != nil {
			return nil, fmt.Errorf("assemble: session %s: %w", key.Session, err)
		}
		if a.settings.View != nil && key.Format != "" {
			g.see(a.settings.View(key.Format), len(state) == 0)
			g.reconciles = g.view.Family != "" && key.Session != unnamedSession && (a.settings.Reconciles == nil || a.settings.Reconciles(g.view.Family))
		}
		if a.settings.Hops != nil && key.Format != "" {
			g.hops = a.settings.Hops(key.Format)
		}
		if err := a.learning.load(a.store); err != nil {
			return nil, err
		}
		g.learned, g.unjudged = &a.learning, true
		g.signatures, g.out, g.restarted = &a.signatures, &a.out, a.settings.Replay
		g.unique = a.settings.Unique != nil && a.settings.Unique(key.Format)
		g.local = g.Claims.InUse() || a.settings.LocalIDs != nil && a.settings.LocalIDs(key.Format)
		g.read, g.pace = a.evicted[key].read, a.evicted[key].pace
		delete(a.evicted, key)
		a.groups[g.key] = g
	}
	a.last = g
	return g, nil
}

// CloseStream ends the runs of a stream where they are: it has no more messages. sessions
// are those of its messages.
func (a *Assembler) CloseStream(stream uint64, sessions []RunRef) error {
	a.ForgetResponse(stream)
	for _, s := range sessions {
		g, err := a.group(s.key())
		if err != nil {
			return err
		}
		g.closeStream(stream)
	}
	return nil
}

// Awaits reports whether the stream has a hop without a cause, or an orphan that is known to be a
// child, and no more: the stream has to be decoded again to put it below its call. sessions are those of its
// messages.
func (a *Assembler) Awaits(stream uint64, sessions []RunRef) (bool, error) {
	for _, s := range sessions {
		g, err := a.group(s.key())
		if err != nil {
			return false, err
		}
		for _, r := range g.Runs {
			orphan := !r.Linked && r.Parent == "" && r.Call == ""
			if r.Stream == stream && (orphan || r.Hop && r.Remote == nil && g.hops != (Hops{})) {
				return true, nil
			}
		}
	}
	return false, nil
}

// Commit emits the runs that ended and the open runs and calls that changed. Then it passes
// the state of every group that changed to the caller, with whether anything in it is open.
// The state is valid with exactly the messages that were applied before.
func (a *Assembler) Commit(state func(key string, open bool, state []byte)) error {
	a.commits++
	a.ended = false
	if err := a.emitChanged(); err != nil {
		return err
	}
	if err := a.out.views.commit(state); err != nil {
		return err
	}
	if err := a.copies.commit(state); err != nil {
		return err
	}
	for _, g := range a.groups {
		if !g.dirty {
			continue
		}
		g.committed = a.commits
		b, err := g.encode()
		if err != nil {
			return fmt.Errorf("assemble: session %s: %w", g.key.Session, err)
		}
		g.dirty = false
		state(g.key.String(), g.open(), b)
	}
	if a.learning.due {
		b, err := a.learning.History.Marshal()
		if err != nil {
			return fmt.Errorf("assemble: verdict history: %w", err)
		}
		a.learning.due = false
		state(historyKey, false, b)
	}
	return nil
}

// emitChanged emits the changes of all groups. A run that ends may change the call of
// another session that caused it.
func (a *Assembler) emitChanged() error {
	for changed := slices.Collect(maps.Values(a.groups)); len(changed) > 0; {
		var next []*group
		for _, g := range changed {
			if !g.dirty {
				continue
			}
			if err := (forks{a}).replay(g); err != nil {
				return err
			}
			past := g.past(&a.settings)
			g.endRuns()
			passed, err := a.passEnds(g)
			if err != nil {
				return err
			}
			next = append(next, passed...)
			a.out.emitChanged(g, past)
			a.out.emit()
		}
		changed = next
	}
	return nil
}

// Rejoin moves a run into the trace of the call that caused it, when the run's stream has
// become replayable since the two were paired, and requests that the stream is decoded again.
func (a *Assembler) Rejoin(ref RunRef, now time.Time) error {
	g, err := a.group(ref.key())
	if err != nil {
		return err
	}
	if err := (forks{a}).rejoin(g, ref.Run); err != nil {
		return err
	}
	if !(linker{g}).rejoin(ref.Run) {
		a.out.emit()
		return nil
	}
	g.dirty, g.read = true, now
	if err := a.pairBelow(g, ref.Run, now); err != nil {
		return err
	}
	a.out.emit()
	return nil
}

// ResetRun drops the state of a run except its place, before its stream is decoded again.
func (a *Assembler) ResetRun(r RunRef) error {
	g, err := a.group(r.key())
	if err != nil {
		return err
	}
	g.reset(r.Run)
	return forks{a}.reset(g, r.Run)
}
