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

// over is a call that has its result.
type over struct{ UUID, First, Last uint64 }

// tool decodes one of the two messages of a tool call, and keeps what is neither
// that nor anything else that is known.
func (d *stream) tool(r *record) {
	if r.action == "" || r.status == "" || r.uuid == "" && !tools(r.action) {
		typ := r.action
		if typ == "" {
			typ = "none"
		}
		m := d.keepRaw(r.out, typ, r.v)
		m.Run, m.Time, m.Precision = d.Turn.Run, r.at.Time, r.at.Precision
		return
	}
	if d.told(r) {
		return
	}
	i, running := d.open(r), r.status == "running" || r.status == "pending"
	switch {
	case i < 0:
		i = d.calls(r)
	case running && hash(r.hash()) == d.Calls[i].First: // some versions say it twice
		r.again()
		return
	case running:
		d.more(r)
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
		d.Over = append(d.Over, over{hash(r.uuid), c.First, hash(r.hash())})
	}
	d.result(r, &c)
}

// told takes a message of a call that has its result: it is the same again, or
// says something more.
func (d *stream) told(r *record) bool {
	i := slices.IndexFunc(d.Over, func(o over) bool { return r.uuid != "" && o.UUID == hash(r.uuid) })
	if i < 0 {
		return false
	}
	if h := hash(r.hash()); h != d.Over[i].First && h != d.Over[i].Last {
		d.more(r)
	} else {
		r.again()
	}
	return true
}

// open finds the open call to which the message belongs.
func (d *stream) open(r *record) int {
	return slices.IndexFunc(d.Calls, func(c call) bool {
		if r.uuid != "" {
			return c.ID == r.uuid
		}
		return c.Unnamed && c.Name == r.action && c.Task == r.task && r.status != "running"
	})
}

// calls gives the call that the message begins, or is all that is told of, and
// returns its place among the open ones.
func (d *stream) calls(r *record) int {
	c := call{ID: r.uuid, Name: r.action, Task: r.task, Unnamed: r.uuid == "", Internal: internal(r), First: hash(r.hash())}
	if c.Unnamed {
		c.ID = r.action + ":" + r.hash()
	}
	m := d.ofCall(r, &c, msg.ToolCall, "call:"+c.ID)
	m.Tool.Arguments = d.arguments(r)
	if len(d.Calls) == maxCalls {
		d.Calls = slices.Delete(d.Calls, 0, 1)
	}
	d.Calls = append(d.Calls, c)
	return len(d.Calls) - 1
}

// arguments are those that the model wrote, if it was heard, and else what the
// message says in their place: a path, a command, a query.
func (d *stream) arguments(r *record) msg.Text {
	if args, ok := d.intended(r.action); ok {
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

// result gives the result of a call, and the file that it wrote.
func (d *stream) result(r *record, c *call) {
	m := d.ofCall(r, c, msg.ToolResult, "result:"+c.ID)
	m.Role = msg.RoleTool
	m.Content = r.content()
	mark(m, r)
	if m.IsError {
		m.Tool.ErrorType = "tool_error"
	}
	m.SetAttr("filepath", brief(r.get("filepath")))
	m.SetAttr("url", brief(r.get("url")))
	if json := r.json; json.Is(jsonv.Array) || json.Is(jsonv.Object) {
		m.SetAttr("json", short(json))
		m.SetAttr("results", count(json.Len()))
	}
	d.written(r, c)
}

// written gives the text of a file that a call wrote.
func (d *stream) written(r *record, c *call) {
	text := r.meta.Get("content")
	path := r.get("filepath").PeekStr()
	if path == "" || len(text.Peek()) <= 2 || !text.Is(jsonv.String) {
		return
	}
	m := d.ofCall(r, c, msg.File, "file:"+c.ID)
	m.Content = text.Text()
	m.Attachments = []msg.Attachment{{Name: cut(base(path), ident.Max), Size: int64(m.Content.Len()), URL: cut(path, maxGoal)}}
}

// more keeps what is said of a call beside its beginning and its result.
func (d *stream) more(r *record) {
	m := d.say(r, msg.Status, r.id())
	m.Hidden, m.Content, m.Tool.CallID = true, r.content(), r.uuid
	m.SetAttr("type", r.action)
	r.states(m)
}

// ofCall adds a message of a call. The list of things to do that the agent keeps
// for itself belongs to the turn, although it carries the task that was just done.
func (d *stream) ofCall(r *record, c *call, kind msg.Kind, key string) *msg.Message {
	task := r.task
	if c.Internal {
		r.task = ""
	}
	m := d.say(r, kind, key)
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

// tools reports whether the action is known to be a tool, so that a call without
// a uuid is one.
func tools(action string) bool {
	switch action {
	case "write_code", "write_file", "patch_code", "replace_code_block", "read_file", "terminal_run", "browser", "web_search",
		"document_query", "document_upload", "mcp_tool", "search", "file", "terminal", "todo", "evaluation":
		return true
	}
	return false
}
