// Package claudestream decodes the standard output of `claude -p --output-format
// stream-json`: the messages of one or several turns, as lines of JSON, and
// the same as one JSON array, into which some wrappers put them. Package sdk/claude
// decodes the records of type assistant and user; this one knows their framing: the
// pieces, the records of the CLI's own, and the result line.
//
// Facts of the format that are easy to get wrong:
//
//   - Ids of messages, calls and lines are those of the transcript that the CLI keeps
//     of the same session (format claude-code), and so are the keys. Members have other
//     names: session_id, tool_use_result. Lines have no time.
//   - The prompt is not in the stream unless it is asked for, so that a turn begins
//     with the first message of the model. Its run has the id of the prompt, else of
//     system/init.
//   - One response is several lines, which repeat its token usage as it was then: the
//     output is a lower bound. The final count is in the partial messages, where those
//     are on, and for the turn as a whole in the result line, which excludes
//     sub-agents. The difference is emitted as tokens of the turn.
//   - With partial messages each text arrives in pieces and as a whole.
//   - A sub-agent's lines are among those of its leader and name the call that caused
//     it (parent_tool_use_id). Its own id is in task_started, or in its answer.
//   - The result line repeats the last text.
package claudestream

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/claude"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/snapshot"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// rest keeps the members that the decoder did not read.
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
		Revision:   4,
		Summary:    "Output of claude -p --output-format stream-json, with or without partial messages.",
		Transports: []frame.Kind{frame.Line, frame.Event, frame.Text, frame.Body},
	}
}

// New returns a decoder for one stream. There are no options.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	d := &stream{origin: nameOf(s.Origin)}
	d.line = claude.Line{State: &d.State, Form: d}
	return d, conversation.NoOptions("claude-stream", s.Options)
}

// nameOf returns the last element of a path without its ending.
func nameOf(path string) string {
	path = strings.ToValidUTF8(path, "\uFFFD") // a path need not be text, but an id must be
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	for _, end := range [...]string{".json", ".ndjson"} {
		if i := strings.Index(name, end); i > 0 {
			return name[:i]
		}
	}
	return name
}

// stream decodes the lines of one stream.
type stream struct {
	doc    jsonv.Doc
	origin string      // name of the stream, for lines that name no session
	line   claude.Line // the record that is being decoded
	state
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	claude.State
	Asked []asked `json:",omitempty"` // requests without an answer, oldest first
}

// stateVersion is that of package snapshot. The host decodes a stream whose snapshot is of
// another version from its beginning.
const stateVersion = 2

var (
	_ decoder.Decoder     = (*stream)(nil)
	_ decoder.Snapshotter = (*stream)(nil)
	_ claude.Form         = (*stream)(nil)
)

// Snapshot implements decoder.Snapshotter.
func (d *stream) Snapshot() ([]byte, error) { return snapshot.Of(stateVersion, &d.state) }

// Restore implements decoder.Snapshotter.
func (d *stream) Restore(b []byte) error { return snapshot.Restore(stateVersion, b, &d.state) }

// Decode decodes one line, or a whole array of them.
func (d *stream) Decode(f *frame.Frame, out *decoder.Output) error {
	if f.Kind == frame.Close {
		return nil
	}
	root, ok := conversation.Parse(&d.doc, f.Data, out)
	if !ok {
		return nil
	}
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
	rest.Keep(&d.doc, out, before, func(m *msg.Message) { m.Session = d.SessionOf(jsonv.Value{}, d.origin) })
	return nil
}

// Flush emits the pieces and the usage of the open responses.
func (d *stream) Flush(out *decoder.Output) error {
	for _, l := range d.Lanes {
		emitPieces(out, l, false)
	}
	d.State.Flush(out)
	return nil
}

// record decodes one line.
func (d *stream) record(root jsonv.Value, out *decoder.Output) {
	ln, typ, rule := &d.line, root.Get("type"), ""
	ln.Reset(root, out)
	d.envelope(ln)
	switch {
	case typ.Equal("assistant"):
		rule = ln.Assistant()
	case typ.Equal("user"):
		ln.User()
	case typ.Equal("stream_event"):
		d.partial(ln)
		return
	case typ.Equal("system"):
		d.system(ln)
	case typ.Equal("result"):
		d.result(ln)
	case typ.In("control_request", "control_response", "control_cancel_request"):
		d.control(ln, typ.Str())
	}
	if ln.Emitted == 0 && rule == "" {
		ln.Unknown(typ.Str(), root)
	}
}
