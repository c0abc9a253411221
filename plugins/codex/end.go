package codex

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// ending is what an event tells of a call that is over.
type ending struct {
	id, name, server string
	arguments        jsonv.Value
	output           jsonv.Value
	exit             string
	failed, refused  bool
}

// end decodes an event of a call's end. p is the payload, or an item of one. Most
// calls are told by the model's own records, of which the event knows more: how the
// call ended. Calls that a tool made (scripts run several) and the commands of the
// user have nothing but their event.
func (d *thread) end(r *record, typ string, p jsonv.Value) {
	e := endingOf(typ, p)
	for _, name := range [...]string{"aggregated_output", "formatted_output", "stdout", "parsed_cmd"} {
		p.Get(name).MarkRead() // forms of the output and the command
	}
	c := d.find(e.id)
	if c != nil {
		if e.exit != "" {
			c.Exit = e.exit
		}
		c.Failed, c.Refused = c.Failed || e.failed, c.Refused || e.refused
		if c.Server == "" {
			c.Server = e.server
		}
	}
	if e.id == "" || e.name == "" || c != nil || d.over(e.id) {
		m := d.status(r, r.id(), typ)
		m.Tool.CallID, m.Tool.Name = e.id, e.name
		for _, v := range [...]jsonv.Value{e.arguments, e.output} { // the call and its output say them
			v.MarkRead()
		}
		m.SetAttr("exit_code", e.exit)
		m.SetAttr("duration_ms", elapsed(p.Get("duration")))
		d.files(r, e.id, p)
		return
	}
	d.wake(r)
	c = &call{ID: e.id, Name: e.name, Server: e.server, Run: d.Run, Failed: e.failed, Refused: e.refused}
	m := d.about(r, c, msg.ToolCall, "call:"+c.ID)
	m.ParentKey, m.Role = "", msg.RoleAssistant
	m.Tool.Arguments = e.arguments.JSON()
	if p.Get("source").Equal("user_shell") { // the user's own command
		m.Role = msg.RoleUser
	}
	m.SetAttr("source", ident(p.Get("source")))
	m.SetAttr("told_by", typ)
	m = d.about(r, c, msg.ToolResult, "result:"+c.ID)
	m.Role = msg.RoleTool
	m.Content = d.content(e.output, m)
	m.SetAttr("exit_code", e.exit)
	m.SetAttr("duration_ms", elapsed(p.Get("duration")))
	c.outcome(m, "", e.exit)
	d.take(c)
	d.files(r, e.id, p)
}

func endingOf(typ string, p jsonv.Value) ending {
	e := ending{id: ident(p.First("call_id", "callId", "id"))}
	status := p.Get("status")
	e.failed = status.Equal("failed")
	e.refused = status.Equal("declined")
	switch typ {
	case "exec_command_end", "CommandExecution":
		e.name, e.arguments = "exec_command", p.Get("command")
		e.output = p.First("aggregated_output", "formatted_output", "stdout")
		e.exit = number(p.Get("exit_code"))
	case "mcp_tool_call_end", "McpToolCall":
		call := p
		if inner := p.Get("invocation"); inner.Exists() {
			call = inner
		}
		e.server = ident(call.Get("server"))
		if tool := ident(call.Get("tool")); tool != "" {
			e.name = "mcp__" + e.server + "__" + tool
		}
		e.arguments = call.Get("arguments")
		result := p.Get("result")
		if ok := result.Get("Ok"); ok.Exists() {
			result = ok
		}
		if fault := result.First("Err"); fault.Exists() {
			e.failed, result = true, fault
		} else if fault := p.Path("error", "message"); fault.Exists() {
			e.failed, result = true, fault
		}
		e.failed = e.failed || result.Get("isError").Bool() || result.Get("is_error").Bool()
		e.output = result
	case "patch_apply_end", "FileChange":
		e.name, e.arguments = "apply_patch", p.Get("changes")
		e.failed = e.failed || p.Get("success").Is(jsonv.False)
		e.output = p.Get("stdout")
		if stderr := p.Get("stderr"); e.failed && len(body(stderr)) > 0 {
			e.output = stderr
		}
	case "dynamic_tool_call_response":
		e.name, e.arguments = ident(p.Get("tool")), p.Get("arguments")
		e.failed = p.Get("success").Is(jsonv.False)
		e.output = p.First("error", "content_items")
	case "view_image_tool_call":
		e.name, e.arguments = "view_image", p.Get("path")
	}
	return e
}

// elapsed is a duration, {secs, nanos}, in whole milliseconds.
func elapsed(v jsonv.Value) string {
	secs, nanos := v.Get("secs"), v.Get("nanos")
	if !secs.Is(jsonv.Number) || secs.Uint() > 1<<40 {
		return ""
	}
	if ms := secs.Uint()*1000 + nanos.Uint()/1e6; ms > 0 {
		return count(int(ms))
	}
	return "0"
}

// files gives the files that a patch changed:
//
//	"changes": {"<path>": {type: add | delete | update, content | unified_diff, move_path}}
func (d *thread) files(r *record, id string, p jsonv.Value) {
	if p.Get("success").Is(jsonv.False) || p.Get("status").Equal("failed") || p.Get("status").Equal("declined") {
		return
	}
	for name, change := range p.Get("changes").Members() {
		path := name.String()
		if path == "" || !change.Is(jsonv.Object) {
			continue
		}
		key := "file:" + id + ":" + path
		if len(path) > maxIdent {
			key = "file:" + id + ":" + msg.HashKey(path)
			path = path[len(path)-maxIdent:]
			path = strings.ToValidUTF8(path, "")
		}
		m := d.give(r, msg.File, key)
		m.Tool.CallID = id
		m.Content = change.First("unified_diff", "content").Text()
		m.Attachments = append(m.Attachments, msg.Attachment{Name: path[strings.LastIndexAny(path, `/\`)+1:], URL: path})
		m.SetAttr("change", ident(change.Get("type")))
		m.SetAttr("move_path", ident(change.Get("move_path")))
	}
}

// serveEnd decodes the event of a call that the provider ran itself.
func (d *thread) serveEnd(r *record, typ string) {
	name := strings.TrimSuffix(typ, "_end")
	id := ident(r.p.Get("call_id"))
	if id == "" || d.told(d.subject(r, name), byEvent) {
		m := d.status(r, r.id(), typ)
		if results := r.p.Get("results"); results.Is(jsonv.Array) {
			m.Content = results.JSON()
		}
		m.SetAttr("saved_path", ident(r.p.Get("saved_path")))
		return
	}
	d.serve(r, name, id)
}

// completed decodes item_completed, in which newer versions keep what others tell
// with an event for each kind of item.
func (d *thread) completed(r *record) {
	item := r.p.Get("item")
	typ := item.Get("type").Str()
	switch typ {
	case "Plan":
		m := d.give(r, msg.Plan, "plan:"+ident(item.Get("id"))+":"+r.id())
		m.Role, m.Content = msg.RoleAssistant, item.Get("text").Text()
	case "UserMessage":
		d.shown(r, 'u', item.Get("content"))
	case "AgentMessage":
		d.shown(r, 'a', item.Get("content"))
	case "Reasoning":
		d.status(r, r.id(), "item_completed/"+typ)
	case "CommandExecution", "McpToolCall", "FileChange":
		d.end(r, typ, item)
	case "SubAgentActivity":
		d.activity(r, "item_completed/"+typ, item.First("event_id", "call_id", "id"), item.Get("agent_thread_id"), item.Get("kind").Equal("started"))
	case "Extension", "WebSearch", "ImageGeneration", "ImageView", "Sleep", "ContextCompaction", "HookPrompt", "EnteredReviewMode",
		"ExitedReviewMode", "CollabAgentToolCall", "DynamicToolCall":
		m := d.status(r, r.id(), "item_completed/"+typ)
		m.SetAttr("kind", ident(item.Get("kind")))
		m.SetAttr("query", ident(item.Get("query")))
		if results := item.Get("results"); results.Is(jsonv.Array) {
			m.Content = results.JSON()
		}
	default:
		d.unknown(r, "event_msg/item_completed/"+typ)
	}
}

// shown decodes an item that repeats what was said.
func (d *thread) shown(r *record, seed byte, content jsonv.Value) {
	h := fingerprint(seed, content)
	if h == hash(hashBasis, []byte{seed}) || d.told(h, byDone) {
		content.MarkRead()
		d.status(r, r.id(), "item_completed")
		return
	}
	var m *msg.Message
	if seed == 'u' {
		d.prompt(r)
		m = d.word(r, r.id())
	} else {
		m = d.part(r, msg.Assistant, r.id(), r.id())
	}
	m.Content = d.content(content, m)
}
