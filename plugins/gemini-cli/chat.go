package geminicli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/claude"
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
		d.Session = cmp.Or(folder(d.Origin), id)
		d.child(id, "")
	case !d.Run.Child:
		d.Session = id
	}
	d.Agent = cmp.Or(d.Agent, agentOf("gemini-cli"))
	at := conversation.TimeOf(v.Get("startTime"))
	if project := v.Get("projectHash"); project.Is(jsonv.String) {
		project.MarkRead()
		if m := d.status("session:"+id, "session", at); m != nil {
			m.SetAttr("project_hash", ident.Of(project))
		}
	}
	for _, name := range [...]string{"summary", "memoryScratchpad", "directories"} {
		if part := v.Get(name); part.Exists() {
			part.MarkRead()
			if m := d.status(name+":"+msg.HashKey(id, string(part.Peek())), name, at); m != nil {
				if m.Content = part.Text(); name == "summary" && !sub && !d.Run.Child {
					m.Title = conversation.Excerpt(part)
				}
			}
		}
	}
	for dir := range v.Get("directories").Elems() {
		d.Dir = cmp.Or(d.Dir, ident.Peek(dir))
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
	d.Agent = cmp.Or(d.Agent, agentOf("gemini-cli"))
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

// contexts are the beginnings of user messages that the CLI adds.
var contexts = []string{"<session_context>", "<hook_context>", "<state_snapshot>"}

// user decodes a prompt, and the context that the CLI adds to it. Results in the model's history are user
// messages too.
func (d *chat) user(id string, v jsonv.Value, at conversation.Time) {
	content, typed := v.Get("content"), v.Get("displayContent")
	d.results(content, jsonv.Value{}, at)
	if !d.isNew(id) {
		v.Skip("content", "displayContent")
		return
	}
	whole, files := gemini.Content(content)
	text := whole
	if typed.Exists() {
		text, _ = gemini.Content(typed)
	}
	if text.IsZero() && len(files) == 0 {
		return
	}
	words := strings.TrimSpace(text.String())
	added := slices.ContainsFunc(contexts, func(tag string) bool { return strings.HasPrefix(words, tag) })
	if strings.HasPrefix(words, "/") || strings.HasPrefix(words, "?") { // a command, for the CLI alone
		m := d.beside(msg.User, id, at)
		m.Run, m.Role, m.Agent, m.Content = "", msg.RoleUser, msg.Agent{Kind: msg.KindHuman}, text
		return
	}
	if _, list, ok := strings.Cut(words, "**Workspace Directories:**\n  - "); ok && added {
		d.Dir, _, _ = strings.Cut(conversation.Cut(list, ident.Max), "\n")
	}
	if !added {
		d.begin(id)
	}
	m := d.prompt(id, at, text, files)
	if m.Hidden = added; m.Signal == msg.RunStart {
		m.Client.Project = d.Dir
	}
	if typed.Exists() && whole.String() != text.String() {
		d.prompt("context:"+id, at, whole, nil).Hidden = true
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
		m := d.called(r, id, name, args, agent)
		m.SetAttr("display_name", ident.Of(v.Get("displayName")))
		m.SetAttr("description", conversation.Excerpt(v.Get("description")))
	} else {
		v.Skip("args", "displayName", "description")
	}
	status, at := v.Get("status"), conversation.TimeOf(v.Get("timestamp")).Or(r.At)
	if v.Get("result").Exists() || status.In("success", "error", "cancelled") {
		d.ended(id, name, agent, v, at)
	}
}

// called adds a call: a delegation, if it hands work to a sub-agent, whose id may be known.
func (d *chat) called(r *conversation.Response, id, name string, args jsonv.Value, agent string) *msg.Message {
	c := made(id, name)
	switch name {
	case "invoke_agent", "delegate_to_agent", "agent", "task":
		c.To = ident.Of(args.First("agent_name", "subagent_type", "agent"))
	}
	c.Task, c.To = agent != "" || c.To != "", cmp.Or(c.To, name)
	d.Calls.Add(c)
	m := d.add(msg.ToolCall, "call:"+id, r.At)
	m.Role, m.ParentKey = msg.RoleAssistant, r.Last
	r.Mark(m)
	c.Called(m, args.JSON(), args.First("prompt", "objective", "task", "query"))
	conversation.Causes(m, agent)
	return m
}

// ended decodes the result in the record of a call.
func (d *chat) ended(id, name, agent string, v jsonv.Value, at conversation.Time) {
	result := v.Get("result")
	var own jsonv.Value
	for p := range result.Elems() {
		fr := p.Get("functionResponse")
		if fr.Exists() && (ident.Is(fr.Get("id"), id) || !fr.Get("id").Exists()) { // the others are of other calls
			own = fr
		}
	}
	m := d.result(id, name, own, at)
	if m == nil {
		result.MarkRead()
		return
	}
	beside, files := gemini.Content(result)
	m.Attachments = append(m.Attachments, files...)
	var texts conversation.Texts
	for _, t := range [...]msg.Text{m.Content, beside} {
		if !t.IsZero() {
			texts.Add(t)
		}
	}
	if m.Content = texts.Joined(); texts.N == 0 {
		m.Content = v.Get("resultDisplay").Text()
	}
	conversation.Causes(m, agent)
	fails(m, v.Get("status"), jsonv.Value{})
	if name == "complete_task" && d.Run.Child && !m.IsError {
		d.end("end:"+d.Run.ID, at, "stop")
	}
}

// results decodes the results among the parts of a content, and returns the last message. The record of one may have the id
// of its call.
func (d *chat) results(parts, id jsonv.Value, at conversation.Time) (last *msg.Message) {
	for p := range parts.Elems() {
		fr := p.Get("functionResponse")
		switch id := ident.First(fr.Get("id"), id); {
		case !fr.Exists():
		case id == "":
			last = d.Unknown("function_response", fr)
		default:
			last = cmp.Or(d.result(id, ident.Peek(fr.Get("name")), fr, at), last)
		}
	}
	return last
}

// result decodes the result of a call; nil when it was decoded before.
func (d *chat) result(id, name string, fr jsonv.Value, at conversation.Time) *msg.Message {
	if c := d.Calls.GetOpen(id); c != nil && c.Task && fr.Path("response", "output").HasPrefix(claude.Launched) {
		return qwen{d}.launched(c, fr, at)
	}
	if !d.isNew("result:" + id) {
		fr.MarkRead()
		return nil
	}
	m := d.resultOf(id, name, at)
	ident.Is(fr.Get("name"), m.Tool.Name)
	var failed bool
	m.Content, m.Attachments, failed = gemini.Result(fr)
	conversation.Failed(m, failed)
	ending(m)
	return m
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

// server returns the MCP server in the name of a tool: mcp_<server>_<tool>. That of Qwen Code is mcp__<server>__<tool>, of
// which the SDK knows the server.
func server(tool string) string {
	rest, isMCP := strings.CutPrefix(tool, "mcp_")
	if name, _, ok := strings.Cut(rest, "_"); ok && isMCP {
		return name
	}
	return ""
}
