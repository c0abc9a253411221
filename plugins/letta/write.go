package letta

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// writer makes the messages of a frame.
type writer struct {
	*record.Current
	*state
	level  msg.Completeness
	whole  bool      // the frame is complete: no later frame continues it
	inner  jsonv.Doc // JSON in a string of the frame
	date   dates
	origin scope    // of the source
	next   *pending // that nothing keeps
}

func (w *writer) scope() scope { return w.origin.override(w.Place) }

// session returns the session of a run's messages. Without a scope it is the run, which is
// the same in all forms.
func (w *writer) session(run string) string {
	return cmp.Or(w.scope().Session, run, w.Run, "unknown")
}

// message adds a message of a run; r is nil for a message outside of all runs. Its default
// time is that of the run's last dated frame: the server sends undated records right after
// dated ones.
func (w *writer) message(r *run, kind msg.Kind, key string) *msg.Message {
	m := w.Out.Add()
	m.Kind, m.Key, m.Complete = kind, key, w.level
	if r != nil {
		m.Run, m.Time, m.Precision = r.ID, r.Last, msg.Inferred
	}
	m.Session, m.Agent = w.session(m.Run), w.agent(w.scope().Agent, "")
	return m
}

// status adds a hidden status.
func (w *writer) status(r *run, key, typ string) *msg.Message {
	m := w.message(r, msg.Status, key)
	m.Hidden = true
	m.SetAttr("type", typ)
	return m
}

// unknown keeps a record of unknown type; event is the name of its frame.
func (w *writer) unknown(v jsonv.Value, event string) {
	w.raw(v, cmp.Or(ident.Of(v.First("message_type", "type")), event, "none"))
}

// raw keeps v raw.
func (w *writer) raw(v jsonv.Value, typ string) {
	m := w.Unknown(typ, v)
	if r := w.find(w.Run); r != nil {
		m.Time = r.undated(m.Key)
	}
	w.stamp(m, v)
}

// stamp sets the message's time to the date of v, if any.
func (w *writer) stamp(m *msg.Message, v jsonv.Value) { at(m, w.date.read(v.Get("date"))) }

// at sets the message's time, if it is known.
func at(m *msg.Message, t conversation.Time) {
	if t.Nanos != 0 {
		t.Set(m)
	}
}

// dates parses dates, and caches the last one because neighbours mostly have the same date.
type dates struct {
	raw  []byte
	last conversation.Time
}

func (d *dates) read(v jsonv.Value) conversation.Time {
	raw := v.Peek()
	if len(raw) == 0 || len(raw) > ident.Max {
		return conversation.Time{}
	}
	if string(raw) != string(d.raw) {
		d.raw, d.last = append(d.raw[:0], raw...), conversation.TimeOf(v)
	}
	if d.last.Nanos != 0 {
		v.MarkRead()
	}
	return d.last
}

// maxNames limits the agents whose names are in the state.
const maxNames = 64

// agentName is the display name of an agent in an earlier message.
type agentName struct{ ID, Name string }

// agent returns the agent with that id. Its name is the display name of this or an earlier
// message, else its id: dashboards group by the name, so it is empty only without an id.
func (w *writer) agent(id, name string) msg.Agent {
	i := slices.IndexFunc(w.Names, func(n agentName) bool { return n.ID == id })
	switch {
	case name != "" && i >= 0:
		w.Names[i].Name = name
	case name != "" && id != "":
		w.Names = bounded.Push(w.Names, agentName{id, name}, maxNames)
	case name == "" && i >= 0:
		name = w.Names[i].Name
	}
	return msg.Agent{ID: id, Name: cmp.Or(name, id), Kind: msg.KindAgent}
}

// contentOf returns the text and the files of a content, which is a string, a block of
// Anthropic's or a list of them. A file may be in the store of the server:
//
//	{"type":"image","source":{"type":"letta","file_id":"file-...","media_type":"image/png"}}
func contentOf(v jsonv.Value) (msg.Text, []msg.Attachment) {
	if v.Is(jsonv.Object) && v.Get("type").Equal("text") {
		v = v.Get("text")
	}
	if !v.Is(jsonv.Array) {
		return v.Text(), nil
	}
	var c anthropic.Blocks
	for b := range v.Elems() {
		source, n := b.Get("source"), len(c.Files)
		id := ident.Of(source.Get("file_id"))
		if id == "" || source.Get("data").Is(jsonv.String) {
			c.Add(b)
		} else {
			c.Files = append(c.Files, msg.Attachment{MediaType: ident.Of(source.Get("media_type"))})
		}
		if id != "" && len(c.Files) > n {
			c.Files[n].Name = id
		}
	}
	return c.Text(), c.Files
}

// lines joins a list of strings.
func lines(v jsonv.Value) string {
	if !v.Is(jsonv.Array) {
		return v.Text().String()
	}
	var texts conversation.Texts
	for e := range v.Elems() {
		texts.Add(e.Text())
	}
	return texts.Joined().String()
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
	var agent, conversation, before string
	for part := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' || c == '\\' }) {
		stem, _, _ := strings.Cut(part, ".")
		switch {
		case before == "agents":
			agent = part
		case before == "conversations", before == "groups":
			conversation = part
		case strings.HasPrefix(part, "agent-"):
			agent = stem
		case strings.HasPrefix(part, "conv-"):
			conversation = stem
		}
		before = part
	}
	if conversation == "default" {
		conversation = ""
	}
	values, _ := url.ParseQuery(query) // the pairs that it can read
	return newScope(ident.Bounded(cmp.Or(conversation, values.Get("conversation_id"))), ident.Bounded(cmp.Or(agent, values.Get("agent_id"))))
}
