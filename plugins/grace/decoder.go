// Package grace decodes the traffic of Lemon AI and of the GRACE terminal that grew out of it:
// the answer of POST /api/agent/run as server-sent events, the same messages as JSON over a
// WebSocket or in a log, and the rows of the database that GET /api/message/list returns.
//
// Facts of the format that are easy to get wrong, beside those of the README:
//
//   - The data of an event is base64, unless responseType asked for something else: chunks of an
//     OpenAI completion whose delta holds the payload, or bytes without any delimiter.
//   - A payload is a message (a JSON object), a marker (__lemon_mode__{…}), or a piece of text. In
//     chat mode it is text even when it looks like JSON; the mode marker decides. GRACE guesses a
//     mode first and sends messages before the one that counts, so an object with the shape of a
//     message is one in every mode.
//   - Errors of the run have the status success; action_type identifies them. GRACE sends a
//     finish_summery (sic) without content when the reply of a specialist was the whole answer.
//   - meta is an object on the stream and a JSON string in a row; GRACE's logs leave it out and put
//     its fields beside the others. task_id may be a task, null, empty, or the conversation. Times
//     are milliseconds.
package grace

import (
	"cmp"
	_ "embed"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return record.Format[state]{
		Info: decoder.Info{
			Name:       "grace",
			Revision:   4,
			Summary:    "Runs of Lemon AI and GRACE: streams, logs and database rows.",
			Transports: []frame.Kind{frame.Event, frame.Text, frame.Line, frame.Body, frame.Request},
			Reload:     true,
		},
		LeavesOut: leavesOut,
		State:     2,
		Wrapped:   true,
		Open: func(r *record.Current, s *state) record.Reader {
			return &stream{dialogue: dialogue{Current: r, state: s, origin: sessionOfOrigin(r.Origin)}}
		},
	}.Factory()
}

// Limits of the state, beside those of package conversation. Beyond a limit the oldest entry
// is evicted.
const (
	maxTasks   = 256      // of the last plan
	maxIntents = 16       // actions that the model wrote and that have not been seen to run
	maxIntent  = 64 << 10 // bytes of such an action
	maxText    = 1 << 20  // bytes of a question, or of an answer in the making
	maxGoal    = 1 << 10  // bytes of the question that a delegation repeats
)

// state is the decoder's memory of earlier frames.
type state struct {
	Session string                    `json:",omitempty"` // the conversation, when something names it
	Framing framing                   `json:",omitempty"`
	Mode    string                    `json:",omitempty"` // chat, agent or twins; empty before the first marker
	Turn    turn                      `json:",omitzero"`
	Fresh   bool                      `json:",omitempty"` // the next message begins a turn
	Shown   string                    `json:",omitempty"` // key under which a question was shown that rows had no answer to
	Ask     *question                 `json:",omitempty"` // the question whose run is not known yet
	Asked   *question                 `json:",omitempty"` // the question of the request
	Chat    *chat                     `json:",omitempty"` // the answer in the making
	Calls   conversation.Calls[*call] `json:",omitzero"`
	Plan    plan                      `json:",omitempty"`
	Intents intents                   `json:",omitempty"`
}

// dialogue is the conversation of a stream, as far as it is decoded: its turn, the question that
// waits for an answer, the answer in the making.
type dialogue struct {
	*record.Current
	*state
	origin string // the session, as long as nothing better names it
}

// stream decodes one stream.
type stream struct {
	dialogue
	inner  jsonv.Doc // of a meta that is JSON in a string
	other  jsonv.Doc // of a list of files or tasks that is
	text   jsonv.Doc // of a content that is
	listed bool      // the message is one of a list of rows
}

// Read decodes one event, line, text, body or request.
func (d *stream) Read() {
	switch f := d.Frame; f.Kind {
	case frame.Close:
		if f.Name != frame.Lost { // the work may go on without us
			d.streamClosed()
		}
	case frame.Request:
		d.request(f)
	case frame.Body:
		d.body(f.Data)
	case frame.Line:
		d.raw(f.Data, true)
	default:
		d.event(f)
	}
}

// In returns the conversation and its turn.
func (d *stream) In() (session, run string) { return d.session(), d.Turn.Run }

// Flush emits the question and the chat answer that are still open.
func (d *stream) Flush() { d.addDrafts(d.Ask, d.Chat) }

// add adds a message of the conversation that belongs to no run.
func (d *dialogue) add(kind msg.Kind, key string) *msg.Message {
	m := d.Out.Add()
	m.Kind, m.Key, m.Session, m.Complete = kind, key, d.session(), msg.Complete
	return m
}

// addToTurn adds a message of the turn.
func (d *dialogue) addToTurn(kind msg.Kind, key string) *msg.Message {
	m := d.add(kind, key)
	m.Run, m.Agent = d.Turn.Run, agent
	return m
}

// agent is who runs: the format does not name it.
var agent = msg.Agent{Name: "grace", Kind: msg.KindAgent}

// addStatus adds a message that a user would not see.
func (d *dialogue) addStatus(key, typ string) *msg.Message {
	return record.Hide(d.add(msg.Status, key), typ)
}

// keepRaw keeps a value that is no message.
func (d *dialogue) keepRaw(typ string, raw []byte, facts ...string) *msg.Message {
	m := d.Out.Unknown(typ, raw)
	m.Session, m.Key = d.session(), "unknown:"+msg.HashKey(append(facts, string(raw))...)
	return m
}

// session is the conversation, or else the stream's origin.
func (d *dialogue) session() string { return cmp.Or(d.Session, d.origin, "unknown") }

// setSession sets the conversation, if that names one.
func (d *dialogue) setSession(session string) {
	if session != "" {
		d.Session = conversation.Cut(session, ident.Max)
	}
}
