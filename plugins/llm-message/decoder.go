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
	"github.com/earshot-dev/earshot/core/msg"
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
			Name: "llm-message", Revision: 8,
			Summary:    "WebSocket events and memory snapshots of myagent.",
			Transports: []frame.Kind{frame.Text, frame.Event, frame.Line, frame.Body},
			Options: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,` +
				`"properties":{"timezone":{"type":"string","default":"UTC","description":` +
				`"Zone of the agent's clock, for its times have none: a name like Europe/Berlin, or an offset like +02:00."}}}`),
			Reload: true,
		},
		LeavesOut: leavesOut,
		State:     5,
		Takes:     func(f *frame.Frame, root jsonv.Value) bool { return f.Kind == frame.Body && root.Is(jsonv.Array) },
		Open:      func(r *record.Current, s *state) record.Reader { return &stream{Current: r, state: s} },
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
	if t, err := time.ParseInLocation("Z07:00", options.Timezone, time.UTC); err == nil {
		d.zone = t.Location()
		return nil
	}
	zone, err := time.LoadLocation(options.Timezone)
	switch {
	case err != nil:
		return fmt.Errorf("option timezone: %w", err)
	case zone == time.Local: // of the machine that decodes: not a fact of the stream
		return fmt.Errorf("option timezone: unknown time zone %s", options.Timezone)
	}
	d.zone = zone
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
	maxNamed    = 1024 // calls with an id in snapshots
	maxMemories = 16   // of a session
	maxItems    = 2048 // messages and calls of a memory
	maxGuides   = 8
	maxDraft    = 1 << 20 // bytes of an unfinished answer
)

// stream decodes one connection.
type stream struct {
	*record.Current
	*state
	zone *time.Location

	// Of the current event:
	s             *session
	content, meta jsonv.Value
	name          string
	id            string // its identity, the same when it is sent again
	step          string
	conn          string
	seq           int64 // in its connection; 0 when it has none

	// Of the current snapshot:
	of    *memory // nil when the event is none
	items []item
	run   string // the run of the messages, if it is not the session's turn
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
	Named    []*call                   `json:",omitempty"` // calls that have an id in a snapshot, as it has them
	Waits    conversation.Waits        `json:",omitempty"`
	Memories []*memory                 `json:",omitempty"` // least recently used first
	Guides   []conversation.Sum        `json:",omitempty"` // of prompts that the agent adds to the user's
	// Restored means that the messages of the session's first snapshot were emitted from
	// another connection.
	Restored bool `json:",omitempty"`
}

// Read decodes an event, or a snapshot without one around it:
//
//	{"event":"agent.tool_call","session_id":"…","timestamp":"2026-03-02T10:00:00.123456","step_id":"step_0_x",
//	 "content":"…","metadata":{…},"seq":7,"event_id":"<connection>-7"}
func (d *stream) Read() {
	root := d.Root
	d.content, d.meta, d.id = root.Get("content"), root.Get("metadata"), ""
	d.step, d.conn = ident.Of(root.Get("step_id")), ident.Of(d.meta.Get("connection_id"))
	d.At, d.seq = timeIn(root.Get("timestamp"), d.zone), root.Get("seq").Int()
	list := root
	if root.Is(jsonv.Object) {
		list = root.Get("messages")
	}
	switch isEvent := root.Get("event").Is(jsonv.String); {
	case isEvent && d.isRepeated():
		root.MarkRead()
	case isEvent:
		d.enter(ident.Of(d.meta.Get("original_session_id")))
		d.event(ident.Of(root.Get("event")))
	case list.Is(jsonv.Array):
		d.enter("")
		d.name, d.id = "agent.llm_message", msg.HashKey(string(list.Peek()))
		(&reader{stream: d}).snapshot(list)
	default:
		d.enter("")
		d.Unknown(ident.Of(root.Get("type")), root)
	}
}

// enter finds the session that the record names, or the one that it must belong to. A session that goes on under
// another id, as agent.state_restored states, is the first one.
func (d *stream) enter(first string) {
	name := ident.Of(d.Root.Get("session_id"))
	restored := first != "" && name != "" && first != name
	if restored {
		first = cmp.Or(d.Alias[first], first)
		if d.Alias == nil || len(d.Alias) >= maxSessions {
			d.Alias = make(map[string]string)
		}
		d.Alias[name] = first
	}
	d.Last = cmp.Or(d.Alias[name], name, d.Last)
	if name = d.Last; name == "" {
		name = sessionOfOrigin(d.Origin)
	}
	d.s = bounded.Use(&d.Sessions, maxSessions, func(s *session) bool { return s.ID == name }, func() *session { return &session{ID: name} }, nil)
	d.of = nil
	if restored {
		d.s.Restored = d.s.Restored || len(d.s.Memories) == 0 // its memory is from another connection
		d.s.Agent = cmp.Or(ident.Of(d.meta.Get("agent_name")), d.s.Agent)
	}
}

// isRepeated finds the event's identity and reports whether it was decoded before: a restored
// connection repeats events, under new numbers.
func (d *stream) isRepeated() bool {
	r, resent := d.Root, ident.Of(d.meta.Get("orig_event_id"))
	if d.id = cmp.Or(resent, ident.Of(r.Get("event_id"))); d.id == "" {
		d.id = msg.HashKey(string(r.Get("event").Peek()), string(r.Get("timestamp").Peek()), string(r.Get("session_id").Peek()),
			string(r.Get("step_id").Peek()), string(d.content.Peek()), string(d.meta.Peek()))
		if d.At.Nanos == 0 { // it has no identity
			return false
		}
	}
	isNew := d.Seen.Add(conversation.SumOf(d.id), maxSeen)
	if isNew || resent != "" {
		d.Numbers.count(d.conn, d.seq)
	}
	return !isNew
}

// numbers counts the events of a connection that did not arrive: its numbers have gaps.
type numbers struct {
	Conn    string `json:",omitempty"`
	Highest int64  `json:",omitempty"`
	Missing int64  `json:",omitempty"`
}

func (n *numbers) count(conn string, seq int64) {
	switch {
	case seq <= 0:
	case conn != n.Conn:
		*n = numbers{Conn: conn, Highest: seq}
	case seq > n.Highest:
		n.Missing += seq - n.Highest - 1
		n.Highest = seq
	case n.Missing > 0: // it arrived behind later ones
		n.Missing--
	}
}

// event decodes an event by its name.
func (d *stream) event(name string) {
	switch d.name = name; name {
	case "agent.thinking":
		thinking(d)
	case "agent.partial_answer":
		partialAnswer(d)
	case "agent.final_answer":
		finalAnswer(d)
	case "agent.llm_message":
		llmMessage(d)
	case "agent.tool_call":
		toolCall(d)
	case "agent.tool_result":
		toolResult(d)
	case "agent.user_confirm":
		ask(d)
	case "agent.error":
		agentError(d)
	case "agent.timeout":
		d.fail("timeout", "timeout")
	case "agent.interrupted":
		interrupted(d)
	case "agent.session_created":
		d.s.Agent = cmp.Or(ident.Of(d.meta.Get("agent_name")), d.s.Agent)
		d.notice(d.text()).Run = ""
	case "agent.session_end", "agent.session_ended":
		d.s.Draft.abandon(d, "session_end")
		m := d.notice(msg.Text{}, "reason")
		if d.s.Turn.Open {
			m.Kind = msg.Stop
			d.endTurn(m, "session_end", false)
		}
	case "agent.state_exported", "agent.state_restored":
		m := d.notice(d.text(), "original_session_id", "message_count")
		if id := ident.Of(d.Root.Get("session_id")); id != d.s.ID {
			m.SetAttr("restored_session_id", id)
		}
	case "user.message", "user.solve_tasks":
		d.prompt(d.text())
	case "user.response":
		answer(d)
	case "user.create_session", "user.reconnect", "user.reconnect_with_state", "user.request_state", "user.ack",
		"user.cancel", "user.cancel_task", "user.cancel_plan", "user.restart_task", "user.replan":
		m := d.notice(d.content.First("question", "reason").Text())
		conversation.AttrsAs(m, d.content, ident.OrNumber, "task_id", "last_seq=last_seq|last_event_id")
	case "plan.start", "plan.completed", "plan.cancelled":
		plan(d)
	case "plan.coercion_error", "plan.validation_error": // it has not the form that the pipeline needs
		d.addError("validation").SetAttr("error", conversation.Excerpt(d.content.Get("error")))
	case "plan.step_completed":
		progress(d)
	case "solver.start", "solver.completed", "solver.cancelled", "solver.restarted", "solver.progress", "solver.step_failed", "solver.retry":
		solver(d)
	case "aggregate.start", "aggregate.completed":
		aggregation(d)
	case "pipeline.completed":
		// It repeats the results of its parts; only calls of the model that no part had are new.
		d.statistics(d.s.turnPlace(), d.content.Get("statistics"))
		m := d.notice(msg.Text{})
		m.SetAttr("solver_results", conversation.NonZero(d.content.Get("solver_results").Len()))
		m.SetAttr("metrics", conversation.ShortJSON(d.content.Get("metrics")))
	case "error.execution", "error.validation", "error.timeout", "error.recovery_failed":
		d.addError(cmp.Or(ident.Of(d.meta.Get("error_type")), d.action()))
	case "error.retry", "error.recovery_started", "error.recovery_success":
		m := d.notice(d.text(), "attempt", "delay_ms=delay_ms|backoff_ms")
		if name != "error.recovery_success" {
			m.Signal = msg.Retry
		}
		m.SetAttr("error", conversation.Excerpt(d.meta.Get("error")))
	case "system.connected", "system.notice", "system.heartbeat": // of the server itself
		m := d.notice(d.text(), "action", "task_id")
		m.Run, m.Agent = "", msg.Agent{}
	case "system.error":
		d.addError("system_error").Run = ""
	default:
		if _, rest, more := strings.Cut(name, "."); more { // a pipeline may be configured to put a namespace before it
			d.event(rest)
			return
		}
		d.Unknown(ident.Of(d.Root.Get("event")), d.Root)
	}
}

// action is the part of the event's name behind its group: completed of plan.completed.
func (d *stream) action() string {
	_, action, _ := strings.Cut(d.name, ".")
	return action
}

// add adds a message of the session's turn.
func (d *stream) add(kind msg.Kind, key string) *msg.Message {
	return d.addTo(d.s.turnPlace(), kind, key)
}

// addTo adds a message of a place.
func (d *stream) addTo(p place, kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	p.set(m)
	return m
}

// key names the event itself.
func (d *stream) key() string { return "event:" + d.id }

// status adds a message that a user would not see.
func (d *stream) status(key string) *msg.Message { return record.Hide(d.add(msg.Status, key), d.name) }

// notice adds a status that has the event's text and members of its metadata.
func (d *stream) notice(text msg.Text, members ...string) *msg.Message {
	m := d.status(d.key())
	m.Content = text
	conversation.AttrsAs(m, d.meta, ident.OrNumber, members...)
	return m
}

// addError adds an error. One that arrives after the end of the turn does not make it a failed
// one.
func (d *stream) addError(class string) *msg.Message {
	m := d.add(msg.Error, d.key())
	m.IsError, m.Content, m.Tool.ErrorType = true, d.text(), class
	if !d.s.Turn.Open {
		m.Run = ""
	}
	m.SetAttr("error_code", ident.Of(d.meta.Get("error_code")))
	if d.name != "agent.error" {
		m.SetAttr("type", d.name)
	}
	return m
}

// unknown keeps a value of an unknown shape, which is of the session's turn.
func (d *stream) unknown(typ string, v jsonv.Value) { d.Unknown(typ, v).Run = d.s.Turn.Run }

// text is the event's text for people: content is a text, or an object with one in it.
func (d *stream) text() msg.Text {
	if text := d.content.First("message", "answer", "question", "error_message", "error", "content", "text"); text.Is(jsonv.String) {
		return text.Text()
	}
	return d.content.Text()
}

// In returns the session that a record names.
func (d *stream) In() (session, run string) { return d.s.ID, "" }

// Flush emits the answers that are still being written.
func (d *stream) Flush() {
	for _, s := range d.Sessions {
		if len(s.Draft.Text) > 0 {
			d.s = s
			s.Draft.emit(d)
		}
	}
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
