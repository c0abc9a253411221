package claudecode

import (
	"cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/claude"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// system decodes a line of the CLI's own.
func (d *transcript) system(ln *claude.Line) {
	subtype := cmp.Or(ln.Root.Get("subtype").Str(), "system")
	content := ln.Root.Get("content")
	switch subtype {
	case "turn_duration":
		d.turnOver(ln)
		return
	case "compact_boundary", "microcompact_boundary":
		claude.Compacted(ln, subtype)
		return
	case "api_error":
		claude.Retried(ln, subtype)
		return
	case "scheduled_task_fire": // its text follows, as an injected one, when no turn goes on
		ln.Lane.Fired = true
	case "bridge_status": // an address that is as good as a key
		content = jsonv.Value{}
	}
	if subtype == "stop_hook_summary" { // hooks of this kind run at the end of the response
		ln.Finish(ln, ln.Lane)
	}
	m := ln.Status(ln.ID(), ident.Bounded(subtype))
	m.Content = content.Text()
	if fault := ln.Root.Get("error"); fault.Exists() && content.Is(jsonv.Missing) {
		m.IsError, m.Content = true, fault.First("formatted", "message").Text()
		fault.Get("message").MarkRead()
		m.SetAttr("status_code", fault.Get("status").Digits())
	}
	m.SetAttr("level", ln.Root.Get("level").Str())
	m.Tool.CallID = callID(ln.Root.Get("toolUseID"))
	m.SetAttr("retracted", conversation.ShortJSON(ln.Root.Get("retractedMessageUuids"))) // lines that the model no longer sees
	if subtype == "stop_hook_summary" {
		m.SetAttr("hook_count", ln.Root.Get("hookCount").Digits())
		m.Content = ln.Root.Get("hookInfos").JSON()
		if errors := ln.Root.Get("hookErrors"); errors.Len() > 0 {
			m.IsError, m.Content = true, errors.JSON()
		}
		if ln.Root.Get("preventedContinuation").Bool() {
			m.SetAttr("prevented_continuation", "true")
			m.SetAttr("stop_reason", ln.Root.Get("stopReason").Str())
		}
	}
}

// turnOver ends the run that goes on.
func (d *transcript) turnOver(ln *claude.Line) {
	l := ln.Lane
	ln.Finish(ln, l)
	kind := msg.Stop
	if ln.Run == "" { // it was over already, or never began
		kind = msg.Status
	}
	m := record.Hide(ln.Emit(kind, ln.ID()), "turn_duration")
	conversation.AttrsAs(m, ln.Root, jsonv.Value.Digits, "duration_ms=durationMs", "message_count=messageCount")
	if kind == msg.Status {
		return
	}
	m.Signal, m.FinishReason = msg.RunEnd, l.Stop
	if m.IsError = l.Failed; l.Failed {
		m.FinishReason = "error"
	}
	l.Ended = true
}

// progress decodes a sign of life of a tool, a hook or a sub-agent. Its excerpt of a
// sub-agent's messages is in the sub-agent's own file, so that only the link is taken from it.
func (d *transcript) progress(ln *claude.Line) {
	data := ln.Root.Get("data")
	m := ln.Status(ln.ID(), "progress")
	m.Tool.CallID = callID(ln.Root.First("parentToolUseID", "toolUseID"))
	conversation.AttrsAs(m, data, jsonv.Value.Str, "progress=type", "hook_event=hookEvent", "hook_name=hookName",
		"command", "query", "toolName", "serverName", "taskDescription")
	agent := ident.Of(data.Get("agentId"))
	c := d.Calls.Get(m.Tool.CallID)
	if agent == "" || c == nil || !c.Delegation && !data.Get("type").Equal("skill_progress") {
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
	if v.HasPrefix("toolu_") || v.HasPrefix("srvtoolu_") || v.HasPrefix("call_") {
		return ident.Of(v)
	}
	return ""
}

// attachment decodes an addition to the context by the CLI: a command that was queued
// while the agent worked, the outcome of a hook, a reminder, a file.
func (d *transcript) attachment(ln *claude.Line) {
	a := ln.Root.Get("attachment")
	typ := a.Get("type").Str()
	if typ == "queued_command" {
		d.queued(ln, a)
		return
	}
	m := ln.Status(ln.ID(), "attachment")
	m.SetAttr("attachment", typ)
	conversation.AttrsAs(m, a, jsonv.Value.Str, "hook_event=hookEvent", "hook_name=hookName", "command")
	conversation.AttrsAs(m, a, jsonv.Value.Digits, "exit_code=exitCode", "duration_ms=durationMs")
	m.SetAttr("filename", a.Get("filename").Str())
	m.Tool.CallID = callID(a.Get("toolUseID"))
	content := a.First("content", "snippet", "text", "stdout", "blockingError")
	if content.Is(jsonv.Object) {
		if image := content.Path("file", "base64"); image.Is(jsonv.String) {
			file := media.Base64(image, content.Path("file", "type").Str())
			file.Name = a.Get("filename").Str()
			m.Attachments = append(m.Attachments, file)
			return
		}
		content = content.First("content", "text", "blockingError", "file")
		if content.Is(jsonv.Object) {
			content = content.Get("content")
		}
	}
	m.IsError = typ == "hook_blocking_error" || typ == "hook_non_blocking_error" || typ == "hook_error_during_execution"
	m.Content, m.Attachments = anthropic.Content(content)
}

// queued decodes input that reached the agent while it worked.
func (d *transcript) queued(ln *claude.Line, a jsonv.Value) {
	prompt, origin := a.Get("prompt"), a.Path("origin", "kind")
	text := claude.Opening(prompt)
	ln.Wake(false)
	switch {
	case a.Get("commandMode").Equal("task-notification"), origin.Equal("task-notification"), claude.IsNotice(text):
		d.Notice(ln, text)
	case claude.FromAgent(origin, text):
		ln.Relayed(prompt, text, a.Get("origin"))
	case a.Get("isMeta").Bool():
		ln.Lane.Fired = false
		ln.Injected(prompt)
	default:
		ln.EmitInput(prompt, msg.Agent{Kind: msg.KindHuman})
	}
}

// beside decodes the records beside the conversation. Only the type of a record is kept
// when it names accounts or machines, or repeats facts of other records.
func (d *transcript) beside(ln *claude.Line, typ string) {
	member := map[string]string{"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle", "agent-name": "agentName", "queue-operation": "content"}[typ]
	text := ln.Root.Get(member)
	switch typ {
	case "queue-operation":
		if len(d.Lanes) == 0 && d.Begun == 0 {
			d.Begun = ln.Time.Nanos
		}
		if claude.IsNotice(text) {
			d.Notice(ln, text)
			return
		}
	case "api-request", "api-request-shape", "api-request-blob", "tools-used":
		requested(ln, typ)
		return
	case "summary", "ai-title", "custom-title", "agent-name", "mode", "permission-mode", "agent-setting", "agent-color", "last-prompt", "file-history-snapshot", "file-history-delta",
		"bridge-session", "pr-link", "frame-link", "cost-state", "worktree-state", "atis-latch", "continued-in", "relocated",
		"attribution-snapshot", "content-replacement", "tag", "task-summary", "speculation-accept", "launched", "started", "result", "failed",
		"artifact-autoreact-ledger", "artifact-comment-monitor", "fork-context-ref":
	default:
		return
	}
	key := typ + ":" + ln.Hash("timestamp", "messageId", "leafUuid", "snapshot", "operation", "content", "summary", "aiTitle", "customTitle",
		"agentName", "mode", "permissionMode", "lastPrompt", "totalCostUSD", "prUrl", "key", "agentId", "result")
	if next := ln.Root.Get("continuedInSessionId"); next.Exists() {
		key = typ + ":" + ident.Of(next)
	}
	m := ln.Status(key, typ)
	m.Content = text.Text()
	switch typ {
	case "summary", "ai-title", "custom-title":
		m.Title = conversation.Excerpt(text)
	case "mode", "permission-mode":
		m.SetAttr("mode", ln.Root.First("mode", "permissionMode").Str())
	case "queue-operation":
		m.SetAttr("operation", ln.Root.Get("operation").Str())
	case "cost-state":
		m.SetAttr("total_cost_usd", string(ln.Root.Get("totalCostUSD").Raw()))
	case "continued-in":
		m.SetAttr("continued_in", ident.Of(ln.Root.Get("continuedInSessionId")))
	case "pr-link":
		m.SetAttr("url", ln.Root.Get("prUrl").Str())
	case "fork-context-ref":
		d.Referred = true
		m.SetAttr("agent_id", ident.Of(ln.Root.Get("agentId")))
		m.SetAttr("forked_from", ident.Of(ln.Root.Get("parentSessionId")))
		m.SetAttr("context_length", ln.Root.Get("contextLength").Digits())
	case "launched", "started", "result", "failed":
		m.SetAttr("agent_id", ln.Root.Get("agentId").Str())
		m.SetAttr("workflow", d.file.workflow)
	}
}

// requested decodes the parts that newer versions keep of the requests to the provider: when one was sent, its purpose, and, by their hashes, the
// instructions, the tools and the messages that it was made of, which the conversation has.
//
//	{id, querySource, shapeHash, params: {model, …}, base, keep, tail: [hash]}  {shapeHash, shape}  {hash, message}  {tools: [name]}
func requested(ln *claude.Line, typ string) {
	root := ln.Root
	key := cmp.Or(ident.First(root.Get("id"), root.Get("hash"), root.Get("shapeHash")), ln.Hash("tools"))
	m := ln.Status(typ+":"+key, typ)
	m.SetAttr("query_source", ident.Of(root.Get("querySource")))
	for _, member := range [...]string{"shape", "message", "params", "base", "tail", "cacheControl", "thread", "requestDigest"} {
		root.Get(member).MarkRead()
	}
}
