package claudecode

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/claude"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// maxNotified is the number of notices that are remembered, to recognize their copies.
const maxNotified = 64

// Notice implements claude.Form: it decodes the notices of background tasks in a line. The
// CLI writes each up to four times, when it is queued, when it is attached to a running
// turn, when it wakes the agent; the first counts and the others are statuses.
//
//	<task-notification>
//	<task-id>a17…</task-id>
//	<tool-use-id>toolu_…</tool-use-id>
//	<status>completed</status>          or failed, killed; none while it goes on
//	<summary>Agent "…" finished</summary>
//	<result>…</result>                  the answer of a sub-agent
//	</task-notification>
//
// Version 2.0 wrote an <agent-notification> with an <agent-id>, and the answer in a file alone.
func (d *transcript) Notice(ln *claude.Line, text jsonv.Value) {
	before, s := ln.Emitted, claude.NoticeText(text)
	_, rest, more := strings.Cut(s, claude.NoticeTag)
	for more {
		var body string
		body, rest, more = cutNotice(rest)
		d.notice(ln, body)
	}
	if ln.Emitted == before || ln.Run == ln.ID() {
		m := ln.Status(ln.ID(), "task-notification")
		m.Content = text.Text()
		m.SetAttr("task_id", claude.Tag(s, "task-id"))
	}
}

// cutNotice returns the body of the notice at the beginning of s, and the text after the
// opening of the next one. The answer in a notice may quote a notice.
func cutNotice(s string) (body, rest string, more bool) {
	const end = "</task-notification>"
	body = s
	for at := 0; ; {
		i := strings.Index(s[at:], "\n"+claude.NoticeTag)
		if i < 0 {
			break
		}
		if at += i + 1; strings.Contains(s[:at], end) {
			body, rest, more = s[:at], s[at+len(claude.NoticeTag):], true
			break
		}
	}
	if i := strings.LastIndex(body, end); i >= 0 {
		body = body[:i]
	}
	return body, rest, more
}

// notice emits one notice: the answer of a sub-agent in the background, or else a status.
func (d *transcript) notice(ln *claude.Line, body string) {
	if !d.Notified.Add(claude.Digest([]byte(body)), maxNotified) {
		return
	}
	head, result := body, ""
	if i, j := strings.Index(body, "<result>"), strings.LastIndex(body, "</result>"); i >= 0 && i < j {
		head, result = body[:i]+body[j:], strings.TrimSpace(body[i+len("<result>"):j])
	}
	task, status, summary := claude.Tag(head, "task-id"), claude.Tag(head, "status"), claude.Tag(head, "summary")
	c := d.CallOfTask(claude.Tag(head, "tool-use-id"), task)
	ended := claude.Ended(status)
	var m *msg.Message
	if id := claude.Tag(head, "tool-use-id"); c != nil && c.Delegation && ended {
		m = d.notified(ln, c, status)
	} else {
		if c != nil {
			id = c.ID
		}
		m = ln.About(c, id, msg.Status, "notice:"+msg.HashKey(body))
		m.SetAttr("type", "task-notification")
		m.SetAttr("task_status", status)
		if ended {
			d.Calls.Take(id)
		}
	}
	text := cmp.Or(result, claude.Tag(head, "event"))
	if m.Content = msg.Plain(cmp.Or(text, summary)); text != "" {
		m.SetAttr("summary", summary)
	}
	m.SetAttr("note", strings.TrimSpace(head[strings.LastIndexByte(head, '>')+1:])) // the instruction to the agent
	m.SetAttr("task_id", task)
	m.SetAttr("output_file", claude.Tag(head, "output-file"))
	m.SetAttr("child_duration_ms", claude.Tag(head, "duration_ms"))
	m.SetAttr("child_tool_uses", claude.Tag(head, "tool_uses"))
}

// notified emits the result of a delegation in the background. A workflow's run ends with it:
// its agents have files, it has none.
func (d *transcript) notified(ln *claude.Line, c *claude.Call, status string) *msg.Message {
	if c.Name == claude.WorkflowTool && c.Child != "" && c.Run != "" {
		ln.ChildDone(c.ID)
		m := ln.About(c, "", msg.Stop, "stop:"+c.Child)
		m.Run, m.Agent, m.Hidden, m.Signal = c.Child, workflow(c), true, msg.RunEnd
		m.IsError, m.FinishReason = status != "completed", status
	}
	return ln.Notified(c, status)
}
