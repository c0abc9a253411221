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
//   - The result line repeats the last text. While sub-agents go on in the background it is held
//     back: the next turn, of their notices, may begin and even end before it.
//   - A file may have a line twice: where a shipper of logs sent it again, or the output was
//     appended to a file that had it. The uuid, in older versions the ids of responses and calls,
//     show that it is the same. Two runs that resume one session have ids of their own.
//   - Qwen Code prints the same lines (qwen_code_version in init). Its input includes the cached
//     tokens, and so does the sum in the result line, which has its sub-agents as well; their own lines
//     have zeros. The end of work in the background is a task_notification and a line of type user.
package claudestream

import (
	_ "embed"
	"fmt"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/claude"
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
			Name:       "claude-stream",
			Revision:   10,
			Summary:    "Output of claude -p --output-format stream-json, and of Qwen Code's, with or without partial messages.",
			Transports: []frame.Kind{frame.Line, frame.Event, frame.Text, frame.Body},
		},
		LeavesOut: leavesOut,
		State:     2,
		Takes:     func(f *frame.Frame, root jsonv.Value) bool { return f.Kind == frame.Body && root.Is(jsonv.Array) },
		Open: func(r *record.Current, s *state) record.Reader {
			r.Origin = ident.OfFile(r.Origin, ".json", ".ndjson")
			d := &stream{Current: r, state: s}
			d.line = claude.Line{State: &s.State, Form: d}
			return d
		},
	}.Factory()
}

// stream decodes the lines of one stream.
type stream struct {
	line claude.Line // the record that is being decoded
	*record.Current
	*state
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	claude.State
	Asked []asked       `json:",omitempty"` // requests without an answer, oldest first
	Held  []claude.Lane `json:",omitempty"` // turns that ended without their result, oldest first
	// Seen are digests of the uuids of lines, and of the piece that a line has. Results are the runs
	// that have a result, and the ids of those lines. Both have the last ones.
	Seen    bounded.Set[uint64] `json:",omitzero"`
	Results bounded.Set[string] `json:",omitzero"`
}

// How many lines, and results, are recognized when they are repeated. Of a line that is forgotten the
// keys are the same.
const (
	maxSeen    = 1024
	maxResults = 256
)

// Read decodes one line, or a whole array of them.
func (d *stream) Read() {
	if d.Root.Is(jsonv.Object) {
		d.record(d.Root)
		return
	}
	bad := 0
	for v := range d.Root.Elems() {
		if v.Is(jsonv.Object) {
			d.record(v)
		} else {
			bad++
		}
	}
	if bad > 0 {
		d.Out.Problem(msg.ReasonWrongType, fmt.Sprintf("%d elements of the array are no objects", bad))
	}
}

// In returns the session that a record named last.
func (d *stream) In() (session, run string) {
	return d.SessionOf(jsonv.Value{}, d.Origin), ""
}

// Flush emits the pieces and the usage of the open responses.
func (d *stream) Flush() {
	for _, l := range d.Lanes {
		emitPieces(d.Out, l, false)
	}
	d.State.Flush(d.Out)
}

// repeated reports whether a line was read before. A sender may divide a piece, under the id of the line.
func (d *stream) repeated(ln *claude.Line) bool {
	if !claude.IsID(ln.UUID) {
		return false
	}
	line := ln.Digest() ^ claude.Digest(ln.Root.Path("event", "delta").Peek())
	return !d.Seen.Add(line, maxSeen)
}

// record decodes one line.
func (d *stream) record(root jsonv.Value) {
	ln, typ, rule := &d.line, root.Get("type"), ""
	ln.Reset(root, d.Out)
	if d.repeated(ln) {
		root.MarkRead()
		return
	}
	d.envelope(ln)
	switch {
	case typ.Equal("assistant"):
		rule = ln.Assistant()
	case typ.Equal("user"):
		if text := claude.Opening(root.Path("message", "content")); ln.Lane.Fork == claude.QwenCode && text.HasPrefix("Background agent ") {
			ln.Wake(false)
			d.Notice(ln, text)
		} else {
			ln.User()
		}
	case typ.Equal("stream_event"):
		d.partial(ln)
		return
	case typ.Equal("system"):
		d.system(ln)
	case typ.Equal("result"):
		rule = d.result(ln)
	case typ.In("control_request", "control_response", "control_cancel_request"):
		d.control(ln, typ.Str())
	default:
		d.beside(ln, typ.Str())
	}
	switch {
	case rule == claude.RuleRepeated:
		root.MarkRead()
	case ln.Emitted == 0 && rule == "":
		ln.Unknown(typ.Str(), root)
	}
}
