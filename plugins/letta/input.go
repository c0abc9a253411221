package letta

import (
	"bytes"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// maxPending limits the messages that wait for an answer.
const maxPending = 64

// input is a message to an agent.
type input struct {
	Role      msg.Role
	ID        string           `json:",omitempty"` // of a stored message
	Otid      string           `json:",omitempty"`
	Text      string           `json:",omitempty"`
	Files     []msg.Attachment `json:",omitempty"`
	Author    msg.Agent
	Letter    bool       `json:",omitempty"` // from another agent
	Decisions []decision `json:",omitempty"`
	Sent      string     `json:",omitempty"` // the time beside the text
	Packed    string     `json:",omitempty"` // the other fields beside the text, as a JSON object

	Time  int64 `json:",omitempty"`
	Prec  msg.Precision
	Level msg.Completeness
}

// request decodes a client's request. Its messages to an agent wait until the answer names
// the run.
func (d *stream) request(f *frame.Frame, v jsonv.Value) {
	d.emitUnanswered()
	_, path, _ := strings.Cut(f.Name, " ")
	here := scopeOf(path)
	if here.Session == d.Place.Session || here.Session == "" && d.find(runIn(path)) != nil {
		here = d.Place.override(here)
	}
	d.Place, d.Run = here, ""
	if !v.Exists() || d.find(runIn(path)) != nil { // it may resume a stream
		return
	}
	d.cutAll()
	if f.Name != "" && !strings.Contains(path, "/messages") {
		d.unknown(v, "request")
		return
	}
	d.Place = bodyScope(v).override(d.Place)
	before := len(d.Pending)
	for e := range v.Get("messages").Elems() {
		d.requestMessage(e)
	}
	if content := v.Get("input"); content.Exists() {
		d.addPending(d.inputOf(v, msg.RoleUser, content))
	}
	if len(d.Pending) == before {
		d.unknown(v, "request")
	}
}

// bodyScope is the scope that a request's body names.
func bodyScope(v jsonv.Value) scope {
	agent := ident.Of(v.Get("agent_id"))
	p := scope{Session: agent, Agent: agent}
	if id := ident.Of(v.Get("conversation_id")); id != "" && id != "default" {
		p.Session = id
	}
	return p
}

// requestMessage reads one message of a request.
func (d *stream) requestMessage(v jsonv.Value) {
	if typ := v.Get("type"); typ.Equal("approval") || typ.Equal("tool_return") || v.Get("approvals").Is(jsonv.Array) {
		d.addPending(&input{Decisions: d.decisions(v), Otid: ident.Of(v.Get("otid")), Level: d.level})
		return
	}
	role, err := msg.ParseRole(v.Get("role").PeekStr())
	if err != nil || role == msg.NoRole {
		role = msg.RoleUser
	} else {
		v.Get("role").MarkRead()
	}
	d.addPending(d.inputOf(v, role, v.Get("content")))
}

// inputOf reads a message to an agent.
func (d *stream) inputOf(v jsonv.Value, role msg.Role, content jsonv.Value) *input {
	t, files := contentOf(content)
	in := &input{
		Role: role, ID: ident.Of(v.Get("id")), Otid: ident.Of(v.Get("otid")), Text: t.String(), Files: files,
		Level: d.level,
	}
	in.Time, in.Prec = d.date.read(v.Get("date"))
	switch role {
	case msg.RoleUser:
		in.Author = msg.Agent{ID: ident.Of(v.Get("sender_id")), Name: ident.Of(v.Get("name")), Kind: msg.KindHuman}
		d.unpack(in)
		if agentID(v.Get("sender_id")) {
			in.Author = d.agent(in.Author.ID, in.Author.Name)
		}
	case msg.RoleSystem:
		if l, ok := agentMessageOf(in.Text); ok {
			in.Letter, in.Text = true, l.text
			in.Author = d.agent(l.from, ident.Of(v.Get("name")))
			ident.Is(v.Get("sender_id"), l.from)
		}
	}
	return in
}

// unpack extracts a user's message from the JSON object in which older servers pack it, with
// the time and perhaps the user's name and location:
//
//	{"type": "user_message", "message": "...", "time": "...", "name": "..."}
func (d *stream) unpack(in *input) {
	if !strings.HasPrefix(in.Text, "{") || d.inner.Parse([]byte(in.Text)) != nil {
		return
	}
	root := d.inner.Root()
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
			more = compact(append(appendString(append(more, ','), k.String()), ':'), v)
		}
	}
	if more != nil {
		in.Packed = "{" + string(more[1:]) + "}"
	}
}

// addPending keeps a message to an agent until a run answers it.
func (d *stream) addPending(in *input) {
	if len(d.Pending) == maxPending {
		d.emitInput(d.ownRun(d.Pending[0]), d.Pending[0])
		d.Pending = slices.Delete(d.Pending, 0, 1)
	}
	d.Pending = append(d.Pending, in)
}

// asSummary calls f for a stored message to an agent, which yields to the message of its
// request.
func (d *stream) asSummary(f func(jsonv.Value), v jsonv.Value) {
	level := d.level
	d.level = min(level, msg.Summary)
	f(v)
	d.level = level
}

// storedInput decodes a stored message to an agent.
func (d *stream) storedInput(v jsonv.Value) {
	role := msg.RoleUser
	if v.Get("message_type").Equal("system_message") {
		role = msg.RoleSystem
	}
	content := v.First("content", "message")
	if d.notice(v, content) {
		return
	}
	in := d.inputOf(v, role, content)
	switch {
	case ident.Of(v.Get("run_id")) != "":
		d.emitInput(d.runOf(v), in)
	case role == msg.RoleSystem && !in.Letter: // the agent's prompt
		d.emitInput(nil, in)
	default:
		d.addPending(in)
	}
}

// storedApproval decodes a stored response to a request for approval.
func (d *stream) storedApproval(v jsonv.Value) {
	in := &input{ID: ident.Of(v.Get("id")), Decisions: d.decisions(v), Level: d.level}
	in.Time, in.Prec = d.date.read(v.Get("date"))
	if ident.Of(v.Get("run_id")) != "" {
		d.emitInput(d.runOf(v), in)
		return
	}
	d.addPending(in)
}

// notice decodes a notice that the server itself puts in the place of a user's message, as a
// JSON object in a string, to make the agent continue or to inform it:
//
//	{"type": "heartbeat", "reason": "...", "time": "..."}
func (d *stream) notice(v, content jsonv.Value) bool {
	raw := content.Peek()
	if !bytes.HasPrefix(raw, []byte(`"{`)) || d.inner.Parse([]byte(content.PeekStr())) != nil {
		return false
	}
	root := d.inner.Root()
	typ := root.Get("type")
	if !root.Get("time").Is(jsonv.String) || !typ.Equal("heartbeat") && !typ.Equal("login") && !typ.Equal("system_alert") {
		return false
	}
	content.MarkRead()
	r := d.runOrLast(v)
	if r != nil {
		d.closeBlocks(r)
	}
	key := ident.Of(v.Get("id"))
	if key == "" {
		key = msg.HashKey(d.runID(r), string(raw[1:len(raw)-1]))
	}
	m := d.status(r, key, typ.Str())
	m.Role = msg.RoleUser
	m.Content = root.First("reason", "message", "last_login").Text().Own()
	m.SetAttr("sent", root.Get("time").Str())
	d.stamp(m, v)
	d.keepUnread(&d.inner, len(d.out.Messages)-1)
	return true
}

// emitPending emits the messages that precede a run as messages of the run that answers them.
func (d *stream) emitPending(r *run) {
	for _, in := range d.Pending {
		d.emitInput(r, in)
	}
	d.Pending = nil
	if d.Held != "" {
		reason := d.Held
		d.Held = ""
		d.stopped(r, reason)
	}
}

// emitUnanswered emits the pending messages in a run of their own, and returns that run.
func (d *stream) emitUnanswered() *run {
	if len(d.Pending) == 0 && d.Held == "" {
		return nil
	}
	var r *run
	if len(d.Pending) > 0 {
		r = d.ownRun(d.Pending[0])
	} else {
		r = d.open("stop:" + d.Held)
	}
	d.emitPending(r)
	return r
}

// ownRun is the run of a message without an answer.
func (d *stream) ownRun(in *input) *run {
	id := in.ID
	if id == "" {
		id = "request:" + msg.HashKey(d.session(""), in.Otid, in.Role.String(), in.Text)
	}
	return d.open(id)
}

func (d *stream) runID(r *run) string {
	if r == nil {
		return ""
	}
	return r.ID
}

// setTime sets the time of a message to an agent. A request has none: it precedes the first
// frame of the run.
func (r *run) setTime(m *msg.Message, in *input) {
	if r != nil && in.Time == 0 {
		m.Time = r.undatedTime(m.Key)
	}
	at(m, in.Time, in.Prec)
}

// emitInput emits a message to an agent. In a run its key is made of its text, because only
// stored messages have ids.
func (d *stream) emitInput(r *run, in *input) {
	if r != nil {
		d.closeBlocks(r)
		r.Response = ""
	}
	level := d.level
	d.level = in.Level
	defer func() { d.level = level }()
	if in.Decisions != nil {
		for _, one := range in.Decisions {
			d.emitDecision(r, in, one)
		}
		return
	}
	key := in.ID
	if r != nil || key == "" {
		key = in.Role.String() + ":" + msg.HashKey(d.runID(r), in.Text)
	}
	kind := msg.User
	switch {
	case in.Role == msg.RoleSystem && !in.Letter:
		kind = msg.System
	case in.Role == msg.RoleAssistant:
		kind = msg.Assistant
	}
	m := d.addMessage(r, kind, key)
	m.Role = in.Role
	if in.Author != (msg.Agent{}) {
		m.Agent = in.Author
	}
	m.Hidden = kind == msg.System
	m.Content, m.Attachments = msg.Plain(in.Text), in.Files
	m.SetAttr("sent", in.Sent)
	m.SetAttr(unknown.Attr, in.Packed)
	r.setTime(m, in)
	if r != nil && kind == msg.User {
		r.setCorrelationID(m)
	}
	if in.Letter {
		m.ParentRun = msg.UnknownRun
		m.SetAttr("origin", "agent")
		d.correlateMessage(r, in, m)
	}
}
