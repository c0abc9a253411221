package claudestream

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// interruptText is how the CLI says that the user stopped the agent.
const interruptText = "[Request interrupted by user"

// result decodes a tool_result block. extra is the line's tool_use_result: the
// tool's own account of what it did, an object, an array, or a string that tells
// of an error; missing where the line has several results.
func (d *stream) result(ln *line, b, extra jsonv.Value) {
	id := ident(b.Get("tool_use_id"))
	if id == "" {
		d.unknown(ln, "user/tool_result", b)
		return
	}
	c := d.find(id)
	child := ident(first(extra, "agentId", "agent_id"))
	failed := b.Get("is_error").Bool()
	if c != nil && c.Delegation || c == nil && child != "" {
		if !failed && goesOn(extra) {
			d.launched(ln, b, extra, c, child)
			return
		}
		d.take(id)
		d.answered(ln, b, extra, c, child)
		return
	}
	if c != nil && c.Human {
		d.wait(ln, c, msg.WaitEnd, "waited")
	}
	if task := ident(extra.Get("backgroundTaskId")); task != "" && c != nil {
		// The call is over, what it started is not: a notification will tell of it.
		c.Task = task
	} else {
		d.take(id)
	}
	m := d.about(ln, c, id, msg.ToolResult, "result:"+id)
	outcome(m, b, extra)
	m.Content = d.content(b.Get("content"), m)
	if c != nil && c.Name == "Bash" { // perhaps a script that runs an agent
		spawn.Script(m, b.Get("content").Peek())
	}
	m.SetAttr("background_task_id", ident(extra.Get("backgroundTaskId")))
	m.SetAttr("persisted_output_path", ident(extra.Get("persistedOutputPath")))
}

// goesOn reports whether a result only says that the work has begun.
func goesOn(extra jsonv.Value) bool {
	status := extra.Get("status")
	return extra.Get("backgroundTaskId").Exists() || extra.Get("isAsync").Bool() || status.Equal("async_launched") || status.Equal("teammate_spawned") || status.Equal("remote_launched")
}

// launched decodes the acknowledgement of work that goes on in the background. The
// call stays open until a notification tells that it is done.
func (d *stream) launched(ln *line, b, extra jsonv.Value, c *call, child string) {
	id := ident(b.Get("tool_use_id"))
	m := d.about(ln, c, id, msg.Status, "ack:"+id)
	m.Hidden, m.Delegation.Async = true, true
	m.SetAttr("type", "async_launched")
	m.Content = d.content(b.Get("content"), m)
	if c != nil {
		c.Task = ident(first(extra, "taskId", "agentId", "backgroundTaskId"))
		if c.Child == "" {
			c.Child = child
		}
		child = c.Child
	}
	if child != "" {
		m.Signal = msg.Link
		m.Delegation.ChildRun, m.Delegation.Link = child, msg.ByNativeID
	}
}

// answered decodes the result of a delegation: the child's answer. c is nil when
// the call was not seen.
func (d *stream) answered(ln *line, b, extra jsonv.Value, c *call, child string) {
	id := ident(b.Get("tool_use_id"))
	d.childDone(ln, id)
	m := d.about(ln, c, id, msg.DelegationResult, "result:"+id)
	outcome(m, b, extra)
	if c != nil {
		m.Delegation.To = c.To
		if c.Child != "" {
			child = c.Child
		}
	}
	if m.Delegation.ChildRun = child; child != "" {
		m.Delegation.Link = msg.ByNativeID
	}
	if m.Delegation.To == "" {
		m.Delegation.To = ident(extra.Get("agentType"))
	}
	if m.Delegation.To == spawn.Codex {
		m.Delegation.CorrelationID = cmp.Or(spawn.Output(b.Get("content").Peek()), spawn.Output(extra.Peek()))
	}
	// The answer alone; what the model sees has a note on how to go on added.
	answer := extra.Get("content")
	if m.IsError || !answer.Is(jsonv.Array) && !answer.Is(jsonv.String) {
		answer = b.Get("content")
	}
	b.Get("content").MarkRead()
	m.Content = d.content(answer, m)
	m.SetAttr("child_duration_ms", number(extra.Get("totalDurationMs")))
	m.SetAttr("child_tool_uses", number(extra.Get("totalToolUseCount")))
}

// childDone ends what goes on in the lane of a child that has answered.
func (d *stream) childDone(ln *line, call string) {
	for _, l := range d.Lanes {
		if l.Call == call && l.Session == ln.lane.Session {
			d.finish(ln, l)
		}
	}
}

// outcome says how a call ended.
func outcome(m *msg.Message, b, extra jsonv.Value) {
	m.Role = msg.RoleTool
	interrupted := extra.Get("interrupted").Bool()
	if m.IsError = b.Get("is_error").Bool() || interrupted; !m.IsError {
		return
	}
	m.Tool.ErrorType = "interrupted"
	if !interrupted {
		m.Tool.ErrorType = errorType(head(b.Get("content")))
	}
}

// errorType classifies what a tool's error says.
func errorType(s string) string {
	s = strings.TrimPrefix(s, "<tool_use_error>")
	for _, known := range [...]struct{ part, class string }{
		{"The user doesn't want to", "denied"},
		{"Permission prompt was aborted", "denied"},
		{"Permission to use", "denied"},
		{"Claude requested permissions", "denied"},
		{interruptText, "interrupted"},
		{"Sibling tool call errored", "cancelled"},
		{"Cancelled:", "cancelled"},
		{"InputValidationError", "validation"},
		{"No such tool available", "not_found"},
		{"timed out", "timeout"},
	} {
		if strings.Contains(s, known.part) {
			return known.class
		}
	}
	return "tool_error"
}

// head is the beginning of a result, without a copy of the rest.
func head(content jsonv.Value) string {
	const most = 240
	if content.Is(jsonv.Array) {
		for b := range content.Elems() {
			if b.Get("type").Equal("text") {
				content = b.Get("text")
				break
			}
		}
	}
	raw := content.Peek()
	if !content.Is(jsonv.String) || len(raw) < 2 {
		return ""
	}
	raw = raw[1 : len(raw)-1]
	return msg.Quoted(raw[:min(len(raw), most)]).String()
}
