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
			d.bareSnapshot(root, m, out)
			return
		}
		d.addUnknown(root, out, ident.Of(root.Get("type")))
		return
	}
	e := &event{root: root, content: root.Get("content"), meta: root.Get("metadata"), out: out}
	e.name = canonicalName(ident.Of(name))
	e.at, e.seq, e.step = parseTime(root.Get("timestamp"), d.zone), root.Get("seq").Int(), ident.Of(root.Get("step_id"))
	if d.isRepeat(e) {
		root.MarkRead()
		return
	}
	if e.name == "" {
		e.s = d.session(root.Get("session_id"))
		e.name = ident.Of(name)
		d.addUnknownEvent(e).Run = ""
		return
	}
	if e.name == "agent.state_restored" {
		d.restored(e)
	}
	e.s = d.session(root.Get("session_id"))
	d.dispatch(e)
}

// isRepeat finds the event's identity and reports whether it was decoded before: a restored
// connection repeats events, under new numbers.
func (d *stream) isRepeat(e *event) bool {
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
	if !numbered && e.at.Time == 0 { // it has no identity
		return false
	}
	h := d.hash([]byte(e.id))
	if d.Seen.has(h) {
		return true
	}
	d.Seen.add(h, maxSeen)
	d.Heard.count(e.conn(), e.seq)
	return false
}

// gaps counts the events of a connection that did not arrive: its numbers have gaps.
type gaps struct {
	Conn string `json:",omitempty"`
	Top  int64  `json:",omitempty"` // the highest number
	Lost int64  `json:",omitempty"`
}

func (h *gaps) count(conn string, seq int64) {
	switch {
	case seq <= 0:
	case conn != h.Conn:
		*h = gaps{Conn: conn, Top: seq}
	case seq > h.Top:
		h.Lost += seq - h.Top - 1
		h.Top = seq
	case h.Lost > 0: // it arrived behind later ones
		h.Lost--
	}
}

// dispatch decodes an event by its name.
func (d *stream) dispatch(e *event) {
	switch kind, action, _ := strings.Cut(e.name, "."); kind {
	case "user":
		d.user(e, action)
	case "plan":
		d.plan(e, action)
	case "solver":
		d.solver(e, action)
	case "aggregate":
		d.aggregate(e, action)
	case "pipeline":
		d.pipelineCompleted(e)
	case "error":
		d.recoverable(e, action)
	case "system":
		d.system(e, action)
	default:
		d.agent(e, action)
	}
}

// agent decodes an event of the session's agent.
func (d *stream) agent(e *event, action string) {
	switch action {
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
		d.lifecycle(e, action)
	}
}

// canonicalName returns the event's name without the namespace that a pipeline may be
// configured to put before it; "" for an unknown name.
func canonicalName(name string) string {
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

// add adds a message of the session's turn.
func (e *event) add(kind msg.Kind, key string) *msg.Message {
	m := e.addSessionMessage(kind, key)
	m.Run, m.Agent = e.s.Turn.Run, e.s.agent()
	return m
}

// addSessionMessage adds a message of no run.
func (e *event) addSessionMessage(kind msg.Kind, key string) *msg.Message {
	m := e.out.Add()
	m.Kind, m.Key, m.Session = kind, key, e.s.ID
	m.Time, m.Precision, m.Complete = e.at.Time, e.at.Precision, msg.Complete
	return m
}

// status adds a message that a user would not see.
func (e *event) status() *msg.Message {
	m := e.add(msg.Status, e.key())
	m.Hidden = true
	m.SetAttr("type", e.name)
	return m
}

// key names the event itself.
func (e *event) key() string { return "event:" + e.id }

// text is the event's text for people: content is a text, or an object with one in it.
func (e *event) text() msg.Text {
	if e.content.Is(jsonv.Object) {
		if v := e.content.First("message", "answer", "error_message", "error", "content", "text"); v.Is(jsonv.String) {
			return v.Text()
		}
	}
	return e.content.Text()
}

// addUnknownEvent keeps an event that lacks the fields of its name.
func (d *stream) addUnknownEvent(e *event) *msg.Message {
	m := d.addUnknown(e.root, e.out, e.name)
	m.Run, m.Time, m.Precision = e.s.Turn.Run, e.at.Time, e.at.Precision
	return m
}

// addUnknown keeps an object of an unknown shape.
func (d *stream) addUnknown(v jsonv.Value, out *decoder.Output, typ string) *msg.Message {
	if typ == "" {
		typ = "none"
	}
	m := out.Unknown(typ, v.Raw())
	m.Session, m.Key = d.session(v.Get("session_id")).ID, "unknown:"+msg.HashKey(string(v.Raw()))
	return m
}
