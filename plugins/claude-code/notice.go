package claudecode

import (
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// maxNotified is how many notices are remembered, so that their echoes are known.
const maxNotified = 64

const noticeTag = "<task-notification>"

// notice reports whether a text is, or wraps, the notice of a background task.
func notice(text jsonv.Value) bool {
	return begins(text, noticeTag) || begins(text, "[SYSTEM NOTIFICATION") && strings.Contains(text.Str(), noticeTag)
}

// notices decodes what a line tells of background tasks. The CLI tells the same
// up to four times, when it is queued, when it is attached to a running turn,
// when it wakes the agent; the first counts and the others are noted.
//
//	<task-notification>
//	<task-id>a17…</task-id>
//	<tool-use-id>toolu_…</tool-use-id>
//	<status>completed</status>          or failed, killed; none while it goes on
//	<summary>Agent "…" finished</summary>
//	<result>…</result>                  what a sub-agent answered
//	</task-notification>
func (d *transcript) notices(ln *line, text jsonv.Value) {
	before := ln.given
	_, rest, more := strings.Cut(text.Str(), noticeTag)
	for more {
		var body string
		body, rest, more = cutNotice(rest)
		d.notice(ln, body)
	}
	if ln.given == before || ln.run == ln.id() {
		m := d.status(ln, ln.id(), "task-notification")
		m.Content = text.Text()
		m.SetAttr("task_id", tag(text.Str(), "task-id"))
	}
}

// cutNotice returns the inside of the notice with which s begins, and what
// follows the opening of the next one. An answer that is told may quote a notice.
func cutNotice(s string) (body, rest string, more bool) {
	const end = "</task-notification>"
	body = s
	for at := 0; ; {
		i := strings.Index(s[at:], "\n"+noticeTag)
		if i < 0 {
			break
		}
		if at += i + 1; strings.Contains(s[:at], end) {
			body, rest, more = s[:at], s[at+len(noticeTag):], true
			break
		}
	}
	if i := strings.LastIndex(body, end); i >= 0 {
		body = body[:i]
	}
	return body, rest, more
}

// notice gives what one notice says: the answer of a sub-agent that was launched
// in the background, or else a status.
func (d *transcript) notice(ln *line, body string) {
	h := hash(body)
	if slices.Contains(d.notified, h) {
		return
	}
	if len(d.notified) == maxNotified {
		d.notified = slices.Delete(d.notified, 0, 1)
	}
	d.notified = append(d.notified, h)

	head, result := body, ""
	if i, j := strings.Index(body, "<result>"), strings.LastIndex(body, "</result>"); i >= 0 && i < j {
		head, result = body[:i]+body[j:], strings.TrimSpace(body[i+len("<result>"):j])
	}
	task, status, summary := tag(head, "task-id"), tag(head, "status"), tag(head, "summary")
	c := d.callOfTask(tag(head, "tool-use-id"), task)
	over := status == "completed" || status == "failed" || status == "killed" || status == "stopped"
	var m *msg.Message
	if c != nil && c.Delegation && over {
		d.take(c.ID)
		d.childDone(ln, c)
		if c.Name == workflowTool && c.Child != "" { // its agents have files, it has none
			m = d.about(ln, c, "", msg.Stop, "stop:"+c.Child)
			m.Run, m.Agent, m.Hidden, m.Signal = c.Child, c.workflow(), true, msg.RunEnd
			m.IsError, m.FinishReason = status != "completed", status
		}
		m = d.about(ln, c, c.ID, msg.DelegationResult, "result:"+c.ID)
		m.Role = msg.RoleTool
		m.Delegation = msg.Delegate{To: c.To, ChildRun: c.Child, Link: c.Link, Confidence: c.Confidence, Async: true}
		m.IsError = status != "completed"
		switch status {
		case "failed":
			m.Tool.ErrorType = "tool_error"
		case "killed", "stopped":
			m.Tool.ErrorType = "cancelled"
		}
	} else {
		id := tag(head, "tool-use-id")
		if c != nil {
			id = c.ID
		}
		m = d.about(ln, c, id, msg.Status, "notice:"+msg.HashKey(body))
		m.SetAttr("type", "task-notification")
		if over {
			d.take(id)
		}
	}
	switch {
	case result != "":
		m.Content = msg.Plain(result)
		m.SetAttr("summary", summary)
	case tag(head, "event") != "":
		m.Content = msg.Plain(tag(head, "event"))
		m.SetAttr("summary", summary)
	default:
		m.Content = msg.Plain(summary)
	}
	m.SetAttr("task_id", task)
	m.SetAttr("task_status", status)
	m.SetAttr("output_file", tag(head, "output-file"))
	m.SetAttr("child_duration_ms", tag(head, "duration_ms"))
	m.SetAttr("child_tool_uses", tag(head, "tool_uses"))
}

// callOfTask finds the open call of a background task, by its own id or by the
// task's.
func (d *transcript) callOfTask(id, task string) *call {
	if c := d.find(id); c != nil || task == "" {
		return c
	}
	for _, c := range d.calls {
		if c.Task == task || c.Child == task {
			return c
		}
	}
	return nil
}
