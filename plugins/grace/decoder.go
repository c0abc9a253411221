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
			Revision:   7,
			Summary:    "Runs of Lemon AI and GRACE: streams, logs and database rows.",
			Transports: []frame.Kind{frame.Event, frame.Text, frame.Line, frame.Body, frame.Request},
			Reload:     true,
		},
		LeavesOut: leavesOut,
		State:     2,
		Wrapped:   true,
		Open: func(r *record.Current, s *state) record.Reader {
			return &stream{Current: r, state: s, origin: sessionOfOrigin(r.Origin)}
		},
	}.Factory()
}

// Limits of the state, beside those of package conversation. Beyond a limit the oldest entry
// is evicted.
const (
	maxOthers  = 16       // conversations beside that of the last message
	maxTasks   = 256      // of the plans of a turn
	maxIntents = 16       // actions that the model wrote and that have not been seen to run
	maxIntent  = 64 << 10 // bytes of such an action
	maxText    = 1 << 20  // bytes of a question, or of an answer in the making
	maxGoal    = 1 << 10  // bytes of the question that a delegation repeats
)

// state is the decoder's memory of earlier frames.
type state struct {
	Framing framing `json:",omitempty"`
	Mode    string  `json:",omitempty"` // chat, agent or twins; empty before the first marker
	Chat    chat    `json:",omitzero"`  // the answer in the making
	session
	Others []session `json:",omitempty"` // of a list or a log, least recently used first
}

// session is the memory of one conversation: that of the last message, which all belong to that name none.
type session struct {
	Session string                    `json:",omitempty"` // the conversation, when something names it
	Turn    turn                      `json:",omitzero"`
	Fresh   bool                      `json:",omitempty"` // the next message begins a turn
	Shown   string                    `json:",omitempty"` // key under which a question was shown that rows had no answer to
	Ask     *question                 `json:",omitempty"` // the question whose run is not known yet
	Asked   *question                 `json:",omitempty"` // the question of the request
	Calls   conversation.Calls[*call] `json:",omitzero"`
	Plan    plan                      `json:",omitempty"`
	Intents []intent                  `json:",omitempty"` // that have not been seen to run: the calls that follow have their arguments
}

// stream decodes one stream.
type stream struct {
	*record.Current
	*state
	origin string       // the session, as long as nothing better names it
	docs   [3]jsonv.Doc // of JSON in strings: a message's meta, its list of files or tasks, its content
	listed bool         // the message is one of a list of rows
}

// Read decodes one event, line, text, body or request.
func (d *stream) Read() {
	switch f := d.Frame; f.Kind {
	case frame.Close:
		if !d.between() && !d.Turn.Ended && f.Name != frame.Lost { // the work may go on without us
			m := d.addToTurn(msg.Stop, "closed:"+d.Turn.Run)
			m.Hidden = true
			d.end(m, "closed", d.Turn.Failed)
		}
	case frame.Request:
		d.request(f)
	case frame.Body:
		d.body(f.Data)
	case frame.Line:
		if len(f.Data) > 0 {
			d.payload(f.Data, bare)
		}
	default:
		d.event(f)
	}
}

// In returns the conversation, or else the stream's origin, and the turn.
func (d *stream) In() (session, run string) {
	return cmp.Or(d.Session, d.origin, "unknown"), d.Turn.Run
}

// addToTurn adds a message of the turn. The format does not name who runs.
func (d *stream) addToTurn(kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	m.Run, m.Agent.Name = d.Turn.Run, "grace"
	return m
}

// addStatus adds a message that a user would not see, and that has no author.
func (d *stream) addStatus(key, typ string) *msg.Message {
	m := record.Hide(d.Add(msg.Status, key), typ)
	m.Agent = msg.Agent{}
	return m
}

// keepRaw keeps bytes that are no JSON.
func (d *stream) keepRaw(typ string, raw []byte, facts ...string) {
	m := d.Out.Unknown(typ, raw)
	m.Session, _ = d.In()
	m.Key = "unknown:" + msg.HashKey(append(facts, string(raw))...)
}
