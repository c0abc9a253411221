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

// event is one event while it is decoded:
//
//	{"event":"agent.tool_call","session_id":"…","timestamp":"2026-03-02T10:00:00.123456","step_id":"step_0_x",
//	 "content":"…","metadata":{…},"seq":7,"event_id":"<connection>-7"}
type event struct {
	*stream
	s             *session
	content, meta jsonv.Value

	name string
	id   string // its identity, the same when it is sent again
	step string
	at   conversation.Time
	conn string
	seq  int64 // in its connection; 0 when it has none
}

// handlers decode the events, by their names.
var handlers = map[string]func(*event){
	"agent.thinking":        (*event).thinking,
	"agent.partial_answer":  (*event).partialAnswer,
	"agent.final_answer":    (*event).finalAnswer,
	"agent.llm_message":     (*event).memory,
	"agent.tool_call":       (*event).toolCall,
	"agent.tool_result":     (*event).toolResult,
	"agent.user_confirm":    (*event).ask,
	"agent.error":           (*event).agentError,
	"agent.timeout":         func(e *event) { e.fail("timeout", "timeout") },
	"agent.interrupted":     (*event).interrupted,
	"agent.session_created": (*event).sessionCreated,
	"agent.session_end":     (*event).sessionEnd, "agent.session_ended": (*event).sessionEnd,
	"agent.state_exported": (*event).saved, "agent.state_restored": (*event).saved,

	"user.message": func(e *event) { e.prompt(e.text()) }, "user.solve_tasks": (*event).solveTasks, "user.response": (*event).answer,
	"user.create_session": (*event).request, "user.reconnect": (*event).request, "user.reconnect_with_state": (*event).request,
	"user.cancel": (*event).request, "user.cancel_task": (*event).request, "user.cancel_plan": (*event).request,
	"user.restart_task": (*event).request, "user.replan": (*event).request, "user.request_state": (*event).request, "user.ack": (*event).request,

	"plan.start": (*event).plan, "plan.completed": (*event).plan, "plan.cancelled": (*event).plan,
	"plan.coercion_error": (*event).badPlan, "plan.validation_error": (*event).badPlan, "plan.step_completed": func(e *event) { e.progress() },
	"solver.start": (*event).solver, "solver.completed": (*event).solver, "solver.cancelled": (*event).solver,
	"solver.restarted": (*event).solver, "solver.progress": (*event).solver, "solver.step_failed": (*event).solver, "solver.retry": (*event).solver,
	"aggregate.start": (*event).aggregation, "aggregate.completed": (*event).aggregation, "pipeline.completed": (*event).pipelineEnd,

	"error.execution": (*event).otherError, "error.validation": (*event).otherError, "error.timeout": (*event).otherError,
	"error.recovery_failed": (*event).otherError, "error.retry": (*event).recovery, "error.recovery_started": (*event).recovery,
	"error.recovery_success": (*event).recovery,
	"system.connected":       (*event).system, "system.notice": (*event).system, "system.heartbeat": (*event).system,
	"system.error": func(e *event) { e.addError("system_error").Run = "" },
}

// Read decodes an event, or a snapshot without one around it.
func (d *stream) Read() {
	root := d.Root
	e := &event{stream: d, content: root.Get("content"), meta: root.Get("metadata")}
	e.name, e.step, e.conn = ident.Of(root.Get("event")), ident.Of(root.Get("step_id")), ident.Of(e.meta.Get("connection_id"))
	e.at, e.seq = timeIn(root.Get("timestamp"), d.zone), root.Get("seq").Int()
	list := root
	if root.Is(jsonv.Object) {
		list = root.Get("messages")
	}
	isEvent := root.Get("event").Is(jsonv.String)
	if isEvent {
		if e.isRepeated() {
			root.MarkRead()
			return
		}
		e.restored()
	}
	e.s = d.session(root.Get("session_id"))
	switch {
	case isEvent:
		e.decode()
	case list.Is(jsonv.Array):
		e.name, e.id = "agent.llm_message", msg.HashKey(string(list.Peek()))
		e.snapshot(list)
	default:
		e.unknown(ident.Of(root.Get("type")), root).Run = ""
	}
}

// isRepeated finds the event's identity and reports whether it was decoded before: a restored
// connection repeats events, under new numbers.
func (e *event) isRepeated() bool {
	r := e.Root
	if e.id = cmp.Or(ident.Of(e.meta.Get("orig_event_id")), ident.Of(r.Get("event_id"))); e.id == "" {
		e.id = msg.HashKey(string(r.Get("event").Peek()), string(r.Get("timestamp").Peek()), string(r.Get("session_id").Peek()),
			string(r.Get("step_id").Peek()), string(e.content.Peek()), string(e.meta.Peek()))
		if e.at.Nanos == 0 { // it has no identity
			return false
		}
	}
	if !e.Seen.Add(conversation.SumOf(e.id), maxSeen) {
		return true
	}
	e.Numbers.count(e.conn, e.seq)
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
func (e *event) restored() {
	first, is := ident.Of(e.meta.Get("original_session_id")), ident.Peek(e.Root.Get("session_id"))
	if first == "" || is == "" || first == is {
		return
	}
	first = cmp.Or(e.Alias[first], first)
	if e.Alias == nil || len(e.Alias) >= maxSessions {
		e.Alias = make(map[string]string)
	}
	e.Alias[is] = first
	s := e.session(e.Root.Get("session_id"))
	s.Restored = s.Restored || len(s.Memories) == 0 // its memory is from another connection
	s.Agent = cmp.Or(ident.Of(e.meta.Get("agent_name")), s.Agent)
}

// decode decodes the event by its name, without the namespace that a pipeline may be
// configured to put before it.
func (e *event) decode() {
	for name, more := e.name, true; more; _, name, more = strings.Cut(name, ".") {
		if handle := handlers[name]; handle != nil {
			e.name = name
			handle(e)
			return
		}
	}
	e.unknown(e.name, e.Root).Run = ""
}

// action is the part of the event's name behind its group: completed of plan.completed.
func (e *event) action() string {
	_, action, _ := strings.Cut(e.name, ".")
	return action
}

// add adds a message of the session's turn.
func (e *event) add(kind msg.Kind, key string) *msg.Message {
	return e.addTo(e.s.turnPlace(), kind, key)
}

// addTo adds a message of a place.
func (e *event) addTo(p place, kind msg.Kind, key string) *msg.Message {
	m := e.Out.Add()
	m.Kind, m.Key, m.Session, m.Agent.Kind, m.Complete = kind, key, e.s.ID, msg.KindAgent, msg.Complete
	p.set(m)
	e.at.Set(m)
	return m
}

// key names the event itself.
func (e *event) key() string { return "event:" + e.id }

// status adds a message that a user would not see.
func (e *event) status(key string) *msg.Message { return record.Hide(e.add(msg.Status, key), e.name) }

// notice adds a status that has the event's text and members of its metadata.
func (e *event) notice(text msg.Text, members ...string) *msg.Message {
	m := e.status(e.key())
	m.Content = text
	conversation.AttrsAs(m, e.meta, ident.OrNumber, members...)
	return m
}

// addError adds an error. One that arrives after the end of the turn does not make it a failed
// one.
func (e *event) addError(class string) *msg.Message {
	m := e.add(msg.Error, e.key())
	m.IsError, m.Content, m.Tool.ErrorType = true, e.text(), class
	if !e.s.Turn.Open {
		m.Run = ""
	}
	m.SetAttr("error_code", ident.Of(e.meta.Get("error_code")))
	if e.name != "agent.error" {
		m.SetAttr("type", e.name)
	}
	return m
}

func (e *event) otherError() { e.addError(cmp.Or(ident.Of(e.meta.Get("error_type")), e.action())) }

// recovery decodes an attempt to recover from an error, and its success.
func (e *event) recovery() {
	m := e.notice(e.text(), "attempt")
	if e.name != "error.recovery_success" {
		m.Signal = msg.Retry
	}
	m.SetAttr("delay_ms", ident.OrNumber(e.meta.First("delay_ms", "backoff_ms")))
	m.SetAttr("error", conversation.Excerpt(e.meta.Get("error")))
}

// request decodes a request of the client that is no prompt.
func (e *event) request() {
	m := e.notice(e.content.First("question", "reason").Text())
	conversation.AttrsAs(m, e.content, ident.OrNumber, "task_id")
	m.SetAttr("last_seq", ident.OrNumber(e.content.First("last_seq", "last_event_id")))
}

// sessionCreated decodes the beginning of a session, which names its agent.
func (e *event) sessionCreated() {
	e.s.Agent = cmp.Or(ident.Of(e.meta.Get("agent_name")), e.s.Agent)
	e.notice(e.text()).Run = ""
}

// saved decodes that the state of a session was exported or restored.
func (e *event) saved() {
	m := e.notice(e.text(), "original_session_id", "message_count")
	if id := ident.Of(e.Root.Get("session_id")); id != e.s.ID {
		m.SetAttr("restored_session_id", id)
	}
}

// system decodes what the server says of itself.
func (e *event) system() {
	m := e.notice(e.text(), "action", "task_id")
	m.Run, m.Agent = "", msg.Agent{}
}

// unknown keeps a value of an unknown shape.
func (e *event) unknown(typ string, v jsonv.Value) *msg.Message {
	m := e.Unknown(typ, v)
	m.Run = e.s.Turn.Run
	e.at.Set(m)
	return m
}

// text is the event's text for people: content is a text, or an object with one in it.
func (e *event) text() msg.Text {
	if v := e.content.First("message", "answer", "error_message", "error", "content", "text"); v.Is(jsonv.String) {
		return v.Text()
	}
	return e.content.Text()
}
