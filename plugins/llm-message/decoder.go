// Package llmmessage decodes the WebSocket protocol of myagent: the events of an agent at work,
// and the snapshots of its whole memory that it sends beside them (agent.llm_message).
//
// Facts of the format that are easy to get wrong, beside those of the README:
//
//   - A snapshot is taken before the model's answer is stored: the newest text is in the next one, if
//     there is one. At the end of a turn it may be ahead of the events.
//   - A snapshot is no log. It sheds its oldest messages (100 by default), loses groups of calls
//     without results after a retry, and gains prompts that no user wrote. total_messages is the
//     length of the array.
//   - final_response has the answer before the memory has it, and keeps it into the next turn. Most
//     snapshots never have the agent_state FINISHED.
//   - Events have a step_id, which begins at 0 in each turn, and no id of a call.
//   - Pieces of an answer (agent.partial_answer) and snapshots wait up to 75 ms for a newer one and
//     are then dropped for it. The last piece arrives behind events with higher seq, even behind the
//     final answer.
//   - Times are local and have no zone, but for the calls of the model in statistics, which are UTC.
//   - A session that is restored after a broken connection has a new id, and begins with events of
//     the old one under new numbers.
package llmmessage

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
	"github.com/earshot-dev/earshot/core/sdk/when"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return record.Format[state]{
		Info: decoder.Info{
			Name: "llm-message", Revision: 4,
			Summary:    "WebSocket events and memory snapshots of myagent.",
			Transports: []frame.Kind{frame.Text, frame.Event, frame.Line, frame.Body},
			Options: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,` +
				`"properties":{"timezone":{"type":"string","default":"UTC","description":` +
				`"Zone of the agent's clock, for its times have none: a name like Europe/Berlin, or an offset like +02:00."}}}`),
			Reload: true,
		},
		LeavesOut: leavesOut,
		State:     3,
		Takes:     func(f *frame.Frame, root jsonv.Value) bool { return f.Kind == frame.Body && root.Is(jsonv.Array) },
		Open: func(r *record.Current, s *state) record.Reader {
			return &stream{Current: r, state: s, origin: sessionOfOrigin(r.Origin)}
		},
	}.Factory()
}

// Configure reads the zone of times without one.
func (d *stream) Configure(raw json.RawMessage) error {
	options := struct {
		Timezone string `json:"timezone"`
	}{"UTC"}
	if err := record.Options(raw, &options); err != nil {
		return err
	}
	t, err := time.ParseInLocation("Z07:00", options.Timezone, time.UTC)
	if err == nil {
		d.zone = t.Location()
		return nil
	}
	if d.zone, err = time.LoadLocation(options.Timezone); err == nil && d.zone == time.Local {
		err = fmt.Errorf("unknown time zone %s", options.Timezone) // of the machine that decodes: not a fact of the stream
	}
	if err != nil {
		return fmt.Errorf("option timezone: %w", err)
	}
	return nil
}

// sessionOfOrigin is the session of a stream that names none: the name of the file.
func sessionOfOrigin(origin string) string {
	return cmp.Or(ident.OfFile(strings.TrimRight(origin, `/\`), ".json"), "unknown")
}

// Limits of the state. Beyond a limit the oldest entry is evicted.
const (
	maxSessions = 64
	maxSeen     = 4096 // events
	maxEmitted  = 8192 // texts, calls, results and responses of a session
	maxIDs      = 1024 // calls with an id in snapshots
	maxMemories = 16   // of a session
	maxItems    = 2048 // messages and calls of a memory
	maxGuides   = 8
	maxWaits    = 64
	maxDraft    = 1 << 20 // bytes of an unfinished answer
)

// stream decodes one connection.
type stream struct {
	*record.Current
	*state
	origin string // the session of events that name none
	zone   *time.Location
	items  []item // of the last snapshot, kept for its room

	// Of the current event:
	s             *session
	content, meta jsonv.Value
	name          string
	id            string // its identity, the same when it is sent again
	step          string
	conn          string
	seq           int64 // in its connection; 0 when it has none
}

// state is the decoder's memory of earlier events.
type state struct {
	Last     string                        `json:",omitempty"` // the session that an event last named
	Alias    map[string]string             `json:",omitempty"` // new ids of restored sessions, and their first ids
	Sessions []*session                    `json:",omitempty"` // least recently used first
	Seen     bounded.Set[conversation.Sum] `json:",omitzero"`  // events
	Numbers  numbers                       `json:",omitzero"`
}

// session is one conversation.
type session struct {
	ID       string
	Agent    string                    `json:",omitempty"`
	Turn     turn                      `json:",omitzero"`
	Draft    draft                     `json:",omitzero"`
	Emitted  ledger                    `json:",omitzero"`
	Calls    conversation.Calls[*call] `json:",omitzero"`
	IDs      []*identifiedCall         `json:",omitempty"` // calls that have an id in a snapshot
	Waits    []wait                    `json:",omitempty"`
	Memories []*memory                 `json:",omitempty"` // least recently used first
	Guides   []conversation.Sum        `json:",omitempty"` // of prompts that the agent adds to the user's
	// Restored means that the messages of the session's first snapshot were emitted from
	// another connection.
	Restored bool `json:",omitempty"`
}

// In returns the session that a record names.
func (d *stream) In() (session, run string) { return d.s.ID, "" }

// Flush emits the answers that are still being written.
func (d *stream) Flush() {
	for _, s := range d.Sessions {
		if len(s.Draft.Text) > 0 {
			d.s = s
			d.draft()
		}
	}
}

// session finds the session that an event names, or the one that it must belong to.
func (d *stream) session(v jsonv.Value) *session {
	name := ident.Of(v)
	name = cmp.Or(d.Alias[name], name)
	if name != "" {
		d.Last = name
	}
	name = cmp.Or(name, d.Last, d.origin)
	d.Sessions = bounded.Use(d.Sessions, maxSessions, func(s *session) bool { return s.ID == name }, func() *session { return &session{ID: name} })
	return d.Sessions[len(d.Sessions)-1]
}

// sumOf is the checksum of byte strings without a zero, as JSON is.
func sumOf(parts ...[]byte) (s conversation.Sum) {
	for _, p := range parts {
		s = s.Add(p).Add([]byte{0})
	}
	return s
}

// timeIn reads a time; one without a zone is in that zone.
func timeIn(v jsonv.Value, zone *time.Location) conversation.Time {
	t := conversation.TimeOf(v)
	if zone != time.UTC {
		if _, _, bare := when.Parse(v.PeekStr() + "Z"); bare {
			u := time.Unix(0, t.Nanos).UTC()
			t.Nanos = time.Date(u.Year(), u.Month(), u.Day(), u.Hour(), u.Minute(), u.Second(), u.Nanosecond(), zone).UnixNano()
		}
	}
	t.Nanos = max(t.Nanos, 0)
	return t
}
