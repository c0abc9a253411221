package assemble

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// Limits of a group's memory. The order of messages alone decides which entry is dropped,
// never the time of a commit, so that a replay drops the same.
const (
	maxEndedRuns = 16     // besides those that wait for a call
	maxRuns      = 4096   // of any kind
	maxStubs     = 256    // runs of which only the place is kept
	maxDone      = 256    // completed delegations
	maxFacts     = 256    // edges whose call has not been read
	maxEarly     = 256    // results whose call has not been read
	maxEvents    = 32     // of a span
	maxFindings  = 32     // of a run
	maxPartial   = 1024   // incomplete messages
	maxChats     = 64     // starts of responses, of a run
	maxSeen      = 16_384 // usage messages, of a run
	maxGone      = 128    // starts of runs that were evicted
	maxCounted   = 64     // incomplete ones
	maxNames     = 256    // of agents
)

// group is the unit of the assembler's state: a session, or a correlation of calls and runs
// of several sessions. Its exported fields are the state that a store keeps.
type group struct {
	key        link.Key
	ids        ids
	signatures *signatures
	out        *outbox
	restarted  bool // Settings.Replay
	local      bool // Settings.LocalIDs
	unique     bool // Settings.Unique

	view       View
	reconciles bool // with other views
	hops       Hops // that its format has

	dirty     bool      // changed since the last commit
	committed int       // the number of the last commit that had it
	read      time.Time // when a message of it was read last
	alive     int64     // when the sender of the message at hand was at work
	learned   *learning
	unjudged  bool // changed since it was judged
	pace
	ends []remoteEnd
	over []*run // that were evicted since the last commit; see forks

	// While a message of a flush is applied: flushing, and the absence of its run before, if
	// it was not known.
	flushing bool
	fresh    *before
	foreseen *foreseen

	// Family is hashed into ids in place of the format. Sessions of before there were
	// families have none: their ids stay.
	Family string `json:"family,omitempty"`
	// Revision is the decoder's, which the versions of spans contain: no message has it for a
	// run that ends by rule after a restart.
	Revision uint32 `json:"revision,omitempty"`
	runs
	calls
	names
	// Partial has the times under which incomplete messages were emitted, because the time is
	// part of a row's identity and the complete message may have another.
	Partial map[string]int64 `json:"partial,omitempty"`
	// Alive is when the sender of a message without a run was at work; Unix ns.
	Alive int64 `json:"alive,omitempty"`
	// History is the stream whose messages without a run were emitted, because the session had
	// no run.
	History uint64 `json:"history,omitempty"`
	provisional
	// Correlation is all that a group has that is no session.
	Correlation *link.Correlation `json:"meeting,omitempty"`
	// Origin is the session of which the latest copied turns are.
	Origin string `json:"origin,omitempty"`
	// Chain is all that a group has that finds responses by their ids.
	Chain *link.Chain `json:"chain,omitempty"`
	// Claims are the ids in use, of a format whose ids are local.
	Claims link.Claims `json:"claims,omitzero"`
}

func openGroup(key link.Key, state []byte) (*group, error) {
	g := &group{}
	if len(state) > 0 {
		if err := json.Unmarshal(state, g); err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
	}
	g.key = key.Clone() // it outlives the message that named the session
	g.ids.key = g.key
	if key.Format == "" { // a correlation, which has nothing else
		return g, nil
	}
	if g.Turns == nil {
		g.Turns = make(map[uint64]string)
	}
	if g.Runs == nil {
		g.Runs = make(map[string]*run)
	}
	if g.Open == nil {
		g.Open = make(map[string]*call)
	}
	if g.Partial == nil {
		g.Partial = make(map[string]int64)
	}
	if g.Done == nil {
		g.Done = make(map[string]record)
	}
	return g, nil
}

// see makes the group one view of its conversation. One that was stored without a family
// stays alone, unless its ids are those of the family anyway.
func (g *group) see(v View, fresh bool) {
	if fresh && v.Family != g.key.Format {
		g.Family = v.Family
	}
	if v.Family == g.key.Format || v.Family == g.Family {
		g.view = v
	}
	g.ids.key = g.key.As(g.Family)
}

func (g *group) encode() ([]byte, error) { return json.Marshal(g) }

// waiting returns the runs that wait for a call, or only for one with a result pending, and
// the runs above them.
func (g *group) waiting(pending bool) map[string]bool {
	waits := make(map[string]bool)
	for _, c := range g.Open {
		if pending && (!c.pending() || g.delegateEnded(c)) {
			continue
		}
		for id := c.Run; id != "" && !waits[id]; {
			waits[id] = true
			r := g.Runs[id]
			if r == nil {
				break
			}
			id = r.Parent
		}
	}
	return waits
}

// open reports whether anything of the group is still running.
func (g *group) open() bool {
	for _, c := range g.Open {
		if c.pending() {
			return true
		}
	}
	for _, r := range g.Runs {
		if r.Ended == running {
			return true
		}
	}
	return false
}

// replaced remembers the time of an incomplete message. It returns the time of the version
// that m replaces if that was emitted under another.
func (g *group) replaced(m *msg.Message) int64 {
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

// reset drops a run's own story; its place stays.
func (g *group) reset(id string) {
	r := g.Runs[id]
	if r == nil {
		return
	}
	g.revive(r)
	g.Runs[id] = r.stub()
	for _, c := range g.Open {
		if c.Run == id {
			reporter{g}.endVerdict(r, c)
			delete(g.Open, c.ID)
		}
	}
	g.dirty = true
}

// pace is when a session was judged, and is to be.
type pace struct {
	urgent  bool  // a record since may have made or resolved a verdict at once
	judged  int64 // last; Unix ns
	judgeAt int64 // when its verdicts may change with time; 0: never
}
