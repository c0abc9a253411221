package codexexec

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/codex"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// item decodes {id, type, …}; done is false for an item that has begun or changed. It
// reports whether the type is known.
func (d *stream) item(v jsonv.Value, done bool) bool {
	id, typ := ident.Of(v.Get("id")), v.Get("type").Str()
	if id == "" {
		return false
	}
	switch typ {
	case "agent_message", "reasoning", "plan", "todo_list":
		d.wake(string(v.Peek()))
		d.text(d.Run+"/"+id, typ, v, done)
	case "error":
		if d.Run != "" || d.Opening {
			d.wake(string(v.Peek()))
		}
		m := d.Add(msg.Error, "error:"+msg.HashKey(d.SessionID(), d.Run, id, string(v.Get("message").Peek())))
		m.IsError, m.Content = true, v.Get("message").Text()
		m.SetAttr("fatal", "false")
	case "command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call":
		d.wake(string(v.Peek()))
		d.tool(d.Run+"/"+id, typ, v, done)
	default:
		return false
	}
	return true
}

func (d *stream) text(key, typ string, v jsonv.Value, done bool) {
	kind, text := msg.Assistant, v.Get("text").Text()
	switch typ {
	case "reasoning":
		kind = msg.Reasoning
	case "plan":
		kind = msg.Plan
	case "todo_list":
		kind, text = msg.Plan, todo(v.Get("items"))
	}
	m := d.Add(kind, key)
	m.Role, m.Content = msg.RoleAssistant, text
	if !done {
		m.Complete = msg.Partial
	}
}

// todo writes [{text, completed}] as a list.
func todo(items jsonv.Value) msg.Text {
	var b []byte
	for item := range items.Elems() {
		if len(b) > 0 {
			b = append(b, '\n')
		}
		mark := "[ ] "
		if item.Get("completed").Bool() {
			mark = "[x] "
		}
		b = item.Get("text").Text().Append(append(b, mark...))
	}
	return msg.Plain(string(b))
}

// tool decodes an item that is a call: it has begun, has changed, or is done.
//
//	command_execution  {command, aggregated_output, exit_code, status}
//	file_change        {changes: [{path, kind, diff?}], status}
//	mcp_tool_call      {server, tool, arguments, result, error, status}
//	web_search         {query, action}
//	collab_tool_call   {tool, receiver_thread_ids, prompt, agents_states, status}
func (d *stream) tool(id, typ string, v jsonv.Value, done bool) {
	name, server, arguments := called(typ, v)
	digest := msg.HashKey(arguments)
	c := d.Calls.GetOpen(id)
	if c == nil || c.Digest == digest {
		for _, part := range [...]string{"command", "changes", "arguments", "action", "query", "prompt", "receiver_thread_ids"} {
			v.Get(part).MarkRead()
		}
	}
	switch {
	case c != nil && !done:
		d.progress(c, typ, name, v)
		return
	case c == nil:
		c = d.NewCall(id, name)
		c.Server, c.Digest = server, digest
		d.begin(c, typ, arguments, v)
		d.Calls.Add(c)
	}
	switch {
	case !done:
	case c.Spawn && name == c.Name && !v.Get("status").Equal("failed"):
		d.Link(c, firstID(v.Get("receiver_thread_ids")), "", "ack:"+c.ID, "spawned")
	default:
		d.Calls.Remove(c)
		m := d.Result(c)
		m.Tool.Name, m.Tool.Server = name, server
		d.result(m, typ, v)
	}
	if typ == "collab_tool_call" {
		d.answers(v.Get("agents_states"))
	}
}

// begin adds a call. The answer of an agent that it begins follows in the states of another
// call.
func (d *stream) begin(c *codex.Call, typ, arguments string, v jsonv.Value) {
	kind := msg.ToolCall
	if typ == "collab_tool_call" && (c.Name == "spawn_agent" || c.Name == "send_input") {
		kind = msg.Delegation
		c.Delegation, c.Spawn, c.To = true, c.Name == "spawn_agent", firstID(v.Get("receiver_thread_ids"))
	}
	m := d.Add(kind, "call:"+c.ID)
	m.Role = msg.RoleAssistant
	m.Tool.CallID, m.Tool.Name, m.Tool.Server, m.Tool.Arguments = c.ID, c.Name, c.Server, msg.Plain(arguments)
	if c.Delegation {
		m.Delegation.To, m.Delegation.Task, m.Delegation.Async = c.To, v.Get("prompt").Text(), true
	}
}

// progress adds the output of a call so far.
func (d *stream) progress(c *codex.Call, typ, name string, v jsonv.Value) {
	if output := v.Get("aggregated_output"); len(output.Escaped()) > 0 {
		m := d.Result(c)
		m.Tool.Name = name
		m.Complete, m.Content = msg.Partial, output.Text()
		return
	}
	m := d.Status("progress:"+msg.HashKey(c.ID, string(v.Peek())), "progress")
	m.Tool.CallID, m.Tool.Name = c.ID, name
	m.SetAttr("item", typ)
}

// called returns the name of a tool, its MCP server, and its arguments.
func called(typ string, v jsonv.Value) (name, server, arguments string) {
	member := func(names ...string) string {
		b := []byte{'{'}
		for i, name := range names {
			b = append(append(b, ",\""[1-min(i, 1):]...), name+`":`...)
			if raw := v.Get(name); raw.Exists() {
				b = append(b, raw.Peek()...)
			} else {
				b = append(b, "null"...)
			}
		}
		return string(append(b, '}'))
	}
	switch typ {
	case "command_execution":
		return typ, "", member("command")
	case "file_change":
		return typ, "", string(v.Get("changes").Peek())
	case "mcp_tool_call":
		server = ident.Of(v.Get("server"))
		return "mcp__" + server + "__" + ident.Of(v.Get("tool")), server, string(v.Get("arguments").Peek())
	case "web_search":
		if action := v.Get("action"); action.Is(jsonv.Object) {
			return typ, "", string(action.Peek())
		}
		return typ, "", member("query")
	}
	if name = ident.Of(v.Get("tool")); name == "" {
		name = typ
	}
	return name, "", member("prompt", "receiver_thread_ids")
}

// firstID returns the first of a list of ids.
func firstID(list jsonv.Value) string {
	for v := range list.Elems() {
		return ident.Of(v)
	}
	return ""
}

// result fills in the result of a call.
func (d *stream) result(m *msg.Message, typ string, v jsonv.Value) {
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
		m.Content = content(v.Get("result"), m)
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
		codex.Fail(m, "denied")
	case failed:
		codex.Fail(m, "tool_error")
	case typ == "file_change": // [{path, kind: add | delete | update, diff?}]
		for f := range v.Get("changes").Elems() {
			if path := f.Get("path").Str(); path != "" {
				d.File(m.Tool.CallID, path, f.Get("diff"), f.Get("kind"))
			}
		}
	}
}

// content returns the texts of an MCP result: {content: [{type: text, text} | {type: image, data, mimeType}], structured_content}.
func content(result jsonv.Value, m *msg.Message) msg.Text {
	var texts conversation.Texts
	for b := range result.Get("content").Elems() {
		switch {
		case b.Get("text").Is(jsonv.String):
			texts.Add(b.Get("text").Text())
		case b.Get("data").Is(jsonv.String):
			m.Attachments = append(m.Attachments, media.Base64(b.Get("data"), ident.Of(b.Get("mimeType"))))
		default:
			texts.Add(b.Text())
		}
	}
	if texts.N == 0 {
		return result.Get("structured_content").JSON()
	}
	return texts.Joined()
}

// answers adds the answers of agents: {"<thread>": {status, message}}.
func (d *stream) answers(states jsonv.Value) {
	for who, state := range states.Members() {
		if status := state.Get("status"); status.In("completed", "errored", "shutdown", "not_found", "interrupted") {
			d.Answer(who.String(), status.PeekStr(), state.Get("message").Text())
		}
	}
}
