package grace

import (
	"bytes"
	"slices"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// call is a tool call without a result.
type call struct {
	ID       string
	Name     string
	Task     string `json:",omitempty"`
	Unnamed  bool   `json:",omitempty"` // without a uuid: its result is the next of its kind
	Internal bool   `json:",omitempty"`
	First    uint64 // hash of the message that began it
}

// closedCall is a call that has its result.
type closedCall struct{ UUID, First, Last uint64 }

// tool decodes one of the two messages of a tool call, and keeps an object of no known action.
func (d *stream) tool(r *record) {
	if r.action == "" || r.status == "" || r.uuid == "" && !isTool(r.action) {
		typ := r.action
		if typ == "" {
			typ = "none"
		}
		m := d.keepRaw(r.out, typ, r.v)
		m.Run, m.Time, m.Precision = d.Turn.Run, r.at.Time, r.at.Precision
		return
	}
	if d.isClosedCall(r) {
		return
	}
	i, running := d.openCall(r), r.status == "running" || r.status == "pending"
	switch {
	case i < 0:
		i = d.startCall(r)
	case running && hash(r.hash()) == d.Calls[i].First: // some versions send it twice
		r.markRead()
		return
	case running:
		d.addCallStatus(r)
		return
	}
	if running {
		return
	}
	c := d.Calls[i]
	d.Calls = slices.Delete(d.Calls, i, i+1)
	if r.uuid != "" {
		if len(d.Over) == maxOver {
			d.Over = slices.Delete(d.Over, 0, 1)
		}
		d.Over = append(d.Over, closedCall{hash(r.uuid), c.First, hash(r.hash())})
	}
	d.addResult(r, &c)
}

// isClosedCall reports whether the message belongs to a call that has its result. It emits a
// status for a message that differs from those of the call.
func (d *stream) isClosedCall(r *record) bool {
	i := slices.IndexFunc(d.Over, func(o closedCall) bool { return r.uuid != "" && o.UUID == hash(r.uuid) })
	if i < 0 {
		return false
	}
	if h := hash(r.hash()); h != d.Over[i].First && h != d.Over[i].Last {
		d.addCallStatus(r)
	} else {
		r.markRead()
	}
	return true
}

// openCall finds the open call to which the message belongs.
func (d *stream) openCall(r *record) int {
	return slices.IndexFunc(d.Calls, func(c call) bool {
		if r.uuid != "" {
			return c.ID == r.uuid
		}
		return c.Unnamed && c.Name == r.action && c.Task == r.task && r.status != "running"
	})
}

// startCall emits the call that the message begins or reports as a whole, and returns its index
// among the open ones.
func (d *stream) startCall(r *record) int {
	c := call{ID: r.uuid, Name: r.action, Task: r.task, Unnamed: r.uuid == "", Internal: internal(r), First: hash(r.hash())}
	if c.Unnamed {
		c.ID = r.action + ":" + r.hash()
	}
	m := d.addToCall(r, &c, msg.ToolCall, "call:"+c.ID)
	m.Tool.Arguments = d.arguments(r)
	if len(d.Calls) == maxCalls {
		d.Calls = slices.Delete(d.Calls, 0, 1)
	}
	d.Calls = append(d.Calls, c)
	return len(d.Calls) - 1
}

// arguments are the parameters that the model wrote, if its text was on the stream, and else
// the message's description of them: a path, a command, a query.
func (d *stream) arguments(r *record) msg.Text {
	if args, ok := d.takeIntent(r.action); ok {
		return msg.Plain(args)
	}
	if r.status == "running" || r.status == "pending" {
		return r.v.Get("content").JSON()
	}
	if path := r.get("filepath"); len(path.Peek()) > 2 {
		return path.JSON()
	}
	return msg.Text{}
}

// addResult emits the result of a call, and the file that the call wrote.
func (d *stream) addResult(r *record, c *call) {
	m := d.addToCall(r, c, msg.ToolResult, "result:"+c.ID)
	m.Role = msg.RoleTool
	m.Content = r.content()
	markFailed(m, r)
	if m.IsError {
		m.Tool.ErrorType = "tool_error"
	}
	m.SetAttr("filepath", brief(r.get("filepath")))
	m.SetAttr("url", brief(r.get("url")))
	if json := r.json; json.Is(jsonv.Array) || json.Is(jsonv.Object) {
		m.SetAttr("json", short(json))
		m.SetAttr("results", nonZero(json.Len()))
	}
	d.addFile(r, c)
}

// addFile emits the text of a file that a call wrote.
func (d *stream) addFile(r *record, c *call) {
	text := r.meta.Get("content")
	path := r.get("filepath").PeekStr()
	if path == "" || len(text.Peek()) <= 2 || !text.Is(jsonv.String) {
		return
	}
	m := d.addToCall(r, c, msg.File, "file:"+c.ID)
	m.Content = text.Text()
	m.Attachments = []msg.Attachment{{Name: cut(base(path), ident.Max), Size: int64(m.Content.Len()), URL: cut(path, maxGoal)}}
}

// addCallStatus keeps a message of a call that is neither its beginning nor its result.
func (d *stream) addCallStatus(r *record) {
	m := d.addFor(r, msg.Status, r.id())
	m.Hidden, m.Content, m.Tool.CallID = true, r.content(), r.uuid
	m.SetAttr("type", r.action)
	r.setStatus(m)
}

// addToCall adds a message of a call. The agent's own list of things to do belongs to the turn,
// although it carries the task that was just done.
func (d *stream) addToCall(r *record, c *call, kind msg.Kind, key string) *msg.Message {
	task := r.task
	if c.Internal {
		r.task = ""
	}
	m := d.addFor(r, kind, key)
	if c.Internal && task != "" {
		m.SetAttr("task_id", task)
	}
	r.task = task
	m.Tool.CallID, m.Tool.Name = c.ID, c.Name
	m.Tool.Internal, m.Hidden = c.Internal, c.Internal
	return m
}

// internal reports whether the call writes the agent's list of things to do.
func internal(r *record) bool {
	if r.action != "write_code" {
		return false
	}
	return r.v.Get("content").Equal("todo.md") || bytes.HasSuffix(r.get("filepath").Peek(), []byte(`/todo.md"`))
}

// isTool reports whether the action is known to be a tool, so that a call without
// a uuid is one.
func isTool(action string) bool {
	switch action {
	case "write_code", "write_file", "patch_code", "replace_code_block", "read_file", "terminal_run", "browser", "web_search",
		"document_query", "document_upload", "mcp_tool", "search", "file", "terminal", "todo", "evaluation":
		return true
	}
	return false
}
