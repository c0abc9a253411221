package codexexec

import (
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// maxCalls is how many calls of a turn are remembered while they are open.
const maxCalls = 1024

// call is a call that is open.
type call struct {
	ID    string
	Said  string `json:",omitempty"` // hash of its arguments, which its end repeats
	To    string `json:",omitempty"`
	Child string `json:",omitempty"` // the thread that it began
}

// tool decodes an item that is a call: begun, going on, or over.
//
//	command_execution  {command, aggregated_output, exit_code, status}
//	file_change        {changes: [{path, kind, diff?}], status}
//	mcp_tool_call      {server, tool, arguments, result, error, status}
//	web_search         {query, action}
//	collab_tool_call   {tool, receiver_thread_ids, prompt, agents_states, status}
func (d *stream) tool(id, typ string, v jsonv.Value, over bool) {
	name, server, arguments := called(typ, v)
	said := msg.HashKey(arguments)
	spawn := typ == "collab_tool_call" && name == "spawn_agent"
	c := d.find(id)
	if c == nil || c.Said == said {
		for _, part := range argumentNames {
			v.Get(part).MarkRead()
		}
	}
	if c != nil && !over {
		d.progress(c, typ, name, v)
		return
	}
	if c == nil {
		c = &call{ID: id, Said: said}
		kind := msg.ToolCall
		if spawn || typ == "collab_tool_call" && name == "send_input" {
			kind = msg.Delegation
		}
		m := d.give(kind, "call:"+id)
		m.Role = msg.RoleAssistant
		m.Tool.CallID, m.Tool.Name, m.Tool.Server, m.Tool.Arguments = id, name, server, msg.Plain(arguments)
		if kind == msg.Delegation {
			c.To = first(v.Get("receiver_thread_ids"))
			m.Delegation.To, m.Delegation.Task, m.Delegation.Async = c.To, v.Get("prompt").Text(), true
		}
		d.remember(c)
	}
	switch {
	case !over:
	case spawn && !v.Get("status").Equal("failed"):
		d.spawned(c, v)
	default:
		d.take(c)
		d.result(c, typ, name, server, v)
	}
	if typ == "collab_tool_call" {
		d.answers(v.Get("agents_states"))
	}
}

// progress decodes what a call has written so far.
func (d *stream) progress(c *call, typ, name string, v jsonv.Value) {
	if output := v.Get("aggregated_output"); len(body(output)) > 0 {
		m := d.give(msg.ToolResult, "result:"+c.ID)
		m.Role, m.ParentKey, m.Complete = msg.RoleTool, "call:"+c.ID, msg.Partial
		m.Tool.CallID, m.Tool.Name = c.ID, name
		m.Content = output.Text()
		return
	}
	m := d.status("progress:"+msg.HashKey(c.ID, string(v.Peek())), "progress")
	m.Tool.CallID, m.Tool.Name = c.ID, name
	m.SetAttr("item", typ)
}

// argumentNames are the members of an item that are the arguments of a call.
var argumentNames = [...]string{"command", "changes", "arguments", "action", "query", "prompt", "receiver_thread_ids"}

// called is the name of a tool, its MCP server, and its arguments.
func called(typ string, v jsonv.Value) (name, server, arguments string) {
	switch typ {
	case "command_execution":
		return typ, "", `{"command":` + text(v.Get("command")) + `}`
	case "file_change":
		return typ, "", string(v.Get("changes").Peek())
	case "mcp_tool_call":
		server = ident(v.Get("server"))
		return "mcp__" + server + "__" + ident(v.Get("tool")), server, string(v.Get("arguments").Peek())
	case "web_search":
		if action := v.Get("action"); action.Is(jsonv.Object) {
			return typ, "", string(action.Peek())
		}
		return typ, "", `{"query":` + text(v.Get("query")) + `}`
	}
	if name = ident(v.Get("tool")); name == "" {
		name = typ
	}
	return name, "", `{"prompt":` + text(v.Get("prompt")) + `,"receiver_thread_ids":` + text(v.Get("receiver_thread_ids")) + `}`
}

// text is the JSON of a value, null when it is not there.
func text(v jsonv.Value) string {
	if !v.Exists() {
		return "null"
	}
	return string(v.Peek())
}

// first is the first of a list of ids.
func first(list jsonv.Value) string {
	for v := range list.Elems() {
		return ident(v)
	}
	return ""
}

func (d *stream) result(c *call, typ, name, server string, v jsonv.Value) {
	kind := msg.ToolResult
	if c.To != "" || name == "spawn_agent" || name == "send_input" {
		kind = msg.DelegationResult
	}
	m := d.give(kind, "result:"+c.ID)
	m.Role, m.ParentKey = msg.RoleTool, "call:"+c.ID
	m.Tool.CallID, m.Tool.Name, m.Tool.Server = c.ID, name, server
	if kind == msg.DelegationResult {
		m.Delegation.To, m.Delegation.Async = c.To, true
	}
	status := v.Get("status")
	failed := status.Equal("failed")
	switch typ {
	case "command_execution":
		m.Content = v.Get("aggregated_output").Text()
		if exit := v.Get("exit_code"); exit.Is(jsonv.Number) {
			m.SetAttr("exit_code", string(exit.Raw()))
			failed = failed || exit.Int() != 0
		}
	case "mcp_tool_call":
		m.Content = d.content(v.Get("result"), m)
		if fault := v.Path("error", "message"); fault.Exists() {
			failed, m.Content = true, fault.Text()
		}
	case "collab_tool_call":
		if states := v.Get("agents_states"); states.Len() > 0 {
			m.Content = states.JSON()
		}
	}
	switch {
	case status.Equal("declined"):
		m.IsError, m.Tool.ErrorType = true, "denied"
	case failed:
		m.IsError, m.Tool.ErrorType = true, "tool_error"
	case typ == "file_change":
		d.files(c, v.Get("changes"))
	}
}

// content returns the texts of an MCP result: {content: [{type: text, text}], structured_content}.
func (d *stream) content(result jsonv.Value, m *msg.Message) msg.Text {
	var texts []string
	for b := range result.Get("content").Elems() {
		switch {
		case b.Get("text").Is(jsonv.String):
			texts = append(texts, b.Get("text").Str())
		case b.Get("data").Is(jsonv.String):
			m.Attachments = append(m.Attachments, attach(b))
		default:
			texts = append(texts, b.Text().String())
		}
	}
	if len(texts) == 0 {
		return result.Get("structured_content").JSON()
	}
	return msg.Plain(strings.Join(texts, "\n"))
}

// spawned gives the fact that a call began an agent. The answer comes later, when
// another call tells of the agent's state.
func (d *stream) spawned(c *call, v jsonv.Value) {
	c.Child = first(v.Get("receiver_thread_ids"))
	m := d.status("ack:"+c.ID, "spawned")
	m.ParentKey, m.Tool.CallID, m.Tool.Name = "call:"+c.ID, c.ID, "spawn_agent"
	m.Delegation.Async = true
	if c.Child != "" {
		m.Signal = msg.Link
		m.Delegation.ChildRun, m.Delegation.Link = c.Child, msg.ByNativeID
	}
}

// answers gives the answers of agents: {"<thread>": {status, message}}.
func (d *stream) answers(states jsonv.Value) {
	for who, state := range states.Members() {
		if !state.Get("status").In("completed", "errored", "shutdown", "not_found", "interrupted") {
			continue
		}
		status := state.Get("status").Str()
		thread := who.String()
		i := slices.IndexFunc(d.Calls, func(c *call) bool { return c.Child == thread && thread != "" })
		if i < 0 {
			continue
		}
		c := d.Calls[i]
		d.take(c)
		m := d.give(msg.DelegationResult, "result:"+c.ID)
		m.Role, m.ParentKey = msg.RoleTool, "call:"+c.ID
		m.Tool.CallID, m.Tool.Name = c.ID, "spawn_agent"
		m.Delegation = msg.Delegate{To: c.To, ChildRun: c.Child, Link: msg.ByNativeID, Async: true}
		m.Content = state.Get("message").Text()
		switch status {
		case "errored":
			m.IsError, m.Tool.ErrorType = true, "tool_error"
		case "shutdown":
			m.IsError, m.Tool.ErrorType = true, "cancelled"
		case "not_found", "interrupted":
			m.IsError, m.Tool.ErrorType = true, status
		}
	}
}

func (d *stream) remember(c *call) {
	if len(d.Calls) == maxCalls {
		d.Calls = slices.Delete(d.Calls, 0, 1)
	}
	d.Calls = append(d.Calls, c)
}

func (d *stream) find(id string) *call {
	for i := len(d.Calls) - 1; i >= 0; i-- {
		if d.Calls[i].ID == id {
			return d.Calls[i]
		}
	}
	return nil
}

func (d *stream) take(c *call) {
	if i := slices.Index(d.Calls, c); i >= 0 {
		d.Calls = slices.Delete(d.Calls, i, i+1)
	}
}
