package assemble

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/internal/assemble/link"
	"github.com/earshot-dev/earshot/core/msg"
)

// A session that was forked or resumed may begin with a copy of another one's turns, in its own file and
// under its own name: `claude --resume ID --fork-session` writes the records again with the ids and times
// that they had, and with no mark. In formats whose ids of turns are unique everywhere (Settings.Unique)
// such a copy shows: its turn is one of another session. A record counts in the original session, and its
// copies are taken back.
//
// The original is the session whose file was written last before it was read first (Settings.Begun); so
// which file is read first does not show. A session that was read before its original is decoded again.
// A session may go on with the last turn that it has copied: its own records of that turn are a run of
// its own.
type copies struct {
	store   Store
	turns   map[string]*turn // at hand, by their keys in the store
	last    *turn            // that was used last, which is that of most messages
	commits int
}

// turn has the sessions that have a turn, the original first.
type turn struct {
	Claims []*claim `json:"claims"`

	of        RunRef // without a session
	dirty     bool
	committed int
}

// claim has the records of a turn that a session has and none before it.
type claim struct {
	Session string `json:"session"`
	Stream  uint64 `json:"stream"`
	Begun   int64  `json:"begun,omitempty"`
	// Copies is set if it has records of an earlier session.
	Copies bool `json:"copies,omitempty"`
	// Behind is set if an earlier session turned out to have its records, or may have: its stream is to be decoded again
	// when the turn of that one is Over.
	Behind bool `json:"behind,omitempty"`
	Over   bool `json:"over,omitempty"`
	// Records are hashes of its own ones and of its responses, of four bytes each.
	Records []byte `json:"records,omitempty"`

	has map[uint32]struct{} // of Records
}

// maxCopied is the number of records of a turn that are remembered, and of sessions that have it.
const (
	maxCopied  = 1 << 14
	maxCopiers = 256
)

// original is the part that a message has in a turn of several sessions.
type original uint8

const (
	sole     original = iota // no other session has it
	extended                 // it goes on with a turn that its session has copied
	copied                   // an earlier session has it
	unsure                   // an earlier session may have it
)

// turnKey is the key of a turn in the store: one that is of no format.
func turnKey(r RunRef) string {
	return link.Key{Tenant: r.Tenant, Session: "turn\x00" + r.Format + "\x00" + r.Run}.String()
}

// load returns the record of a turn.
func (x *copies) load(of RunRef) (*turn, error) {
	if of.Session = ""; x.last != nil && x.last.of == of {
		return x.last, nil
	}
	key := turnKey(of)
	if t := x.turns[key]; t != nil {
		x.last = t
		return t, nil
	}
	t := &turn{of: RunRef{Tenant: strings.Clone(of.Tenant), Format: strings.Clone(of.Format), Run: strings.Clone(of.Run)}}
	state, err := x.store.Group(key)
	if err == nil && len(state) > 0 {
		err = json.Unmarshal(state, t)
	}
	if err != nil {
		return nil, fmt.Errorf("assemble: turn: %w", err)
	}
	for _, c := range t.Claims {
		c.has = make(map[uint32]struct{}, len(c.Records)/4)
		for b := range slices.Chunk(c.Records, 4) {
			c.has[binary.BigEndian.Uint32(b)] = struct{}{}
		}
	}
	x.turns[key], x.last = t, t
	return t, nil
}

// see enters a record of a turn. It returns the session that it was copied from. begun is when the session's file was written
// last before it was read first; 0: that is not known. read reports whether all that was written before has been seen; it looks at every stream.
func (x *copies) see(m *msg.Message, stream uint64, begun func() int64, read func() bool) (is original, from string, err error) {
	t, err := x.load(RunRef{Tenant: m.Host.Tenant, Format: m.Host.Format, Run: m.Run})
	if err != nil {
		return sole, "", err
	}
	sum, response := sumsOf(m)
	at := slices.IndexFunc(t.Claims, func(c *claim) bool { return c.Session == m.Session })
	if at < 0 {
		if len(t.Claims) >= maxCopiers {
			return sole, "", nil
		}
		c := &claim{Session: strings.Clone(m.Session), Stream: stream, has: make(map[uint32]struct{})}
		if begun != nil {
			c.Begun = begun()
		}
		if at = slices.IndexFunc(t.Claims, func(o *claim) bool { return !o.before(c.Session, c.Begun) }); at < 0 {
			at = len(t.Claims)
		}
		t.Claims, t.dirty = slices.Insert(t.Claims, at, c), true
	}
	mine := t.Claims[at]
	counts := m.Kind == msg.Usage && response != 0
	if counts { // it follows when the response is over, which in the copy may be earlier
		sum = response
	}
	if c := having(t.Claims[:at], sum); c != nil && (mine.Copies || !counts) {
		t.dirty = t.dirty || !mine.Copies
		mine.Copies = true
		return copied, c.Session, nil
	}
	switch {
	case !mine.Copies:
	case seenWhole(t.Claims[:at]), read != nil && read():
		is = extended
	default: // the earlier session may have it, too
		t.dirty = t.dirty || !mine.Behind
		mine.Behind = true
		return unsure, t.Claims[0].Session, nil
	}
	if counts {
		return is, "", nil
	}
	for _, c := range t.Claims[at+1:] {
		if _, ok := c.has[sum]; ok && !c.Behind {
			c.Behind, t.dirty = true, true
		}
	}
	t.dirty = mine.add(sum) || t.dirty
	t.dirty = response != 0 && mine.add(response) || t.dirty
	return is, "", nil
}

// seenWhole reports whether all records of the claims were seen.
func seenWhole(claims []*claim) bool {
	return !slices.ContainsFunc(claims, func(c *claim) bool { return !c.Over })
}

// having returns the first claim that has a record; nil: none has.
func having(claims []*claim, sum uint32) *claim {
	for _, c := range claims {
		if _, ok := c.has[sum]; ok {
			return c
		}
	}
	return nil
}

// before reports whether the claim is an earlier session's than another. Of two that began at no known
// time the one that was read first is.
func (c *claim) before(session string, begun int64) bool {
	switch {
	case c.Begun != begun:
		return begun == 0 || c.Begun != 0 && c.Begun < begun
	case begun == 0:
		return true
	}
	return c.Session <= session
}

// add adds a hash, and reports whether it is new.
func (c *claim) add(sum uint32) bool {
	if _, ok := c.has[sum]; ok || len(c.has) >= maxCopied {
		return false
	}
	c.has[sum] = struct{}{}
	c.Records = binary.BigEndian.AppendUint32(c.Records, sum)
	return true
}

// sumsOf are hashes of a record, which a copy has with the same time, and of the response that it is a part of; 0: it is of none.
func sumsOf(m *msg.Message) (record, response uint32) {
	h := fnv.New32a()
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], uint64(m.Time))
	_, _ = h.Write(at[:])
	_, _ = h.Write([]byte(m.Key))
	record = h.Sum32()
	if m.ResponseID != "" {
		h.Reset()
		_, _ = h.Write([]byte(m.ResponseID))
		response = h.Sum32()
	}
	return record, response
}

// commit passes the records that changed to the caller.
func (x *copies) commit(state func(key string, open bool, state []byte)) error {
	x.commits++
	for key, t := range x.turns {
		if !t.dirty {
			continue
		}
		b, err := json.Marshal(t)
		if err != nil {
			return fmt.Errorf("assemble: turn: %w", err)
		}
		t.dirty, t.committed = false, x.commits
		state(key, false, b)
	}
	return nil
}

// erase drops the records that mention an erased session.
func (x *copies) erase(mentions func(state []byte) bool) error {
	x.last = nil
	for key, t := range x.turns {
		b, err := json.Marshal(t)
		if err != nil {
			return fmt.Errorf("assemble: turn: %w", err)
		}
		if mentions(b) {
			delete(x.turns, key)
		}
	}
	return nil
}

// evict drops the records that the store has.
func (x *copies) evict(uncommitted int) {
	x.last = nil
	for key, t := range x.turns {
		if !t.dirty && t.committed <= x.commits-uncommitted {
			delete(x.turns, key)
		}
	}
}

// forks are the sessions that begin with a copy.
type forks struct{ *Assembler }

// claim enters a message before it is applied. One that goes on with a copied turn becomes a message of a run of its own.
func (a forks) claim(g *group, m *msg.Message, stream uint64) (original, error) {
	if !g.unique || m.Run == "" {
		return sole, nil
	}
	var begun func() int64
	if a.settings.Begun != nil {
		begun = func() int64 { return a.settings.Begun(stream) }
	}
	is, from, err := a.copies.see(m, stream, begun, a.settings.HistoryRead)
	if err != nil {
		return sole, err
	}
	switch own := m.Run + link.SuffixOf(stream); {
	case is == copied, is == unsure:
		g.Origin = strings.Clone(from)
	case is == extended && m.Hidden && m.Kind != msg.Usage && g.Runs[own] == nil:
		m.Run = "" // a note about the copy is no work
	case is == extended:
		m.Run = own
	}
	if is < copied && g.Origin != "" && m.Signal == msg.RunStart && m.Attr("forked_from") == "" { // which of the two is the fork is not known
		m.SetAttr("shares_turns_with", g.Origin)
	}
	return is, nil
}

// replay has the streams decoded again whose sessions were read before the original of a turn that has
// ended. Only then it is known of each record of theirs whether it is a copy.
func (a forks) replay(g *group) error {
	if !g.unique {
		return nil
	}
	ended := g.over
	g.over = nil
	for _, r := range g.Runs {
		if r.Start != 0 && r.Ended != running && !r.Emitted {
			ended = append(ended, r)
		}
	}
	for _, r := range ended {
		run := g.ref(r.ID)
		run.Run = run.Named(r.Stream)
		t, err := a.copies.load(run)
		if err != nil {
			return err
		}
		for i, c := range t.Claims {
			if c.Session == g.key.Session && !c.Over {
				c.Over, t.dirty = true, true
			}
			if c.Behind && seenWhole(t.Claims[:i]) {
				a.out.replay(c.Stream, RunRef{g.key.Tenant, g.key.Format, c.Session, run.Run})
			}
		}
	}
	return nil
}

// behind returns a session's claim to a turn if its stream is to be decoded again; nil: it is not.
func (a forks) behind(g *group, run string) (*turn, *claim, error) {
	if !g.unique {
		return nil, nil, nil
	}
	t, err := a.copies.load(g.ref(run))
	if err != nil {
		return nil, nil, err
	}
	at := slices.IndexFunc(t.Claims, func(c *claim) bool { return c.Behind && c.Session == g.key.Session })
	if at < 0 {
		return nil, nil, nil
	}
	return t, t.Claims[at], nil
}

// rejoin has a stream decoded again that was not open when the original of its turn was found.
func (a forks) rejoin(g *group, run string) error {
	_, c, err := a.behind(g, run)
	if c != nil {
		a.out.replay(c.Stream, g.ref(run))
	}
	return err
}

// reset drops the claim to a copied turn, before its stream is decoded again.
func (a forks) reset(g *group, run string) error {
	if own := g.Runs[run]; own != nil && g.unique {
		g.reset(run + link.SuffixOf(own.Stream)) // that goes on with it
	}
	t, c, err := a.behind(g, run)
	if c != nil {
		*c = claim{Session: c.Session, Stream: c.Stream, Begun: c.Begun, has: make(map[uint32]struct{})}
		t.dirty = true
	}
	return err
}
