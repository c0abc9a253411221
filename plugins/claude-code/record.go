package claudecode

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// system decodes a line of the CLI's own.
func (d *transcript) system(ln *line) {
	subtype := ln.root.Get("subtype").Str()
	content := ln.root.Get("content")
	switch subtype {
	case "turn_duration":
		d.turnOver(ln)
		return
	case "compact_boundary", "microcompact_boundary":
		d.compacted(ln, subtype)
		return
	case "api_error":
		d.retry(ln)
		return
	case "bridge_status": // an address that is as good as a key
		content = jsonv.Value{}
	case "stop_hook_summary", "away_summary", "informational", "local_command", "scheduled_task_fire",
		"model_refusal_fallback", "agents_killed", "memory_saved", "permission_retry", "session_start", "init", "":
	default:
		d.unknown(ln, "system/"+subtype, ln.root)
		return
	}
	if subtype == "" {
		subtype = "system"
	}
	if subtype == "stop_hook_summary" { // hooks of this kind run when the model has nothing more to say
		d.finish(ln, ln.lane)
	}
	m := d.status(ln, ln.id(), subtype)
	m.Content = content.Text()
	m.SetAttr("level", ln.root.Get("level").Str())
	m.Tool.CallID = callID(ln.root.Get("toolUseID"))
	if subtype == "stop_hook_summary" {
		m.SetAttr("hook_count", number(ln.root.Get("hookCount")))
		if errors := ln.root.Get("hookErrors"); errors.Len() > 0 {
			m.IsError, m.Content = true, errors.JSON()
		}
		if ln.root.Get("preventedContinuation").Bool() {
			m.SetAttr("prevented_continuation", "true")
			m.SetAttr("stop_reason", ln.root.Get("stopReason").Str())
		}
	}
}

// turnOver ends the run that goes on.
func (d *transcript) turnOver(ln *line) {
	l := ln.lane
	d.finish(ln, l)
	kind := msg.Stop
	if ln.run == "" { // it was over already, or never began
		kind = msg.Status
	}
	m := d.give(ln, kind, ln.id())
	m.Hidden = true
	m.SetAttr("type", "turn_duration")
	m.SetAttr("duration_ms", number(ln.root.Get("durationMs")))
	m.SetAttr("message_count", number(ln.root.Get("messageCount")))
	if kind == msg.Status {
		return
	}
	m.Signal, m.FinishReason = msg.RunEnd, l.Stop
	if m.IsError = l.Failed; l.Failed {
		m.FinishReason = "error"
	}
	l.Ended = true
}

// compacted notes that the context was replaced by a summary, which follows as a
// user line.
func (d *transcript) compacted(ln *line, subtype string) {
	d.finish(ln, ln.lane)
	m := d.give(ln, msg.Status, ln.id())
	m.Signal = msg.Compaction
	m.Content = ln.root.Get("content").Text()
	m.SetAttr("type", subtype)
	meta := first(ln.root, "compactMetadata", "microcompactMetadata")
	m.SetAttr("trigger", meta.Get("trigger").Str())
	m.SetAttr("pre_tokens", number(meta.Get("preTokens")))
	m.SetAttr("post_tokens", number(meta.Get("postTokens")))
	m.SetAttr("duration_ms", number(meta.Get("durationMs")))
}

// retry notes that a request to the model failed and is tried again.
func (d *transcript) retry(ln *line) {
	m := d.status(ln, ln.id(), "api_error")
	m.Signal = msg.Retry
	fault := ln.root.Get("error")
	for _, path := range [...][]string{{"message"}, {"error", "error", "message"}, {"error", "message"}, {"cause", "code"}} {
		if v := fault.Path(path...); v.Is(jsonv.String) {
			m.Content = v.Text()
			break
		}
	}
	if m.Content.IsZero() {
		m.Content = ln.root.Get("content").Text()
	}
	m.SetAttr("status_code", number(fault.Get("status")))
	m.SetAttr("attempt", number(ln.root.Get("retryAttempt")))
	m.SetAttr("max_attempts", number(ln.root.Get("maxRetries")))
	m.SetAttr("wait_ms", number(ln.root.Get("retryInMs")))
}

// progress decodes a sign of life of a tool, a hook or a sub-agent. What it
// shows of a sub-agent is a part of what the sub-agent's own file says, so that
// only the link is taken from it.
func (d *transcript) progress(ln *line) {
	data := ln.root.Get("data")
	m := d.status(ln, ln.id(), "progress")
	m.Tool.CallID = callID(first(ln.root, "parentToolUseID", "toolUseID"))
	m.SetAttr("progress", data.Get("type").Str())
	m.SetAttr("hook_event", data.Get("hookEvent").Str())
	m.SetAttr("hook_name", data.Get("hookName").Str())
	m.SetAttr("command", data.Get("command").Str())
	agent := ident(data.Get("agentId"))
	c := d.find(m.Tool.CallID)
	if agent == "" || c == nil || !c.Delegation {
		return
	}
	m.Tool.Name, m.Run, m.Agent = c.Name, c.Run, c.Agent
	m.SetAttr("agent_id", agent)
	if c.Child == "" {
		c.Child, c.Link = agent, msg.ByNativeID
		m.Signal = msg.Link
		m.Delegation.ChildRun, m.Delegation.Link = agent, msg.ByNativeID
	}
}

// callID is the id of a tool call, where v is one: hooks that belong to no call
// have a uuid in its place.
func callID(v jsonv.Value) string {
	if begins(v, "toolu_") || begins(v, "srvtoolu_") || begins(v, "call_") {
		return ident(v)
	}
	return ""
}

// attachment decodes what the CLI adds to the context: a command that was queued
// while the agent worked, the outcome of a hook, a reminder, a file.
func (d *transcript) attachment(ln *line) {
	a := ln.root.Get("attachment")
	typ := a.Get("type").Str()
	if typ == "queued_command" {
		d.queued(ln, a)
		return
	}
	m := d.status(ln, ln.id(), "attachment")
	m.SetAttr("attachment", typ)
	m.SetAttr("hook_event", a.Get("hookEvent").Str())
	m.SetAttr("hook_name", a.Get("hookName").Str())
	m.SetAttr("command", a.Get("command").Str())
	m.SetAttr("exit_code", number(a.Get("exitCode")))
	m.SetAttr("duration_ms", number(a.Get("durationMs")))
	m.SetAttr("filename", a.Get("filename").Str())
	m.Tool.CallID = callID(a.Get("toolUseID"))
	content := first(a, "content", "snippet", "text", "stdout", "blockingError")
	if content.Is(jsonv.Object) {
		if image := content.Path("file", "base64"); image.Is(jsonv.String) {
			file := msg.Attachment{Name: a.Get("filename").Str(), MediaType: content.Path("file", "type").Str()}
			file.Size, file.SHA256 = digest(image)
			m.Attachments = append(m.Attachments, file)
			return
		}
		content = first(content, "content", "text", "blockingError", "file")
		if content.Is(jsonv.Object) {
			content = content.Get("content")
		}
	}
	m.IsError = typ == "hook_blocking_error" || typ == "hook_non_blocking_error" || typ == "hook_error_during_execution"
	m.Content = d.content(content, m)
}

// queued decodes what reached the agent while it worked.
func (d *transcript) queued(ln *line, a jsonv.Value) {
	prompt, origin := a.Get("prompt"), a.Path("origin", "kind")
	text := opening(prompt)
	d.wake(ln)
	switch {
	case a.Get("commandMode").Equal("task-notification"), origin.Equal("task-notification"), notice(text):
		d.notices(ln, text)
	case fromAgent(origin, text):
		d.letter(ln, prompt, text, a.Get("origin"))
	case a.Get("isMeta").Bool():
		m := d.give(ln, msg.System, ln.id())
		m.Role, m.Hidden = msg.RoleUser, true
		m.Content = d.content(prompt, m)
	default:
		d.speak(ln, prompt, msg.Agent{Kind: msg.KindHuman})
	}
}

// sidecar decodes the records that stand beside the conversation. Of those that
// name accounts and machines only the type is given; of those that repeat what
// other records say as well.
func (d *transcript) sidecar(ln *line, typ string) {
	var text jsonv.Value
	switch typ {
	case "summary":
		text = ln.root.Get("summary")
	case "ai-title":
		text = ln.root.Get("aiTitle")
	case "custom-title":
		text = ln.root.Get("customTitle")
	case "agent-name":
		text = ln.root.Get("agentName")
	case "queue-operation":
		if text = ln.root.Get("content"); notice(text) {
			d.notices(ln, text)
			return
		}
	case "mode", "permission-mode", "agent-setting", "agent-color", "last-prompt", "file-history-snapshot", "file-history-delta",
		"bridge-session", "pr-link", "frame-link", "cost-state", "worktree-state", "atis-latch", "continued-in", "relocated",
		"attribution-snapshot", "content-replacement", "tag", "task-summary", "speculation-accept", "started", "result", "failed",
		"artifact-autoreact-ledger", "artifact-comment-monitor":
	default:
		return
	}
	key := typ + ":" + ln.facts("timestamp", "messageId", "leafUuid", "snapshot", "operation", "content", "summary", "aiTitle", "customTitle",
		"agentName", "mode", "permissionMode", "lastPrompt", "totalCostUSD", "prUrl", "key", "agentId", "result")
	m := d.status(ln, key, typ)
	m.Content = text.Text()
	switch typ {
	case "mode", "permission-mode":
		m.SetAttr("mode", first(ln.root, "mode", "permissionMode").Str())
	case "queue-operation":
		m.SetAttr("operation", ln.root.Get("operation").Str())
	case "cost-state":
		m.SetAttr("total_cost_usd", string(ln.root.Get("totalCostUSD").Raw()))
	case "pr-link":
		m.SetAttr("url", ln.root.Get("prUrl").Str())
	case "started", "result", "failed":
		m.SetAttr("agent_id", ln.root.Get("agentId").Str())
		m.SetAttr("workflow", d.file.workflow)
	}
}
