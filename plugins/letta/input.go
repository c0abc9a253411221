package letta

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// maxPending limits the messages that wait for an answer.
const maxPending = 64

// pending is a message that waits until a frame names its run.
type pending struct {
	msg.Message
	Facts []string `json:",omitempty"` // the key ends with a hash of the run and of these
	Own   string   `json:",omitempty"` // its id, and that of the run if none answers
	Otid  string   `json:",omitempty"`
	Stop  string   `json:",omitempty"` // a stop reason instead of a message
}

// request decodes a client's request. Its messages to an agent wait until the answer names
// the run.
func (d *stream) request(v jsonv.Value) {
	d.unanswered()
	_, path, _ := strings.Cut(d.Frame.Name, " ")
	here, resumed := scopeOf(path), d.find(ident.Below(path, "/runs/")) != nil
	if here.Session == d.Place.Session || here.Session == "" && resumed {
		here = d.Place.override(here)
	}
	d.Place, d.Run = here, ""
	if !v.Exists() || resumed {
		return
	}
	d.leave()
	if d.Frame.Name != "" && !strings.Contains(path, "/messages") {
		d.unknown(v, "request")
		return
	}
	d.Place = newScope(ident.Of(v.Get("conversation_id")), ident.Of(v.Get("agent_id"))).override(d.Place)
	before := len(d.Pending)
	for e := range v.Get("messages").Elems() {
		if typ := e.Get("type"); typ.In("approval", "tool_return") || e.Get("approvals").Is(jsonv.Array) {
			d.decisions(e, d.wait)
			continue
		}
		role, err := msg.ParseRole(e.Get("role").PeekStr())
		if err != nil || role == msg.NoRole {
			role = msg.RoleUser
		} else {
			e.Get("role").MarkRead()
		}
		d.prompt(e, role, e.Get("content"), d.wait)
	}
	if content := v.Get("input"); content.Exists() {
		d.prompt(v, msg.RoleUser, content, d.wait)
	}
	if len(d.Pending) == before {
		d.unknown(v, "request")
	}
}

// stored returns the function that takes the messages of a stored message to an agent, which
// yield to those of its request.
func (d *stream) stored(v jsonv.Value) func(*pending) {
	var r *run
	if len(v.Get("run_id").Escaped()) > 0 {
		r = d.runOf(v)
	}
	return func(p *pending) {
		p.Complete = min(p.Complete, msg.Summary)
		switch {
		case r != nil:
			p.emit(&d.writer, r)
		case p.Kind == msg.System: // the agent's prompt
			if id := ident.Of(v.Get("id")); id != "" {
				p.Key, p.Facts = id, nil
			}
			p.emit(&d.writer, nil)
		default:
			d.wait(p)
		}
	}
}

// storedPrompt decodes a stored message of a user, of another agent or of the system.
func (d *stream) storedPrompt(v jsonv.Value, role msg.Role) {
	content := v.First("content", "message")
	if !d.notice(v, content) {
		d.prompt(v, role, content, d.stored(v))
	}
}

// pending returns the next message to an agent that v has, valid until the one after it.
func (w *writer) pending(v jsonv.Value, kind msg.Kind) *pending {
	if w.next == nil {
		w.next = new(pending)
	}
	p := w.next
	*p = pending{Own: ident.Of(v.Get("id")), Otid: ident.Of(v.Get("otid"))}
	p.Kind, p.Complete, p.Hidden = kind, w.level, kind == msg.Status || kind == msg.System
	w.stamp(&p.Message, v)
	return p
}

// own is the id of the run if none answers.
func (p *pending) own(session string) string {
	if p.Own != "" {
		return p.Own
	}
	role, text := "", ""
	if len(p.Facts) == 1 {
		role, text = p.Role.String(), p.Facts[0]
	}
	return "request:" + msg.HashKey(session, p.Otid, role, text)
}

// prompt reads a message to an agent. Its key is made of its text, because only stored
// messages have ids.
func (w *writer) prompt(v jsonv.Value, role msg.Role, content jsonv.Value, take func(*pending)) {
	t, files := contentOf(content)
	text, kind := t.String(), msg.User
	sender, name := v.Get("sender_id"), v.Get("name")
	var by msg.Agent
	var attrs []msg.Attr
	var from *agentMessage
	switch role {
	case msg.RoleUser:
		by = msg.Agent{ID: ident.Of(sender), Name: ident.Of(name), Kind: msg.KindHuman}
		text, attrs = w.unpack(text, &by)
		if isAgent(sender) {
			by = w.agent(by.ID, by.Name)
		}
	case msg.RoleAssistant:
		kind = msg.Assistant
	case msg.RoleSystem:
		if from = agentMessageOf(text); from == nil {
			kind = msg.System
			break
		}
		text, by = from.text, w.agent(from.agent, ident.Of(name))
		ident.Is(sender, from.agent)
	}
	p := w.pending(v, kind)
	p.Role, p.Agent, p.Content, p.Attachments, p.Attrs = role, by, msg.Plain(text), files, attrs
	p.Key, p.Facts = role.String()+":", []string{text}
	if from == nil {
		take(p)
		return
	}
	p.ParentRun = msg.UnknownRun
	p.SetAttr("origin", "agent")
	p.Delegation.CorrelationPrompt = correlationPrompt("to", w.scope().Agent, text)
	take(p)
	if prompt := correlationPrompt("by", by.ID, text); prompt != "" { // it may be one to many
		p = w.pending(v, msg.Status)
		p.Key, p.Facts, p.ParentRun, p.Delegation.CorrelationPrompt = "letter:", []string{text}, msg.UnknownRun, prompt
		p.SetAttr("type", "letter")
		take(p)
	}
}

// unpack returns a user's message from the JSON object in which older servers pack it, with
// the time and perhaps the user's name and location:
//
//	{"type": "user_message", "message": "...", "time": "...", "name": "..."}
func (w *writer) unpack(packed string, by *msg.Agent) (string, []msg.Attr) {
	if !strings.HasPrefix(packed, "{") || w.inner.Parse([]byte(packed)) != nil {
		return packed, nil
	}
	root := w.inner.Root()
	text, sent := root.Get("message"), root.Get("time")
	if !root.Get("type").Equal("user_message") || !text.Is(jsonv.String) || !sent.Exists() {
		return packed, nil
	}
	var m msg.Message
	m.SetAttr("sent", sent.Str())
	var more []byte
	for k, v := range root.Members() {
		switch {
		case k.Is("type"), k.Is("message"), !v.Exists(), k.Is("time") && v.Is(jsonv.String):
		case k.Is("name") && by.Name == "" && v.Is(jsonv.String):
			by.Name = ident.Of(v)
		default:
			more = compact(append(jsonv.AppendQuote(append(more, ','), k.String()), ':'), v)
		}
	}
	if more != nil {
		m.SetAttr(unknown.Attr, "{"+string(more[1:])+"}")
	}
	return text.Str(), m.Attrs
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
	d.KeepUnread(&d.inner, len(d.Out.Messages)-1)
	return true
}

// decisions reads a response to requests for approval: the decisions of a person, or the
// results of tools that the client ran itself.
func (w *writer) decisions(v jsonv.Value, take func(*pending)) {
	n := 0
	for e := range v.First("approvals", "tool_returns").Elems() {
		n++
		id, returned := e.Get("tool_call_id"), e.Get("tool_return")
		if !returned.Exists() {
			w.decision(v, e, id, take)
			continue
		}
		call := w.waited(v, ident.Of(id), "", "", take)
		if call.CallID == "" {
			continue
		}
		// The server repeats it as the call's result; until then this is the result.
		p := w.pending(v, msg.ToolResult)
		p.Key, p.ParentKey, p.Complete = "result:"+call.CallID, "call:"+call.CallID, min(p.Complete, msg.Summary)
		p.Role, p.Tool = msg.RoleTool, call
		content, files := contentOf(returned)
		p.Content, p.Attachments = content.Own(), files
		if p.IsError = e.Get("status").Equal("error"); p.IsError {
			p.Tool.ErrorType = errorType(p.Content)
		}
		take(p)
	}
	if n == 0 {
		w.decision(v, v, v.Get("approval_request_id"), take)
	}
}

// decision reads one decision. Older servers name the request's message instead of the call
// or the calls.
func (w *writer) decision(v, e, id jsonv.Value, take func(*pending)) {
	approved, reason := "", e.Get("reason").Str()
	if approve := e.Get("approve"); approve.Is(jsonv.True) || approve.Is(jsonv.False) {
		approved = string(approve.Peek())
	}
	named := ident.Of(id)
	calls := []string{named}
	for _, c := range w.Calls.Open {
		if c.Request != "" && c.Request == named {
			calls = append(calls, c.ID)
		}
	}
	if len(calls) > 1 {
		calls = calls[1:]
	}
	for _, call := range calls { // take may close calls
		w.waited(v, call, approved, reason, take)
	}
}

// waited passes on the end of the wait of a call, which it returns.
func (w *writer) waited(v jsonv.Value, call, approved, reason string, take func(*pending)) msg.Tool {
	p := w.pending(v, msg.Status)
	p.Key, p.Signal, p.Role, p.Tool.CallID = "waited:"+call, msg.WaitEnd, msg.RoleUser, call
	p.SetAttr("type", "approval_response")
	p.SetAttr("approved", approved)
	p.SetAttr("reason", reason)
	if call == "" {
		p.Facts = []string{approved, reason}
	} else {
		p.ParentKey = "call:" + call
	}
	if c := w.Calls.GetOpen(call); c != nil {
		p.Tool.Name = c.Name
	}
	tool := p.Tool
	take(p)
	return tool
}

// wait keeps a message to an agent until a run answers it.
func (d *stream) wait(p *pending) {
	if len(d.Pending) == maxPending {
		d.unanswered()
	}
	if p == d.next {
		d.next = nil
	}
	d.Pending = append(d.Pending, p)
}

// answer emits the pending messages as messages of the run that answers them.
func (d *stream) answer(r *run) {
	list := d.Pending
	d.Pending = nil
	for _, p := range list {
		p.emit(&d.writer, r)
	}
}

// unanswered emits the pending messages in a run of their own, and returns that run.
func (d *stream) unanswered() *run {
	if len(d.Pending) == 0 {
		return nil
	}
	r := d.open(d.Pending[0].own(d.session("")))
	d.answer(r)
	return r
}

// emit emits a message of the run; r is nil for the agent's prompt. A request has no time: it
// precedes the first frame of the run.
func (p *pending) emit(w *writer, r *run) {
	if r != nil {
		r.close(w)
		r.Response = ""
	}
	if p.Stop != "" {
		r.stop(w, p.Stop)
		return
	}
	m := w.message(r, p.Kind, p.Key)
	run, session, agent, frame := m.Run, m.Session, m.Agent, m.Frame
	*m = p.Message
	m.Run, m.Session, m.Frame = run, session, frame
	if p.Facts != nil {
		facts := [3]string{r.id()}
		m.Key += msg.HashKey(facts[:1+copy(facts[1:], p.Facts)]...)
	}
	if m.Agent == (msg.Agent{}) {
		m.Agent = agent
	}
	if m.Time == 0 && r != nil {
		m.Time, m.Precision = r.undated(m.Key), msg.Inferred
	}
	if r != nil && m.Kind == msg.User {
		r.setCorrelationID(m)
	}
}
