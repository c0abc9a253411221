package llmmessage

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// handlers decode the events, by their names.
var handlers = map[string]func(*stream){
	"agent.thinking":        (*stream).thinking,
	"agent.partial_answer":  (*stream).partialAnswer,
	"agent.final_answer":    (*stream).finalAnswer,
	"agent.llm_message":     (*stream).memory,
	"agent.tool_call":       (*stream).toolCall,
	"agent.tool_result":     (*stream).toolResult,
	"agent.user_confirm":    (*stream).ask,
	"agent.error":           (*stream).agentError,
	"agent.timeout":         func(d *stream) { d.fail("timeout", "timeout") },
	"agent.interrupted":     (*stream).interrupted,
	"agent.session_created": (*stream).sessionCreated,
	"agent.session_end":     (*stream).sessionEnd, "agent.session_ended": (*stream).sessionEnd,
	"agent.state_exported": (*stream).saved, "agent.state_restored": (*stream).saved,

	"user.message": func(d *stream) { d.prompt(d.text()) }, "user.solve_tasks": func(d *stream) { d.prompt(d.textOf(d.content.Get("question"))) }, "user.response": (*stream).answer,
	"user.create_session": (*stream).request, "user.reconnect": (*stream).request, "user.reconnect_with_state": (*stream).request,
	"user.cancel": (*stream).request, "user.cancel_task": (*stream).request, "user.cancel_plan": (*stream).request,
	"user.restart_task": (*stream).request, "user.replan": (*stream).request, "user.request_state": (*stream).request, "user.ack": (*stream).request,

	"plan.start": (*stream).plan, "plan.completed": (*stream).plan, "plan.cancelled": (*stream).plan,
	"plan.coercion_error": (*stream).badPlan, "plan.validation_error": (*stream).badPlan, "plan.step_completed": func(d *stream) { d.progress() },
	"solver.start": (*stream).solver, "solver.completed": (*stream).solver, "solver.cancelled": (*stream).solver,
	"solver.restarted": (*stream).solver, "solver.progress": (*stream).solver, "solver.step_failed": (*stream).solver, "solver.retry": (*stream).solver,
	"aggregate.start": (*stream).aggregation, "aggregate.completed": (*stream).aggregation, "pipeline.completed": (*stream).pipelineEnd,

	"error.execution": (*stream).otherError, "error.validation": (*stream).otherError, "error.timeout": (*stream).otherError,
	"error.recovery_failed": (*stream).otherError, "error.retry": (*stream).recovery, "error.recovery_started": (*stream).recovery,
	"error.recovery_success": (*stream).recovery,
	"system.connected":       (*stream).system, "system.notice": (*stream).system, "system.heartbeat": (*stream).system,
	"system.error": func(d *stream) { d.addError("system_error").Run = "" },
}

// Read decodes an event, or a snapshot without one around it:
//
//	{"event":"agent.tool_call","session_id":"…","timestamp":"2026-03-02T10:00:00.123456","step_id":"step_0_x",
//	 "content":"…","metadata":{…},"seq":7,"event_id":"<connection>-7"}
func (d *stream) Read() {
	root := d.Root
	d.content, d.meta, d.id = root.Get("content"), root.Get("metadata"), ""
	d.name, d.step, d.conn = ident.Of(root.Get("event")), ident.Of(root.Get("step_id")), ident.Of(d.meta.Get("connection_id"))
	d.At, d.seq = timeIn(root.Get("timestamp"), d.zone), root.Get("seq").Int()
	list := root
	if root.Is(jsonv.Object) {
		list = root.Get("messages")
	}
	isEvent := root.Get("event").Is(jsonv.String)
	if isEvent {
		if d.isRepeated() {
			root.MarkRead()
			return
		}
		d.restored()
	}
	d.s = d.session(root.Get("session_id"))
	switch {
	case isEvent:
		d.decode()
	case list.Is(jsonv.Array):
		d.name, d.id = "agent.llm_message", msg.HashKey(string(list.Peek()))
		d.snapshot(list)
	default:
		d.unknown(ident.Of(root.Get("type")), root).Run = ""
	}
}

// isRepeated finds the event's identity and reports whether it was decoded before: a restored
// connection repeats events, under new numbers.
func (d *stream) isRepeated() bool {
	r := d.Root
	if d.id = cmp.Or(ident.Of(d.meta.Get("orig_event_id")), ident.Of(r.Get("event_id"))); d.id == "" {
		d.id = msg.HashKey(string(r.Get("event").Peek()), string(r.Get("timestamp").Peek()), string(r.Get("session_id").Peek()),
			string(r.Get("step_id").Peek()), string(d.content.Peek()), string(d.meta.Peek()))
		if d.At.Nanos == 0 { // it has no identity
			return false
		}
	}
	if !d.Seen.Add(conversation.SumOf(d.id), maxSeen) {
		return true
	}
	d.Numbers.count(d.conn, d.seq)
	return false
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

// restored notes that a session goes on under another id, which agent.state_restored states.
func (d *stream) restored() {
	first, is := ident.Of(d.meta.Get("original_session_id")), ident.Peek(d.Root.Get("session_id"))
	if first == "" || is == "" || first == is {
		return
	}
	first = cmp.Or(d.Alias[first], first)
	if d.Alias == nil || len(d.Alias) >= maxSessions {
		d.Alias = make(map[string]string)
	}
	d.Alias[is] = first
	s := d.session(d.Root.Get("session_id"))
	s.Restored = s.Restored || len(s.Memories) == 0 // its memory is from another connection
	s.Agent = cmp.Or(ident.Of(d.meta.Get("agent_name")), s.Agent)
}

// decode decodes the event by its name, without the namespace that a pipeline may be
// configured to put before it.
func (d *stream) decode() {
	for name, more := d.name, true; more; _, name, more = strings.Cut(name, ".") {
		if handle := handlers[name]; handle != nil {
			d.name = name
			handle(d)
			return
		}
	}
	d.unknown(d.name, d.Root).Run = ""
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

func (d *stream) otherError() { d.addError(cmp.Or(ident.Of(d.meta.Get("error_type")), d.action())) }

// recovery decodes an attempt to recover from an error, and its success.
func (d *stream) recovery() {
	m := d.notice(d.text(), "attempt")
	if d.name != "error.recovery_success" {
		m.Signal = msg.Retry
	}
	m.SetAttr("delay_ms", ident.OrNumber(d.meta.First("delay_ms", "backoff_ms")))
	m.SetAttr("error", conversation.Excerpt(d.meta.Get("error")))
}

// request decodes a request of the client that is no prompt.
func (d *stream) request() {
	m := d.notice(d.content.First("question", "reason").Text())
	conversation.AttrsAs(m, d.content, ident.OrNumber, "task_id")
	m.SetAttr("last_seq", ident.OrNumber(d.content.First("last_seq", "last_event_id")))
}

// sessionCreated decodes the beginning of a session, which names its agent.
func (d *stream) sessionCreated() {
	d.s.Agent = cmp.Or(ident.Of(d.meta.Get("agent_name")), d.s.Agent)
	d.notice(d.text()).Run = ""
}

// saved decodes that the state of a session was exported or restored.
func (d *stream) saved() {
	m := d.notice(d.text(), "original_session_id", "message_count")
	if id := ident.Of(d.Root.Get("session_id")); id != d.s.ID {
		m.SetAttr("restored_session_id", id)
	}
}

// system decodes what the server says of itself.
func (d *stream) system() {
	m := d.notice(d.text(), "action", "task_id")
	m.Run, m.Agent = "", msg.Agent{}
}

// unknown keeps a value of an unknown shape.
func (d *stream) unknown(typ string, v jsonv.Value) *msg.Message {
	m := d.Unknown(typ, v)
	m.Run = d.s.Turn.Run
	return m
}

// text is the event's text for people: content is a text, or an object with one in it.
func (d *stream) text() msg.Text {
	return d.textOf(d.content.First("message", "answer", "error_message", "error", "content", "text"))
}

// textOf is the text of a member of the content, or of all the content if that is no string.
func (d *stream) textOf(member jsonv.Value) msg.Text {
	if member.Is(jsonv.String) {
		return member.Text()
	}
	return d.content.Text()
}
