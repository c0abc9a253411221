// Package claudestream decodes what `claude -p --output-format stream-json` writes on
// its standard output: the messages of one or several turns, as lines of JSON, and
// the same as one JSON array, into which some wrappers put them.
//
// Facts of the format that are easy to get wrong, and that this decoder is built
// around:
//
//   - Ids of messages, calls and lines are those of the transcript that the CLI keeps
//     of the same session (format claude-code), and so are the keys that are given
//     here. Names are written otherwise: session_id, tool_use_result. Lines have no time.
//   - The prompt is not in the stream unless it is asked for, so that a turn begins
//     with what the model says. It takes the id of the prompt, else of system/init.
//   - One response of the model is several lines, one for each content block, which
//     repeat its token usage as it stood: the output is a lower bound. The final count
//     is in the partial messages, where those are on, and for the turn as a whole in
//     the result line, which leaves out sub-agents. What a turn's responses are short
//     of is given as tokens of the turn.
//   - With partial messages every text comes twice: in pieces, and whole.
//   - A sub-agent's lines stand among those of its leader and name the call that caused
//     it (parent_tool_use_id). Its own id is told by task_started, or with its answer.
//   - The result line repeats the last text.
package claudestream

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
		Name:       "claude-stream",
		Version:    "1.0.0",
		Revision:   2,
		Summary:    "Output of claude -p --output-format stream-json, with or without partial messages.",
		Transports: []frame.Kind{frame.Line, frame.Event, frame.Text, frame.Body},
	}
}

// New returns a decoder for one stream. There are no options.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	if len(s.Options) > 0 {
		var options map[string]json.RawMessage
		if err := json.Unmarshal(s.Options, &options); err != nil {
			return nil, fmt.Errorf("claude-stream: options: %w", err)
		}
		for name := range options {
			return nil, fmt.Errorf("claude-stream: option %q: there are no options", name)
		}
	}
	return &stream{origin: nameOf(s.Origin)}, nil
}

// stream decodes the lines of one stream.
type stream struct {
	doc     jsonv.Doc
	origin  string // what the stream is called, for lines that name no session
	scratch []byte // a text without its escapes
	state
}

var (
	_ decoder.Decoder     = (*stream)(nil)
	_ decoder.Snapshotter = (*stream)(nil)
)

// Decode decodes one line, or a whole array of them.
func (d *stream) Decode(f *frame.Frame, out *decoder.Output) error {
	if f.Kind == frame.Close {
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
	case root.Is(jsonv.Object):
		d.record(root, out)
	case root.Is(jsonv.Array) && f.Kind == frame.Body:
		bad := 0
		for v := range root.Elems() {
			if v.Is(jsonv.Object) {
				d.record(v, out)
			} else {
				bad++
			}
		}
		if bad > 0 {
			out.Problem(msg.ReasonWrongType, fmt.Sprintf("%d elements of the array are no objects", bad))
		}
	default:
		out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
	}
	rest.Keep(&d.doc, out, before, func(m *msg.Message) { m.Session = d.session() })
	return nil
}

// Flush gives the texts and the usage of the responses that may still go on.
func (d *stream) Flush(out *decoder.Output) error {
	for _, l := range d.Lanes {
		l.pieces(out, false)
		l.usage(out, msg.Partial)
	}
	return nil
}

// record decodes one line.
func (d *stream) record(root jsonv.Value, out *decoder.Output) {
	ln := line{root: root, out: out, uuid: root.Get("uuid")}
	typ := root.Get("type")
	d.envelope(&ln)
	switch {
	case typ.Equal("assistant"):
		d.assistant(&ln)
	case typ.Equal("user"):
		d.user(&ln)
	case typ.Equal("stream_event"):
		d.partial(&ln)
		return
	case typ.Equal("system"):
		d.system(&ln)
	case typ.Equal("result"):
		d.over(&ln)
	case typ.Equal("control_request"), typ.Equal("control_response"), typ.Equal("control_cancel_request"):
		d.control(&ln, typ.Str())
	}
	if ln.given == 0 && !ln.known {
		d.unknown(&ln, typ.Str(), root)
	}
}
