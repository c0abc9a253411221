package llmmessage

import (
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// event is one event while it is decoded:
//
//	{"event":"agent.tool_call","session_id":"…","timestamp":"2026-03-02T10:00:00.123456","step_id":"step_0_x",
//	 "content":"…","metadata":{…},"seq":7,"event_id":"<connection>-7"}
type event struct {
	root, content, meta jsonv.Value
	out                 *decoder.Output

	name string
	s    *session
	at   at
	id   string // its identity, the same when it is sent again
	seq  int64  // in its connection; 0 when it has none
	step string
}

// event decodes an event, or a snapshot without one around it.
func (d *stream) event(root jsonv.Value, out *decoder.Output) {
	name := root.Get("event")
	if !name.Is(jsonv.String) {
		if m := root.Get("messages"); m.Is(jsonv.Array) {
			d.bare(root, m, out)
			return
		}
		d.unknown(root, out, ident.Of(root.Get("type")))
		return
	}
	e := &event{root: root, content: root.Get("content"), meta: root.Get("metadata"), out: out}
	e.name = known(ident.Of(name))
	e.at, e.seq, e.step = clock(root.Get("timestamp"), d.zone), root.Get("seq").Int(), ident.Of(root.Get("step_id"))
	if d.again(e) {
		root.MarkRead()
		return
	}
	if e.name == "" {
		e.s = d.session(root.Get("session_id"))
		e.name = ident.Of(name)
		d.strange(e).Run = ""
		return
	}
	if e.name == "agent.state_restored" {
		d.restored(e)
	}
	e.s = d.session(root.Get("session_id"))
	d.dispatch(e)
}

// again finds the event's identity and reports whether it was decoded before: a
// connection that is taken up again repeats events, under new numbers.
func (d *stream) again(e *event) bool {
	e.id = ident.Of(e.meta.Get("orig_event_id"))
	if e.id == "" {
		e.id = ident.Of(e.root.Get("event_id"))
	}
	numbered := e.id != ""
	if !numbered {
		r := e.root
		e.id = msg.HashKey(string(r.Get("event").Peek()), string(r.Get("timestamp").Peek()), string(r.Get("session_id").Peek()),
			string(r.Get("step_id").Peek()), string(e.content.Peek()), string(e.meta.Peek()))
	}
	if !numbered && e.at.Time == 0 { // nothing tells it from one that says the same
		return false
	}
	h := d.hash([]byte(e.id))
	if d.Seen.has(h) {
		return true
	}
	d.Seen.add(h, maxSeen)
	d.Heard.hear(e.conn(), e.seq)
	return false
}

// heard counts the events of a connection that did not come: its numbers have gaps.
type heard struct {
	Conn string `json:",omitempty"`
	Top  int64  `json:",omitempty"` // the highest number
	Lost int64  `json:",omitempty"`
}

func (h *heard) hear(conn string, seq int64) {
	switch {
	case seq <= 0:
	case conn != h.Conn:
		*h = heard{Conn: conn, Top: seq}
	case seq > h.Top:
		h.Lost += seq - h.Top - 1
		h.Top = seq
	case h.Lost > 0: // it waited, and others went before it
		h.Lost--
	}
}

// dispatch decodes an event by its name.
func (d *stream) dispatch(e *event) {
	switch kind, what, _ := strings.Cut(e.name, "."); kind {
	case "user":
		d.user(e, what)
	case "plan":
		d.planning(e, what)
	case "solver":
		d.solving(e, what)
	case "aggregate":
		d.aggregating(e, what)
	case "pipeline":
		d.piped(e)
	case "error":
		d.trouble(e, what)
	case "system":
		d.system(e, what)
	default:
		d.agent(e, what)
	}
}

// agent decodes what the agent of the session says.
func (d *stream) agent(e *event, what string) {
	switch what {
	case "thinking":
		d.thinking(e)
	case "tool_call":
		d.toolCall(e)
	case "tool_result":
		d.toolResult(e)
	case "partial_answer":
		d.partial(e)
	case "final_answer":
		d.final(e)
	case "llm_message":
		d.memory(e)
	case "user_confirm":
		d.confirm(e)
	default:
		d.lifecycle(e, what)
	}
}

// known returns the event's name without the namespace that a pipeline may be
// configured to put before it; "" when nobody knows it.
func known(name string) string {
	for {
		if isKnown(name) {
			return name
		}
		_, rest, ok := strings.Cut(name, ".")
		if !ok {
			return ""
		}
		name = rest
	}
}

func isKnown(name string) bool {
	switch name {
	case "agent.session_created", "agent.thinking", "agent.tool_call", "agent.tool_result", "agent.user_confirm", "agent.partial_answer",
		"agent.final_answer", "agent.llm_message", "agent.error", "agent.timeout", "agent.interrupted", "agent.session_end",
		"agent.session_ended", "agent.state_exported", "agent.state_restored",
		"plan.start", "plan.completed", "plan.cancelled", "plan.coercion_error", "plan.step_completed", "plan.validation_error",
		"solver.start", "solver.completed", "solver.cancelled", "solver.restarted", "solver.progress", "solver.step_failed", "solver.retry",
		"aggregate.start", "aggregate.completed", "pipeline.completed",
		"error.execution", "error.validation", "error.timeout", "error.retry", "error.recovery_started", "error.recovery_success", "error.recovery_failed",
		"system.connected", "system.notice", "system.heartbeat", "system.error",
		"user.create_session", "user.message", "user.response", "user.cancel", "user.cancel_task", "user.restart_task", "user.cancel_plan",
		"user.replan", "user.solve_tasks", "user.reconnect", "user.reconnect_with_state", "user.request_state", "user.ack":
		return true
	}
	return false
}

// give adds a message of the session's turn.
func (e *event) give(kind msg.Kind, key string) *msg.Message {
	m := e.say(kind, key)
	m.Run, m.Agent = e.s.Turn.Run, e.s.agent()
	return m
}

// say adds a message of no run.
func (e *event) say(kind msg.Kind, key string) *msg.Message {
	m := e.out.Add()
	m.Kind, m.Key, m.Session = kind, key, e.s.ID
	m.Time, m.Precision, m.Complete = e.at.Time, e.at.Precision, msg.Complete
	return m
}

// status adds a message that a user would not see.
func (e *event) status() *msg.Message {
	m := e.give(msg.Status, e.key())
	m.Hidden = true
	m.SetAttr("type", e.name)
	return m
}

// key names the event itself.
func (e *event) key() string { return "event:" + e.id }

// text is what the event says to people: content is a text, or an object with one
// in it.
func (e *event) text() msg.Text {
	if e.content.Is(jsonv.Object) {
		if v := e.content.First("message", "answer", "error_message", "error", "content", "text"); v.Is(jsonv.String) {
			return v.Text()
		}
	}
	return e.content.Text()
}

// strange keeps an event that says nothing that can be understood.
func (d *stream) strange(e *event) *msg.Message {
	m := d.unknown(e.root, e.out, e.name)
	m.Run, m.Time, m.Precision = e.s.Turn.Run, e.at.Time, e.at.Precision
	return m
}

// unknown keeps an object that nobody knows.
func (d *stream) unknown(v jsonv.Value, out *decoder.Output, typ string) *msg.Message {
	if typ == "" {
		typ = "none"
	}
	m := out.Unknown(typ, v.Raw())
	m.Session, m.Key = d.session(v.Get("session_id")).ID, "unknown:"+msg.HashKey(string(v.Raw()))
	return m
}
