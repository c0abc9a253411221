package claudestream

import (
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// system decodes a line of the CLI's own.
func (d *stream) system(ln *line) {
	root := ln.root
	subtype := root.Get("subtype").Str()
	switch subtype {
	case "init":
		d.init(ln)
	case "task_started", "task_progress", "task_updated", "task_notification":
		d.task(ln, subtype)
	case "compact_boundary", "microcompact_boundary":
		d.compacted(ln, subtype)
	case "api_retry", "api_error":
		m := d.status(ln, ln.id(), subtype)
		m.Signal = msg.Retry
		fault := root.Get("error")
		if text := fault.Get("message"); text.Exists() {
			fault = text
		}
		m.Content = fault.Text()
		m.SetAttr("status_code", number(first(root, "error_status", "status_code")))
		m.SetAttr("attempt", number(first(root, "attempt", "retryAttempt")))
		m.SetAttr("max_attempts", number(first(root, "max_retries", "maxRetries")))
		m.SetAttr("wait_ms", number(first(root, "retry_delay_ms", "retryInMs")))
	case "hook_started", "hook_response", "hook_progress", "status", "status_update", "informational", "local_command",
		"local_command_output", "session_state_changed", "stop_hook_summary", "files_persisted":
		m := d.status(ln, ln.id(), subtype)
		m.Content = first(root, "content", "output", "stdout", "message", "status").Text()
		m.SetAttr("hook_name", ident(root.Get("hook_name")))
		m.SetAttr("hook_event", ident(root.Get("hook_event")))
		m.SetAttr("outcome", ident(root.Get("outcome")))
		m.SetAttr("exit_code", number(root.Get("exit_code")))
		if code := root.Get("exit_code"); code.Is(jsonv.Number) && code.Int() != 0 {
			m.IsError = true
		}
	default:
		d.unknown(ln, "system/"+subtype, root)
	}
}

// init decodes system/init, with which every turn begins.
func (d *stream) init(ln *line) {
	l := ln.lane
	if l.Run == "" && !l.child() {
		l.Init = ln.id()
	}
	l.Model, l.Dir = ident(ln.root.Get("model")), ident(ln.root.Get("cwd"))
	m := d.status(ln, ln.id(), "init")
	m.Model, m.Provider = l.Model, provider("", l.Model)
	for _, name := range [...]string{"cwd", "permissionMode", "claude_code_version", "apiKeySource", "output_style"} {
		m.SetAttr(name, ident(ln.root.Get(name)))
	}
}

// compacted notes that the context was replaced by a summary.
func (d *stream) compacted(ln *line, subtype string) {
	d.finish(ln, ln.lane)
	m := d.status(ln, ln.id(), subtype)
	m.Hidden, m.Signal = false, msg.Compaction
	m.Content = ln.root.Get("content").Text()
	meta := first(ln.root, "compact_metadata", "compactMetadata")
	m.SetAttr("trigger", ident(meta.Get("trigger")))
	m.SetAttr("pre_tokens", number(first(meta, "pre_tokens", "preTokens")))
	m.SetAttr("post_tokens", number(first(meta, "post_tokens", "postTokens")))
}

// task decodes what is told of a task: a sub-agent, a command or a workflow that
// may go on in the background.
//
//	task_started       {task_id, tool_use_id, task_type: local_agent | local_bash | local_workflow, subagent_type, is_backgrounded}
//	task_updated       {task_id, patch: {status, end_time}}
//	task_notification  {task_id, tool_use_id, status, summary, output_file}
func (d *stream) task(ln *line, subtype string) {
	root := ln.root
	task := ident(root.Get("task_id"))
	c := d.callOfTask(ident(root.Get("tool_use_id")), task)
	if subtype == "task_notification" && c != nil && c.Delegation && c.Task != "" {
		if status := root.Get("status").Str(); status == "completed" || status == "failed" || status == "killed" || status == "stopped" {
			d.notified(ln, c, status)
			return
		}
	}
	var m *msg.Message
	if c != nil {
		m = d.about(ln, c, c.ID, msg.Status, ln.id())
	} else {
		m = d.give(ln, msg.Status, ln.id())
		m.Tool.CallID = ident(root.Get("tool_use_id"))
	}
	m.Hidden = true
	m.SetAttr("type", subtype)
	m.SetAttr("task_id", task)
	m.SetAttr("task_type", ident(root.Get("task_type")))
	m.SetAttr("task_status", ident(first(root, "status")))
	m.SetAttr("output_file", ident(root.Get("output_file")))
	m.Content = first(root, "summary", "description").Text()
	if subtype == "task_notification" && c != nil && c.Task == task && !c.Delegation {
		d.take(c.ID)
	}
	if subtype != "task_started" || c == nil || !c.Delegation || task == "" {
		return
	}
	if root.Get("is_backgrounded").Bool() {
		c.Task, m.Delegation.Async = task, true
	}
	if c.Child == "" {
		c.Child = task
	}
	m.Signal = msg.Link
	m.Delegation.To, m.Delegation.ChildRun, m.Delegation.Link = c.To, c.Child, msg.ByNativeID
}

// notified gives the answer of a sub-agent that worked in the background.
func (d *stream) notified(ln *line, c *call, status string) {
	d.take(c.ID)
	d.childDone(ln, c.ID)
	m := d.about(ln, c, c.ID, msg.DelegationResult, "result:"+c.ID)
	m.Role = msg.RoleTool
	m.Delegation = msg.Delegate{To: c.To, ChildRun: c.Child, Async: true}
	if c.Child != "" {
		m.Delegation.Link = msg.ByNativeID
	}
	m.Content = first(ln.root, "result", "summary").Text()
	switch m.IsError = status != "completed"; status {
	case "failed":
		m.Tool.ErrorType = "tool_error"
	case "killed", "stopped":
		m.Tool.ErrorType = "cancelled"
	}
	m.SetAttr("task_status", status)
	m.SetAttr("output_file", ident(ln.root.Get("output_file")))
}

// callOfTask finds the open call of a task, by its own id or by the task's.
func (d *stream) callOfTask(id, task string) *call {
	if c := d.find(id); c != nil || task == "" {
		return c
	}
	for _, c := range d.Calls {
		if c.Task == task || c.Child == task {
			return c
		}
	}
	return nil
}

// maxAsked is how many requests are remembered that wait for an answer.
const maxAsked = 64

// asked is a question to the host, whether a call may be made.
type asked struct{ Request, Call string }

// control decodes what CLI and host ask of each other:
//
//	control_request   {request_id, request: {subtype: can_use_tool, tool_name, tool_use_id, input}}
//	control_response  {response: {subtype: success, request_id, response: {behavior: allow | deny}}}
func (d *stream) control(ln *line, typ string) {
	request := ln.root.Get("request")
	answer := ln.root.Get("response")
	id := ident(first(ln.root, "request_id"))
	if id == "" {
		id = ident(answer.Get("request_id"))
	}
	key := typ + ":" + id
	if id == "" {
		key = ln.id()
	}
	m := d.status(ln, key, typ)
	m.SetAttr("subtype", ident(first(request, "subtype")))
	if call := ident(request.Get("tool_use_id")); request.Get("subtype").Equal("can_use_tool") {
		m.Signal, m.Tool.CallID, m.Tool.Name = msg.WaitStart, call, ident(request.Get("tool_name"))
		if len(d.Asked) == maxAsked {
			d.Asked = slices.Delete(d.Asked, 0, 1)
		}
		d.Asked = append(d.Asked, asked{id, call})
		return
	}
	i := slices.IndexFunc(d.Asked, func(a asked) bool { return a.Request == id })
	if i < 0 || typ == "control_request" {
		return
	}
	m.Signal, m.Tool.CallID = msg.WaitEnd, d.Asked[i].Call
	m.SetAttr("behavior", ident(answer.Path("response", "behavior")))
	d.Asked = slices.Delete(d.Asked, i, i+1)
}
