package opencode

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/media"
)

// kinds are those of the texts of the model.
var kinds = map[string]msg.Kind{"text": msg.Assistant, "reasoning": msg.Reasoning}

// signals are those of the parts that have one.
var signals = map[string]msg.Signal{"compaction": msg.Compaction, "retry": msg.Retry}

// part decodes a part of a message; false if its type is not known.
func (d *stream) part(v jsonv.Value) bool {
	id, call, typ := d.id(v, "id", "id"), v.Get("callID"), ident.Of(v.Get("type"))
	if own := v.Get("partID"); own.Exists() { // as version 2 prints a call
		id, call = ident.Of(own), v.Get("id")
	}
	rec := d.messageOf(v, typ)
	if id == "" || rec.ID == "" || d.Seen.Has(id) {
		v.MarkRead()
		return id != "" && rec.ID != ""
	}
	d.At = conversation.TimeOf(v.Get("time").First("end", "created", "start")).Or(d.At).Or(rec.Response.At)
	rec.Copied = rec.Copied || rec.User && rec.older(d.find(rec.Session))
	rec.Response.At = d.At
	if rec.Copied {
		d.copied(rec, id, typ, v)
		return true
	}
	if rec.User {
		rec.Run = d.find(rec.Session).turn(rec.ID, typ == "compaction" || v.Get("synthetic").Bool())
	}
	switch typ {
	case "text", "reasoning":
		switch text := v.Get("text"); {
		case rec.User && (v.Get("synthetic").Bool() || v.Get("ignored").Bool()):
			d.injected(rec, id, text)
		case rec.User:
			d.prompt(rec, id).Content = text.Text()
		case rec.Done || v.Path("time", "end").Exists():
			d.said(rec, kinds[typ], id, text)
		default:
			d.Parts.Drop(d.Parts.Part(id))
			d.piece(rec, kinds[typ], id, text)
			return true
		}
	case "tool":
		state := v.Get("state")
		status := jsonv.Word(state.Get("status"), "pending", "running", "completed", "error")
		if !(calls{d}).tool(rec, id, call, v.Get("tool"), status, state, conversation.TimeOf(state.Path("time", "end"))) {
			return true
		}
	case "step-start", "snapshot", "agent", "compaction", "retry":
		m := d.beside(rec, id, typ, signals[typ])
		m.Content = v.Path("error", "data", "message").Text()
		m.SetAttr("attempt", v.Get("attempt").Digits())
		conversation.Attrs(m, v, "snapshot", "name", "tail_start_id", "error.name")
	case "step-finish":
		printed := d.Frame.Kind == frame.Line && !d.row.Exists() // without a total it is of version 2
		d.tokens(rec, counts(v.Get("tokens"), printed && !v.Path("tokens", "total").Exists()), v, msg.Complete, ident.Of(v.Get("reason"))).SetAttr("part_id", id)
		if !d.single && (d.row.Exists() || !d.Seen.Has("message:"+rec.ID)) { // run --format json has no other end
			d.finished(rec, v.Get("reason").PeekStr())
		}
	case "file", "subtask":
		m := d.prompt(rec, id)
		m.Content, m.Attachments = v.Get("prompt").Text(), content(v).Files
		conversation.Attrs(m, v, "description", "agent", "command")
	case "patch":
		m := d.partOf(rec, msg.File, id)
		for f := range v.Get("files").Elems() {
			m.Attachments = append(m.Attachments, media.File(f.Str()))
		}
		conversation.Attrs(m, v, "hash")
	default:
		return false
	}
	d.Seen.Add(id, maxSeen)
	return true
}

// copied decodes a part that a fork repeats: a text is history, the rest of it is where it happened.
func (d *stream) copied(rec *message, id, typ string, v jsonv.Value) {
	d.Seen.Add(id, maxSeen)
	if v.MarkRead(); typ != "text" || v.Get("synthetic").Bool() {
		return
	}
	m := d.add(d.find(rec.Session), "", msg.Assistant, "history:"+id)
	m.Role, m.Content, m.Complete = msg.RoleAssistant, v.Get("text").Text(), msg.Summary
	if rec.User {
		m.Kind, m.Role, m.Agent = msg.User, msg.RoleUser, msg.Agent{Kind: msg.KindHuman}
	}
	m.SetAttr("type", msg.History)
}

// messageOf returns the message of a part. One that is not known is a prompt if it has a text
// without times, which only texts of the model have.
func (d *stream) messageOf(v jsonv.Value, typ string) *message {
	id := d.id(v, "messageID", "message_id")
	if rec := d.known(id); rec != nil {
		d.find(rec.Session)
		ident.Is(jsonv.Or(v.Get("sessionID"), d.row.Get("session_id")), rec.Session)
		return rec
	}
	s := d.find(d.id(v, "sessionID", "session_id"))
	rec := message{ID: id, Session: s.ID, User: typ == "text" && !v.Get("time").Exists() || slices.Contains([]string{"file", "agent", "subtask", "compaction"}, typ)}
	if !d.Seen.Has("copied:"+id) && !rec.User && !d.single { // a file of the storage has no run
		s.Last = id
		if rec.Run = s.Run.Going(); rec.Run == "" {
			rec.Run = s.turn(id, false)
		}
	}
	return d.remember(rec)
}

// prompt adds a part of a prompt.
func (d *stream) prompt(rec *message, id string) *msg.Message {
	m := d.partOf(rec, msg.User, id)
	if d.cur.Parent == "" {
		m.Agent.Kind = msg.KindHuman
	} else if p := d.Sessions.Find(d.cur.Parent); p != nil { // another agent wrote it
		m.Agent.Name = p.Agent
	}
	return m
}

// piece appends to a text of the model that is not complete. It begins the text if need be.
func (d *state) piece(rec *message, kind msg.Kind, id string, text jsonv.Value) {
	if text.MarkRead(); d.Seen.Has(id) {
		return
	}
	if p := d.Parts.Piece(id, kind, text.Text(), conversation.MaxBytes); p != nil {
		p.Key = rec.ID
	}
}

// said adds a text of the model that is complete. One without characters is hidden by its provider.
func (d *stream) said(rec *message, kind msg.Kind, id string, text jsonv.Value) {
	d.Parts.Drop(d.Parts.Part(id))
	if text.Is(jsonv.String) {
		text.MarkRead()
	}
	if d.Seen.Add(id, maxSeen) && len(text.Escaped()) > 0 {
		rec.Response.Said(d.partOf(rec, kind, id), text.Text())
	}
}

// ends are the classes of errors of agents in the background, by their state.
var ends = map[string]string{"error": "tool_error", "cancelled": "interrupted"}

// injected decodes a text that OpenCode put into the context: the answer of an agent in the
// background, or a file.
func (d *stream) injected(rec *message, id string, text jsonv.Value) *msg.Message {
	_, child, ok := strings.Cut(strings.Replace(conversation.Cut(text.PeekStr(), ident.Max), ` sessionID="`, ` id="`, 1), ` id="`)
	if ok && (text.HasPrefix("<task id=") || text.HasPrefix("<subagent id=") || text.HasPrefix("<subagent sessionID=")) {
		child, rest, _ := strings.Cut(child, `"`)
		if c := d.Calls.Newest(func(c *call) bool { return c.Async && c.Child == child }); c != nil {
			d.Calls.End(c)
			m := c.Result(d.partOf(cmp.Or(d.known(c.Message), rec), msg.ToolResult, "result:"+c.ID))
			state, _, _ := strings.Cut(strings.TrimPrefix(rest, ` state="`), `"`)
			m.Content, m.Tool.ErrorType = text.Text(), ends[state]
			m.IsError = m.Tool.ErrorType != ""
			m.SetAttr("part_id", id)
			return m
		}
	}
	m := d.partOf(rec, msg.System, id)
	m.Hidden, m.Content = true, text.Text()
	return m
}

// calls decodes the tool calls of responses.
type calls struct{ *stream }

// states are those of a call in a part, by the actions of the newer family that lead to them.
var states = map[string]string{
	"input.started": "pending", "input.ended": "pending", "called": "running", "progress": "running", "success": "completed", "failed": "error",
}

// tool decodes the state of a call, which a part has, or an event of the newer family that has no part: pending while its
// arguments are written, running, completed or error, with which it is over.
func (d calls) tool(rec *message, part string, id, name jsonv.Value, state string, v jsonv.Value, end conversation.Time) (over bool) {
	rec.Tools = true
	own := cmp.Or(ident.Within(rec.ID, ident.Of(id)), part) // some providers number the calls of each response
	c := d.Calls.Get(own)
	if c == nil {
		c = &call{Message: rec.ID}
		c.ID, c.Name, c.ProtocolID = own, cmp.Or(ident.Of(name), "unknown"), ident.Own(rec.ID, own)
		c.Task, c.Human = c.Name == "task" || c.Name == "subagent", c.Name == "question"
		d.Calls.Add(c)
	}
	name.Equal(c.Name)
	d.At = conversation.TimeOf(v.Path("time", "start")).Or(d.At)
	input, written := v.Get("input"), v.First("raw", "text")
	if input.Is(jsonv.String) { // as version 2 keeps those that are not complete
		input, written = jsonv.Value{}, input
	}
	d.called(rec, c, part, state == "pending", input, written)
	extra := v.First("metadata", "structured")
	extra = jsonv.Or(extra.Get("metadata"), extra)
	if child := ident.Of(extra.First("sessionId", "sessionID")); child != "" && c.Child == "" && (c.Task || part != "") {
		d.links(rec, c, child, msg.ByNativeID, 0)
	}
	if over = state == "completed" || state == "error"; over {
		c.Async = c.Async || c.Task && extra.Get("status").Equal("running")
		d.At = end.Or(d.At)
		d.ended(rec, c, v)
	} else {
		v.Skip("title", "content") // the end has them
	}
	return over
}

// links joins a call and the session that works for it.
func (d calls) links(rec *message, c *call, child string, by msg.LinkMethod, confidence uint8) {
	c.Child = child
	m := c.About(d.beside(rec, "link:"+c.ID, "task", msg.Link))
	m.Delegation.ChildRun, m.Delegation.Link, m.Delegation.Confidence = child, by, confidence
	s := d.find(child)
	d.Sessions.Delegate(&s.Session, rec.Session)
	s.Run.Caused(rec.Run, c.ID, by, confidence)
	d.find(rec.Session)
}

// called adds a call, unless its arguments are known. While they are written, they may be the beginning of JSON.
func (d calls) called(rec *message, c *call, part string, writing bool, input, written jsonv.Value) {
	if c.Complete {
		c.Input.Repeats(input)
		return
	}
	if c.Complete, c.Input = !writing, conversation.SumOf(input.Peek()); c.Task {
		c.To, c.Async = ident.Of(input.First("subagent_type", "agent")), input.Get("background").Bool()
		c.Prompt = msg.HashKey(input.Get("prompt").PeekStr())
	}
	m := d.partOf(rec, msg.ToolCall, "call:"+c.ID)
	c.Called(m, input.JSON(), input.Get("prompt"))
	if m.SetAttr("part_id", part); writing {
		m.Complete = msg.Partial
		if len(written.Escaped()) > 0 {
			m.Tool.Arguments = written.Text()
		} else if !input.Exists() {
			m.Tool.Arguments = msg.Plain("{}")
		}
	}
	if rec.Response.Last = m.Key; c.Human && c.Complete {
		d.waits(rec, c, "wait:", msg.WaitStart)
	}
}

// waits reports that a call begins to wait for a person, or no longer does.
func (d calls) waits(rec *message, c *call, key string, signal msg.Signal) {
	c.About(d.beside(rec, key+c.ID, "question", signal))
}

// denials are the beginnings of the errors of calls that a person, or a rule of a person, did not allow.
var denials = []string{"The user rejected permission", "The user has specified a rule which prevents", "The user dismissed this question"}

// ended decodes the end of a call, in the state of a part or in an event of the newer family.
//
//	part   {status, output, attachments, title, error: text, metadata}
//	event  {content: [{text} | {uri, mime, name}], error: {type, message}}
func (d calls) ended(rec *message, c *call, v jsonv.Value) {
	var m *msg.Message
	fault := v.Get("error")
	if c.Async && !fault.Exists() { // it has only begun
		m = c.About(d.beside(rec, "ack:"+c.ID, "task_started", msg.NoSignal))
	} else {
		if d.Calls.End(c); c.Human {
			d.waits(rec, c, "waited:", msg.WaitEnd)
		}
		m = c.Result(d.partOf(rec, msg.ToolResult, "result:"+c.ID))
	}
	content(v.First("content", "attachments")).Fill(m)
	if output := v.Get("output"); output.Exists() {
		m.Content = output.Text()
	}
	conversation.Attrs(m, v, "title")
	if !fault.Exists() && !v.Get("status").Equal("error") {
		shell(m, v)
		return
	}
	text, typ := jsonv.Or(fault.Get("message"), fault), fault.Get("type")
	m.IsError, m.Content, m.Tool.ErrorType = true, text.Text(), "tool_error"
	switch {
	case typ.Equal("aborted"), v.Path("metadata", "interrupted").Bool(), text.Equal("Tool execution aborted"):
		m.Tool.ErrorType = "interrupted"
	case typ.HasPrefix("permission."), slices.ContainsFunc(denials, text.HasPrefix):
		m.Tool.ErrorType = "denied"
	}
	conversation.Attrs(m, fault, "type")
}

// shell reads how a command ended, whose call is completed with each exit code, and also if it was stopped:
//
//	{output: "…\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>", metadata: {exit: 1 | null}}
func shell(m *msg.Message, v jsonv.Value) {
	extra := v.First("metadata", "structured")
	exit, output := jsonv.Or(extra.Get("exit"), extra.Path("metadata", "exit")), v.Get("output").PeekStr()
	note := ""
	if rest, ok := strings.CutSuffix(output, "metadata>"); ok {
		note = rest[max(0, strings.LastIndex(rest, "metadata>\n")):]
	}
	class, exited := "", conversation.Exited(m, exit)
	switch {
	case strings.Contains(note, "User aborted the command"):
		class = "interrupted"
	case strings.Contains(note, "terminated command after exceeding timeout"):
		class = "timeout"
	case exited:
		class = "tool_error"
	}
	m.IsError, m.Tool.ErrorType = class != "", class
}

// content reads a list of texts and files, or one of them: {text} | {url | uri | data, mime, filename | name}.
func content(v jsonv.Value) (has conversation.Content) {
	for b := range jsonv.Each(v) {
		f := media.Of(b.Get("data"), jsonv.Or(b.First("url", "uri"), b.Path("source", "uri")), ident.Of(b.Get("mime")))
		f.Name = ident.First(b.Get("filename"), b.Get("name"))
		if text := b.Get("text"); text.Is(jsonv.String) {
			has.Add(text.Text())
		} else if f != (msg.Attachment{}) {
			has.Attach(f)
		}
	}
	return has
}

// tokens emits the tokens of a response, or of a step of it, whose record has its cost too; those of a response yield to those of
// its step.
func (d *stream) tokens(rec *message, c conversation.Counts, v jsonv.Value, complete msg.Completeness, reason string) *msg.Message {
	r, n := rec.Response, rec.Steps
	r.ID = conversation.Ordinal(rec.ID, &n)
	r.Run, r.At, r.Stop = rec.Run, d.At, reason
	r.Count(c, msg.Provider)
	m := r.Usage(d.Out, complete)
	m.Session, m.Agent.Kind, m.Agent.Name, m.ResponseID = d.find(rec.Session).Root, msg.KindAgent, rec.Agent, rec.ID
	if complete == msg.Complete {
		rec.Steps = n
		cost := v.Get("cost").Digits()
		m.SetAttr("cost", cost)
		m.Usage.Stated = msg.Dollars(cost)
		conversation.Attrs(m, v, "snapshot")
	}
	return m
}

// counts reads {total?, input, output, reasoning, cache: {read, write}}. Where the reasoning is not known to be apart from the
// output, the total decides.
func counts(v jsonv.Value, apart bool) conversation.Counts {
	c := conversation.Counts{
		Input: v.Get("input").Uint(), Output: v.Get("output").Uint(), Reasoning: v.Get("reasoning").Uint(),
		CacheRead: v.Path("cache", "read").Uint(), CacheWrite: v.Path("cache", "write").Uint(),
	}
	inside := c.Input + c.Output + c.CacheRead + c.CacheWrite
	if total := v.Get("total").Uint(); apart || c.Reasoning > c.Output || total >= inside+(c.Reasoning+1)/2 && c.Reasoning > 0 {
		c.Output += c.Reasoning
	}
	return c
}
