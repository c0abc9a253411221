package claudecode

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

// workflowTool runs a script that runs agents.
const workflowTool = "Workflow"

// call is a tool call whose result is still to come.
type call struct {
	ID      string
	Name    string
	Session string
	Run     string
	Agent   msg.Agent // who made it

	Delegation bool           `json:",omitempty"`
	To         string         `json:",omitempty"`
	Prompt     string         `json:",omitempty"` // hash of the task that was handed over
	Child      string         `json:",omitempty"` // the run that it caused
	Link       msg.LinkMethod `json:",omitempty"`
	Confidence uint8          `json:",omitempty"`
	Task       string         `json:",omitempty"` // id of the background task that goes on
	Human      bool           `json:",omitempty"` // waits for a person and for nothing else
}

// call decodes a tool_use block.
func (d *transcript) call(ln *line, r *response, b jsonv.Value) {
	c := &call{ID: ident(b.Get("id")), Name: ident(b.Get("name")), Session: ln.session, Run: ln.run, Agent: ln.lane.agent()}
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
	if broken := input.Get("__unparsedToolInput"); broken.Exists() { // the model's JSON was none
		m.Tool.Arguments = broken.Text()
		m.SetAttr("unparsed_arguments", "true")
	} else {
		m.Tool.Arguments = input.JSON()
	}
	if c.Delegation {
		m.Delegation.To, m.Delegation.Task, m.Delegation.Async = c.To, task.Text(), async
		m.SetAttr("description", input.Get("description").Str())
		if task.Is(jsonv.String) {
			c.Prompt = msg.HashKey(task.Str())
		}
	}
	if s, ok := spawn.Call(c.Name, ln.root.Get("cwd").Str(), input); ok {
		c.Delegation, c.To = true, s.Agent
		s.On(m)
		m.Delegation.Async = input.Get("run_in_background").Bool()
	}
	if c.Human = c.Name == "AskUserQuestion" || c.Name == "ExitPlanMode"; c.Human {
		d.wait(ln, c, msg.WaitStart, "wait")
	}
	d.remember(c)
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
	case workflowTool:
		c.To = ident(first(input, "name", "workflowName"))
		task, async = first(input, "prompt", "args"), true
	default:
		return jsonv.Value{}, false
	}
	c.Delegation = true
	return task, async
}

// first returns the first of the members that is there.
func first(v jsonv.Value, names ...string) jsonv.Value {
	for _, name := range names {
		if m := v.Get(name); m.Exists() {
			return m
		}
	}
	return jsonv.Value{}
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

// about adds a message that concerns the call c, in the run that made it, and
// that is about the call itself if id is given. c is nil when the call was not
// seen; the lane's own run is then as good as any.
func (d *transcript) about(ln *line, c *call, id string, kind msg.Kind, key string) *msg.Message {
	run := ln.run
	ln.run = ""
	if c == nil && ln.lane != nil {
		ln.run = ln.lane.Run
	}
	m := d.give(ln, kind, key)
	ln.run = run
	if c != nil {
		m.Run, m.Agent = c.Run, c.Agent
	}
	if m.Tool.CallID = id; id == "" {
		return m
	}
	m.ParentKey = "call:" + id
	if c != nil {
		m.Tool.Name, m.Tool.Server = c.Name, server(c.Name)
	}
	return m
}

// wait notes that a call waits for a person, or no longer does.
func (d *transcript) wait(ln *line, c *call, signal msg.Signal, key string) {
	m := d.about(ln, c, c.ID, msg.Status, key+":"+c.ID)
	m.Hidden, m.Signal = true, signal
	m.SetAttr("type", "human_wait")
}

func (d *transcript) remember(c *call) {
	if d.find(c.ID) != nil {
		return
	}
	if len(d.calls) == maxCalls {
		d.calls = slices.Delete(d.calls, 0, 1)
	}
	d.calls = append(d.calls, c)
}

// find returns the open call with that id, or nil.
func (d *transcript) find(id string) *call {
	for i := len(d.calls) - 1; i >= 0; i-- {
		if d.calls[i].ID == id {
			return d.calls[i]
		}
	}
	return nil
}

// take is find, and closes the call.
func (d *transcript) take(id string) *call {
	c := d.find(id)
	if c != nil {
		d.calls = slices.DeleteFunc(d.calls, func(o *call) bool { return o == c })
	}
	return c
}

// callOfChild returns the open call that is known to have caused the run.
func (d *transcript) callOfChild(run string) *call {
	for _, c := range d.calls {
		if c.Child == run {
			return c
		}
	}
	return nil
}

// callOfPrompt returns the oldest open call that handed over exactly that task
// to nobody yet, and how sure that is: of several such calls the order decides.
func (d *transcript) callOfPrompt(session, prompt string) (c *call, confidence uint8) {
	hash, same := msg.HashKey(prompt), 0
	for _, o := range d.calls {
		if o.Session != session || !o.Delegation || o.Prompt != hash || o.Child != "" && o.Link != msg.ByPrompt {
			continue
		}
		if same++; c == nil && o.Child == "" {
			c = o
		}
	}
	if same > 1 {
		confidence = uint8(max(1, 100/same))
	}
	return c, confidence
}

// bind makes the lane the conversation that the call caused.
func (d *transcript) bind(l *lane, c *call) {
	if c == nil || l.ParentCall != "" {
		return
	}
	l.ParentRun, l.ParentCall, l.Link, l.Confidence = c.Run, c.ID, c.Link, c.Confidence
	if l.Name == "" {
		l.Name = c.To
	}
}
