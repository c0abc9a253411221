package legion

import (
	"path"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/anthropic"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
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
}

// lane is a run: a turn of the session, or a sub-agent below one of its calls. Stop of a turn
// is interrupted when the user did that.
type lane struct {
	conversation.Run
	Agent   string `json:",omitempty"`
	Model   string `json:",omitempty"`
	Tokens  tokens `json:",omitzero"`
	Emitted int    `json:",omitempty"` // usage messages
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

// responseID returns the id of a response; most records of one follow each other.
func (l *lane) responseID(v jsonv.Value) string {
	if b := read(v); string(b) != l.Tokens.Response {
		return string(b)
	}
	return l.Tokens.Response
}

// tokens adds up the usage of a run's responses. Each part of a response repeats its usage,
// which grows if anything.
type tokens struct {
	Sum      conversation.Counts `json:",omitzero"` // of the responses before
	Last     conversation.Counts `json:",omitzero"`
	Response string              `json:",omitempty"` // id of the last one
	At       conversation.Time   `json:",omitzero"`
}

func (t *tokens) count(response string, c conversation.Counts, at conversation.Time) {
	if response != t.Response {
		t.Sum, t.Last = t.Sum.Add(t.Last), conversation.Counts{}
		t.Response = response
	}
	t.Last, t.At = t.Last.Max(c), at
}

func (t *tokens) total() msg.Tokens { return t.Sum.Add(t.Last).Tokens(msg.TranscriptPartial) }

// emitTokens emits the tokens of the runs without a result line.
func (s *session) emitTokens(out *decoder.Output, c msg.Completeness) {
	s.Top.emitTokens(out, s, c)
	for call := range s.Calls.All() {
		if call.Child != nil {
			call.Child.emitTokens(out, s, c)
		}
	}
}

// emitTokens emits the tokens of a run without a result line, if there are any. Tokens of a
// sub-agent after its end have a key of their own.
func (l *lane) emitTokens(out *decoder.Output, s *session, c msg.Completeness) (emitted bool) {
	u, key := l.Tokens.total(), l.ID
	if u.IsZero() {
		return false
	}
	if l.Emitted > 0 {
		key += "/" + strconv.Itoa(l.Emitted)
	}
	m := out.Add()
	m.Session, m.Complete = s.ID, c
	l.Tokens.At.Set(m)
	l.mark(m)
	l.usage(m, key, u)
	return true
}

// usage makes the message the tokens of the run.
func (l *lane) usage(m *msg.Message, key string, t msg.Tokens) {
	m.Kind, m.Hidden, m.Key, m.Usage = msg.Usage, true, "usage:"+key, t
	m.Model, m.Provider = l.Model, anthropic.Provider("", l.Model)
}

// settle emits them as complete. A call without a sub-agent has none.
func (l *lane) settle(out *decoder.Output, s *session) {
	if l == nil {
		return
	}
	if l.emitTokens(out, s, msg.Complete) {
		l.Emitted++
	}
	l.Tokens = tokens{}
}

// laneOf returns the run of the sub-agent that the call caused; the turn for no call.
func (r *entry) laneOf(parent jsonv.Value) *lane {
	id := read(parent)
	if len(id) == 0 {
		return &r.s.Top
	}
	c := r.s.Calls.Get(string(id))
	if c == nil {
		c = r.s.add(r, string(id))
	}
	if c.Child == nil {
		c.Child = &lane{Run: conversation.Run{ID: c.ID, Child: true, Parent: c.Run, Call: c.ID, Link: msg.ByNativeID}, Agent: c.To}
	}
	return c.Child
}

// begin begins a turn.
func (s *session) begin(out *decoder.Output, run string) {
	if run == s.Top.ID && s.Top.Active() {
		return // the same prompt again
	}
	s.Top.settle(out, s)
	s.Top = lane{Run: conversation.Run{ID: strings.Clone(run)}}
	s.Text.Set(msg.Text{})
	s.Stop = ""
}

// wake begins a turn with a record of the agent unless one is active: the notification of a
// background task causes a turn without a prompt.
func (r *entry) wake() {
	if r.lane != &r.s.Top || r.lane.Active() {
		return
	}
	var text msg.Text
	if len(r.at.raw) == 0 {
		text = msg.Raw(r.root.Raw())
	}
	r.s.begin(r.Out, "turn:"+r.key("", 0, text))
}

// origin is the part of a stream's name that has a meaning.
type origin struct {
	session string
	legion  string // whose comms.jsonl it is
}

// originOf takes apart sessions/<id>/messages.jsonl and
// legions/<id>/minions/<id>/comms.jsonl; any other file is named after itself.
func originOf(s string) (o origin) {
	s, _, _ = strings.Cut(strings.ReplaceAll(s, `\`, "/"), "?")
	dir, base := path.Split(path.Clean(s))
	o.session = strings.TrimSuffix(strings.TrimSuffix(base, ".gz"), ".jsonl")
	if strings.HasPrefix(base, "messages.") || strings.HasPrefix(base, "comms.") {
		o.session = path.Base(dir)
	}
	switch o.session {
	case "", ".", "/", "-":
		o.session = "legion"
	}
	_, legion, _ := strings.Cut("/"+s, "/legions/")
	if o.legion, _, _ = strings.Cut(legion, "/"); o.legion == "" {
		o.legion = o.session
	}
	return o
}
