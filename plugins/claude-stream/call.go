package claudestream

import (
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// maxCalls is how many calls without a result are remembered; the oldest are
// forgotten, and their results then come without the tool's name.
const maxCalls = 1024

// call is a tool call whose result is still to come.
type call struct {
	ID    string
	Name  string
	Run   string
	Agent msg.Agent // who made it

	Delegation bool   `json:",omitempty"`
	To         string `json:",omitempty"`
	Child      string `json:",omitempty"` // the run that it caused
	Task       string `json:",omitempty"` // id of the background task that goes on
	Human      bool   `json:",omitempty"` // waits for a person and for nothing else
}

// call decodes a tool_use block.
func (d *stream) call(ln *line, r *response, b jsonv.Value) {
	c := &call{ID: ident(b.Get("id")), Name: ident(b.Get("name")), Run: ln.lane.Run, Agent: ln.lane.agent()}
	if c.ID == "" || c.Name == "" {
		d.unknown(ln, "assistant/tool_use", b)
		return
	}
	input := b.Get("input")
	task, async := c.hands(input)
	kind := msg.ToolCall
	if c.Delegation {
		kind = msg.Delegation
	}
	m := d.part(ln, r, kind, "call:"+c.ID)
	m.Tool.CallID, m.Tool.Name, m.Tool.Server = c.ID, c.Name, server(c.Name)
	m.Tool.Arguments = input.JSON()
	if broken := input.Get("__unparsedToolInput"); broken.Exists() { // the model's JSON was none
		m.Tool.Arguments = broken.Text()
		m.SetAttr("unparsed_arguments", "true")
	}
	if c.Delegation {
		m.Delegation.To, m.Delegation.Task, m.Delegation.Async = c.To, task.Text(), async
		m.SetAttr("description", input.Get("description").Str())
	}
	if s, ok := spawn.Call(c.Name, ln.lane.Dir, input); ok {
		c.Delegation, c.To = true, s.Agent
		s.On(m)
		m.Delegation.Async = input.Get("run_in_background").Bool()
	}
	if c.Human = c.Name == "AskUserQuestion" || c.Name == "ExitPlanMode"; c.Human {
		d.wait(ln, c, msg.WaitStart, "wait")
	}
	if d.find(c.ID) != nil {
		return
	}
	if len(d.Calls) == maxCalls {
		d.Calls = slices.Delete(d.Calls, 0, 1)
	}
	d.Calls = append(d.Calls, c)
}

// hands notes whether a call hands work to another agent, and returns the task
// and whether the caller goes on without waiting.
func (c *call) hands(input jsonv.Value) (task jsonv.Value, async bool) {
	switch c.Name {
	case "Task", "Agent":
		c.To = ident(first(input, "subagent_type", "name"))
		task, async = input.Get("prompt"), input.Get("run_in_background").Bool()
	case "SendMessage":
		c.To = ident(first(input, "to", "recipient"))
		task, async = first(input, "message", "content", "summary"), true
	case "Workflow":
		c.To = ident(first(input, "name", "workflowName"))
		task, async = first(input, "prompt", "args"), true
	default:
		return jsonv.Value{}, false
	}
	c.Delegation = true
	return task, async
}

// server is the MCP server in a tool's name: mcp__<server>__<tool>.
func server(tool string) string {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "__")
	return name
}

// about adds a message that concerns a call, in the run that made it. c is nil
// when the call was not seen; the lane's own run is then as good as any.
func (d *stream) about(ln *line, c *call, id string, kind msg.Kind, key string) *msg.Message {
	run := ln.lane.Run
	if c != nil {
		run = c.Run
	}
	m := d.giveIn(ln, run, kind, key)
	m.ParentKey, m.Tool.CallID = "call:"+id, id
	if c != nil {
		m.Agent, m.Tool.Name, m.Tool.Server = c.Agent, c.Name, server(c.Name)
	}
	return m
}

// wait notes that a call waits for a person, or no longer does.
func (d *stream) wait(ln *line, c *call, signal msg.Signal, key string) {
	m := d.about(ln, c, c.ID, msg.Status, key+":"+c.ID)
	m.Hidden, m.Signal = true, signal
	m.SetAttr("type", "human_wait")
}

// find returns the open call with that id, or nil.
func (d *stream) find(id string) *call {
	for i := len(d.Calls) - 1; i >= 0; i-- {
		if d.Calls[i].ID == id {
			return d.Calls[i]
		}
	}
	return nil
}

// take is find, and closes the call.
func (d *stream) take(id string) *call {
	c := d.find(id)
	if c != nil {
		d.Calls = slices.DeleteFunc(d.Calls, func(o *call) bool { return o == c })
	}
	return c
}
