package geminicli

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/gemini"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

const provider = "gcp.gen_ai" // of a Google endpoint that is not known

// head decodes the head of a chat, a change of it, or a whole chat.
//
//	{"sessionId":"…","projectHash":"…","startTime":"…","lastUpdated":"…","kind":"subagent","messages":[…]}
func (d *chat) head(v jsonv.Value) {
	id, sub := ident.Of(v.Get("sessionId")), v.Get("kind").Equal("subagent")
	v.Get("kind").Equal("main")
	switch {
	case id == "":
	case sub:
		d.Session = cmp.Or(d.file.parent, id)
		d.child(id, "")
	case !d.Run.Child:
		d.Session = id
	}
	if d.Agent == (msg.Agent{}) {
		d.Agent = msg.Agent{Name: "gemini-cli", Kind: msg.KindAgent}
	}
	at := conversation.TimeOf(v.Get("startTime"))
	if project := v.Get("projectHash"); project.Is(jsonv.String) {
		project.MarkRead()
		if m := d.status("session:"+id, "session", at); m != nil {
			m.SetAttr("project_hash", ident.Of(project))
		}
	}
	for _, name := range [...]string{"summary", "memoryScratchpad", "directories"} {
		if part := v.Get(name); part.Exists() {
			if m := d.status(name+":"+msg.HashKey(id, string(part.Peek())), name, at); m != nil {
				m.Content = part.Text()
				if name == "summary" && !sub {
					m.Title = conversation.Excerpt(part)
				}
			} else {
				part.MarkRead()
			}
		}
	}
	for m := range v.Get("messages").Elems() {
		d.message(m)
	}
}

// rewind decodes the removal of a message and of those after it.
func (d *chat) rewind(to jsonv.Value) {
	d.end("end:"+d.Run.ID, d.Last, "rewound")
	to.MarkRead()
	if m := d.status("rewind:"+msg.HashKey(d.Run.ID, string(to.Peek())), "rewind", d.Last); m != nil {
		m.SetAttr("to", ident.Of(to))
	}
}

// message decodes a message, which may have been written before.
func (d *chat) message(v jsonv.Value) {
	id, typ, at := ident.Of(v.Get("id")), v.Get("type"), conversation.TimeOf(v.Get("timestamp"))
	if id == "" {
		id = "message:" + msg.HashKey(string(typ.Peek()), string(v.Get("timestamp").Peek()), string(v.Get("content").Peek()))
	}
	if d.Agent == (msg.Agent{}) {
		d.Agent = msg.Agent{Name: "gemini-cli", Kind: msg.KindAgent}
	}
	switch {
	case typ.Equal("user"):
		d.user(id, v, at)
	case typ.In("gemini", "model"):
		d.response(id, v, at)
	case !typ.In("info", "warning", "error"):
		d.Unknown(cmp.Or(ident.Of(typ), "message"), v)
	case !d.isNew(id):
		v.Get("content").MarkRead()
	default:
		kind := msg.Status
		if typ.Equal("error") {
			kind = msg.Error
		}
		m := d.add(kind, id, at)
		m.IsError = kind == msg.Error
		m.Content, m.Attachments = gemini.Content(v.Get("content"))
		m.SetAttr("type", typ.Str())
	}
}

// user decodes a prompt, and the context that the CLI adds to it. Results in the model's history are user
// messages too.
func (d *chat) user(id string, v jsonv.Value, at conversation.Time) {
	content := v.Get("content")
	d.results(content, jsonv.Value{}, at)
	typed := v.Get("displayContent")
	if !d.isNew(id) {
		content.MarkRead()
		typed.MarkRead()
		return
	}
	text, files := gemini.Content(v.First("displayContent", "content"))
	if typed.Exists() {
		_, files = gemini.Content(content)
	}
	if text.IsZero() && len(files) == 0 {
		return
	}
	words := strings.TrimSpace(text.String())
	added := strings.HasPrefix(words, "<session_context>") || strings.HasPrefix(words, "<hook_context>") || strings.HasPrefix(words, "<state_snapshot>")
	if strings.HasPrefix(words, "/") || strings.HasPrefix(words, "?") { // a command, for the CLI alone
		m := d.Out.Add()
		d.fill(m, msg.User, id, at)
		m.Run, m.Role, m.Agent, m.Content = "", msg.RoleUser, msg.Agent{Kind: msg.KindHuman}, text
		return
	}
	if !added {
		d.begin(id)
	}
	m := d.add(msg.User, id, at)
	m.Content, m.Attachments, m.Hidden = text, files, added
	d.prompt(m)
	if beside, _ := gemini.Content(content); typed.Exists() && beside.String() != text.String() {
		m := d.add(msg.User, "context:"+id, at)
		m.Content, m.Hidden = beside, true
		d.prompt(m)
	}
}

// response decodes a response of the model with its calls and their results.
func (d *chat) response(id string, v jsonv.Value, at conversation.Time) {
	r := &conversation.Response{ID: id, Run: d.Run.ID, At: at, Model: ident.Of(v.Get("model")), Provider: provider}
	for t := range v.Get("thoughts").Elems() {
		if key := r.Key(msg.Reasoning); d.isNew(key) {
			var text conversation.Texts
			text.Add(t.Get("subject").Text())
			text.Add(t.Get("description").Text())
			m := d.add(msg.Reasoning, key, conversation.TimeOf(t.Get("timestamp")).Or(at))
			m.Role, m.Content = msg.RoleAssistant, text.Joined()
			r.Mark(m)
		} else {
			t.MarkRead()
		}
	}
	content, calls := v.First("content", "parts"), 0
	if text, files := gemini.Content(content); !text.IsZero() || len(files) > 0 {
		if d.isNew(id) {
			m := d.add(msg.Assistant, id, at)
			m.Role, m.Content, m.Attachments = msg.RoleAssistant, text, files
			r.Mark(m)
		}
		r.Last, d.Rests = id, true
	}
	unnamed := 0
	for c := range v.Get("toolCalls").Elems() {
		id := ident.Of(c.Get("id"))
		if id == "" { // a tool that writes such chats has none
			id = conversation.Ordinal(r.ID+"/call", &unnamed)
		}
		d.toolCall(r, c, id)
		calls++
	}
	for p := range content.Elems() { // the model's history, which has calls before they have ended
		if c := p.Get("functionCall"); c.Exists() {
			d.toolCall(r, c, ident.Of(c.Get("id")))
			calls++
		} else if p.Get("thought").Bool() {
			p.MarkRead() // as thoughts has it
		}
	}
	d.Rests = d.Rests && calls == 0
	if t := v.Get("tokens"); t.Is(jsonv.Object) {
		d.usage(r, gemini.Usage{
			Prompt: t.Get("input").Uint(), Cached: t.Get("cached").Uint(), Output: t.Get("output").Uint(),
			Thoughts: t.Get("thoughts").Uint(), ToolUse: t.Get("tool").Uint(), Total: t.Get("total").Uint(),
		}.Counts(), calls == 0)
	}
}

// toolCall decodes a call and, once it has ended, its result.
func (d *chat) toolCall(r *conversation.Response, v jsonv.Value, id string) {
	agent, args := ident.Of(v.Get("agentId")), v.Get("args")
	name := cmp.Or(ident.Of(v.Get("name")), "unknown")
	if id == "" {
		d.Unknown("tool_call", v)
		return
	}
	if d.isNew("call:" + id) {
		m := d.add(msg.ToolCall, "call:"+id, r.At)
		m.ParentKey = r.Last
		m.SetAttr("display_name", ident.Of(v.Get("displayName")))
		m.SetAttr("description", conversation.Excerpt(v.Get("description")))
		r.Mark(m)
		c := made(id, name)
		c.on(m, args, agent)
		d.Calls.Add(c)
	} else {
		v.Skip("args", "displayName", "description")
	}
	status, at := v.Get("status"), conversation.TimeOf(v.Get("timestamp")).Or(r.At)
	if v.Get("result").Exists() || status.In("success", "error", "cancelled") {
		d.ended(id, name, agent, v, at)
	}
}

// ended decodes the result in the record of a call.
func (d *chat) ended(id, name, agent string, v jsonv.Value, at conversation.Time) {
	result := v.Get("result")
	if !d.isNew("result:" + id) {
		result.MarkRead()
		return
	}
	var own jsonv.Value
	for p := range result.Elems() {
		fr := p.Get("functionResponse")
		if fr.Exists() && (ident.Is(fr.Get("id"), id) || !fr.Get("id").Exists()) { // the others are of other calls
			own = fr
			fr.Get("name").Equal(name)
		}
	}
	m := d.resultOf(id, name, at)
	text, files, failed := gemini.Result(own)
	beside, more := gemini.Content(result)
	switch {
	case text.IsZero() && beside.IsZero():
		text = v.Get("resultDisplay").Text()
	case text.IsZero():
		text = beside
	case !beside.IsZero():
		text = msg.Plain(text.String() + "\n" + beside.String())
	}
	m.Content, m.Attachments = text, append(files, more...)
	conversation.Causes(m, agent)
	fails(m, v.Get("status"), failed, jsonv.Value{})
	if name == "complete_task" && d.Run.Child {
		d.end("end:"+d.Run.ID, at, "stop")
	}
}

// results decodes the results among the parts of a content. The record of one may have the id of its call.
func (d *chat) results(parts, id jsonv.Value, at conversation.Time) {
	for p := range parts.Elems() {
		if fr := p.Get("functionResponse"); fr.Exists() {
			d.result(ident.First(fr.Get("id"), id), fr, at)
		}
	}
}

// result decodes a result that is apart from the record of its call.
func (d *chat) result(id string, fr jsonv.Value, at conversation.Time) {
	if id == "" {
		d.Unknown("function_response", fr)
		return
	}
	if !d.isNew("result:" + id) {
		fr.MarkRead()
		return
	}
	m := d.resultOf(id, ident.Peek(fr.Get("name")), at)
	ident.Is(fr.Get("name"), m.Tool.Name)
	var failed bool
	m.Content, m.Attachments, failed = gemini.Result(fr)
	fails(m, jsonv.Value{}, failed, jsonv.Value{})
}

// resultOf adds the message of a result.
func (d *chat) resultOf(id, name string, at conversation.Time) *msg.Message {
	c := d.Calls.Get(id)
	if c == nil {
		c = made(id, name)
	} else {
		d.Calls.End(c)
	}
	return c.Result(d.add(msg.ToolResult, "result:"+id, at))
}

// server returns the MCP server in the name of a tool: mcp_<server>_<tool>, of Qwen Code
// mcp__<server>__<tool>.
func server(tool string) string {
	if rest, ok := strings.CutPrefix(tool, "mcp_"); ok && !strings.HasPrefix(rest, "_") {
		if name, _, ok := strings.Cut(rest, "_"); ok {
			return name
		}
	}
	return conversation.ToolServer(tool)
}
