package claudecode

import (
	"cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// goesOn reports whether a result only says that the work has begun.
func goesOn(extra jsonv.Value) bool {
	status := extra.Get("status")
	return extra.Get("backgroundTaskId").Exists() || extra.Get("isAsync").Bool() || status.Equal("async_launched") || status.Equal("teammate_spawned") || status.Equal("remote_launched")
}

// launched decodes the acknowledgement of work that goes on in the background.
// The call stays open until a notice tells that it is done.
func (d *transcript) launched(ln *line, b, extra jsonv.Value, c *call) {
	id := ident(b.Get("tool_use_id"))
	child := ident(first(extra, "agentId", "agent_id", "runId"))
	m := d.about(ln, c, id, msg.Status, "ack:"+id)
	m.Hidden = true
	m.SetAttr("type", "async_launched")
	m.Content = d.content(b.Get("content"), m)
	m.Delegation.Async = true
	if child != "" {
		m.Signal = msg.Link
		m.Delegation.ChildRun, m.Delegation.Link = child, msg.ByNativeID
	}
	if c == nil {
		return
	}
	c.Task = ident(first(extra, "taskId", "agentId", "backgroundTaskId"))
	if child != "" {
		c.Child, c.Link, c.Confidence = child, msg.ByNativeID, 0
	}
	if c.Name == workflowTool && child != "" {
		d.workflow(ln, extra, c)
	}
}

// workflow begins the run of a workflow script, whose agents have files of their
// own that name it and nothing else.
func (d *transcript) workflow(ln *line, extra jsonv.Value, c *call) {
	if c.To == "" {
		c.To = ident(extra.Get("workflowName"))
	}
	m := d.about(ln, c, "", msg.Status, "workflow:"+c.Child)
	m.Hidden = true
	m.SetAttr("type", "workflow")
	m.Run, m.ParentRun, m.ParentCall = c.Child, c.Run, c.ID
	m.Delegation.Link = msg.ByNativeID
	m.Signal = msg.RunStart
	m.Agent = c.workflow()
}

// workflow is the actor of the run that a workflow call caused.
func (c *call) workflow() msg.Agent {
	return msg.Agent{ID: c.Child, Name: c.To, Kind: msg.KindWorkflow}
}

// answered decodes the result of a delegation: the child's answer. c is nil when
// the call was not seen.
func (d *transcript) answered(ln *line, b, extra jsonv.Value, c *call) {
	id := ident(b.Get("tool_use_id"))
	if c != nil {
		d.childDone(ln, c)
	}
	m := d.about(ln, c, id, msg.DelegationResult, "result:"+id)
	outcome(m, b, extra)
	m.Delegation.ChildRun, m.Delegation.Link = ident(extra.Get("agentId")), msg.ByNativeID
	if c != nil {
		m.Delegation.To = c.To
		if m.Delegation.ChildRun == "" {
			m.Delegation.ChildRun, m.Delegation.Link, m.Delegation.Confidence = c.Child, c.Link, c.Confidence
		}
	}
	if m.Delegation.ChildRun == "" {
		m.Delegation.Link = msg.NoLink
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
	totals(m, extra)
}

// childDone ends what goes on in the lane of a child that has answered.
func (d *transcript) childDone(ln *line, c *call) {
	for _, l := range d.lanes {
		if l.ParentCall == c.ID {
			d.finish(ln, l)
		}
	}
}

// task takes note of the task with which a sub-agent begins, finds the call that
// handed it over if that is in the same file, and returns who wrote it. What a
// sub-agent is told later comes from whoever leads it.
func (d *transcript) task(ln *line, text jsonv.Value) (author msg.Agent) {
	author = msg.Agent{Kind: msg.KindAgent}
	l := ln.lane
	if l.Prompted {
		return author
	}
	l.Prompted = true
	if l.ParentCall == "" && l.Link != msg.ByParent {
		c := d.callOfChild(l.Run)
		if c == nil {
			var confidence uint8
			if c, confidence = d.callOfPrompt(l.Session, text.Str()); c != nil {
				c.Child, c.Link, c.Confidence = l.Run, msg.ByPrompt, confidence
			}
		}
		d.bind(l, c)
	}
	if c := d.find(l.ParentCall); c != nil {
		return c.Agent
	}
	return author
}
