// Package grace decodes the traffic of Lemon AI and of the GRACE terminal that grew out of it:
// the answer of POST /api/agent/run as server-sent events, the same messages as JSON over a
// WebSocket or in a log, and the rows of the database that GET /api/message/list returns.
//
// Facts of the format that are easy to get wrong, and that this decoder is built around:
//
//   - The data of an event is base64, unless responseType asked for something
//     else: chunks of an OpenAI completion whose delta holds the payload, or bytes
//     without any delimiter.
//   - A payload is a message (a JSON object), a marker (__lemon_mode__{…}), or a
//     piece of text. In chat mode it is text even when it looks like JSON; the mode
//     marker decides. GRACE guesses a mode first and sends messages before the one
//     that counts, so an object with the shape of a message is one in every mode.
//   - No message names its conversation or its run. The request does, and so do the
//     rows. A run is therefore named by a fact that both forms have: the time of the
//     first message of its answer, or the row of the question that a chat answers.
//   - A tool call is two messages with one uuid, running and then something else.
//     Some versions send the first twice. The arguments are not on the wire, only a
//     short description; the reason of a failure is lost too, its content is empty.
//   - Errors of the run have the status success; action_type identifies them.
//   - The task message after finish repeats it. finish_summery (sic) is the answer;
//     GRACE also sends one for a single task, and one without content when the reply
//     of a specialist was the whole answer.
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

// unread keeps the fields that the decoder did not read.
var unread = unknown.NewKeeper(leavesOut)

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
	doc    jsonv.Doc // of the frame, then of the payload inside it; see parseNext
	from   int       // index of the first message decoded from doc
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
			d.streamClosed(out)
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
	d.keepUnread(&d.doc, d.from, out)
	return nil
}

// keepUnread keeps the fields of a document that the decoder did not read; the document's
// messages begin at index from.
func (d *stream) keepUnread(doc *jsonv.Doc, from int, out *decoder.Output) {
	unread.Keep(doc, out, from, func(m *msg.Message) { m.Session, m.Run = d.session(), d.Turn.Run })
}

// parseNext parses data as the next document, after it has kept the unread fields of the
// previous one, which may have wrapped it.
func (d *stream) parseNext(data []byte, out *decoder.Output) error {
	d.keepUnread(&d.doc, d.from, out)
	d.from = len(out.Messages)
	return d.doc.Parse(data)
}

// Flush emits the question and the chat answer that are still open.
func (d *stream) Flush(out *decoder.Output) error {
	if d.Ask != nil && d.Ask.Key != "" {
		d.addDraftQuestion(out)
	}
	if d.Chat != nil && len(d.Chat.Text) > 0 {
		d.addDraftAnswer(out)
	}
	return nil
}

// parse parses data as the frame's document. When it is no JSON, parse reports the problem and
// returns false.
func (d *stream) parse(data []byte, out *decoder.Output) (root jsonv.Value, ok bool) {
	if err := d.parseNext(data, out); err != nil {
		reportInvalid(out, err)
		return jsonv.Value{}, false
	}
	return d.doc.Root(), true
}

// reportInvalid reports that the frame is no JSON.
func reportInvalid(out *decoder.Output, err error) {
	reason := msg.ReasonInvalidJSON
	var syntax *jsonv.SyntaxError
	if errors.As(err, &syntax) && syntax.UTF8 {
		reason = msg.ReasonInvalidUTF8
	}
	out.Problem(reason, err.Error())
}
