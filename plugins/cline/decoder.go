// Package cline decodes the sessions of Cline from version 4 on, which its extensions, its desktop program and its
// command line keep in one place: documents that are written again as a whole after each step.
//
//	SESSION/SESSION.messages.json    the messages: {version, agent, sessionId, origin, messages, system_prompt}
//	SESSION/AGENT.messages.json      of a sub-agent
//	SESSION/SESSION.json             the session: {version, session_id, started_at, status, model, cwd, metadata}
//	SESSION/SESSION.compaction.json  what the model gets in the place of the messages before
//
// Facts of the format that are easy to get wrong:
//
//   - The id of a message is no name: one that has none yet gets another at each write, and a session that is taken up
//     again divides the results of calls differently. Texts are named by the ones before them, calls by their ids.
//   - An assistant message is one response of the model. inputTokens includes the cached tokens.
//   - The results of calls are user messages, and so are the notes of Cline: each has a userRunSpan of 0. A prompt that steers
//     the work has that too.
//   - A failed operation is a result with success false, and no error of its call. A request that failed is an assistant
//     message that is displayed as an error.
//   - ts is when a message was complete: a call begins at that of its response.
//   - A session that was restored begins with copies of the messages before. Its id begins with the time at which it began.
//   - The file of a sub-agent names its session and never the call: its first prompt is the task of the call.
package cline

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return record.Format[struct{}]{
		Info: decoder.Info{
			Name:       "cline",
			Revision:   3,
			Summary:    "Sessions of Cline, with those of its sub-agents and teammates.",
			Transports: []frame.Kind{frame.Body},
			Documents:  []string{"*.json"},
		},
		LeavesOut: leavesOut,
		Open:      func(r *record.Current, _ *struct{}) record.Reader { return &stream{Current: r} },
	}.Factory()
}

// stream decodes one document.
type stream struct {
	*record.Current
	s conversation.Session

	began  int64 // when the session began: an older message is a copy
	person bool  // who writes the prompts
	agent  msg.Agent
	chain  string                 // the last call, and a hash of the texts since
	last   string                 // key of the message before
	before conversation.Time      // of it
	about  jsonv.Value            // the origin of the session
	end    *conversation.Response // the last response, if it has no calls: the run may be over
	calls  conversation.Calls[*call]
}

// call is a tool call.
type call struct {
	conversation.Delegation
	human bool // it waits for a person
}

// Read decodes a document.
func (d *stream) Read() {
	*d = stream{Current: d.Current}
	v := d.Root
	switch list := v.Get("messages").Is(jsonv.Array); {
	case list && v.Get("source_message_count").Exists():
		d.compaction(v)
	case list && ident.Peek(v.Get("sessionId")) != "":
		d.conversation(v)
	case ident.Peek(v.Get("session_id")) != "" && v.Get("started_at").Exists():
		d.session(v)
	default:
		d.Unknown("document", v)
	}
}

// In returns the session at the top.
func (d *stream) In() (session, run string) {
	if d.s.ID == "" {
		return d.Current.In()
	}
	return d.s.Root, ""
}

// enter makes the session that of the document, below another one if it names that.
func (d *stream) enter(id, parent string) {
	d.s = conversation.Session{ID: id, Root: id}
	if parent != "" && parent != id {
		d.s.Delegated(parent)
		d.s.Root, d.s.Run.ID = parent, "" // which its first prompt names
	}
}

// session decodes the document about a session, whose status changes.
func (d *stream) session(v jsonv.Value) {
	d.enter(ident.Of(v.Get("session_id")), "")
	d.At = conversation.TimeOf(v.Get("started_at"))
	about := v.Get("metadata")
	m := record.Hide(d.Add(msg.Status, "session:"+d.s.ID), "session")
	m.Complete, m.Content = msg.Summary, v.Get("prompt").Text()
	m.Title, m.Client.Project = conversation.Excerpt(about.Get("title")), ident.First(v.Get("workspace_root"), v.Get("cwd"))
	conversation.Attrs(m, v, "source", "status", "provider", "model", "cwd", "team_name", "ended_at")
	conversation.AttrsAs(m, v, jsonv.Value.Digits, "exit_code", "pid")
	conversation.AttrsAs(m, about, jsonv.Value.Digits, "cost=totalCost")
	conversation.AttrsAs(m, about, conversation.ShortJSON, "usage")
}

// compaction decodes the text that the model gets in the place of the messages before.
func (d *stream) compaction(v jsonv.Value) {
	d.enter(ident.Bounded(ident.OfFile(d.Origin, ".compaction.json")), "")
	d.At = conversation.TimeOf(v.Get("updated_at"))
	n := v.Get("source_message_count").Digits()
	m := record.Hide(d.Add(msg.Status, "compaction:"+msg.HashKey(d.s.ID, n)), "compaction")
	record.Signal(m, msg.Compaction)
	m.SetAttr("messages", n)
	for x := range v.Get("messages").Elems() {
		if x.Path("metadata", "kind").Equal("compaction_summary") {
			t := texts(x.Get("content"))
			m.Content = t.Joined()
		}
	}
}

// texts reads a text, or the texts of a list of blocks.
func texts(v jsonv.Value) (t conversation.Texts) {
	for b := range jsonv.Each(v) {
		if text := jsonv.Or(b.Get("text"), b); text.Is(jsonv.String) {
			t.Add(text.Text())
		}
	}
	return t
}

// conversation decodes the messages of an agent.
func (d *stream) conversation(v jsonv.Value) {
	origin := v.Get("origin")
	d.about = origin
	d.enter(ident.Of(v.Get("sessionId")), ident.Of(origin.Get("parentThreadId")))
	d.agent = msg.Agent{Kind: msg.KindAgent, ID: ident.Of(origin.Get("subagent")), Name: ident.Peek(origin.Get("subagent"))}
	d.person = d.s.Parent == "" && (origin.Get("mode").Equal("user") || !origin.Get("mode").Exists())
	if number, _, ok := strings.Cut(d.s.ID, "_"); ok && d.s.Parent == "" {
		const millis = 1e6
		n, _ := strconv.ParseInt(number, 10, 64)
		d.began = n * millis
	}
	if text := v.Get("system_prompt"); text.Exists() {
		d.At = conversation.Time{Nanos: d.began, Precision: msg.Millis}
		m := d.Add(msg.System, "system:"+msg.HashKey(d.s.ID, text.PeekStr()))
		m.Agent, m.Hidden, m.Content = d.agent, true, text.Text()
	}
	for m := range v.Get("messages").Elems() {
		d.message(m)
	}
	d.stop(false)
}

// add adds a message of the run.
func (d *stream) add(kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	m.Agent = d.agent
	if d.s.Run.Child && d.s.Run.ID == "" { // it has no prompt
		d.s.Run.ID = d.s.ID
	}
	if d.s.Run.Mark(m) {
		m.Client.Version = ident.Of(d.about.Get("version"))
		if conversation.Attrs(m, d.about, "source", "trigger"); d.s.Run.Child {
			m.SetAttr("session_id", d.s.ID)
		}
		conversation.Attrs(m, d.Root, "agent", "taskType")
	}
	return m
}

// message decodes a message: {role, content: text | [block], ts, modelInfo, metrics, metadata}.
func (d *stream) message(v jsonv.Value) {
	d.At = conversation.TimeOf(v.Get("ts"))
	switch copied := 0 < d.At.Nanos && d.At.Nanos < d.began; {
	case copied:
		d.copied(v)
	case v.Get("role").Equal("user"):
		d.user(v)
	case v.Get("role").Equal("assistant") && v.Path("metadata", "displayRole").Equal("error"):
		d.failed(v)
	case v.Get("role").Equal("assistant"):
		d.response(v)
	default:
		d.Unknown("message", v)
	}
	d.before = d.At.Or(d.before)
}

// copied decodes a message that another session has too.
func (d *stream) copied(v jsonv.Value) {
	user := v.Get("role").Equal("user")
	if t := texts(v.Get("content")); t.N > 0 {
		m := d.Add(msg.Assistant, "history:"+d.named("history", t.Joined()))
		m.Role, m.Content, m.Complete = msg.RoleAssistant, t.Joined(), msg.Summary
		if user {
			m.Kind, m.Role, m.Agent = msg.User, msg.RoleUser, msg.Agent{Kind: msg.KindHuman}
		}
		m.SetAttr("type", msg.History)
	}
	v.MarkRead()
}

// named names a text by the ones before it.
func (d *stream) named(kind string, text msg.Text) string {
	d.chain = msg.HashKey(d.s.ID, d.chain, kind, text.String())
	return d.chain
}

// user decodes a message that is no response: results of calls, a prompt, a note of Cline.
func (d *stream) user(v jsonv.Value) {
	var has conversation.Content
	for b := range jsonv.Each(v.Get("content")) {
		switch typ := b.Get("type"); {
		case b.Is(jsonv.String):
			has.Add(b.Text())
		case typ.Equal("tool_result"):
			d.result(b)
		case typ.Equal("text"):
			has.Add(b.Get("text").Text())
		case isFile(b):
			has.Attach(file(b))
		default:
			d.Unknown(ident.Peek(typ), b)
		}
	}
	if has.N == 0 && len(has.Files) == 0 {
		return
	}
	about := v.Get("metadata")
	text, attr := unwrapped(has.Joined())
	key := d.named("user", text)
	added := about.Get("userRunSpan").Digits() == "0"
	if !added {
		d.stop(true)
		if d.s.Run.Begin(key); d.s.Run.ID == "" {
			mate := ""
			if d.Root.Get("agent").Equal("teammate") {
				mate = d.agent.Name
			}
			d.s.Run.ID = d.task(mate, text.String())
		}
	}
	d.end = nil
	if added && (about.Get("displayRole").Equal("system") || about.Get("kind").Exists() || strings.HasPrefix(text.String(), "[SYSTEM]")) {
		m := d.add(msg.System, key)
		m.Hidden, m.Content, m.Attachments = true, text, has.Files
		return
	}
	m := d.add(msg.User, key)
	m.Role, m.Content, m.Attachments, m.Agent = msg.RoleUser, text, has.Files, msg.Agent{Kind: msg.KindAgent}
	if d.person {
		m.Agent.Kind = msg.KindHuman
	}
	m.Attrs = append(m.Attrs, attr...)
	d.last = key
}

// likely is how sure a link by the task is.
const likely = 90

// task names the run of a sub-agent, or of a teammate, below the session at the top: by its task, which its first prompt and the call
// have alike. Two that have the same are one.
func (d *stream) task(teammate, text string) string {
	return "task:" + msg.HashKey(d.s.Root, teammate, strings.TrimSpace(text))
}

// unwrapped is a prompt without the tags around it, of which the mode or the command is an attribute.
func unwrapped(t msg.Text) (msg.Text, []msg.Attr) {
	s := t.String()
	for tag, name := range map[string]string{"user_input": "mode", "user_command": "slash"} {
		before, rest, _ := strings.Cut(s, "<"+tag+" "+name+`="`)
		value, after, ok := strings.Cut(rest, `">`)
		if i := strings.LastIndex(after, "</"+tag+">"); ok && i >= 0 && len(value) < ident.Max {
			return msg.Plain(before + after[:i] + after[i+len("</"+tag+">"):]), []msg.Attr{{Key: name, Value: value}}
		}
	}
	return t, nil
}

// isFile reports whether a block is a file.
func isFile(b jsonv.Value) bool {
	return b.Get("type").Equal("image") && b.Get("data").Is(jsonv.String) || b.Get("type").Equal("file") && b.Get("path").Is(jsonv.String)
}

// file reads a file of a prompt or of a result.
func file(b jsonv.Value) msg.Attachment {
	if b.Get("type").Equal("image") {
		return media.Base64(b.Get("data"), ident.Of(b.Get("mediaType")))
	}
	f := media.File(b.Get("path").Str())
	f.Size = int64(len(b.Get("content").Str()))
	return f
}

// response decodes a response of the model with its calls.
func (d *stream) response(v jsonv.Value) {
	r := conversation.Response{ID: msg.HashKey(d.s.ID, d.chain, "response"), Model: ident.Of(v.Path("modelInfo", "id")), Provider: ident.Of(v.Path("modelInfo", "provider")), At: d.At}
	d.s.Run.Wake(r.ID)
	r.Run = d.s.Run.ID
	before, called := d.chain, false
	part := func(kind msg.Kind, key string) *msg.Message {
		m := d.add(kind, key)
		m.ParentKey, d.last = d.last, key
		r.Mark(m)
		return m
	}
	for b := range jsonv.Each(v.Get("content")) {
		switch typ := b.Get("type"); {
		case b.Is(jsonv.String), typ.Equal("text"):
			text := jsonv.Or(b.Get("text"), b).Text()
			r.Said(part(msg.Assistant, d.named("assistant", text)), text)
		case typ.Equal("thinking"):
			text := b.Get("thinking").Text()
			r.Said(part(msg.Reasoning, d.named("thinking", text)), text)
		case typ.Equal("redacted_thinking"):
		case typ.Equal("tool_use") && ident.Peek(b.Get("id")) != "":
			called = true
			c := d.call(b, r.ID)
			m := part(msg.ToolCall, "call:"+c.ID)
			c.Called(m, b.Get("input").JSON(), b.Path("input", "task"))
			if conversation.Attrs(m, b, "call_id"); c.Task {
				m.Delegation.ChildRun = d.task(c.To, b.Path("input", "task").PeekStr())
				m.Delegation.Link, m.Delegation.Confidence = msg.ByPrompt, likely
			}
			if c.human {
				d.waits(c, "wait:", msg.WaitStart)
			}
		case isFile(b):
			f := file(b)
			part(msg.File, d.named("file", msg.Plain(f.Name+f.URL+f.SHA256))).Attachments = []msg.Attachment{f}
		default:
			d.Unknown(ident.Peek(typ), b)
		}
	}
	if d.chain == before { // it is empty
		d.chain = r.ID
	}
	if u := v.Get("metrics"); u.Is(jsonv.Object) {
		c := conversation.Counts{Input: u.Get("inputTokens").Uint(), Output: u.Get("outputTokens").Uint(), CacheRead: u.Get("cacheReadTokens").Uint(), CacheWrite: u.Get("cacheWriteTokens").Uint()}
		c.Input -= min(c.Input, c.CacheRead+c.CacheWrite)
		r.Count(c, msg.Provider)
		m := r.Usage(d.Out, msg.Complete)
		m.Session, m.Agent = d.s.Root, d.agent
		cost := u.Get("cost").Digits()
		m.SetAttr("cost", cost)
		m.Usage.Stated = msg.Dollars(cost)
	}
	if d.end = &r; called {
		d.end = nil
	}
}

// failed decodes Cline's message that a request has failed, and the run with it.
func (d *stream) failed(v jsonv.Value) {
	t := texts(v.Get("content"))
	key := d.named("error", t.Joined())
	m := d.add(msg.Error, key)
	m.ParentKey, d.last = d.last, key
	m.IsError, m.Content, m.Model, m.Provider = true, t.Joined(), ident.Of(v.Path("modelInfo", "id")), ident.Of(v.Path("modelInfo", "provider"))
	d.end = &conversation.Response{ID: key, Stop: "error", At: d.At}
}

// call reads a call of a response.
func (d *stream) call(b jsonv.Value, response string) *call {
	c := &call{human: b.Get("name").Equal("ask_question")}
	c.ID, c.Name = ident.Of(b.Get("id")), cmp.Or(ident.Of(b.Get("name")), "unknown")
	c.Within(response)
	if server, _, ok := strings.Cut(c.Name, "__"); ok && server != "mcp" {
		c.Server = server
	}
	if c.Task = c.Name == "spawn_agent" || c.Name == "team_run_task"; c.Task {
		c.To, c.Async = ident.Of(b.Path("input", "agentId")), b.Path("input", "runMode").Equal("async")
	}
	d.calls.Add(c)
	d.chain = c.ID
	return c
}

// waits reports that a call begins to wait for a person, or no longer does.
func (d *stream) waits(c *call, key string, signal msg.Signal) {
	record.Hide(c.About(d.add(msg.Status, key+c.ID)), "question").Signal = signal
}

// result decodes the result of a call, which is a text, a list of blocks, or JSON of the tool.
func (d *stream) result(b jsonv.Value) {
	id, content := ident.Of(b.Get("tool_use_id")), b.Get("content")
	if id == "" {
		d.Unknown("tool_result", b)
		return
	}
	c := d.calls.Named(id)
	if c == nil {
		c = new(call)
		c.ID, c.Name = id, cmp.Or(ident.Peek(b.Get("name")), "unknown")
	}
	b.Get("name").Equal(c.Name)
	if d.calls.End(c); c.human {
		d.waits(c, "waited:", msg.WaitEnd)
	}
	m := c.Result(d.add(msg.ToolResult, "result:"+c.ID))
	var has conversation.Content
	blocks := true
	for x := range jsonv.Each(content) {
		blocks = blocks && (x.Is(jsonv.String) || x.Get("type").Equal("text") && x.Get("text").Is(jsonv.String) || isFile(x))
	}
	for x := range jsonv.Each(content) {
		switch {
		case !blocks:
		case x.Is(jsonv.String):
			has.Add(x.Text())
		case x.Get("type").Equal("text"):
			has.Add(x.Get("text").Text())
		default:
			has.Attach(file(x))
		}
	}
	if has.Fill(m); !blocks {
		m.Content = content.JSON()
	}
	if b.Get("is_error").Bool() || failed(content) {
		m.IsError, m.Tool.ErrorType = true, conversation.ErrorClass(conversation.Cut(m.Content.String(), ident.Max), "denied", "denied", "not approved", "denied", "aborted", "interrupted", "cancelled", "interrupted")
	}
}

// failed reports whether a result is of operations of which one has failed, or of an agent that has:
//
//	[{query, result, error?, success}] | {query, result, error?, success} | {text, iterations, finishReason, usage}
func failed(content jsonv.Value) bool {
	if content.HasPrefix("{") {
		var of struct {
			Success      *bool
			FinishReason string
		}
		_ = json.Unmarshal([]byte(content.Str()), &of) // a text that is no JSON has neither
		return of.Success != nil && !*of.Success || of.FinishReason == "error" || of.FinishReason == "aborted"
	}
	for x := range jsonv.Each(content) {
		if x.Get("success").Is(jsonv.False) {
			return true
		}
	}
	return false
}

// stop ends the run, if it is over: with a response that has no calls, or before the next prompt.
func (d *stream) stop(next bool) {
	if !d.s.Run.Started || d.s.Run.Ended || d.end == nil && !next {
		return
	}
	at, key, reason := d.At, d.last, "interrupted"
	if d.At = d.before; d.end != nil {
		d.At, key, reason = d.end.At, d.end.ID, cmp.Or(d.end.Stop, "stop")
	}
	d.s.Run.Finish(d.add(msg.Stop, "stop:"+key), reason, reason != "stop")
	d.At = at
}
