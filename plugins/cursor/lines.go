package cursor

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
	"github.com/earshot-dev/earshot/core/sdk/spawn"
)

// maxPieces is how many bytes of a text are kept until the whole of it arrives.
const maxPieces = 256 << 10

// talk is the state of a conversation in lines: a transcript, or the output of cursor-agent.
type talk struct {
	Session string           `json:",omitempty"`
	Model   string           `json:",omitempty"`
	Client  msg.Client       `json:",omitzero"`
	Run     conversation.Run `json:",omitzero"`
	// Chain is a hash of all contents so far, from which keys are made: the lines have no ids.
	Chain   string                    `json:",omitempty"`
	Text    []byte                    `json:",omitempty"` // pieces of an answer, as JSON
	Thought []byte                    `json:",omitempty"` // pieces of a thought, as JSON
	Said    string                    `json:",omitempty"` // hash of the last answer, until something follows it
	Caused  bool                      `json:",omitempty"` // a call of another conversation has the first prompt
	Last    string                    `json:",omitempty"` // key of the last part
	Context []string                  `json:",omitempty"` // texts that the program has added before a prompt
	Calls   conversation.Calls[*call] `json:",omitzero"`

	Lines conversation.Lines `json:",omitzero"` // that have an id or a time
}

// call is a call of a tool.
type call struct {
	conversation.Call
	Arguments string `json:",omitempty"` // hash: the end of a call repeats them
}

// line decodes one line of a conversation.
//
//	{role: user | assistant, message: {content}}                 of a transcript
//	{type: turn_ended, status: success | aborted | error}
//	{type: system | user | assistant | thinking | tool_call | result, session_id, …}   of cursor-agent
func (d *stream) line() {
	v := d.Root
	d.At = conversation.TimeOf(v.First("timestamp_ms", "timestamp"))
	content, typ := v.Path("message", "content"), v.First("type", "role")
	if !typ.In("user", "assistant", "thinking", "tool_call", "turn_ended", "result", "system", "interaction_query", "connection", "retry", "error") {
		d.Unknown(ident.Of(typ), v, d.Talk.Chain)
		return
	}
	d.within(ident.Of(v.Get("session_id")))
	piece := typ.Equal("thinking") && !v.Get("subtype").Equal("completed") || typ.Equal("assistant") && isPiece(v)
	if d.repeated(v, piece) {
		v.MarkRead()
		if t := &d.Talk; typ.Equal("result") && t.Run.Active() { // of prompts, which have no ids
			d.tell()
			d.stop(v, t.key(msg.Stop), "result")
		}
		return
	}
	switch {
	case typ.Equal("user") && content.Exists():
		d.tell()
		d.prompts(content)
	case typ.Equal("assistant") && content.Exists():
		d.answer(content, v)
	case typ.Equal("thinking"):
		d.thinking(v)
	case typ.Equal("tool_call") && v.Get("tool_call").Is(jsonv.Object):
		d.tell()
		d.toolCall(v)
	case typ.In("turn_ended", "result"):
		d.tell()
		d.ended(v, typ.PeekStr())
	default:
		d.beside(v, ident.Of(typ))
	}
}

// isPiece reports whether a line has a piece of an answer: the whole has no time, or the id of the model's call.
func isPiece(v jsonv.Value) bool {
	return v.Get("timestamp_ms").Exists() && !v.Get("model_call_id").Exists()
}

// repeated reports whether a line of cursor-agent was read before: one that has a time, or the id of a call, a response or a
// request, and the same content.
func (d *stream) repeated(v jsonv.Value, piece bool) bool {
	if !v.Get("session_id").Exists() || !v.First("timestamp_ms", "call_id", "model_call_id", "request_id").Exists() {
		return false
	}
	line := conversation.SumOfMembers(v, "session_id", "type", "subtype", "timestamp_ms", "call_id", "model_call_id", "request_id", "message", "text", "tool_call", "query_type")
	return d.Talk.Lines.Repeat(line, d.At, piece, len(d.Talk.Text)+len(d.Talk.Thought) > 0)
}

// within makes a conversation that of the lines: the one that they name, or that of the file.
func (d *stream) within(session string) {
	t := &d.Talk
	if session != "" {
		t.Session = session
	}
	if t.Chain != "" {
		return
	}
	name, agent := place(d.Origin)
	t.Session, t.Caused = cmp.Or(t.Session, name), agent
	t.Chain = msg.HashKey(t.Session)
}

// place returns the conversation that a transcript is of, and whether it is that of a sub-agent:
// <conversation>/<conversation>.jsonl, <conversation>/subagents/<agent>.jsonl.
func place(origin string) (session string, agent bool) {
	p := ident.PathOf(origin)
	return cmp.Or(p.Name(".jsonl"), "unknown"), p.Dir() == "subagents"
}

// say adds a message of the run, and its content to the chain of keys.
func (d *stream) say(kind msg.Kind, key, content string) *msg.Message {
	t := &d.Talk
	d.context(msg.Complete)
	t.Said = ""
	t.Chain = msg.HashKey(t.Chain, kind.String(), content)
	if kind != msg.User {
		t.Run.Wake(t.Chain)
	}
	m := d.Add(kind, key)
	m.ParentKey = t.Last
	if t.Last = key; t.Run.Mark(m) {
		m.Client = t.Client
	}
	return m
}

// context emits the texts that the program has added, with the time of the prompt that follows them.
func (d *stream) context(c msg.Completeness) {
	t, chain := &d.Talk, d.Talk.Chain
	for _, text := range t.Context {
		m := record.Hide(d.Add(msg.System, "context:"+msg.HashKey(chain, text)), "context")
		m.Role, m.Content, m.ParentKey, m.Complete = msg.RoleSystem, msg.Plain(text), t.Last, c
		chain = msg.HashKey(chain, text)
	}
	if c == msg.Complete {
		t.Context, t.Chain = nil, chain
	}
}

// key names the next part of that kind.
func (t *talk) key(kind msg.Kind) string {
	return kind.String() + ":" + msg.HashKey(t.Chain, kind.String())
}

// prompts decodes the content of a user's line: prompts, or results of calls.
func (d *stream) prompts(content jsonv.Value) {
	t := &d.Talk
	if content.Is(jsonv.String) {
		d.prompt(content)
		return
	}
	for b := range content.Elems() {
		switch typ := b.Get("type"); {
		case typ.Equal("text") && b.Get("text").Is(jsonv.String):
			d.prompt(b.Get("text"))
		case typ.Equal("tool_result"):
			id := ident.Of(b.Get("tool_use_id"))
			m := d.result(id, string(b.Peek()))
			m.Content, m.Attachments = anthropic.Content(b.Get("content"))
			m.IsError = b.Get("is_error").Bool()
		default:
			if f, ok := anthropic.File(b); ok {
				m := d.say(msg.User, t.key(msg.User), f.SHA256+f.URL)
				m.Role, m.Agent.Kind, m.Attachments = msg.RoleUser, msg.KindHuman, []msg.Attachment{f}
				continue
			}
			d.Unknown(ident.Of(typ), b, t.Chain)
		}
	}
}

// prompt begins a run, unless it is a notice in the middle of one, or context, which the program adds.
func (d *stream) prompt(text jsonv.Value) {
	t := &d.Talk
	w := wordsOf(text.Str(), d.Root.Get("role").Exists())
	d.At = d.At.Or(w.at)
	if w.context {
		if n := len(strings.Join(t.Context, "")); n > maxPieces {
			d.context(msg.Complete)
		}
		t.Context = append(t.Context, text.Str())
		return
	}
	key := t.key(msg.User)
	if !w.notice || !t.Run.Active() {
		t.Run.Begin(key)
	}
	m := d.say(msg.User, key, string(text.Peek()))
	m.Role, m.Content, m.Agent.Kind = msg.RoleUser, text.Text(), msg.KindHuman
	switch {
	case w.notice:
		m.Kind, m.Role, m.Hidden, m.Agent.Kind = msg.System, msg.RoleSystem, true, msg.KindAgent
		m.SetAttr("type", "system_notification")
		return
	case t.Caused:
		t.Caused, m.Agent.Kind = false, msg.KindAgent
		m.Delegation.CorrelationID = spawn.Sent("cursor", w.asked)
	}
	if w.quoted {
		m.Content = msg.Plain(w.all)
	}
}

// words are those of a prompt.
type words struct {
	asked   string // by a person, or by a call
	all     string // those, and the names of files after them
	quoted  bool   // they are between tags
	at      conversation.Time
	notice  bool // that a task has ended: no person has written it
	context bool // which the program adds
}

// wordsOf reads the text of a prompt. Transcripts have around the words
//
//	<timestamp>Friday, Sep 4, 2026, 2:21 AM (UTC+8)</timestamp>
//	<system_notification>…</system_notification>
//	<user_query>
//	…
//	</user_query>
//	[File: map.pdf]
func wordsOf(s string, transcript bool) (w words) {
	s = strings.TrimSpace(s)
	if rest, ok := strings.CutPrefix(s, "<timestamp>"); ok {
		if stamp, after, ok := strings.Cut(rest, "</timestamp>"); ok {
			w.at, w.quoted, s = dateOf(stamp), true, strings.TrimSpace(after)
		}
	}
	w.asked, w.all, w.notice = s, s, strings.HasPrefix(s, "<system_notification>")
	if !strings.HasPrefix(s, "<") {
		return w
	}
	if before, rest, ok := strings.Cut(s, "<user_query>"); ok && (before == "" || transcript) {
		if end := strings.LastIndex(rest, "</user_query>"); end >= 0 {
			w.asked, w.quoted = strings.TrimSpace(rest[:end]), true
			w.all = strings.TrimSpace(w.asked + "\n" + strings.TrimSpace(rest[end+len("</user_query>"):]))
			return w
		}
	}
	tag, _, _ := strings.Cut(s[1:], ">")
	w.context = transcript && !w.notice && tag != "" && strings.HasSuffix(s, "</"+tag+">")
	return w
}

// dateOf reads the time of a prompt, which has minutes. Without its zone it is none.
func dateOf(s string) (at conversation.Time) {
	day, zone, ok := strings.Cut(strings.ReplaceAll(strings.TrimSpace(s), "\u202f", " "), " (UTC")
	hours, minutes, _ := strings.Cut(strings.TrimSuffix(zone, ")"), ":")
	h, err := strconv.Atoi(cmp.Or(hours, "0"))
	m, err2 := strconv.Atoi(cmp.Or(minutes, "0"))
	if strings.HasPrefix(hours, "-") {
		m = -m
	}
	t, err3 := time.ParseInLocation("Monday, Jan 2, 2006, 3:04 PM", day, time.FixedZone("", h*3600+m*60))
	if ok && errors.Join(err, err2, err3) == nil {
		at.Nanos = t.UnixNano()
	}
	return at
}

// answer decodes an answer: the blocks of a transcript, or a text that is printed in pieces, and
// then as a whole (a line without a time, or with the id of the model's call).
func (d *stream) answer(content, v jsonv.Value) {
	t := &d.Talk
	if isPiece(v) {
		for b := range content.Elems() {
			t.Text = piece(t.Text, b.Get("text"))
		}
		return
	}
	r := conversation.Response{ID: ident.Of(v.Get("model_call_id")), Model: cmp.Or(ident.Of(v.Path("message", "model")), t.Model), At: d.At}
	if content.Is(jsonv.String) {
		d.text(content, &r)
		return
	}
	for b := range content.Elems() {
		switch typ := b.Get("type"); {
		case typ.Equal("text") && b.Get("text").Is(jsonv.String):
			d.text(b.Get("text"), &r)
		case typ.Equal("thinking") && b.Get("thinking").Is(jsonv.String):
			m := d.part(msg.Reasoning, b.Get("thinking"), &r)
			m.Content = b.Get("thinking").Text()
		case typ.Equal("tool_use"):
			d.call(ident.Of(b.Get("id")), ident.Of(b.Get("name")), b.Get("input"), &r)
		default:
			d.Unknown(ident.Of(typ), b, t.Chain)
		}
	}
}

// piece appends a text to the pieces of one, as JSON.
func piece(pieces []byte, text jsonv.Value) []byte {
	if raw := text.Escaped(); text.Is(jsonv.String) && len(pieces)+len(raw) <= maxPieces {
		text.MarkRead()
		pieces = append(pieces, raw...)
	}
	return pieces
}

// text emits a text of the model, unless the line repeats the last one.
func (d *stream) text(v jsonv.Value, r *conversation.Response) {
	t := &d.Talk
	said := msg.HashKey(string(v.Escaped()))
	t.Text = nil
	if said == t.Said {
		v.MarkRead()
		return
	}
	kind := msg.Assistant
	if v.Equal("[REDACTED]") { // a thought, in a transcript
		kind = msg.Reasoning
	}
	d.part(kind, v, r).Content = v.Text()
	t.Said = said
}

// part adds a part of a response of the model. The first one names the response.
func (d *stream) part(kind msg.Kind, v jsonv.Value, r *conversation.Response) *msg.Message {
	key := d.Talk.key(kind)
	r.ID = cmp.Or(r.ID, key)
	m := d.say(kind, key, string(v.Escaped()))
	m.Role = msg.RoleAssistant
	r.Mark(m)
	return m
}

// tell emits the pieces of an answer that no line had as a whole.
func (d *stream) tell() {
	t := &d.Talk
	if len(t.Text) == 0 {
		return
	}
	raw := string(t.Text)
	r := conversation.Response{Model: t.Model, At: d.At}
	if t.Text = nil; msg.HashKey(raw) == t.Said {
		return
	}
	key := t.key(msg.Assistant)
	r.ID = key
	m := d.say(msg.Assistant, key, raw)
	m.Role, m.Content = msg.RoleAssistant, msg.Quoted([]byte(raw))
	r.Mark(m)
	t.Said = msg.HashKey(raw)
}

// thinking collects a thought, whose end emits it.
func (d *stream) thinking(v jsonv.Value) {
	t := &d.Talk
	if !v.Get("subtype").Equal("completed") {
		t.Thought = piece(t.Thought, v.Get("text"))
		return
	}
	if text := v.Get("text"); len(t.Thought) == 0 {
		t.Thought = piece(nil, text)
	}
	raw := string(t.Thought)
	if t.Thought = nil; raw == "" {
		record.Hide(d.say(msg.Status, t.key(msg.Status), "thinking"), "thinking")
		return
	}
	key := t.key(msg.Reasoning)
	m := d.say(msg.Reasoning, key, raw)
	m.Role, m.Content = msg.RoleAssistant, msg.Quoted([]byte(raw))
	(&conversation.Response{ID: key, Model: t.Model}).Mark(m)
}

// call emits a call of a tool. A transcript has neither its id nor its result.
func (d *stream) call(id, name string, input jsonv.Value, r *conversation.Response) {
	t := &d.Talk
	key := t.key(msg.ToolCall)
	c := &call{conversation.Call{ID: cmp.Or(id, key), Name: cmp.Or(name, "unknown")}, msg.HashKey(string(input.Peek()))}
	if before := t.Calls.Get(c.ID); before != nil {
		if before.Arguments == c.Arguments {
			input.MarkRead()
		}
		return
	}
	t.Calls.Add(c)
	r.ID = cmp.Or(r.ID, key)
	m := d.say(msg.ToolCall, "call:"+c.ID, c.Name+string(input.Peek()))
	m.Role, m.Tool.Arguments = msg.RoleAssistant, input.JSON()
	c.On(m)
	r.Mark(m)
	if d.Root.Get("role").Exists() { // of a transcript
		m.SetAttr(msg.Results, msg.None)
	}
	if name == "Task" || name == "task" {
		task := input.Get("prompt")
		m.Kind, m.Delegation.Task, m.Delegation.To = msg.Delegation, task.Text(), agentOf(input.First("subagent_type", "subagentType"))
		m.Delegation.CorrelationID = spawn.Sent("cursor", strings.TrimSpace(task.Str()))
	}
}

// result adds the result of a call.
func (d *stream) result(id, content string) *msg.Message {
	t := &d.Talk
	c := t.Calls.Get(id)
	if c == nil {
		c = &call{Call: conversation.Call{ID: cmp.Or(id, t.key(msg.ToolResult))}}
	}
	t.Calls.End(c)
	kind := msg.ToolResult
	if c.Name == "task" || c.Name == "Task" {
		kind = msg.DelegationResult
	}
	m := d.say(kind, "result:"+c.ID, content)
	m.Role, m.ParentKey = msg.RoleTool, "call:"+c.ID
	c.On(m)
	return m
}

// toolCall decodes a call that begins or ends:
// {subtype: started | completed, call_id, tool_call: {readToolCall: {args, result: {success | error | rejected}}}}.
func (d *stream) toolCall(v jsonv.Value) {
	id := ident.Of(v.Get("call_id"))
	ident.Is(v.Path("tool_call", "toolCallId"), id)
	for key, tool := range v.Get("tool_call").Members() {
		if !tool.Is(jsonv.Object) {
			continue
		}
		args, name := tool.First("args", "arguments"), strings.TrimSuffix(key.String(), "ToolCall")
		switch name {
		case "function":
			name = ident.Of(tool.Get("name"))
		case "mcp":
			name = "mcp__" + ident.Peek(args.Get("providerIdentifier")) + "__" + ident.Peek(args.First("toolName", "name"))
		}
		d.call(id, ident.Bounded(name), args, &conversation.Response{ID: ident.Of(v.Get("model_call_id")), Model: d.Talk.Model})
		if v.Get("subtype").Equal("completed") {
			d.outcome(id, tool.Get("result"))
		}
		return
	}
	d.beside(v, "tool_call")
}

// outcome decodes the result of a call: {success | error | rejected: {…}}.
func (d *stream) outcome(id string, v jsonv.Value) {
	m := d.result(id, string(v.Peek()))
	for how, what := range v.Members() {
		m.Tool.ErrorType = failure(how.String())
		switch {
		case how.String() == "success":
			conversation.Causes(m, ident.Of(what.Get("agentId")))
			conversation.Failed(m, what.Get("isError").Bool()) // of an MCP server
		case m.Tool.ErrorType != "":
			m.IsError = true
		case v.Len() > 1: // a field that is no outcome, or not the one that is known
			continue
		}
		m.Content = what.JSON()
		return
	}
	m.Content = v.JSON()
}

// failure is the class of the outcome of a call that failed.
func failure(outcome string) string {
	switch outcome {
	case "error", "failure", "spawnError", "invalidFile", "noSpace", "notFile", "fileBusy":
		return "tool_error"
	case "rejected":
		return "denied"
	case "timeout":
		return "timeout"
	}
	switch {
	case strings.HasSuffix(outcome, "ermissionDenied"): // permissionDenied, writePermissionDenied
		return "denied"
	case strings.HasSuffix(outcome, "otFound"): // fileNotFound, notFound
		return "tool_error"
	}
	return ""
}

// agentOf is the type of an agent: a string, {<type>: {}}, or {custom: {name}}.
func agentOf(v jsonv.Value) string {
	for key, of := range v.Members() {
		if key.String() != "unspecified" {
			return cmp.Or(ident.Of(of.Get("name")), ident.Bounded(key.String()))
		}
	}
	return ident.Of(v)
}

// modelOf is the name of a model. Auto, which the database calls default, names none.
func modelOf(v jsonv.Value) string { return modelName(ident.Of(v)) }

func modelName(name string) string {
	if name == "Auto" || name == "default" {
		return ""
	}
	return name
}

// ended ends the run: {status, error}, or {subtype, is_error, result, usage, request_id}. The request names the tokens: those of
// a run are the same in each file that has it.
func (d *stream) ended(v jsonv.Value, typ string) {
	t := &d.Talk
	key, u := t.key(msg.Stop), v.Get("usage")
	name := key
	if id := ident.Of(v.Get("request_id")); id != "" {
		name, key = id, "stop:"+id
	}
	if c := (conversation.Counts{Input: u.Get("inputTokens").Uint(), Output: u.Get("outputTokens").Uint(), CacheRead: u.Get("cacheReadTokens").Uint(),
		CacheWrite: u.Get("cacheWriteTokens").Uint()}); c != (conversation.Counts{}) {
		m := d.say(msg.Usage, "usage:"+name, string(u.Peek()))
		m.Hidden, m.Model, m.Usage = true, t.Model, c.Tokens(msg.Provider)
	}
	d.stop(v, key, typ)
}

// stop adds the end of the run.
func (d *stream) stop(v jsonv.Value, key, typ string) {
	t := &d.Talk
	status := ident.First(v.Get("status"), v.Get("subtype"))
	m := d.say(msg.Stop, key, typ+status)
	m.Hidden, m.FinishReason, m.IsError = true, cmp.Or(status, typ), status != "success" && status != "" || v.Get("is_error").Bool()
	if status == "aborted" {
		m.FinishReason = "interrupted"
	}
	if m.Content = v.Get("error").Text(); msg.HashKey(string(v.Get("result").Escaped())) != t.Said && m.IsError && m.Content.IsZero() {
		m.Content = v.Get("result").Text()
	}
	if !m.IsError {
		v.Get("result").MarkRead()
	}
	m.SetAttr("type", typ)
	m.SetAttr("request_id", ident.Of(v.Get("request_id")))
	conversation.AttrsAs(m, v, jsonv.Value.Digits, "duration_ms", "duration_api_ms")
	t.Run.End(m)
}

// beside decodes a line that is no part of the conversation.
func (d *stream) beside(v jsonv.Value, typ string) {
	t := &d.Talk
	if v.Get("subtype").Equal("init") {
		t.Model = modelOf(v.Get("model"))
		t.Client = msg.Client{Project: ident.Of(v.Get("cwd"))}
	}
	key := "status:" + msg.HashKey(t.Chain, string(v.Get("type").Peek()), string(v.Get("subtype").Peek()), string(v.Get("timestamp_ms").Peek()))
	m := record.Hide(d.Add(msg.Status, key), typ)
	m.Model, m.Client = t.Model, t.Client
	if t.Run.Active() {
		t.Run.Mark(m)
	}
	m.Content = v.First("message", "error", "text").Text()
	conversation.Attrs(m, v, "subtype", "apiKeySource", "permissionMode")
}
