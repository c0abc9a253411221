package claude

import (
	"cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// WorkflowTool runs a script that runs agents.
const WorkflowTool = "Workflow"

// Call is a tool call without a result.
type Call struct {
	conversation.Call
	Session string
	Run     string
	Agent   msg.Agent // that made it

	Delegation bool           `json:",omitempty"`
	To         string         `json:",omitempty"`
	Prompt     string         `json:",omitempty"` // hash of the task
	Child      string         `json:",omitempty"` // the run that it caused
	Link       msg.LinkMethod `json:",omitempty"` // of Child
	Confidence uint8          `json:",omitempty"`
	Task       string         `json:",omitempty"` // id of the background task
	Human      bool           `json:",omitempty"` // waits for a person and for nothing else
}

// call decodes a tool_use block.
func (r *Response) call(ln *Line, b jsonv.Value) {
	c := &Call{Session: ln.Name, Run: ln.Run, Agent: ln.Lane.Actor()}
	if c.ID, c.Name = ident.Of(b.Get("id")), ident.Of(b.Get("name")); c.ID == "" || c.Name == "" {
		ln.Unknown("assistant/tool_use", b)
		return
	}
	input := b.Get("input")
	kind := msg.ToolCall
	to, task, async, ok := Delegation(c.Name, input)
	if ok {
		c.Delegation, c.To, kind = true, to, msg.Delegation
	}
	m := r.part(ln, kind, "call:"+c.ID)
	m.Tool.CallID, m.Tool.Name, m.Tool.Server = c.ID, c.Name, conversation.ToolServer(c.Name)
	anthropic.Arguments(m, input)
	if ok {
		m.Delegation.To, m.Delegation.Task, m.Delegation.Async = c.To, task.Text(), async
		m.SetAttr("description", input.Get("description").Str())
		if task.Is(jsonv.String) {
			c.Prompt = msg.HashKey(task.Str())
		}
	}
	dir := ln.Lane.Dir
	if dir == "" {
		dir = ln.Root.Get("cwd").Str()
	}
	if s, ok := spawn.Call(c.Name, dir, input); ok {
		c.Delegation, c.To = true, s.Agent
		s.On(m)
		m.Delegation.Async = input.Get("run_in_background").Bool()
	}
	if c.Human = c.Name == "AskUserQuestion" || c.Name == "ExitPlanMode"; c.Human {
		c.wait(ln, msg.WaitStart, "wait")
	}
	ln.Calls.Add(c)
}

// Delegation returns the agent and the task of a call that hands work to another agent, and
// whether the caller goes on without waiting.
func Delegation(tool string, input jsonv.Value) (to string, task jsonv.Value, async, ok bool) {
	switch tool {
	case "Task", "Agent", "agent":
		return ident.Of(input.First("subagent_type", "name")), input.Get("prompt"), input.Get("run_in_background").Bool(), true
	case "SendMessage":
		return ident.Of(input.First("to", "recipient")), input.First("message", "content", "summary"), true, true
	case WorkflowTool:
		return ident.Of(input.First("name", "workflowName")), input.First("prompt", "args"), true, true
	}
	return "", jsonv.Value{}, false, false
}

// About adds a message about the call c, in the run that made it; with an id it is about the
// call itself. c is nil when the call is unknown: the message is then of the lane's run.
func (ln *Line) About(c *Call, id string, kind msg.Kind, key string) *msg.Message {
	run := ln.Run
	if ln.Run = ""; c == nil && ln.Lane != nil {
		ln.Run = ln.Lane.ID
	}
	m := ln.Emit(kind, key)
	if ln.Run = run; c != nil {
		m.Run, m.Agent = c.Run, c.Agent
	}
	if m.Tool.CallID = id; id == "" {
		return m
	}
	m.ParentKey = "call:" + id
	if c != nil {
		m.Tool.Name, m.Tool.Server = c.Name, conversation.ToolServer(c.Name)
	}
	return m
}

// wait reports that a call waits for a person, or no longer does.
func (c *Call) wait(ln *Line, signal msg.Signal, key string) {
	m := ln.About(c, c.ID, msg.Status, key+":"+c.ID)
	m.Hidden, m.Signal = true, signal
	m.SetAttr("type", "human_wait")
}

// Launched begins the result by which Qwen Code acknowledges that a sub-agent works in the background: in words alone.
const Launched = "Background agent launched"

// inBackground reports whether a result only acknowledges that the work has begun.
func (l *Lane) inBackground(b, extra jsonv.Value) bool {
	if l.Fork == QwenCode {
		return Opening(b.Get("content")).HasPrefix(Launched)
	}
	return extra.Get("backgroundTaskId").Exists() || extra.Get("isAsync").Bool() || forked(extra) && extra.Get("background").Bool() || extra.Get("status").In("async_launched", "teammate_spawned", "remote_launched")
}

// launched decodes the acknowledgement of work in the background. The call stays open until a
// notice reports the end of the work.
func (ln *Line) launched(id string, b, extra jsonv.Value, c *Call) {
	child := ident.Of(extra.First("agentId", "agent_id", "runId"))
	m := ln.About(c, id, msg.Status, "ack:"+id)
	m.Hidden, m.Delegation.Async = true, true
	m.SetAttr("type", "async_launched")
	m.Content, m.Attachments = anthropic.Content(b.Get("content"))
	if c != nil {
		c.Task = cmp.Or(ident.Of(extra.First("taskId", "agentId", "backgroundTaskId")), c.Task)
		c.Causes(child)
		if c.Link == msg.ByNativeID {
			child = c.Child
		}
	}
	if child != "" {
		m.Signal = msg.Link
		m.Delegation.ChildRun, m.Delegation.Link = child, msg.ByNativeID
		if c != nil {
			ln.Form.Launched(ln, extra, c)
		}
	}
	if extra.Get("status").Equal("teammate_spawned") {
		m.Delegation.CorrelationID = Teammate(child)
	}
}

// Teammate is the correlation id of the call that spawned a member of a team, NAME@TEAM, and of
// the member's first run, which may have a session of its own.
func Teammate(member string) string { return spawn.ID("claude-teammate", member) }

// Causes records the run that a call caused, by its id in the protocol. The first id is kept.
func (c *Call) Causes(run string) {
	if run != "" && (c.Child == "" || c.Link != msg.ByNativeID) {
		c.Child, c.Link, c.Confidence = run, msg.ByNativeID, 0
	}
}

// answered decodes the result of a delegation: the child's answer. c is nil when the call is
// unknown.
func (ln *Line) answered(id, child string, b, extra jsonv.Value, c *Call) {
	ln.ChildDone(id)
	kind := msg.DelegationResult
	if forked(extra) { // as its call, which was a tool's
		kind = msg.ToolResult
	}
	m := ln.About(c, id, kind, "result:"+id)
	outcome(m, ln.Root, b, extra)
	m.Delegation.ChildRun, m.Delegation.Link = child, msg.ByNativeID
	if c != nil {
		m.Delegation.To = c.To
		if c.Child != "" && (child == "" || c.Link == msg.ByNativeID) {
			m.Delegation.ChildRun, m.Delegation.Link, m.Delegation.Confidence = c.Child, c.Link, c.Confidence
		}
	}
	if m.Delegation.ChildRun == "" {
		m.Delegation.Link = msg.NoLink
	}
	if m.Delegation.To == "" {
		m.Delegation.To = ident.Of(extra.Get("agentType"))
	}
	if m.Delegation.To == spawn.Codex {
		m.Delegation.CorrelationID = cmp.Or(spawn.Output(b.Get("content").Peek()), spawn.Output(extra.Peek()))
	}
	// The answer alone: the model's copy has a note on how to go on.
	answer := extra.Get("content")
	if forked(extra) {
		answer = extra.Get("result")
	}
	if m.IsError || !answer.Is(jsonv.Array) && !answer.Is(jsonv.String) {
		answer = b.Get("content")
	}
	b.Get("content").MarkRead()
	m.Content, m.Attachments = anthropic.Content(answer)
	conversation.AttrsAs(m, extra, jsonv.Value.Digits, "child_duration_ms=totalDurationMs", "child_tool_uses=totalToolUseCount")
}

// Notified emits the result of a delegation in the background, which ended with that status.
func (ln *Line) Notified(c *Call, status string) *msg.Message {
	ln.Calls.Take(c.ID)
	ln.ChildDone(c.ID)
	m := ln.About(c, c.ID, msg.DelegationResult, "result:"+c.ID)
	m.Role = msg.RoleTool
	m.Delegation = msg.Delegate{To: c.To, ChildRun: c.Child, Link: c.Link, Confidence: c.Confidence, Async: true}
	m.Tool.ErrorType = TaskError(status)
	m.IsError = m.Tool.ErrorType != ""
	m.SetAttr("task_status", status)
	return m
}

// TaskError returns the class of the failure of a background task that ended with that status.
func TaskError(status string) string {
	switch status {
	case "completed":
		return ""
	case "killed", "stopped", "cancelled":
		return "cancelled"
	}
	return "tool_error"
}

// Ended reports whether a background task with that status has ended.
func Ended(status string) bool {
	return status == "completed" || status == "failed" || status == "killed" || status == "stopped"
}

// ChildDone ends the open responses of the sub-agent that the call caused.
func (ln *Line) ChildDone(call string) {
	for _, l := range ln.Lanes {
		if l.Call == call && l.Session == ln.Name {
			ln.Finish(ln, l)
		}
	}
}

// CallOfTask returns the open call of a background task, by its own id or by the task's.
func (s *State) CallOfTask(id, task string) *Call {
	if c := s.Calls.Get(id); c != nil || task == "" {
		return c
	}
	return s.Calls.Oldest(func(c *Call) bool { return c.Task == task || c.Child == task })
}

// CallOfChild returns the open call that is known to have caused the run.
func (s *State) CallOfChild(run string) *Call {
	return s.Calls.Oldest(func(c *Call) bool { return c.Child == run })
}

// callOfPrompt returns the oldest open call that handed over exactly that task and has no
// child yet, and the confidence in it: of several such calls the order decides.
func (s *State) callOfPrompt(session, prompt string) (found *Call, confidence uint8) {
	hash, same := msg.HashKey(prompt), 0
	for _, c := range s.Calls.Open {
		if c.Session != session || !c.Delegation || c.Prompt != hash || c.Child != "" && c.Link != msg.ByPrompt {
			continue
		}
		if same++; found == nil && c.Child == "" {
			found = c
		}
	}
	if same > 1 {
		confidence = uint8(max(1, 100/same))
	}
	return found, confidence
}

// CausedBy makes the lane the conversation that the call caused.
func (l *Lane) CausedBy(c *Call) {
	if c == nil || l.Call != "" {
		return
	}
	l.Caused(c.Run, c.ID, c.Link, c.Confidence)
	if l.Name == "" {
		l.Name = c.To
	}
}
