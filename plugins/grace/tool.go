package grace

import (
	"bytes"
	"cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// call is a tool call: two messages.
type call struct {
	conversation.Call
	Task     string `json:",omitempty"`
	Unnamed  bool   `json:",omitempty"` // without a uuid: its result is the next of its kind
	Internal bool   `json:",omitempty"` // it writes the agent's list of things to do
	First    string `json:",omitempty"` // hash of the message that began it
	Last     string `json:",omitempty"` // hash of its result
}

// mark makes the message one of the call.
func (c *call) mark(m *msg.Message) *msg.Message {
	m.Tool.CallID, m.Tool.Name, m.Tool.Internal = c.ID, c.Name, c.Internal
	return m
}

// tools are the actions that are known to be tools, so that a call without a uuid is one.
var tools = map[string]bool{
	"write_code": true, "write_file": true, "patch_code": true, "replace_code_block": true, "read_file": true, "terminal_run": true,
	"browser": true, "web_search": true, "document_query": true, "document_upload": true, "mcp_tool": true, "search": true, "file": true,
	"terminal": true, "todo": true, "evaluation": true,
}

// tool decodes one of the two messages of a tool call, and keeps an object of no known action.
func (r *message) tool() {
	if r.action == "" || r.status == "" || r.uuid == "" && !tools[r.action] {
		m := r.keepRaw(cmp.Or(r.action, "none"), r.v.Raw())
		m.Run = r.Turn.Run
		r.at.Set(m)
		return
	}
	c, h := r.call(), r.hash()
	switch {
	case c == nil:
		c = r.startCall()
	case h == c.First, h == c.Last: // some versions send it twice
		r.markRead()
		return
	case c.Last != "", r.running(): // neither its beginning nor its result
		m := r.addFor(msg.Status, r.id())
		m.Hidden, m.Content, m.Tool.CallID = true, r.content(), r.uuid
		m.SetAttr("type", r.action)
		r.setStatus(m)
		return
	}
	if !r.running() {
		c.Last = h
		r.Calls.End(c)
		r.addResult(c)
	}
}

// call finds the call to which the message belongs.
func (r *message) call() *call {
	if r.uuid != "" {
		return r.Calls.Get(r.uuid)
	}
	for c := range r.Calls.All() {
		if h := r.hash(); c.First == h || c.Last == h {
			return c
		}
	}
	return r.Calls.Oldest(func(c *call) bool {
		return c.Unnamed && c.Name == r.action && c.Task == r.task && r.status != "running"
	})
}

// startCall emits the call that the message begins or reports as a whole. Its arguments are the
// parameters that the model wrote, if its text was on the stream, and else the message's
// description of them: a path, a command, a query.
func (r *message) startCall() *call {
	c := &call{Call: conversation.Call{ID: r.uuid, Name: r.action}, Task: r.task, Unnamed: r.uuid == "", First: r.hash()}
	path := r.get("filepath")
	c.Internal = r.action == "write_code" && (r.v.Get("content").Equal("todo.md") || bytes.HasSuffix(path.Peek(), []byte(`/todo.md"`)))
	if c.Unnamed {
		c.ID = r.action + ":" + r.hash()
	}
	m := c.add(r, msg.ToolCall, "call:")
	if args, ok := r.Intents.take(r.action); ok {
		m.Tool.Arguments = msg.Plain(args)
	} else if r.running() {
		m.Tool.Arguments = r.v.Get("content").JSON()
	} else if len(path.Peek()) > 2 {
		m.Tool.Arguments = path.JSON()
	}
	r.Calls.Add(c)
	return c
}

// addResult emits the result of a call, and the text of a file that it wrote.
func (r *message) addResult(c *call) {
	m := c.add(r, msg.ToolResult, "result:")
	m.Role = msg.RoleTool
	m.Content = r.content()
	if r.markFailed(m); m.IsError {
		m.Tool.ErrorType = "tool_error"
	}
	path := r.get("filepath")
	m.SetAttr("filepath", brief(path))
	m.SetAttr("url", brief(r.get("url")))
	if r.json.Is(jsonv.Array) || r.json.Is(jsonv.Object) {
		m.SetAttr("json", short(r.json))
		m.SetAttr("results", conversation.NonZero(r.json.Len()))
	}
	if text, name := r.meta.Get("content"), path.PeekStr(); name != "" && len(text.Peek()) > 2 && text.Is(jsonv.String) {
		m := c.add(r, msg.File, "file:")
		m.Content = text.Text()
		m.Attachments = []msg.Attachment{{Name: conversation.Cut(base(name), ident.Max), Size: int64(m.Content.Len()), URL: conversation.Cut(name, maxGoal)}}
	}
}

// add adds a message of the call. The agent's own list of things to do belongs to the turn,
// although it carries the task that was just done.
func (c *call) add(r *message, kind msg.Kind, key string) *msg.Message {
	task := r.task
	if c.Internal {
		r.task = ""
	}
	m := c.mark(r.addFor(kind, key+c.ID))
	if m.Hidden = c.Internal; c.Internal {
		m.SetAttr("task_id", task)
	}
	r.task = task
	return m
}
