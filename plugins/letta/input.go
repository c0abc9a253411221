package letta

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// maxPending limits the messages that wait for a frame that names their run.
const maxPending = 64

// request decodes a client's request. Its messages to an agent wait until the answer names
// the run.
func (d *stream) request(v jsonv.Value) {
	d.unanswered()
	_, path, _ := strings.Cut(d.Frame.Name, " ")
	here, run := scopeOf(path), ident.Below(path, "/runs/")
	resumed := d.find(run).ID != ""
	if here.Session == d.Place.Session || here.Session == "" && resumed {
		here = d.Place.override(here)
	}
	d.Place, d.Run = here, ""
	if v.Exists() && !resumed {
		d.leave()
		if d.Frame.Name != "" && !strings.Contains(path, "/messages") {
			d.unknown(v, "request")
		} else {
			d.messages(v)
		}
	}
	if run != "" && strings.Contains(path, "/stream") { // the rest of a stream may have only what names no run: a stop reason, a count
		d.Run = d.open(run).ID
	}
}

// messages decodes the messages of a request, and its decisions.
func (d *stream) messages(v jsonv.Value) {
	d.Place = newScope(ident.Of(v.Get("conversation_id")), ident.Of(v.Get("agent_id"))).override(d.Place)
	before := len(d.Pending)
	for e := range v.Get("messages").Elems() {
		if e.Get("type").In("approval", "tool_return") || e.Get("approvals").Is(jsonv.Array) {
			d.decisions(e)
			continue
		}
		role, err := msg.ParseRole(e.Get("role").PeekStr())
		if err == nil && role != msg.NoRole {
			e.Get("role").MarkRead()
		}
		d.prompt(e, cmp.Or(role, msg.RoleUser), e.Get("content"))
	}
	if content := v.Get("input"); content.Exists() {
		d.prompt(v, msg.RoleUser, content)
	}
	if len(d.Pending) == before {
		d.unknown(v, "request")
	}
}

// stored decodes a stored message of a user, of another agent or of the system.
func (d *stream) stored(v jsonv.Value, role msg.Role) {
	content := v.First("content", "message")
	if !d.notice(v, content) {
		d.prompt(v, role, content)
	}
}

// prompt reads a message to an agent: of a person, of another agent, or of the system.
func (d *stream) prompt(v jsonv.Value, role msg.Role, content jsonv.Value) {
	t, files := contentOf(content)
	text, sender, name := t.String(), v.Get("sender_id"), v.Get("name")
	m := msg.Message{Kind: msg.User, Role: role, Attachments: files}
	switch role {
	case msg.RoleUser:
		m.Agent = msg.Agent{ID: ident.Of(sender), Name: ident.Of(name), Kind: msg.KindHuman}
		text = d.unpack(text, &m)
		if isAgent(sender) {
			m.Agent = d.agent(m.Agent.ID, m.Agent.Name)
		}
	case msg.RoleAssistant:
		m.Kind = msg.Assistant
	case msg.RoleSystem:
		from := agentMessageOf(text)
		if from == nil {
			m.Kind, m.Hidden = msg.System, true
			break
		}
		text, m.Agent, m.ParentRun = from.text, d.agent(from.agent, ident.Of(name)), msg.UnknownRun
		ident.Is(sender, from.agent)
		m.SetAttr("origin", "agent")
		m.Delegation.CorrelationPrompt = correlationPrompt("to", d.scope().Agent, text)
	}
	m.Content = msg.Plain(text)
	d.input(v, m)
}

// unpack returns a user's message from the JSON object in which older servers pack it, with
// the time and perhaps the user's name and location, which it sets:
//
//	{"type": "user_message", "message": "...", "time": "...", "name": "..."}
func (w *writer) unpack(packed string, m *msg.Message) string {
	if !strings.HasPrefix(packed, "{") || w.inner.Parse([]byte(packed)) != nil {
		return packed
	}
	root := w.inner.Root()
	text, sent := root.Get("message"), root.Get("time")
	if !root.Get("type").Equal("user_message") || !text.Is(jsonv.String) || !sent.Exists() {
		return packed
	}
	m.SetAttr("sent", sent.Text().String())
	m.Agent.Name = cmp.Or(m.Agent.Name, ident.Of(root.Get("name")))
	var more []byte
	for k, v := range root.Members() {
		if v.Exists() && !slices.Contains([]string{"type", "message", "time", "name"}, k.String()) {
			more = compact(append(jsonv.AppendQuote(append(more, ','), k.String()), ':'), v)
		}
	}
	if more != nil {
		m.SetAttr(unknown.Attr, "{"+string(more[1:])+"}")
	}
	return text.Str()
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
	m := d.runOf(v, false).note(d, v, typ.Str(), content)
	m.Role, m.Complete = msg.RoleUser, min(m.Complete, msg.Summary)
	m.Content = root.First("reason", "message", "last_login").Text()
	m.SetAttr("sent", root.Get("time").Str())
	d.KeepUnread(&d.inner, len(d.Out.Messages)-1)
	return true
}

// decisions reads a response to requests for approval: the decisions of a person, or the results of tools that
// the client ran itself. Older servers name the request's message instead of the call or the calls.
func (d *stream) decisions(v jsonv.Value) {
	for e := range jsonv.Each(listOr(v.First("approvals", "tool_returns"), v)) {
		named := ident.Of(e.First("tool_call_id", "approval_request_id"))
		var calls []string // which the run closes when it takes a decision
		for _, c := range d.Calls.Open {
			if named != "" && (named == c.Request || named == c.ProtocolID) {
				calls = append(calls, c.ID)
			}
		}
		if len(calls) == 0 {
			calls = append(calls, named)
		}
		for _, id := range calls {
			d.decision(v, e, id)
		}
	}
}

// decision reads one decision, or one result. The server repeats a result as that of the call; until then this is it.
func (d *stream) decision(v, e jsonv.Value, id string) {
	c := d.Calls.GetOpen(id)
	if c == nil {
		c = callOf(conversation.Call{ID: id})
	}
	m := msg.Message{Kind: msg.Status, Role: msg.RoleUser, Signal: msg.WaitEnd}
	c.Call.On(record.Hide(&m, "approval_response"))
	conversation.AttrsAs(&m, e, conversation.ShortJSON, "approved=approve")
	m.SetAttr("reason", e.Get("reason").Str())
	if id != "" {
		m.Key, m.ParentKey = "waited:"+id, "call:"+id
	}
	d.input(v, m)
	if id != "" && e.Get("tool_return").Exists() {
		m = msg.Message{Key: "result:" + id}
		returns(c.Result(&m), e, false)
		m.Content = m.Content.Own()
		d.input(v, m)
	}
}

// input passes on a message to an agent that v has. What is stored may name its run, and yields to the same in its
// request, which has no ids: a prompt without one names the run if none answers.
func (d *stream) input(v jsonv.Value, m msg.Message) {
	r, id, otid, stored := d.find(""), ident.Of(v.Get("id")), ident.Of(v.Get("otid")), d.Frame.Kind != frame.Request
	if len(v.Get("run_id").Escaped()) > 0 {
		r = d.runOf(v, false)
	}
	if m.Run = id; id == "" {
		role, text := m.Role.String(), m.Content.String()
		if m.Kind == msg.Status || m.Kind == msg.ToolResult {
			role, text = "", ""
		}
		m.Run = "request:" + msg.HashKey(d.session(""), otid, role, text)
	}
	if m.Complete = d.level; stored || m.Kind == msg.ToolResult {
		m.Complete = min(d.level, msg.Summary)
	}
	d.At.Set(&m)
	if stored && m.Kind == msg.System && r.ID == "" { // the agent's own prompt is of no run
		m.Key = id
		r.deliver(d, m)
		return
	}
	d.take(r, m)
}

// take emits a message of the run, or else keeps it until a run answers. Its own Run is the one if none does.
func (d *stream) take(r *run, m msg.Message) {
	if r.ID != "" {
		r.deliver(d, m)
		return
	}
	if len(d.Pending) == maxPending {
		d.unanswered()
	}
	d.Pending = append(d.Pending, m)
}

// answer emits the pending messages as messages of the run that answers them.
func (d *stream) answer(r *run) {
	list := d.Pending
	d.Pending = nil
	for _, m := range list {
		r.deliver(d, m)
	}
}

// unanswered emits the pending messages in a run of their own, and returns that run.
func (d *stream) unanswered() *run {
	if len(d.Pending) == 0 {
		return d.find("")
	}
	r := d.open(d.Pending[0].Run)
	d.answer(r)
	return r
}

// deliver emits a message to the agent of a run. A request has no time: it precedes the first
// frame of the run. Only stored messages have ids, so keys are made of run and text.
func (r *run) deliver(d *stream, m msg.Message) {
	if m.Kind == msg.Stop {
		r.end(d, m.FinishReason)
		return
	}
	r.close(d)
	r.Response = ""
	text := m.Content.String()
	switch {
	case m.Key != "":
	case m.Kind == msg.Status: // a decision that names no call
		m.Key = "waited:" + msg.HashKey(r.ID, m.Attr("approved"), m.Attr("reason"))
	default:
		m.Key = m.Role.String() + ":" + msg.HashKey(r.ID, text)
	}
	if out := d.put(r, m); r.ID != "" && m.Kind == msg.User {
		r.setCorrelationID(out)
	}
	if m.ParentRun == "" {
		return
	}
	if by := correlationPrompt("by", m.Agent.ID, text); by != "" { // it may be one to many
		letter := msg.Message{Kind: msg.Status, Key: "letter:" + msg.HashKey(r.ID, text), ParentRun: m.ParentRun, Time: m.Time, Precision: m.Precision, Complete: m.Complete}
		letter.Delegation.CorrelationPrompt = by
		record.Hide(d.put(r, letter), "letter")
	}
}

// scope is the session and the agent of messages that name neither.
type scope struct {
	Session string `json:",omitempty"`
	Agent   string `json:",omitempty"`
}

// newScope returns the scope of a conversation, which is more specific than its agent: the
// default conversation of an agent has the agent's id.
func newScope(conversation, agent string) scope {
	if conversation == "default" {
		conversation = ""
	}
	p := scope{Session: cmp.Or(conversation, agent), Agent: agent}
	if strings.HasPrefix(p.Session, "agent-") {
		p.Agent = cmp.Or(agent, p.Session)
	}
	return p
}

// override replaces the fields of p by those that q has.
func (p scope) override(q scope) scope {
	return scope{Session: cmp.Or(q.Session, p.Session), Agent: cmp.Or(q.Agent, p.Agent)}
}

// scopeOf reads the path of an address, or of a file that is named after an agent
// or a conversation:
//
//	/v1/agents/{agent}/messages/stream
//	/v1/conversations/{conversation}/messages?agent_id={agent}
//	captures/agent-0c3e.jsonl
func scopeOf(address string) scope {
	path, query, _ := strings.Cut(strings.ToValidUTF8(address, "\uFFFD"), "?")
	agent, conversation := ident.Below(path, "/agents/"), cmp.Or(ident.Below(path, "/conversations/"), ident.Below(path, "/groups/"))
	for part := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' || c == '\\' }) {
		stem, _, _ := strings.Cut(part, ".")
		switch {
		case agent == "" && strings.HasPrefix(part, "agent-"):
			agent = stem
		case conversation == "" && strings.HasPrefix(part, "conv-"):
			conversation = stem
		}
	}
	values, _ := url.ParseQuery(query) // the pairs that it can read
	return newScope(ident.Bounded(cmp.Or(conversation, values.Get("conversation_id"))), ident.Bounded(cmp.Or(agent, values.Get("agent_id"))))
}

func (w *writer) scope() scope { return w.origin.override(w.Place) }

// session returns the session of a run's messages. Without a scope it is the run, which is
// the same in all forms.
func (w *writer) session(run string) string {
	return cmp.Or(w.scope().Session, run, w.Run, "unknown")
}
