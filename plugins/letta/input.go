package letta

import (
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// maxPending limits the messages that wait for an answer.
const maxPending = 64

// input is a message to an agent, or a record that precedes the first frame of its run: it
// waits until a frame names the run.
type input struct {
	Role   msg.Role
	ID     string            `json:",omitempty"` // of a stored message
	Otid   string            `json:",omitempty"`
	Text   string            `json:",omitempty"`
	Files  []msg.Attachment  `json:",omitempty"`
	Author msg.Agent         `json:",omitzero"`
	Sent   string            `json:",omitempty"` // the time beside the text
	Packed string            `json:",omitempty"` // the other fields beside the text, as a JSON object
	At     conversation.Time `json:",omitzero"`
	Level  msg.Completeness

	FromAgent bool      `json:",omitempty"`
	Decision  *decision `json:",omitempty"`
	Stop      string    `json:",omitempty"` // a stop reason
}

// decision is a person's decision on a call, or the result of a tool that the client ran
// itself: the text and files of the input.
type decision struct {
	CallID   string
	Approved string `json:",omitempty"` // true, false
	Reason   string `json:",omitempty"`
	Returned bool   `json:",omitempty"`
	Failed   bool   `json:",omitempty"`
}

// request decodes a client's request. Its messages to an agent wait until the answer names
// the run.
func (d *stream) request(f *frame.Frame, v jsonv.Value) {
	d.unanswered()
	_, path, _ := strings.Cut(f.Name, " ")
	here, resumed := scopeOf(path), d.find(runIn(path)) != nil
	if here.Session == d.Place.Session || here.Session == "" && resumed {
		here = d.Place.override(here)
	}
	d.Place, d.Run = here, ""
	if !v.Exists() || resumed {
		return
	}
	d.leave()
	if f.Name != "" && !strings.Contains(path, "/messages") {
		d.unknown(v, "request")
		return
	}
	d.Place = newScope(ident.Of(v.Get("conversation_id")), ident.Of(v.Get("agent_id"))).override(d.Place)
	before := len(d.Pending)
	for e := range v.Get("messages").Elems() {
		if typ := e.Get("type"); typ.In("approval", "tool_return") || e.Get("approvals").Is(jsonv.Array) {
			for _, in := range d.decisions(e) {
				d.wait(in)
			}
			continue
		}
		role, err := msg.ParseRole(e.Get("role").PeekStr())
		if err != nil || role == msg.NoRole {
			role = msg.RoleUser
		} else {
			e.Get("role").MarkRead()
		}
		d.wait(d.input(e, role, e.Get("content")))
	}
	if content := v.Get("input"); content.Exists() {
		d.wait(d.input(v, msg.RoleUser, content))
	}
	if len(d.Pending) == before {
		d.unknown(v, "request")
	}
}

// storedInput decodes a stored message to an agent.
func (d *stream) storedInput(v jsonv.Value) {
	role := msg.RoleUser
	if v.Get("message_type").Equal("system_message") {
		role = msg.RoleSystem
	}
	content := v.First("content", "message")
	if !d.notice(v, content) {
		d.stored(v, d.input(v, role, content))
	}
}

// stored passes on inputs of a stored message, which yield to those of its request.
func (d *stream) stored(v jsonv.Value, list ...*input) {
	var r *run
	if len(v.Get("run_id").Escaped()) > 0 {
		r = d.runOf(v)
	}
	for _, in := range list {
		in.Level = min(in.Level, msg.Summary)
		if r == nil && (in.Role != msg.RoleSystem || in.FromAgent) {
			d.wait(in)
		} else { // of that run, or the agent's prompt
			in.emit(&d.writer, r)
		}
	}
}

// input reads a message to an agent.
func (w *writer) input(v jsonv.Value, role msg.Role, content jsonv.Value) *input {
	t, files := contentOf(content)
	in := &input{
		Role: role, ID: ident.Of(v.Get("id")), Otid: ident.Of(v.Get("otid")), Text: t.String(), Files: files,
		At: w.date.read(v.Get("date")), Level: w.level,
	}
	sender, name := v.Get("sender_id"), v.Get("name")
	switch role {
	case msg.RoleUser:
		in.Author = msg.Agent{ID: ident.Of(sender), Name: ident.Of(name), Kind: msg.KindHuman}
		in.unpack(&w.inner)
		if isAgent(sender) {
			in.Author = w.agent(in.Author.ID, in.Author.Name)
		}
	case msg.RoleSystem:
		if l, ok := agentMessageOf(in.Text); ok {
			in.FromAgent, in.Text = true, l.text
			in.Author = w.agent(l.from, ident.Of(name))
			ident.Is(sender, l.from)
		}
	}
	return in
}

// unpack extracts a user's message from the JSON object in which older servers pack it, with
// the time and perhaps the user's name and location:
//
//	{"type": "user_message", "message": "...", "time": "...", "name": "..."}
func (in *input) unpack(doc *jsonv.Doc) {
	if !strings.HasPrefix(in.Text, "{") || doc.Parse([]byte(in.Text)) != nil {
		return
	}
	root := doc.Root()
	text := root.Get("message")
	if !root.Get("type").Equal("user_message") || !text.Is(jsonv.String) || !root.Get("time").Exists() {
		return
	}
	in.Text = text.Str()
	var more []byte
	for k, v := range root.Members() {
		switch {
		case k.Is("type"), k.Is("message"), !v.Exists():
		case k.Is("time") && v.Is(jsonv.String):
			in.Sent = v.Str()
		case k.Is("name") && in.Author.Name == "" && v.Is(jsonv.String):
			in.Author.Name = ident.Of(v)
		default:
			more = compact(append(jsonv.AppendQuote(append(more, ','), k.String()), ':'), v)
		}
	}
	if more != nil {
		in.Packed = "{" + string(more[1:]) + "}"
	}
}

// notice decodes a notice that the server itself puts in the place of a user's message, as a
// JSON object in a string, to make the agent continue or to inform it:
//
//	{"type": "heartbeat", "reason": "...", "time": "..."}
func (d *stream) notice(v, content jsonv.Value) bool {
	if !content.HasPrefix("{") || d.inner.Parse(content.Chars()) != nil {
		return false
	}
	root := d.inner.Root()
	typ := root.Get("type")
	if !root.Get("time").Is(jsonv.String) || !typ.In("heartbeat", "login", "system_alert") {
		return false
	}
	content.MarkRead()
	r := d.runOrLast(v)
	if r != nil {
		r.close(&d.writer)
	}
	key := ident.Of(v.Get("id"))
	if key == "" {
		key = msg.HashKey(r.id(), string(content.Escaped()))
	}
	m := d.status(r, key, typ.Str())
	m.Role, m.Complete = msg.RoleUser, min(m.Complete, msg.Summary)
	m.Content = root.First("reason", "message", "last_login").Text().Own()
	m.SetAttr("sent", root.Get("time").Str())
	d.stamp(m, v)
	d.keepUnread(&d.inner, len(d.out.Messages)-1)
	return true
}

// decisions reads a response to requests for approval.
func (w *writer) decisions(v jsonv.Value) (out []*input) {
	add := func(one decision) *input {
		in := &input{ID: ident.Of(v.Get("id")), Otid: ident.Of(v.Get("otid")), At: w.date.read(v.Get("date")), Level: w.level, Decision: &one}
		out = append(out, in)
		return in
	}
	read := func(e, id jsonv.Value) {
		one := decision{CallID: ident.Of(id), Reason: e.Get("reason").Str()}
		if approve := e.Get("approve"); approve.Is(jsonv.True) || approve.Is(jsonv.False) {
			one.Approved = string(approve.Peek())
		}
		n := len(out)
		for _, c := range w.Calls.Open { // older servers name the request's message instead of the call
			if c.Request != "" && c.Request == one.CallID {
				of := one
				of.CallID = c.ID
				add(of)
			}
		}
		if len(out) == n {
			add(one)
		}
	}
	for e := range v.First("approvals", "tool_returns").Elems() {
		id := e.Get("tool_call_id")
		if returned := e.Get("tool_return"); returned.Exists() {
			in := add(decision{CallID: ident.Of(id), Returned: true, Failed: e.Get("status").Equal("error")})
			content, files := contentOf(returned)
			in.Text, in.Files = content.String(), files
		} else {
			read(e, id)
		}
	}
	if len(out) == 0 {
		read(v, v.Get("approval_request_id"))
	}
	return out
}

// wait keeps a message to an agent until a run answers it.
func (d *stream) wait(in *input) {
	if len(d.Pending) == maxPending {
		first := d.Pending[0]
		first.emit(&d.writer, d.open(first.run(d.session(""))))
		d.Pending = slices.Delete(d.Pending, 0, 1)
	}
	d.Pending = append(d.Pending, in)
}

// answer emits the pending messages as messages of the run that answers them.
func (d *stream) answer(r *run) {
	pending := d.Pending
	d.Pending = nil
	for _, in := range pending {
		in.emit(&d.writer, r)
	}
}

// unanswered emits the pending messages in a run of their own, and returns that run.
func (d *stream) unanswered() *run {
	if len(d.Pending) == 0 {
		return nil
	}
	r := d.open(d.Pending[0].run(d.session("")))
	d.answer(r)
	return r
}

// run is the id of the run of a message without an answer.
func (in *input) run(session string) string {
	switch {
	case in.ID != "":
		return in.ID
	case in.Stop != "":
		return "stop:" + in.Stop
	case in.Decision != nil:
		return "request:" + msg.HashKey(session, in.Otid, in.Role.String(), "")
	}
	return "request:" + msg.HashKey(session, in.Otid, in.Role.String(), in.Text)
}

// emit emits a message to an agent. In a run its key is made of its text, because only
// stored messages have ids.
func (in *input) emit(w *writer, r *run) {
	if r != nil {
		r.close(w)
		r.Response = ""
	}
	switch {
	case in.Stop != "":
		r.stop(w, in.Stop)
		return
	case in.Decision != nil:
		in.emitDecision(w, r)
		return
	}
	key := in.ID
	if r != nil || key == "" {
		key = in.Role.String() + ":" + msg.HashKey(r.id(), in.Text)
	}
	kind := msg.User
	switch {
	case in.Role == msg.RoleSystem && !in.FromAgent:
		kind = msg.System
	case in.Role == msg.RoleAssistant:
		kind = msg.Assistant
	}
	m := w.message(r, kind, key)
	m.Role, m.Hidden = in.Role, kind == msg.System
	if in.Author != (msg.Agent{}) {
		m.Agent = in.Author
	}
	m.Content, m.Attachments = msg.Plain(in.Text), in.Files
	m.SetAttr("sent", in.Sent)
	m.SetAttr(unknown.Attr, in.Packed)
	in.mark(r, m)
	if r != nil && kind == msg.User {
		r.setCorrelationID(m)
	}
	if !in.FromAgent {
		return
	}
	m.ParentRun = msg.UnknownRun
	m.SetAttr("origin", "agent")
	m.Delegation.CorrelationPrompt = correlationPrompt("to", w.scope().Agent, in.Text)
	if by := correlationPrompt("by", in.Author.ID, in.Text); r != nil && by != "" { // the message may be one to many
		m = w.status(r, "letter:"+msg.HashKey(r.ID, in.Text), "letter")
		m.ParentRun = msg.UnknownRun
		m.Delegation.CorrelationPrompt = by
		in.mark(r, m)
	}
}

// emitDecision emits a decision as a message of the run that it started.
func (in *input) emitDecision(w *writer, r *run) {
	one := in.Decision
	key := "waited:" + one.CallID
	if one.CallID == "" {
		key += msg.HashKey(r.id(), one.Approved, one.Reason)
	}
	m := w.status(r, key, "approval_response")
	m.Signal, m.Role, m.Tool.CallID = msg.WaitEnd, msg.RoleUser, one.CallID
	in.mark(r, m)
	m.SetAttr("approved", one.Approved)
	m.SetAttr("reason", one.Reason)
	if one.CallID == "" {
		return
	}
	m.ParentKey = "call:" + one.CallID
	if c := w.Calls.GetOpen(one.CallID); c != nil {
		m.Tool.Name = c.Name
	}
	if !one.Returned {
		return
	}
	// The server repeats it as the call's result; until then this is the result.
	result := w.message(r, msg.ToolResult, "result:"+one.CallID)
	result.ParentKey, result.Role = m.ParentKey, msg.RoleTool
	result.Tool.CallID, result.Tool.Name = one.CallID, m.Tool.Name
	result.Content, result.Attachments, result.IsError = msg.Plain(in.Text), in.Files, one.Failed
	if one.Failed {
		result.Tool.ErrorType = errorType(result.Content)
	}
	in.mark(r, result)
	result.Complete = min(result.Complete, msg.Summary)
}

// mark sets the completeness and the time of a message to an agent. A request has no time: it
// precedes the first frame of the run.
func (in *input) mark(r *run, m *msg.Message) {
	m.Complete = in.Level
	if r != nil && in.At.Nanos == 0 {
		m.Time = r.undated(m.Key)
	}
	at(m, in.At)
}
