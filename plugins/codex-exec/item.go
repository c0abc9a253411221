package codexexec

import (
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// item decodes {id, type, …}; over is false for what is begun or goes on. It
// reports whether the item is one that it knows.
func (d *stream) item(v jsonv.Value, over bool) bool {
	id, typ := ident(v.Get("id")), v.Get("type").Str()
	if id == "" {
		return false
	}
	switch typ {
	case "agent_message", "reasoning", "plan", "todo_list":
		d.wake(string(v.Peek()))
		d.say(d.Run+"/"+id, typ, v, over)
	case "error":
		if d.Run != "" || d.Opening {
			d.wake(string(v.Peek()))
		}
		m := d.give(msg.Error, "error:"+msg.HashKey(d.session(), d.Run, id, string(v.Get("message").Peek())))
		m.IsError, m.Content = true, v.Get("message").Text()
		m.SetAttr("fatal", "false")
	case "command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call":
		d.wake(string(v.Peek()))
		d.tool(d.Run+"/"+id, typ, v, over)
	default:
		return false
	}
	return true
}

func (d *stream) say(key, typ string, v jsonv.Value, over bool) {
	kind := msg.Assistant
	switch typ {
	case "reasoning":
		kind = msg.Reasoning
	case "plan", "todo_list":
		kind = msg.Plan
	}
	m := d.give(kind, key)
	m.Role = msg.RoleAssistant
	m.Content = v.Get("text").Text()
	if typ == "todo_list" {
		m.Content = msg.Plain(todo(v.Get("items")))
	}
	if !over {
		m.Complete = msg.Partial
	}
}

// todo writes [{text, completed}] as a list.
func todo(items jsonv.Value) string {
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
	return string(b)
}
