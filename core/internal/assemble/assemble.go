package assemble

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
)

// Emitter takes what the assembler gives.
type Emitter interface {
	// Span takes a span that ended, was ended by rule, changed, or (State Open) is
	// still running at the end of an epoch.
	Span(s msg.Span)
	// ReplayChildren asks for the run's stream to be decoded again from its beginning,
	// because its trace has changed. Before the first frame, ResetRun is called.
	ReplayChildren(stream uint64, r RunRef)
	// Replayable reports whether the stream can be decoded again.
	Replayable(stream uint64) bool
	// Flush asks for what the stream has open to be given again, to ApplyOpen: what was
	// made of it is gone.
	Flush(stream uint64)
	// Finding takes the kind of something that was found; it is an event of the run's
	// span as well. A stream that is decoded again finds it again.
	Finding(format, kind string)
}

// RunRef names a run.
type RunRef struct{ Tenant, Format, Session, Run string }

// Store is the assembler's memory of groups that it does not hold.
type Store interface {
	// Group returns the state that Seal gave for the key; nil when there is none.
	Group(key string) ([]byte, error)
}

// Settings are the rules by which silence ends a run.
type Settings struct {
	// IdleRun ends a run with nothing open, IdleCall a call without a result and the run
	// that waits for it.
	IdleRun, IdleCall time.Duration
	// Replay says that there was a life before this one. What it gave last may be with
	// the exporters and not in the store, if it was killed: spans that were open then
	// and end now, in one go, have to be closed where it had shown them.
	Replay bool
	// LocalIDs reports whether ids of a format are unique in their stream only; nil:
	// none are. See claims.go.
	LocalIDs func(format string) bool
}

// Assembler holds the open state of all sessions. It is used by one goroutine.
type Assembler struct {
	settings Settings
	store    Store
	out      Emitter
	groups   map[groupKey]*group
	asleep   map[groupKey]nap
	last     *group
	heard    map[uint64]exchange // by stream
	shapes   shapes
	seals    int  // how often Seal was called
	ended    bool // silence has ended something since
}

type groupKey struct{ tenant, format, session string }

func (k groupKey) String() string { return k.tenant + "\x00" + k.format + "\x00" + k.session }

// New returns an assembler that remembers nothing but what is in the store.
func New(s Settings, store Store, out Emitter) *Assembler {
	if s.IdleRun <= 0 {
		s.IdleRun = 30 * time.Minute
	}
	if s.IdleCall <= 0 {
		s.IdleCall = 6 * time.Hour
	}
	return &Assembler{settings: s, store: store, out: out, groups: make(map[groupKey]*group), asleep: make(map[groupKey]nap), heard: make(map[uint64]exchange)}
}

// Revision and position of a message make its version; see Version. Two bits below
// count how often a run has moved to the trace of another session, up to three.
const (
	revisionShift = 56
	completeShift = 54
	linkedBit     = 1 << 53
	movedShift    = 51
)

func moves(n int) uint64 { return uint64(min(n, 3)) << movedShift }

// Version is the Ver of a message's row: the decoder's revision, how complete
// the message is, whether its trace is final, and where in the stream it was
// completed. A version is the same in every replay.
func Version(revision uint32, c msg.Completeness, linked bool, pos int64) uint64 {
	v := uint64(revision&0xff)<<revisionShift | uint64(c)<<completeShift | uint64(pos)&(1<<movedShift-1)
	if linked {
		v |= linkedBit
	}
	return v
}

// Linked reports whether the version is of a message whose trace is final.
func Linked(ver uint64) bool { return ver&linkedBit != 0 }

// Apply takes the next message of a stream, whose name is the same after a
// restart, and gives it its place: Host.ID,
// Parent, TraceID, SpanID and Ver, which on entry holds the position. Tenant,
// Format, Source, Time and Observed are set by the caller. was is the time under
// which an incomplete version of the message was given before, if that was
// another one; that row is to be taken back.
//
// alive is when its sender was at work, Unix ns: silence counts from there. It may be
// long before now, when the message is read.
func (a *Assembler) Apply(m *msg.Message, stream uint64, revision uint32, now time.Time, alive int64) (was int64, err error) {
	g, err := a.group(m.Host.Tenant, m.Host.Format, m.Session)
	if err != nil {
		return 0, err
	}
	if g.local && g.Claims.claim(m, stream) {
		a.out.Finding(m.Host.Format, findingReusedID)
	}
	g.resume(a.out, m, stream)
	return a.apply(g, m, stream, revision, now, alive)
}

// ApplyOpen is Apply for what a flush gives. The spans that it makes are provisional:
// they are put back before the stream goes on.
func (a *Assembler) ApplyOpen(m *msg.Message, stream uint64, revision uint32, now time.Time, alive int64) (was int64, err error) {
	g, err := a.group(m.Host.Tenant, m.Host.Format, m.Session)
	if err != nil {
		return 0, err
	}
	if g.local {
		if err := g.foresee(m, stream); err != nil {
			return 0, err
		}
	}
	if err := g.suspend(a.out, m, stream); err != nil {
		return 0, err
	}
	g.flushing = true
	was, err = a.apply(g, m, stream, revision, now, alive)
	g.flushing = false
	if r := g.Runs[m.Run]; r != nil && g.fresh != nil {
		r.Before, g.Kept = g.fresh, append(g.Kept, r.ID)
	}
	g.fresh = nil
	return was, err
}

func (a *Assembler) apply(g *group, m *msg.Message, stream uint64, revision uint32, now time.Time, alive int64) (was int64, err error) {
	g.dirty, g.touched, g.Revision, g.alive = true, now, revision, alive
	h := &m.Host
	h.ID = msg.NewID(h.Tenant, h.Format, m.Session, m.Key)
	if m.ParentKey != "" {
		h.Parent = msg.NewID(h.Tenant, h.Format, m.Session, m.ParentKey)
	}
	if d := &m.Delegation; !g.flushing && m.Run != "" && ofRun(m) && (d.CorrelationID != "" || d.CorrelationPrompt != "") { // before anything is given of the run, if it is new
		old := g.Runs[m.Run]
		g.runOf(a.out, m, stream).Meets = true
		if err := a.meet(g, m, old == nil, now); err != nil {
			return 0, err
		}
	}
	linked := g.apply(a.out, m, stream)
	a.begun(g, m, stream)
	if !g.flushing && m.Run != "" && !ofRun(m) { // a call whose arguments are cut is not made yet
		if err := a.meet(g, m, false, now); err != nil {
			return 0, err
		}
	}
	h.Ver = Version(revision, m.Complete, linked, int64(h.Ver))
	if r := g.Runs[m.Run]; r != nil {
		h.Ver |= moves(r.Moved)
	}
	if err := a.tellCallers(g); err != nil {
		return 0, err
	}
	return g.replaced(m), nil
}

// replaced remembers an incomplete message, and returns the time of the version
// that m replaces if it was given under another.
func (g *group) replaced(m *msg.Message) int64 {
	if m.Complete != msg.Partial && len(g.Partial) == 0 {
		return 0
	}
	id := m.Host.ID.String()
	was := g.Partial[id]
	switch {
	case m.Complete != msg.Partial:
		delete(g.Partial, id)
	case was != 0 || len(g.Partial) < maxPartial:
		g.Partial[id] = m.Time
	}
	if was == m.Time {
		return 0
	}
	return was
}

func (a *Assembler) group(tenant, format, session string) (*group, error) {
	if g := a.last; g != nil && g.key.session == session && g.key.format == format && g.key.tenant == tenant {
		return g, nil
	}
	key := groupKey{tenant, format, session}
	g := a.groups[key]
	if g == nil {
		state, err := a.store.Group(key.String())
		if err != nil {
			return nil, fmt.Errorf("assemble: session %s: %w", session, err)
		}
		if g, err = openGroup(key, state); err != nil {
			return nil, fmt.Errorf("assemble: session %s: %w", session, err)
		}
		g.shapes, g.again = &a.shapes, a.settings.Replay
		g.local = len(g.Claims.Runs.Of) > 0 || a.settings.LocalIDs != nil && a.settings.LocalIDs(format)
		g.touched = a.asleep[key].touched
		delete(a.asleep, key)
		a.groups[g.key] = g
	}
	a.last = g
	return g, nil
}

// CloseStream says that the stream will give no more: its runs end where they
// are. sessions are those that it spoke of.
func (a *Assembler) CloseStream(stream uint64, sessions []RunRef) error {
	a.ForgetResponse(stream)
	for _, s := range sessions {
		g, err := a.group(s.Tenant, s.Format, s.Session)
		if err != nil {
			return err
		}
		g.closeStream(stream)
	}
	return nil
}

// Awaits reports whether the stream has a run that is known to be a child, and no more: to
// be put below its call it has to be decoded again. sessions are those that it spoke of.
func (a *Assembler) Awaits(stream uint64, sessions []RunRef) (bool, error) {
	for _, s := range sessions {
		g, err := a.group(s.Tenant, s.Format, s.Session)
		if err != nil {
			return false, err
		}
		for _, r := range g.Runs {
			if r.Stream == stream && !r.Linked && r.Parent == "" && r.Call == "" {
				return true, nil
			}
		}
	}
	return false, nil
}

// Commit gives the spans that the end of an epoch brings out (runs that ended,
// and what is open and changed) and then the state of every group that changed,
// with whether anything in it is open. The state is valid with exactly the
// messages that were applied before.
func (a *Assembler) Commit(state func(key string, open bool, state []byte)) error {
	a.seals++
	a.ended = false
	if err := a.giveEnded(); err != nil {
		return err
	}
	for _, g := range a.groups {
		if !g.dirty {
			continue
		}
		g.sealed = a.seals
		b, err := g.encode()
		if err != nil {
			return fmt.Errorf("assemble: session %s: %w", g.key.session, err)
		}
		g.dirty = false
		state(g.key.String(), g.open(), b)
	}
	return nil
}

// giveEnded gives the spans of all groups that changed. A run that ends may change the
// call of another session that caused it.
func (a *Assembler) giveEnded() error {
	for changed := slices.Collect(maps.Values(a.groups)); len(changed) > 0; {
		var next []*group
		for _, g := range changed {
			if !g.dirty {
				continue
			}
			g.seal(a.out, &a.settings)
			for _, e := range g.endings {
				parent, err := a.group(g.key.tenant, e.caller.Format, e.caller.Session)
				if err != nil {
					return err
				}
				next = append(next, parent)
			}
			if err := a.tellCallers(g); err != nil {
				return err
			}
		}
		changed = next
	}
	return nil
}

// ResetRun forgets what is known of a run but its place, before its stream is
// decoded again.
func (a *Assembler) ResetRun(r RunRef) error {
	g, err := a.group(r.Tenant, r.Format, r.Session)
	if err != nil {
		return err
	}
	g.reset(r.Run)
	return nil
}
