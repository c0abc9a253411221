package legion

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/claude"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// notice is how a system record of a subtype is shown: the signal that it is, and attributes,
// as conversation.AttrsAs has them.
type notice struct {
	hidden bool
	signal msg.Signal
	attrs  []string
}

var notices = conversation.Rules(map[string]notice{
	"init client_launched":                 {true, msg.NoSignal, []string{"model", "cwd", "permission_mode=permissionMode", "version=claude_code_version"}},
	"api_retry tengu_api_retry":            {true, msg.Retry, []string{"attempt=attempt|attemptNumber"}},
	"status status_update thinking_tokens": {true, msg.NoSignal, []string{"status", "permission_mode=permissionMode"}},
	"hook_started hook_response": {true, msg.NoSignal,
		[]string{"hook=hook_name|hookName", "hook_event=hook_event|hookEvent", "outcome", "exit_code=exit_code|exitCode"}},
	"compact_boundary microcompact_boundary":                                               {signal: msg.Compaction},
	"interrupt interrupt_success permission_mode_change agent_notification session_failed": {},
})

// system decodes a notice. Its fields have the agent's own message: init_data in generation 1,
// data in the others.
func (r *entry) system() {
	f := r.fields
	inner := f.First("init_data", "data")
	sub := r.Name(jsonv.Or(f.Get("subtype"), r.root.Get("subtype")))
	text := r.text(sub)
	r.typ = "system/" + sub
	if strings.HasPrefix(sub, "task_") {
		r.task(sub, inner, text)
		return
	}
	m := r.status(sub, text)
	n, ok := notices[sub]
	m.Hidden, m.Signal = n.hidden, n.signal
	conversation.AttrsAs(m, inner, r.Scalar, n.attrs...)
	switch {
	case sub == "interrupt_success":
		m.Kind, m.IsError = msg.Stop, true
		m.FinishReason, m.Tool.ErrorType = interrupted, interrupted
	case sub == "session_failed":
		m.Kind, m.IsError, m.FinishReason = msg.Error, true, "error"
		m.Tool.ErrorType = r.Name(f.First("error_subtype", "error_type"))
		if text.IsZero() {
			m.Content = f.Get("error_details").Text()
		}
	case sub == "init", sub == "client_launched":
		if dir := m.Attr("cwd"); dir != "" && len(dir) <= maxDir {
			r.s.Dir = strings.Clone(dir)
		}
		inner.Get("tools").MarkRead()
	case strings.HasPrefix(sub, "hook_") && text.IsZero():
		m.Content = inner.First("message", "stderr", "stdout").Text()
	case !ok && !text.IsZero():
		m.Kind, m.Role = msg.System, msg.RoleSystem
	case !ok: // an unknown notice is kept
		m.Hidden, m.Content = true, inner.Text()
	}
	if strings.HasPrefix(sub, "interrupt") {
		r.s.Top.Stop = interrupted
	}
	switch {
	case m.Kind == msg.Stop, m.Kind == msg.Error:
		r.lane.End(m)
	case r.between(), sub == "client_launched": // a turn without an end broke off with the client before
		m.Run = ""
	}
}

// task decodes a notice about a sub-agent: it started, works, has an answer.
func (r *entry) task(sub string, inner jsonv.Value, text msg.Text) {
	f := r.fields
	id, of, status := f.Get("task_id"), f.Get("tool_use_id"), jsonv.Or(f.Get("status"), f.Path("patch", "status"))
	class, notified := claude.TaskError(string(status.Chars())), sub == "task_notification"
	c := r.s.Calls.Named(string(of.Chars()))
	if c != nil {
		of.In(c.ID, c.ProtocolID)
	} else if id.Exists() {
		c = r.s.newest(func(c *call) bool { return c.Task != "" && id.Equal(c.Task) })
	}
	if notified && class != "cancelled" {
		r.s.notified()
	}
	if c != nil && c.Delegates {
		if c.Task == "" {
			c.Task = strings.Clone(r.StrOf(id))
		}
		to := inner.Get("subagent_type")
		c.To = cmp.Or(c.To, string(to.Chars()))
		to.Equal(c.To)
	}
	summary := f.Get("summary")
	// A notification of the end of a cancelled task may never come.
	if bare := sub == "task_updated" && class == "cancelled"; c != nil && c.Launched && c.Done == msg.Partial && (notified || bare) {
		o := outcome{class: class, failed: class != "", bare: bare}
		if notified {
			o.text = summary.Text()
		}
		status.Equal("completed")
		c.finish(r, o)
		return
	}
	if text.IsZero() {
		text = jsonv.Or(summary, f.Get("description")).Text()
	}
	m := r.status(sub, text)
	m.SetAttr("task_id", r.Scalar(id))
	m.SetAttr("status", r.Scalar(status))
	m.SetAttr("last_tool", r.Scalar(f.Get("last_tool_name")))
	if c != nil {
		c.mark(m)
	} else if r.between() {
		m.Run = ""
	}
}
