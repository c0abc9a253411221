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
	Open  bool                      `json:",omitempty"` // a turn is active
	Cut   bool                      `json:",omitempty"` // the turn was interrupted
	Stop  string                    `json:",omitempty"` // key of the line that ended the turn
	Top   lane                      `json:",omitzero"`
	Text  conversation.LastText     `json:",omitzero"` // of Top
	Calls conversation.Calls[*call] `json:",omitzero"`
	Dir   string                    `json:",omitempty"` // working directory
}

// lane is a run: a turn of the session, or a sub-agent below one of its calls.
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
		t.Sum = t.Sum.Add(t.Last)
		t.Response, t.Last = response, conversation.Counts{}
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

// emitTokens emits the tokens of a run without a result line. Tokens of a sub-agent after its
// end have a key of their own.
func (l *lane) emitTokens(out *decoder.Output, s *session, c msg.Completeness) {
	u := l.Tokens.total()
	if u.IsZero() {
		return
	}
	m := out.Add()
	m.Session, m.Kind, m.Hidden = s.ID, msg.Usage, true
	m.Key, m.Usage, m.Complete = "usage:"+l.ID, u, c
	if l.Emitted > 0 {
		m.Key += "/" + strconv.Itoa(l.Emitted)
	}
	m.Model, m.Provider = l.Model, anthropic.Provider("", l.Model)
	l.Tokens.At.Set(m)
	l.mark(m)
}

// settle emits them as complete.
func (l *lane) settle(out *decoder.Output, s *session) {
	before := len(out.Messages)
	if l.emitTokens(out, s, msg.Complete); len(out.Messages) > before {
		l.Emitted++
	}
	l.Tokens = tokens{}
}

// begin begins a turn.
func (r *record) begin(run string) {
	s := r.s
	if run == s.Top.ID && s.Open {
		return // the same prompt again
	}
	s.Top.settle(r.out, s)
	s.Top = lane{Run: conversation.Run{ID: strings.Clone(run)}}
	s.Text.Set(msg.Text{})
	s.Open, s.Cut, s.Stop = true, false, ""
}

// wake begins a turn with a record of the agent unless one is active: the notification of a
// background task causes a turn without a prompt.
func (r *record) wake() {
	if r.lane != &r.s.Top || r.s.Open {
		return
	}
	var text msg.Text
	if len(r.at.raw) == 0 {
		text = msg.Raw(r.root.Raw())
	}
	r.begin("turn:" + r.key("", 0, text))
}

// end makes m the end of the record's run.
func (r *record) end(m *msg.Message) {
	m.Signal = msg.RunEnd
	if r.lane == &r.s.Top {
		r.s.Open = false
	}
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
	dir = path.Base(dir)
	o.session = strings.TrimSuffix(strings.TrimSuffix(base, ".gz"), ".jsonl")
	if strings.HasPrefix(base, "messages.") || strings.HasPrefix(base, "comms.") {
		o.session = dir
	}
	if o.session == "" || o.session == "." || o.session == "/" || o.session == "-" {
		o.session = "legion"
	}
	o.legion = o.session
	if _, rest, ok := strings.Cut("/"+s, "/legions/"); ok {
		if id, _, _ := strings.Cut(rest, "/"); id != "" {
			o.legion = id
		}
	}
	return o
}
