// Package grace decodes what Lemon AI, and the GRACE terminal that grew out of
// it, say of their work: the answer of POST /api/agent/run as server-sent events,
// the same as JSON over a WebSocket or in a log, and the rows of the database that
// GET /api/message/list returns.
//
// Facts of the format that are easy to get wrong, and that this decoder is built
// around:
//
//   - The data of an event is base64, unless responseType asked for something
//     else: chunks of an OpenAI completion whose delta holds the payload, or bytes
//     without any delimiter.
//   - A payload is a message (a JSON object), a marker (__lemon_mode__{…}), or a
//     piece of text. In chat mode it is text even when it looks like JSON; the mode
//     marker decides. GRACE guesses a mode first and sends messages before the one
//     that counts, so what has the shape of a message is one in every mode.
//   - No message names its conversation or its run. The request does, and so do the
//     rows. A run is therefore named by what both forms say: the time of the first
//     message of its answer, or the row of the question that a chat answers.
//   - A tool call is two messages with one uuid, running and then something else.
//     Some versions send the first twice. The arguments are not on the wire, only a
//     short description; the reason of a failure is lost too, its content is empty.
//   - Errors of the run have the status success. action_type tells.
//   - finish says what the task message after it says again. finish_summery (sic) is
//     the answer; GRACE also gives one for a single task, and one without content to
//     say that a specialist's reply was all.
//   - The question of the user is a row, but never on the stream.
//   - meta is an object on the stream and a JSON string in a row; GRACE's logs leave
//     it out and put its fields beside the others. task_id may be a task, null, empty,
//     or the conversation. Times are milliseconds.
package grace

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// rest keeps what was not read.
var rest = unknown.NewKeeper(leavesOut)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory { return factory{} }

type factory struct{}

func (factory) Info() decoder.Info {
	return decoder.Info{
		Name:       "grace",
		Version:    "1.0.0",
		Revision:   2,
		Summary:    "Runs of Lemon AI and GRACE: streams, logs and database rows.",
		Transports: []frame.Kind{frame.Event, frame.Text, frame.Line, frame.Body, frame.Request},
		Reload:     true,
	}
}

// New returns a decoder for one stream. There are no options.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	if len(s.Options) > 0 {
		var options map[string]json.RawMessage
		if err := json.Unmarshal(s.Options, &options); err != nil {
			return nil, fmt.Errorf("grace: options: %w", err)
		}
		for name := range options {
			return nil, fmt.Errorf("grace: option %q: there are no options", name)
		}
	}
	return &stream{origin: sessionOfOrigin(s.Origin)}, nil
}

// stream decodes one stream.
type stream struct {
	doc    jsonv.Doc // of the frame, then of what it wraps; see reads
	from   int       // where the messages that doc gives begin
	inner  jsonv.Doc // of a meta that is JSON in a string
	other  jsonv.Doc // of a list of files or tasks that is
	text   jsonv.Doc // of a content that is
	origin string    // the session, as long as nothing better names it
	listed bool      // the message is one of a list of rows
	state
}

var (
	_ decoder.Decoder     = (*stream)(nil)
	_ decoder.Snapshotter = (*stream)(nil)
)

// Decode decodes one event, line, text, body or request.
func (d *stream) Decode(f *frame.Frame, out *decoder.Output) error {
	problems := len(out.Problems)
	switch f.Kind {
	case frame.Close:
		if f.Name != frame.Lost { // the work may go on without us
			d.closed(out)
		}
	case frame.Request:
		d.request(f, out)
	case frame.Body:
		d.body(f.Data, out)
	case frame.Line:
		d.raw(f.Data, true, out)
	default:
		d.event(f, out)
	}
	if len(out.Problems) > problems { // the frame is kept whole
		d.doc.Root().MarkRead()
	}
	d.leftover(&d.doc, d.from, out)
	return nil
}

// leftover keeps what was not read of a document; the messages that it has given begin
// with from.
func (d *stream) leftover(doc *jsonv.Doc, from int, out *decoder.Output) {
	rest.Keep(doc, out, from, func(m *msg.Message) { m.Session, m.Run = d.session(), d.Turn.Run })
}

// reads parses data as the document that is read next. What was not read of the one
// before, which may have wrapped it, is kept.
func (d *stream) reads(data []byte, out *decoder.Output) error {
	d.leftover(&d.doc, d.from, out)
	d.from = len(out.Messages)
	return d.doc.Parse(data)
}

// Flush gives the question and the chat answer that are still open.
func (d *stream) Flush(out *decoder.Output) error {
	if d.Ask != nil && d.Ask.Key != "" {
		d.draftQuestion(out)
	}
	if d.Chat != nil && len(d.Chat.Text) > 0 {
		d.draftAnswer(out)
	}
	return nil
}

// parse parses data as the frame's document. ok is false when it is no JSON; the
// problem has been given then.
func (d *stream) parse(data []byte, out *decoder.Output) (root jsonv.Value, ok bool) {
	if err := d.reads(data, out); err != nil {
		bad(out, err)
		return jsonv.Value{}, false
	}
	return d.doc.Root(), true
}

// bad says that the frame is no JSON.
func bad(out *decoder.Output, err error) {
	reason := msg.ReasonInvalidJSON
	var syntax *jsonv.SyntaxError
	if errors.As(err, &syntax) && syntax.UTF8 {
		reason = msg.ReasonInvalidUTF8
	}
	out.Problem(reason, err.Error())
}
