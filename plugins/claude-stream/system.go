package claudestream

import (
	"cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/claude"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// system decodes a line of the CLI's own.
func (d *stream) system(ln *claude.Line) {
	root := ln.Root
	subtype := root.Get("subtype").Str()
	switch subtype {
	case "init":
		d.init(ln)
	case "task_started", "task_progress", "task_updated", "task_notification":
		d.task(ln, subtype)
	case "compact_boundary", "microcompact_boundary":
		claude.Compacted(ln, subtype)
	case "api_retry", "api_error":
		claude.Retried(ln, subtype)
	default: // the set grows with each version
		m := ln.Status(ln.ID(), ident.Bounded(cmp.Or(subtype, "system")))
		m.Content = root.First("content", "output", "stdout", "message", "status", "error").Text()
		m.Tool.CallID = ident.Of(root.Get("tool_use_id"))
		conversation.AttrsAs(m, root, ident.Of, "hook_name", "hook_event", "outcome")
		if conversation.Exited(m, root.Get("exit_code")) {
			m.IsError = true
		}
	}
}

// beside decodes a line that is about the conversation and no part of it.
func (d *stream) beside(ln *claude.Line, typ string) {
	root := ln.Root
	switch typ {
	case "rate_limit_event", "tool_progress", "tool_use_summary", "auth_status", "prompt_suggestion", "keep_alive",
		"streamlined_text", "streamlined_tool_use_summary", "transcript_mirror", "update_environment_variables":
	default:
		return
	}
	m := ln.Status(ln.ID(), typ)
	m.Content = root.First("summary", "suggestion", "text", "tool_summary", "error").Text()
	m.Tool.CallID, m.Tool.Name = ident.Of(root.Get("tool_use_id")), ident.Of(root.Get("tool_name"))
	m.SetAttr("elapsed_s", root.Get("elapsed_time_seconds").Digits())
	limit := root.Get("rate_limit_info")
	conversation.AttrsAs(m, limit, ident.Of, "status", "rateLimitType", "overageStatus")
	conversation.AttrsAs(m, limit, jsonv.Value.Digits, "resetsAt", "utilization")
}

// init decodes system/init, with which every turn begins.
func (d *stream) init(ln *claude.Line) {
	l := ln.Lane
	if ln.Run != "" && !l.Child {
		d.hold(ln, l)
	}
	if ln.Run == "" && !l.Child && claude.IsID(ln.UUID) { // without an id all of them are alike
		l.Init = ln.ID()
	}
	l.Model, l.Dir = ident.Of(ln.Root.Get("model")), ident.Of(ln.Root.Get("cwd"))
	if ln.Root.Get("qwen_code_version").Exists() {
		l.Fork = claude.QwenCode
	}
	m := ln.Status(ln.ID(), "init")
	m.Model, m.Provider = l.Model, anthropic.Provider("", l.Model)
	l.Client = msg.Client{Project: l.Dir, Version: ident.Of(ln.Root.First("claude_code_version", "qwen_code_version"))}
	m.Client = l.Client
	conversation.AttrsAs(m, ln.Root, ident.Of, "permissionMode", "apiKeySource", "output_style")
}

// task decodes a record about a task: a sub-agent, a command or a workflow that
// may go on in the background.
//
//	task_started       {task_id, tool_use_id, task_type: local_agent | local_bash | local_workflow, subagent_type, is_backgrounded}
//	task_updated       {task_id, patch: {status, end_time}}
//	task_notification  {task_id, tool_use_id, status, summary, output_file}
//
// Qwen Code has the members of each in data, and tasks in the background alone.
func (d *stream) task(ln *claude.Line, subtype string) {
	root, data := ln.Root, ln.Root.Get("data")
	if data.Is(jsonv.Object) {
		root = data
	}
	task := ident.Of(root.Get("task_id"))
	c := d.CallOfTask(ident.Of(root.Get("tool_use_id")), task)
	if subtype == "task_notification" && c != nil && c.Delegation && c.Task != "" {
		if status := root.Get("status").Str(); claude.Ended(status) {
			m := ln.Notified(c, status)
			m.Content = root.First("result", "summary").Text()
			m.SetAttr("output_file", ident.Of(root.Get("output_file")))
			return
		}
	}
	var m *msg.Message
	if c != nil {
		m = ln.About(c, c.ID, msg.Status, ln.ID())
	} else {
		m = ln.Emit(msg.Status, ln.ID())
		m.Tool.CallID = ident.Of(root.Get("tool_use_id"))
	}
	m.Hidden = true
	m.SetAttr("type", subtype)
	m.SetAttr("task_id", task)
	conversation.AttrsAs(m, root, ident.Of, "task_type", "task_status=status", "output_file")
	m.Content = root.First("summary", "description").Text()
	if subtype == "task_notification" && c != nil && c.Task == task && !c.Delegation {
		d.Calls.Take(c.ID)
	}
	if subtype != "task_started" || c == nil || !c.Delegation || task == "" {
		return
	}
	if root.Get("is_backgrounded").Bool() || data.Exists() {
		c.Task, m.Delegation.Async = task, true
	}
	c.Causes(task)
	m.Signal = msg.Link
	m.Delegation.To, m.Delegation.ChildRun, m.Delegation.Link = c.To, c.Child, msg.ByNativeID
}

// maxAsked is how many requests are remembered that wait for an answer.
const maxAsked = 64

// asked is a question to the host, whether a call may be made.
type asked struct{ Request, Call string }

// control decodes requests between CLI and host, and their answers:
//
//	control_request   {request_id, request: {subtype: can_use_tool, tool_name, tool_use_id, input}}
//	control_response  {response: {subtype: success, request_id, response: {behavior: allow | deny}}}
func (d *stream) control(ln *claude.Line, typ string) {
	request := ln.Root.Get("request")
	answer := ln.Root.Get("response")
	id := ident.Of(ln.Root.First("request_id"))
	if id == "" {
		id = ident.Of(answer.Get("request_id"))
	}
	key := typ + ":" + id
	if id == "" {
		key = ln.ID()
	}
	m := ln.Status(key, typ)
	m.SetAttr("subtype", ident.Of(request.First("subtype")))
	if call := ident.Of(request.Get("tool_use_id")); request.Get("subtype").Equal("can_use_tool") {
		m.Signal, m.Tool.CallID, m.Tool.Name = msg.WaitStart, call, ident.Of(request.Get("tool_name"))
		d.Asked = bounded.Push(d.Asked, asked{id, call}, maxAsked)
		return
	}
	if typ == "control_request" {
		return
	}
	if a, ok := bounded.Take(&d.Asked, func(a asked) bool { return a.Request == id }); ok {
		m.Signal, m.Tool.CallID = msg.WaitEnd, a.Call
		m.SetAttr("behavior", ident.Of(answer.Path("response", "behavior")))
	}
}
