package grace

import (
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/when"
)

// agent is who runs: the format does not name it.
func agent() msg.Agent { return msg.Agent{Name: "grace", Kind: msg.KindAgent} }

// at is a time with the precision of its notation.
type at struct {
	Time      int64
	Precision msg.Precision
}

// record is one message of the protocol while it is decoded.
type record struct {
	v, meta jsonv.Value
	json    jsonv.Value // files, tasks or a tool's result; parsed when it is a string of JSON
	action  string
	status  string
	uuid    string
	task    string // the task it belongs to; empty when it is the run's own
	at      at
	out     *decoder.Output
	sum     string // result of hash, computed at its first call
}

// message decodes an object that is a message, or keeps one of an unknown shape.
func (d *stream) message(v jsonv.Value, out *decoder.Output) {
	if !isMessage(v) {
		d.unknown(v, out)
		return
	}
	from := len(out.Messages)
	r := &record{v: v, meta: unquoted(&d.inner, v.Get("meta")), out: out}
	r.json = unquoted(&d.other, r.get("json"))
	r.action = ident.Of(r.get("action_type"))
	r.status = ident.Peek(v.Get("status"))
	r.uuid = ident.Of(v.Get("uuid"))
	t := v.First("timestamp", "create_at", "created_at")
	r.at.Time, r.at.Precision, _ = when.Value(t)
	for _, name := range [...]string{"create_at", "update_at"} { // of a row, later than the message
		_, _, _ = when.Value(v.Get(name))
	}
	if s := ident.Of(v.Get("conversation_id")); s != "" {
		d.Session = s
	}
	of := r.get("task_id")
	switch r.task = ident.PeekOrNumber(of); {
	case d.isTask(r.task):
		if v.Get("role").Equal("user") || ofTurn(r.action) {
			r.task = ""
		}
	case ofRun(r.action): // the conversation, if anything
		if d.Session == "" {
			d.setSession(r.task)
		}
		r.task = ""
	case r.task == d.session():
		r.task = ""
	}
	if s := ident.PeekOrNumber(of); s == r.task || s == d.session() {
		ident.OrNumber(of)
	}
	d.byAction(r)
	d.keepUnread(&d.inner, from, out)
	d.keepUnread(&d.other, from, out)
	d.keepUnread(&d.text, from, out)
}

// get is a member of the message's meta, or of the message itself where it has
// none.
func (r *record) get(name string) jsonv.Value {
	if v := r.meta.Get(name); v.Exists() {
		return v
	}
	return r.v.Get(name)
}

// content is the message's text. An object in its place is kept as JSON.
func (r *record) content() msg.Text { return r.v.Get("content").Text() }

// markRead marks the message as read: it repeats an earlier one.
func (r *record) markRead() {
	for _, v := range [...]jsonv.Value{r.v, r.meta, r.json} {
		v.MarkRead()
	}
}

// setStatus adds the record's status to m.
func (r *record) setStatus(m *msg.Message) {
	m.SetAttr("status", ident.Of(r.v.Get("status")))
}

// id is the message's key.
func (r *record) id() string { return "message:" + r.hash() }

// hash is a hash of the fields that are equal on the stream and in the row of a message.
func (r *record) hash() string {
	if r.sum == "" {
		r.sum = msg.HashKey(r.v.Get("role").PeekStr(), r.action, r.status, r.task, peekText(r.v.Get("timestamp")), r.uuid, peekText(r.v.Get("content")))
	}
	return r.sum
}

// unquoted is the value of JSON in a string, and v itself when it is none: meta is an object on
// the stream and a string in a row. The texts of the result lie in memory of their own; the
// value is valid until doc is used again.
func unquoted(doc *jsonv.Doc, v jsonv.Value) jsonv.Value {
	if !v.Is(jsonv.String) {
		return v
	}
	raw := v.Peek()
	if len(raw) < 4 || raw[1] != '{' && raw[1] != '[' || doc.Parse([]byte(v.PeekStr())) != nil {
		return v
	}
	v.MarkRead()
	return doc.Root()
}

// addMessage adds a message of the turn.
func (d *stream) addMessage(out *decoder.Output, kind msg.Kind, key string) *msg.Message {
	m := out.Add()
	m.Kind, m.Key, m.Session, m.Run = kind, key, d.session(), d.Turn.Run
	m.Agent, m.Complete = agent(), msg.Complete
	return m
}

// status adds a message that a user would not see.
func (d *stream) status(out *decoder.Output, key, typ string) *msg.Message {
	m := out.Add()
	m.Kind, m.Key, m.Session = msg.Status, key, d.session()
	m.Complete, m.Hidden = msg.Complete, true
	m.SetAttr("type", typ)
	return m
}

// addFor adds a message of the record, in the run of its task or of the turn.
func (d *stream) addFor(r *record, kind msg.Kind, key string) *msg.Message {
	inTask := r.task != "" && d.Turn.Run != ""
	if inTask {
		d.addDelegation(r)
	}
	m := d.addMessage(r.out, kind, key)
	m.Time, m.Precision = r.at.Time, r.at.Precision
	said := r.v.Get("role")
	if role, err := msg.ParseRole(said.PeekStr()); err == nil && said.Is(jsonv.String) {
		said.MarkRead()
		m.Role = role
	}
	if inTask {
		if t := d.task(r.task); t != nil {
			m.Agent.Name = t.name()
		}
		m.Run, m.ParentRun = childRun(d.Turn.Run, r.task), d.Turn.Run
		m.Delegation.Link = msg.ByParent
		m.SetAttr("task_id", r.task)
	}
	return m
}

// unknown keeps an object that is no message.
func (d *stream) unknown(v jsonv.Value, out *decoder.Output) {
	typ := ident.Of(v.First("type", "event", "action_type", "object"))
	if typ == "" {
		typ = "none"
	}
	d.keepRaw(out, typ, v)
}

func (d *stream) keepRaw(out *decoder.Output, typ string, v jsonv.Value) *msg.Message {
	raw := v.Raw()
	m := out.Unknown(typ, raw)
	m.Session, m.Key = d.session(), "unknown:"+msg.HashKey(string(raw))
	return m
}

// bareText emits a string in place of a message.
func (d *stream) bareText(v jsonv.Value, out *decoder.Output) {
	m := d.addMessage(out, msg.Assistant, "message:"+msg.HashKey("bare", v.Str()))
	m.Role, m.Content = msg.RoleAssistant, v.Text()
	m.SetAttr("bare", "true")
}

// session is the conversation, or else the stream's origin.
func (d *stream) session() string {
	switch {
	case d.Session != "":
		return d.Session
	case d.origin != "":
		return d.origin
	}
	return "unknown"
}

// setSession sets the conversation.
func (d *stream) setSession(session string) {
	if session != "" {
		d.Session = cut(session, ident.Max)
	}
}
