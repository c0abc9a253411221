package llmmessage

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
)

// lifecycle decodes the beginning, the errors, the stops and the end of a session.
func (d *stream) lifecycle(e *event, action string) {
	switch action {
	case "error":
		d.agentError(e)
	case "timeout":
		d.emitDraft(e, "timeout")
		e.endTurn(d.addError(e, "timeout"), "timeout", true)
	case "interrupted":
		d.emitDraft(e, "interrupted")
		if !e.s.Turn.Open { // it arrives twice: from the canceller and from the cancelled work
			e.status().Content = e.text()
			return
		}
		m := e.add(msg.Stop, e.key())
		m.Content = e.text()
		e.endTurn(m, "interrupted", true)
	case "session_end", "session_ended":
		d.emitDraft(e, "session_end")
		m := e.status()
		if e.s.Turn.Open {
			m.Kind = msg.Stop
			e.endTurn(m, "session_end", false)
		}
		m.SetAttr("reason", ident.Of(e.meta.Get("reason")))
	case "session_created":
		if name := ident.Of(e.meta.Get("agent_name")); name != "" {
			e.s.Agent = name
		}
		m := e.status()
		m.Run, m.Agent, m.Content = "", e.s.agent(), e.text()
	default: // the state of a session, exported and restored
		m := e.status()
		m.Content = e.text()
		m.SetAttr("original_session_id", ident.Of(e.meta.Get("original_session_id")))
		if is := ident.Of(e.root.Get("session_id")); is != e.s.ID {
			m.SetAttr("restored_session_id", is)
		}
		m.SetAttr("message_count", ident.OrNumber(e.meta.Get("message_count")))
	}
}

// restored notes that a session goes on under another id.
func (d *stream) restored(e *event) {
	was, is := ident.Of(e.meta.Get("original_session_id")), ident.Of(e.root.Get("session_id"))
	if was == "" || is == "" || was == is {
		return
	}
	if first, ok := d.Alias[was]; ok {
		was = first
	}
	if d.Alias == nil || len(d.Alias) >= maxSessions {
		d.Alias = make(map[string]string)
	}
	d.Alias[is] = was
	d.Last = was
	s := d.session(e.root.Get("session_id"))
	if len(s.Lanes) == 0 { // its memory is from another connection
		s.Old = true
	}
	if name := ident.Of(e.meta.Get("agent_name")); name != "" {
		s.Agent = name
	}
}

// agentError decodes the error that ends a run, or the refusal of a prompt, which concerns no
// run: another one may be active.
func (d *stream) agentError(e *event) {
	if isRefusal(e.text().String()) {
		m := d.addError(e, "refused")
		m.Run = ""
		return
	}
	e.ensureTurn()
	d.emitDraft(e, "error")
	e.endTurn(d.addError(e, "agent_error"), "error", true)
}

// isRefusal reports whether an error is the refusal of a prompt. Only its text shows it, in the
// languages of two versions.
func isRefusal(text string) bool {
	for _, words := range [...]string{
		"Agent is currently running", "Session not found", "Session is closed", "Message content cannot be empty",
		"Missing step_id in user response", "Agent 正在运行中", "会话不存在", "会话已关闭", "消息内容不能为空",
	} {
		if strings.HasPrefix(text, words) {
			return true
		}
	}
	return false
}

// addError emits an error. One that arrives after the end of the turn does not make it a failed
// one.
func (d *stream) addError(e *event, class string) *msg.Message {
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

// recoverable decodes errors from which a run may recover, and the recovery.
func (d *stream) recoverable(e *event, action string) {
	switch action {
	case "execution", "timeout", "validation", "recovery_failed":
		class := ident.Of(e.meta.Get("error_type"))
		if class == "" {
			class = action
		}
		d.addError(e, class)
	default:
		m := e.status()
		m.Content = e.text()
		if action == "retry" || action == "recovery_started" {
			m.Signal = msg.Retry
		}
		m.SetAttr("attempt", ident.OrNumber(e.meta.Get("attempt")))
		m.SetAttr("delay_ms", ident.OrNumber(e.meta.First("delay_ms", "backoff_ms")))
		m.SetAttr("error", excerpt(e.meta.Get("error")))
	}
}

// system decodes an event of the connection.
func (d *stream) system(e *event, action string) {
	if action == "error" {
		m := d.addError(e, "system_error")
		m.Run = ""
		return
	}
	m := e.status()
	m.Run, m.Agent = "", msg.Agent{}
	m.Content = e.text()
	m.SetAttr("action", ident.Of(e.meta.Get("action")))
	m.SetAttr("task_id", ident.OrNumber(e.meta.Get("task_id")))
}
