// Package letta decodes what a Letta server says of its agents: the event stream
// of a run, the list of an agent's or a conversation's messages, the answer to a
// request that did not stream, and the requests themselves.
//
// Facts of the format that are easy to get wrong, and that this decoder is built
// around:
//
//   - A frame of a stream is a whole message or a piece of one, and nothing says
//     which. Pieces are therefore put together until something else comes; a
//     message that came whole is then one of one piece.
//   - The pieces of one block share their otid. Servers give every block of a
//     response the same id; others give every piece an id of its own.
//   - The name of a tool comes with the first piece of its call and never again,
//     in some versions the id of the call too.
//   - A request for approval has another id than the response that it is part of
//     (one less), and in a list the reasoning before it has that id too. Only the
//     step names them both, so keys are made of it where a message names its run;
//     servers that name no run in a stream name no step there either.
//   - Calls of one response may be written at the same time: their pieces come in
//     turns, told apart by otid.
//   - What the user said is not echoed. A request has no ids at all: its messages
//     wait until the answer names the run, and are known by run and text.
//   - A list is newest first unless it was asked for otherwise, down to the parts
//     of one message.
//   - stop_reason and usage_statistics have no id, no time and, in a stream that
//     can be resumed, no number: they come again when it is read again.
//   - A count that is null is not known; it is not 0.
//   - An agent to which work was handed and that failed has its error in the result
//     of a call that succeeded.
//   - The arguments of a call lose their spacing when they are stored, and
//     reasoning the blanks around it. Both are given without, in every form.
package letta

import (
	"bytes"
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
		Name:       "letta",
		Version:    "1.0.0",
		Revision:   3,
		Summary:    "Runs of Letta agents: event streams, message lists, answers and requests.",
		Transports: []frame.Kind{frame.Line, frame.Event, frame.Body, frame.Request},
		Options: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` +
			`"session":{"type":"string","description":"the conversation's id, or the agent's; for streams whose URL does not name it"}}}`),
		Reload: true,
	}
}

// New returns a decoder for one stream.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	var options struct{ Session string }
	if len(s.Options) > 0 {
		dec := json.NewDecoder(bytes.NewReader(s.Options))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&options); err != nil {
			return nil, fmt.Errorf("letta: options: %w", err)
		}
	}
	return &stream{origin: placeOf(s.Origin).or(named(options.Session))}, nil
}

// stream decodes one stream.
type stream struct {
	doc    jsonv.Doc // the frame
	inner  jsonv.Doc // JSON in a string of the frame
	date   dates
	origin place // what the source is known to be of

	out   *decoder.Output // of the call
	level msg.Completeness
	whole bool // nothing is added later to what the frame says

	state
}

// state is what is remembered from frame to frame.
type state struct {
	Place   place       // of the last request
	Run     string      `json:",omitempty"` // to which frames belong that name none
	Runs    []*run      `json:",omitempty"` // least recently heard of first
	Calls   []*call     `json:",omitempty"` // without a result, oldest first
	Pending []*input    `json:",omitempty"` // said, and not yet answered by a run
	Held    string      `json:",omitempty"` // a reason to stop, of a run that nothing has named
	Names   []agentName `json:",omitempty"` // of agents
}

var (
	_ decoder.Decoder     = (*stream)(nil)
	_ decoder.Snapshotter = (*stream)(nil)
)

// Decode decodes one event or line, one body, or one request.
func (d *stream) Decode(f *frame.Frame, out *decoder.Output) error {
	d.out, d.level, d.whole = out, msg.Complete, f.Kind == frame.Body
	switch {
	case f.Kind == frame.Close:
		d.abandon()
		return nil
	case f.Kind == frame.Request && len(bytes.TrimSpace(f.Data)) == 0:
		d.request(f, jsonv.Value{})
		return nil
	case f.Kind != frame.Body && d.sentinel(f.Data):
		return nil
	}
	if err := d.doc.Parse(f.Data); err != nil {
		reason := msg.ReasonInvalidJSON
		var syntax *jsonv.SyntaxError
		if errors.As(err, &syntax) && syntax.UTF8 {
			reason = msg.ReasonInvalidUTF8
		}
		out.Problem(reason, err.Error())
		return nil
	}
	root := d.doc.Root()
	before := len(out.Messages)
	switch {
	case f.Kind == frame.Body && root.Is(jsonv.Array):
		d.list(root)
	case !root.Is(jsonv.Object):
		out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
		return nil
	case f.Kind == frame.Body:
		d.body(root)
	case f.Kind == frame.Request:
		d.request(f, root)
	default:
		d.message(root, f.Name)
	}
	d.leftover(&d.doc, before)
	return nil
}

// leftover keeps what was not read of a document; the messages that it has given begin
// with from.
func (d *stream) leftover(doc *jsonv.Doc, from int) {
	rest.Keep(doc, d.out, from, func(m *msg.Message) { m.Run, m.Session = d.Run, d.session(d.Run) })
}

// Flush gives the messages whose end has not come. What was said to an agent that
// has not answered yet waits for the answer, without which it has no key.
func (d *stream) Flush(out *decoder.Output) error {
	d.out, d.level = out, msg.Partial
	for _, r := range d.Runs {
		for b := range r.blocks() {
			d.giveBlock(r, b, false)
		}
	}
	return nil
}

// sentinel takes the words that end a stream and are no JSON: [DONE], which comes
// twice in some streams, and the [DONE_GEN] and [DONE_STEP] of older servers.
func (d *stream) sentinel(data []byte) bool {
	switch string(bytes.TrimSpace(data)) {
	case "[DONE]":
		d.done()
	case "[DONE_GEN]", "[DONE_STEP]":
		if r := d.find(d.Run); r != nil {
			d.close(r)
		}
	default:
		return false
	}
	return true
}
