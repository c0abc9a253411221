package exchange

import (
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
)

// Claude Code runs a sub-agent in the background, by default in newer versions: the call has an acknowledgement for its result at once, and a later
// prompt, or a text beside other results, has the notice that the sub-agent is done. The call goes on until then.
//
//	<task-notification>
//	<task-id>a17…</task-id>
//	<tool-use-id>toolu_…</tool-use-id>
//	<status>completed</status>          or failed, killed, stopped
//	<summary>Agent "…" finished</summary>
//	<result>…</result>
//	</task-notification>
const (
	launchText = "Async agent launched"
	noticeTag  = "<task-notification>"
	noticeEnd  = "</task-notification>"
)

// isLaunch reports whether a result is the acknowledgement of a sub-agent that goes on in the background.
func isLaunch(it Item) bool { return !it.Failed && strings.HasPrefix(it.Text.String(), launchText) }

// isNotice reports whether a prompt is a notice, and no person's.
func isNotice(prompt string) bool {
	prompt = strings.TrimSpace(strings.TrimPrefix(prompt, "<system-reminder>"))
	return strings.HasPrefix(prompt, noticeTag) || strings.HasPrefix(prompt, "[SYSTEM NOTIFICATION")
}

// noticed adds the results of sub-agents of which a text has notices, and reports whether it has any notice. A command in the
// background had its result before.
func noticed(e *Exchange, out *decoder.Output, text string) (any bool) {
	for {
		_, rest, ok := strings.Cut(text, noticeTag)
		body, after, closed := strings.Cut(rest, noticeEnd)
		if !ok || !closed {
			return any
		}
		text, any = after, true
		head, result, answered := strings.Cut(body, "<result>")
		if answered {
			result, _, _ = strings.Cut(result, "</result>")
		}
		id, status, summary := tag(head, "tool-use-id"), tag(head, "status"), tag(head, "summary")
		if id == "" || !answered && !strings.HasPrefix(summary, "Agent ") {
			continue
		}
		switch status {
		case "completed", "failed", "killed", "stopped":
		default: // it goes on
			continue
		}
		m := e.Ran(out, id, "")
		if m.Content = msg.Plain(strings.TrimSpace(result)); !answered {
			m.Content = msg.Plain(summary)
		}
		conversation.Failed(m, status == "failed")
		if status == "killed" || status == "stopped" {
			m.IsError, m.Tool.ErrorType = true, "cancelled"
		}
		e.spawned(m, "agentId: "+tag(head, "task-id"))
	}
}

// tag returns the text of an element in s.
func tag(s, name string) string {
	_, s, _ = strings.Cut(s, "<"+name+">")
	s, _, _ = strings.Cut(s, "</"+name+">")
	return s
}
