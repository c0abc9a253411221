package llmmessage

import (
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// session is one conversation.
type session struct {
	ID     string
	Agent  string           `json:",omitempty"`
	Turn   turn             `json:",omitzero"`
	Given  ledger           `json:",omitzero"`
	Lanes  []*agentMemory   `json:",omitempty"` // memories, least recently used first
	Guides []uint64         `json:",omitempty"` // hashes of prompts that the agent adds to the user's
	Calls  []call           `json:",omitempty"` // open ones, oldest first
	IDs    []identifiedCall `json:",omitempty"` // calls that have an id in a snapshot
	// Nameless are calls with a result and without an id in a snapshot, oldest first.
	Nameless []call    `json:",omitempty"`
	Done     ring      `json:",omitzero"`  // calls with their result, responses that were counted
	Phases   []phase   `json:",omitempty"` // active ones
	Tries    []attempt `json:",omitempty"` // how often each phase was started
	Waits    []wait    `json:",omitempty"`
	Draft    draft     `json:",omitzero"`
	// Old means that the session was restored: the messages of its first snapshot were emitted
	// from another connection.
	Old bool `json:",omitempty"`
}

// turn is a run of the session's agent: a prompt and all that answers it.
type turn struct {
	Run      string `json:",omitempty"`
	Open     bool   `json:",omitempty"`
	Prompted bool   `json:",omitempty"` // its prompt is known
	Said     string `json:",omitempty"` // key of the last text of the agent
	Shown    bool   `json:",omitempty"` // only a snapshot has had that text
	Conn     string `json:",omitempty"` // connection of the event that ended it
	Seq      int64  `json:",omitempty"` // number of that event
}

func (s *session) agent() msg.Agent { return msg.Agent{Name: s.Agent, Kind: msg.KindAgent} }

// session finds the session that an event names, or the one that it must belong to.
func (d *stream) session(v jsonv.Value) *session {
	name := ident.Of(v)
	if was, ok := d.Alias[name]; ok {
		name = was
	}
	if name == "" {
		if name = d.Last; name == "" {
			name = d.origin
		}
	} else {
		d.Last = name
	}
	for i := len(d.Sessions) - 1; i >= 0; i-- {
		s := d.Sessions[i]
		if s.ID != name {
			continue
		}
		if i < len(d.Sessions)-1 {
			d.Sessions = append(slices.Delete(d.Sessions, i, i+1), s)
		}
		return s
	}
	s := &session{ID: name}
	if len(d.Sessions) == maxSessions {
		d.Sessions = slices.Delete(d.Sessions, 0, 1)
	}
	d.Sessions = append(d.Sessions, s)
	return s
}

// startTurn begins a turn with a prompt, whose key is its run's id.
func (s *session) startTurn(run string) {
	s.Turn = turn{Run: run, Open: true, Prompted: true}
	s.Calls, s.Phases = nil, nil
}

// ensureTurn starts a turn with an event if none is open. On the server's side of the
// connection alone the prompt is missing.
func (e *event) ensureTurn() {
	if !e.s.Turn.Open {
		e.s.startTurn("turn:" + e.id)
		e.s.Turn.Prompted = false
	}
}

// endTurn ends the turn with the message m, unless it has ended.
func (e *event) endTurn(m *msg.Message, reason string, failed bool) {
	m.FinishReason = reason
	if !e.s.Turn.Open {
		return
	}
	m.Signal, m.IsError = msg.RunEnd, failed
	e.s.Turn.Open, e.s.Turn.Conn, e.s.Turn.Seq = false, e.conn(), e.seq
}

// isLate reports whether the event was sent before the one that ended the turn: some are
// delayed and overtaken.
func (e *event) isLate() bool {
	t := &e.s.Turn
	return !t.Open && e.seq > 0 && e.seq < t.Seq && e.conn() == t.Conn
}

func (e *event) conn() string { return ident.Of(e.meta.Get("connection_id")) }
