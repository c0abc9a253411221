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
	switch {
	case root.Get("event").Is(jsonv.String):
		if e.isRepeated() {
			root.MarkRead()
			return
		}
		e.restored()
		e.s = d.session(root.Get("session_id"))
		e.decode()
	case list.Is(jsonv.Array):
		e.name, e.id, e.s = "agent.llm_message", msg.HashKey(string(list.Peek())), d.session(root.Get("session_id"))
		(&reader{e: e}).snapshot(list)
	default:
		e.s = d.session(root.Get("session_id"))
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
	if !e.Seen.Add(e.hash([]byte(e.id)), maxSeen) {
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
	full := e.name
	for name, more := full, true; more; _, name, more = strings.Cut(name, ".") {
		if e.name = name; e.dispatch(name) {
			return
		}
	}
	e.name = full
	e.unknown(full, e.Root).Run = ""
}

// dispatch decodes an event of a known name.
func (e *event) dispatch(name string) (known bool) {
	group, action, _ := strings.Cut(name, ".")
	switch name {
	case "agent.thinking":
		e.thinking()
	case "agent.partial_answer":
		e.s.Draft.piece(e)
	case "agent.final_answer":
		e.finalAnswer()
	case "agent.llm_message":
		e.memory()
	case "agent.tool_call":
		e.toolCall()
	case "agent.tool_result":
		e.toolResult()
	case "agent.user_confirm":
		e.s.Waits.ask(e)
	case "agent.error":
		e.agentError()
	case "agent.timeout":
		e.fail("timeout", "timeout")
	case "agent.interrupted":
		e.interrupted()
	case "agent.session_created":
		e.s.Agent = cmp.Or(ident.Of(e.meta.Get("agent_name")), e.s.Agent)
		e.notice(e.text()).Run = ""
	case "agent.session_end", "agent.session_ended":
		e.sessionEnd()
	case "agent.state_exported", "agent.state_restored":
		m := e.notice(e.text(), "original_session_id", "message_count")
		if id := ident.Of(e.Root.Get("session_id")); id != e.s.ID {
			m.SetAttr("restored_session_id", id)
		}
	case "user.message":
		e.prompt(e.text())
	case "user.solve_tasks":
		if question := e.content.Get("question"); question.Is(jsonv.String) {
			e.prompt(question.Text())
		} else {
			e.prompt(e.content.Text())
		}
	case "user.response":
		e.s.Waits.answer(e)
	case "user.create_session", "user.cancel", "user.cancel_task", "user.restart_task", "user.cancel_plan", "user.replan",
		"user.reconnect", "user.reconnect_with_state", "user.request_state", "user.ack":
		e.request()
	case "plan.start", "plan.completed", "plan.cancelled":
		e.s.Phases.plan(e, action)
	case "plan.coercion_error", "plan.validation_error":
		e.addError("validation").SetAttr("error", conversation.Excerpt(e.content.Get("error")))
	case "solver.start", "solver.completed", "solver.cancelled", "solver.restarted", "solver.progress", "solver.step_failed", "solver.retry":
		e.s.Phases.solver(e, action)
	case "plan.step_completed":
		e.s.Phases.progress(e)
	case "aggregate.start", "aggregate.completed":
		e.s.Phases.aggregate(e, action)
	case "pipeline.completed":
		e.s.Phases.completed(e)
	case "error.execution", "error.validation", "error.timeout", "error.recovery_failed":
		e.addError(cmp.Or(ident.Of(e.meta.Get("error_type")), action))
	case "error.retry", "error.recovery_started", "error.recovery_success":
		e.recovery(action)
	case "system.connected", "system.notice", "system.heartbeat":
		m := e.notice(e.text(), "action", "task_id")
		m.Run, m.Agent = "", msg.Agent{}
	case "system.error":
		e.addError(group + "_error").Run = ""
	default:
		return false
	}
	return true
}

// add adds a message of the session's turn.
func (e *event) add(kind msg.Kind, key string) *msg.Message {
	m := e.Out.Add()
	m.Kind, m.Key, m.Session, m.Run, m.Agent, m.Complete = kind, key, e.s.ID, e.s.Turn.Run, e.s.agent(), msg.Complete
	e.at.Set(m)
	return m
}

// key names the event itself.
func (e *event) key() string { return "event:" + e.id }

// status adds a message that a user would not see.
func (e *event) status(key string) *msg.Message {
	return record.Hide(e.add(msg.Status, key), e.name)
}

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

// recovery decodes an attempt to recover from an error, and its success.
func (e *event) recovery(action string) {
	m := e.notice(e.text(), "attempt")
	if action != "recovery_success" {
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
