package legion

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// session is the state of one minion's conversation.
type session struct {
	ID    string
	Stop  string                    `json:",omitempty"` // key of the line that ended the turn
	Top   lane                      `json:",omitzero"`  // the turn
	Text  conversation.LastText     `json:",omitzero"`  // of Top
	Calls conversation.Calls[*call] `json:",omitzero"`
	Dir   string                    `json:",omitempty"` // working directory
	// Notified is set if a background task has ended since the turn did.
	Notified bool `json:",omitempty"`
}

// lane is a run: a turn of the session, or a sub-agent below one of its calls. Stop of a turn
// is interrupted when the user did that.
type lane struct {
	conversation.Run
	Agent   string `json:",omitempty"`
	Model   string `json:",omitempty"`
	Tokens  tokens `json:",omitzero"`
	Emitted int    `json:",omitempty"` // usage messages
	// Counted has the responses of a sub-agent whose tokens were counted: a file may have its lines twice, and there is
	// no result line with the sum.
	Counted bounded.Set[conversation.Sum] `json:",omitzero"`
}

// mark makes the message one of the run. Each message of a sub-agent has the parent.
func (l *lane) mark(m *msg.Message) {
	m.Run = l.ID
	if l.Call != "" {
		l.Below(m)
		m.Agent = msg.Agent{Name: l.Agent, Kind: msg.KindAgent}
	}
}

// answer makes the message a part of the model's response.
func (l *lane) answer(m *msg.Message, response string) {
	m.Model, m.Provider, m.ResponseID = l.Model, anthropic.Provider("", l.Model), response
}

// enter finds the run of the record: that of the sub-agent which the call caused, or the turn for no call.
func (r *entry) enter(call jsonv.Value) {
	r.lane = &r.s.Top
	if id := r.StrOf(call); id != "" {
		c := r.s.call(r, id)
		if c.Child == nil {
			c.Child = &lane{Run: conversation.Run{ID: c.ID, Child: true, Parent: c.Run, Call: c.ID, Link: msg.ByNativeID}, Agent: c.To}
		}
		r.lane = c.Child
	}
}

// between reports whether the record is of the session and of none of its turns.
func (r *entry) between() bool { return r.lane == &r.s.Top && !r.lane.Active() }

// begin begins a turn, unless it is the same prompt again.
func (r *entry) begin(run string) {
	if s := r.s; run != s.Top.ID || !s.Top.Active() {
		s.Top.emitTokens(r.Out, s, msg.Complete)
		s.Top = lane{Run: conversation.Run{ID: strings.Clone(run)}}
		s.Text.Set(msg.Text{})
		s.Stop, s.Notified = "", false
	}
}

// wake begins a turn with a record of the agent unless one is active: the notification of a
// background task causes a turn without a prompt. An interrupted turn has records until its result line, or such a notification.
func (r *entry) wake() {
	if s := r.s; !r.between() || s.Top.Stop == interrupted && s.Stop == "" && !s.Notified {
		return
	}
	var text msg.Text
	if len(r.written) == 0 {
		text = msg.Raw(r.root.Raw())
	}
	r.begin("turn:" + r.key("", text))
}

// notified notes that a background task has ended.
func (s *session) notified() { s.Notified = s.Notified || !s.Top.Active() }

// result decodes the line that ends a turn. Its text repeats the last text of the turn.
func (r *entry) result() {
	s, l, f := r.s, r.lane, r.fields
	if r.stored {
		r.content = f.Get("result")
	}
	sub := r.Name(f.Get("subtype"))
	text, part := r.text(sub), ""
	if r.id == "" { // distinguishes two results of one instant
		part = "/" + r.Scalar(f.Get("duration_ms")) + "/" + r.Scalar(f.Get("num_turns"))
	}
	m := r.add(msg.Stop, msg.NoRole)
	m.Key = r.key(part, text)
	if m.IsError = f.Get("is_error").Bool(); m.IsError || !s.Text.Is(text) {
		m.Content = text
	}
	m.FinishReason = cmp.Or(r.Name(f.Get("stop_reason")), sub)
	if m.IsError {
		m.Tool.ErrorType = cmp.Or(s.Top.Stop, r.Name(f.Get("error_type")), sub)
		m.FinishReason = cmp.Or(s.Top.Stop, m.FinishReason)
		if m.Content.IsZero() {
			m.Content = f.Get("errors").Text()
		}
	}
	m.Attrs = make([]msg.Attr, 0, 10)
	m.SetAttr("type", "result")
	m.SetAttr("subtype", sub)
	conversation.AttrsAs(m, f, r.Scalar, "duration_ms", "duration_api_ms", "num_turns", "total_cost_usd", "error_code", "api_error_status", "terminal_reason")
	l.End(m)

	key := m.Key
	s.Stop = cmp.Or(s.Stop, strings.Clone(key))
	used := anthropic.Usage(f.Get("usage")).Tokens(msg.Provider)
	if used.IsZero() {
		used = l.Tokens.total()
	}
	if l.Tokens = (tokens{}); used.IsZero() {
		return
	}
	if s.Stop == key && l.ID != "" { // a second result of the turn has tokens of its own
		key = l.ID
	}
	l.usage(r.add(msg.Usage, msg.NoRole), key, used)
}

// tokens adds up the usage of a run's responses. Each part of a response repeats its usage,
// which grows if anything.
type tokens struct {
	Sum      conversation.Counts `json:",omitzero"` // of the responses before
	Last     conversation.Counts `json:",omitzero"`
	Response string              `json:",omitempty"` // id of the last one
	At       conversation.Time   `json:",omitzero"`
}

// count adds the usage of a part of a response.
func (l *lane) count(response string, c conversation.Counts, at conversation.Time) {
	t := &l.Tokens
	if response != t.Response {
		if l.Child && !l.Counted.Add(conversation.SumOf(response), maxResponses) {
			return
		}
		t.Sum, t.Last = t.Sum.Add(t.Last), conversation.Counts{}
		t.Response = strings.Clone(response)
	}
	t.Last, t.At = t.Last.Max(c), at
}

func (t *tokens) total() msg.Tokens { return t.Sum.Add(t.Last).Tokens(msg.TranscriptPartial) }

// emitTokens emits the tokens of the runs without a result line.
func (s *session) emitTokens(out *decoder.Output, c msg.Completeness) {
	s.Top.emitTokens(out, s, c)
	for call := range s.Calls.All() {
		call.Child.emitTokens(out, s, c)
	}
}

// emitTokens emits the tokens of a run without a result line, if there are any. Tokens of a
// sub-agent after its end have a key of their own.
func (l *lane) emitTokens(out *decoder.Output, s *session, c msg.Completeness) {
	if l == nil || l.Tokens.total().IsZero() {
		return
	}
	m, n := out.Add(), l.Emitted
	m.Session, m.Complete = s.ID, c
	l.Tokens.At.Set(m)
	l.mark(m)
	l.usage(m, conversation.Ordinal(l.ID, &n), l.Tokens.total())
	if c == msg.Complete {
		l.Emitted, l.Tokens = n, tokens{}
	}
}

// usage makes the message the tokens of the run.
func (l *lane) usage(m *msg.Message, key string, t msg.Tokens) {
	m.Kind, m.Hidden, m.Key, m.Usage = msg.Usage, true, "usage:"+key, t
	l.answer(m, "")
}

// origin is the part of a stream's name that has a meaning.
type origin struct {
	session string
	legion  string // whose comms.jsonl it is
}

// originOf takes apart sessions/<id>/messages.jsonl and
// legions/<id>/minions/<id>/comms.jsonl; any other file is named after itself.
func originOf(s string) (o origin) {
	s, _, _ = strings.Cut(s, "?")
	p := ident.PathOf(s)
	o.session = p.Name(".jsonl", ".gz")
	if strings.HasPrefix(p.File, "messages.") || strings.HasPrefix(p.File, "comms.") {
		o.session = p.Dir()
	}
	if o.session == "" || o.session == "-" {
		o.session = "legion"
	}
	o.legion = cmp.Or(p.After("legions"), o.session)
	return o
}
