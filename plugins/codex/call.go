package codex

import (
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

const (
	// maxCalls is how many calls without a result are remembered; the oldest are
	// forgotten, and their results then come without the tool's name.
	maxCalls = 1024
	// maxDone is how many calls that are over are known when they are told again.
	maxDone = 256
)

// call is a tool call whose result is still to come.
type call struct {
	ID     string
	Name   string
	Server string `json:",omitempty"`
	Run    string

	// What events told of its end before its output came.
	Exit    string `json:",omitempty"`
	Failed  bool   `json:",omitempty"`
	Refused bool   `json:",omitempty"`

	Human      bool   `json:",omitempty"` // a person answers it
	Delegation bool   `json:",omitempty"`
	Spawn      bool   `json:",omitempty"` // it began an agent
	To         string `json:",omitempty"`
	Child      string `json:",omitempty"` // the thread that it began
	Path       string `json:",omitempty"` // and its place in the tree
}

// call decodes a call that the model made:
//
//	function_call     {name, namespace?, arguments: "JSON", call_id}
//	custom_tool_call  {name, input: "text", call_id}
//	local_shell_call  {action: {command, …}, call_id | id}
//	tool_search_call  {arguments: {…}, call_id}
func (d *thread) call(r *record, typ string) {
	c := &call{ID: ident(r.p.First("call_id", "id")), Name: ident(r.p.Get("name"))}
	var arguments jsonv.Value
	switch typ {
	case "local_shell_call":
		c.Name, arguments = "local_shell", r.p.Get("action")
	case "tool_search_call":
		c.Name, arguments = "tool_search", r.p.Get("arguments")
	default:
		arguments = r.p.First("arguments", "input")
	}
	if c.ID == "" || c.Name == "" {
		d.unknown(r, "response_item/"+typ)
		return
	}
	if d.find(c.ID) != nil || d.over(c.ID) {
		arguments.MarkRead()
		d.status(r, "again:"+r.id(), typ)
		return
	}
	namespace := ident(r.p.Get("namespace"))
	c.Name, c.Server = qualified(namespace, c.Name)
	d.wake(r)
	c.Run = d.Run
	task := d.hands(c, arguments)
	kind := msg.ToolCall
	if c.Delegation {
		kind = msg.Delegation
	}
	m := d.part(r, kind, r.id(), "call:"+c.ID)
	m.Tool.CallID, m.Tool.Name, m.Tool.Server = c.ID, c.Name, c.Server
	m.Tool.Arguments = arguments.Text()
	if c.Server == "" {
		m.SetAttr("namespace", namespace)
	}
	if c.Delegation {
		m.Delegation.To, m.Delegation.Async = c.To, true
		if sealed(task) {
			m.SetAttr("task_encrypted", "true")
		} else {
			m.Delegation.Task = msg.Plain(task)
		}
	}
	d.remember(c)
	if c.Human = c.Name == "request_user_input"; c.Human {
		d.wait(r, c, msg.WaitStart, "wait:")
	}
}

// wait notes that a call waits for a person, or no longer does.
func (d *thread) wait(r *record, c *call, signal msg.Signal, prefix string) {
	m := d.about(r, c, msg.Status, prefix+c.ID)
	m.Hidden, m.Signal = true, signal
	m.SetAttr("type", "human_wait")
}

// qualified is the name of a tool as every version writes it, with the MCP server
// in it: mcp__<server>__<tool>. Newer ones put the server into a namespace.
func qualified(namespace, name string) (full, server string) {
	full = name
	if rest, ok := strings.CutPrefix(namespace, "mcp__"); ok && !strings.HasPrefix(name, "mcp__") {
		full = "mcp__" + strings.TrimRight(rest, "_") + "__" + name
	}
	if rest, ok := strings.CutPrefix(full, "mcp__"); ok {
		server, _, _ = strings.Cut(rest, "__")
	}
	return full, server
}

// about adds a message that concerns the call c, in the run that made it.
func (d *thread) about(r *record, c *call, kind msg.Kind, key string) *msg.Message {
	m := d.giveIn(r, c.Run, kind, key)
	m.ParentKey = "call:" + c.ID
	m.Tool.CallID, m.Tool.Name, m.Tool.Server = c.ID, c.Name, c.Server
	return m
}

// served decodes a call that the provider ran itself, and that is over when it is
// told. An event tells the same, with the results:
//
//	web_search_call        {id?, status, action: {type, query, …}}
//	image_generation_call  {id, status, revised_prompt, result: base64}
func (d *thread) served(r *record, typ string) {
	name := strings.TrimSuffix(typ, "_call")
	if d.told(d.subject(r, name), byItem) {
		r.p.Get("action").MarkRead()
		d.status(r, "item:"+r.id(), typ)
		return
	}
	d.serve(r, name, r.id())
}

// subject is what a call of the provider was about, by which its two tellings know
// each other: ids are missing in some versions.
func (d *thread) subject(r *record, name string) uint64 {
	h := hash(hashBasis, name)
	if name == "image_generation" {
		return hash(h, body(r.p.First("id", "call_id")))
	}
	action := r.p.Get("action")
	for _, v := range [...]jsonv.Value{action, r.p} {
		for _, field := range [...]string{"query", "url", "pattern"} {
			if b := body(v.Get(field)); len(b) > 0 {
				return hash(h, b)
			}
		}
		for q := range v.Get("queries").Elems() {
			return hash(h, body(q))
		}
	}
	return hash(h, action.Peek())
}

// serve gives a call of the provider and its result.
func (d *thread) serve(r *record, name, id string) {
	m := d.part(r, msg.ToolCall, id, "call:"+id)
	m.Tool.CallID, m.Tool.Name = id, name
	m.Tool.Arguments = r.p.First("action", "revised_prompt").JSON()
	c := &call{ID: id, Name: name, Run: d.Run}
	m = d.about(r, c, msg.ToolResult, "result:"+id)
	m.Role = msg.RoleTool
	if results := r.p.Get("results"); results.Is(jsonv.Array) {
		m.Content = results.JSON()
	}
	if image := body(r.p.Get("result")); len(image) > 0 {
		a := msg.Attachment{URL: ident(r.p.Get("saved_path"))}
		a.Size, a.SHA256 = digest(image)
		m.Attachments = append(m.Attachments, a)
	}
	if r.p.Get("status").Equal("failed") {
		m.IsError, m.Tool.ErrorType = true, "tool_error"
	}
}

func (d *thread) remember(c *call) {
	if len(d.Calls) == maxCalls {
		d.Calls = slices.Delete(d.Calls, 0, 1)
	}
	d.Calls = append(d.Calls, c)
}

// find returns the open call with that id, or nil.
func (d *thread) find(id string) *call {
	for i := len(d.Calls) - 1; i >= 0; i-- {
		if d.Calls[i].ID == id {
			return d.Calls[i]
		}
	}
	return nil
}

// take closes a call.
func (d *thread) take(c *call) {
	if i := slices.Index(d.Calls, c); i >= 0 {
		d.Calls = slices.Delete(d.Calls, i, i+1)
	}
	if len(d.Done) == maxDone {
		d.Done = slices.Delete(d.Done, 0, 1)
	}
	d.Done = append(d.Done, hash(hashBasis, c.ID))
}

// over reports whether the call is known to have ended.
func (d *thread) over(id string) bool { return slices.Contains(d.Done, hash(hashBasis, id)) }
