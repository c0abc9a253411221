package legion

import (
	"bytes"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// system decodes a notice. f has its fields (metadata, or data), inner the agent's own
// message (init_data, or data within data).
func (r *record) system(f, inner, content jsonv.Value) {
	sub := r.sc.name(f.Get("subtype"))
	if sub == "" {
		sub = r.sc.name(r.root.Get("subtype"))
	}
	text := content.Text()
	if placeholder(content.Escaped(), sub) {
		text = msg.Text{}
	}
	r.typ = r.sc.joined("system", sub)
	switch sub {
	case "task_started", "task_progress", "task_updated", "task_notification":
		r.task(sub, f, inner, text)
		return
	case "interrupt_success":
		m := r.notice(msg.Stop, sub, text)
		r.end(m)
		m.FinishReason, m.Tool.ErrorType, m.IsError = "interrupted", "interrupted", true
		r.s.Cut = true
		return
	case "session_failed":
		m := r.notice(msg.Error, sub, text)
		m.IsError, m.FinishReason = true, "error"
		m.Tool.ErrorType = r.sc.name(f.First("error_subtype", "error_type"))
		if m.Content.IsZero() {
			m.Content = f.Get("error_details").Text()
		}
		r.end(m)
		return
	}

	m := r.notice(msg.Status, sub, text)
	switch sub {
	case "init", "client_launched":
		m.Hidden = true
		m.SetAttr("model", scalar(inner.Get("model")))
		dir := scalar(inner.Get("cwd"))
		if dir != "" && len(dir) <= maxDir {
			r.s.Dir = strings.Clone(dir)
		}
		m.SetAttr("cwd", dir)
		inner.Get("tools").MarkRead()
		m.SetAttr("permission_mode", scalar(inner.Get("permissionMode")))
		m.SetAttr("version", scalar(inner.Get("claude_code_version")))
	case "interrupt":
		r.s.Cut = true
	case "permission_mode_change", "agent_notification":
	case "compact_boundary", "microcompact_boundary":
		m.Signal = msg.Compaction
	case "api_retry", "tengu_api_retry":
		m.Hidden, m.Signal = true, msg.Retry
		m.SetAttr("attempt", scalar(inner.First("attempt", "attemptNumber")))
	case "status", "status_update", "thinking_tokens":
		m.Hidden = true
		m.SetAttr("status", scalar(inner.Get("status")))
		m.SetAttr("permission_mode", scalar(inner.Get("permissionMode")))
	case "hook_started", "hook_response":
		m.Hidden = true
		m.SetAttr("hook", scalar(inner.First("hook_name", "hookName")))
		m.SetAttr("hook_event", scalar(inner.First("hook_event", "hookEvent")))
		m.SetAttr("outcome", scalar(inner.Get("outcome")))
		m.SetAttr("exit_code", scalar(inner.First("exit_code", "exitCode")))
		if m.Content.IsZero() {
			m.Content = inner.First("message", "stderr", "stdout").Text()
		}
	default:
		if !text.IsZero() {
			m.Kind, m.Role = msg.System, msg.RoleSystem
			break
		}
		m.Hidden, m.Content = true, inner.Text() // an unknown notice is kept
	}
}

// notice emits a message of a system record. Between two turns it belongs to no run.
func (r *record) notice(k msg.Kind, sub string, text msg.Text) *msg.Message {
	m := r.add(k, msg.NoRole)
	m.Key, m.Content = r.key("", 0, text), text
	if r.lane == &r.s.Top && !r.s.Open && k == msg.Status {
		m.Run = ""
	}
	m.Attrs = make([]msg.Attr, 0, 6)
	m.SetAttr("type", "system")
	m.SetAttr("subtype", sub)
	return m
}

// placeholder reports whether the text only fills in for a missing one: "System init: <id>",
// "System message".
func placeholder(text []byte, sub string) bool {
	rest, ok := bytes.CutPrefix(text, []byte("System "))
	if !ok {
		return false
	}
	if string(rest) == "message" {
		return true
	}
	rest, ok = bytes.CutPrefix(rest, []byte(sub))
	return ok && bytes.HasPrefix(rest, []byte(": ")) && bytes.IndexByte(rest[2:], ' ') < 0
}

// task decodes a notice about a sub-agent: it started, works, has an answer.
func (r *record) task(sub string, f, inner jsonv.Value, text msg.Text) {
	id, status := f.Get("task_id"), f.Get("status")
	if !status.Exists() {
		status = f.Path("patch", "status")
	}
	of := f.Get("tool_use_id")
	c := r.s.Calls.Get(string(of.Chars()))
	if c != nil {
		known(of)
	}
	if c == nil && id.Exists() {
		c = r.newest(func(c *call) bool { return c.Task != "" && id.Equal(c.Task) })
	}
	if c != nil && c.Delegates {
		if c.Task == "" {
			c.Task = string(read(id))
		}
		to := inner.Get("subagent_type")
		if c.To == "" {
			c.To = string(to.Chars())
		} else {
			to.Equal(c.To)
		}
	}
	if c != nil && c.Launched && c.Done == ongoing {
		o := outcome{at: r.at}
		o.failed = !status.Equal("completed")
		if o.failed {
			o.errorType = "tool_error"
		}
		switch string(status.Chars()) {
		case "killed", "stopped", "cancelled":
			o.errorType = "cancelled"
		}
		switch {
		case sub == "task_notification":
			o.text = f.Get("summary").Text()
			r.finish([]byte(c.ID), o)
			return
		case sub == "task_updated" && o.errorType == "cancelled": // a notification may never come
			o.bare = true
			r.finish([]byte(c.ID), o)
			return
		}
	}
	if text.IsZero() {
		text = f.First("summary", "description").Text()
	}
	m := r.notice(msg.Status, sub, text)
	m.Hidden = true
	m.SetAttr("task_id", scalar(id))
	m.SetAttr("status", scalar(status))
	m.SetAttr("last_tool", scalar(f.Get("last_tool_name")))
	if c != nil {
		c.of(m)
	}
}
