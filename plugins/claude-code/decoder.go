// Package claudecode decodes the transcripts that Claude Code keeps of its
// sessions: ~/.claude/projects/<directory>/<session>.jsonl, the transcripts of
// sub-agents beside and below it, the small agent-<id>.meta.json files that
// name the call that caused a sub-agent, and the files of teams. Package sdk/claude decodes the records
// of type assistant and user; this one knows the files: their envelope, lanes,
// forks, notices, and the records beside the conversation.
//
// Facts of the format that are easy to get wrong:
//
//   - One response is several lines, which may have tool results of its first calls
//     between them. In some versions all of them carry the stop reason, so that
//     neither ends the response. The final count is often missing: the count is
//     then a lower bound, with provenance transcript_partial.
//   - Byte order is the order of events. Times run backwards in a fifth of the
//     files and are passed on as they are.
//   - Sub-agents were lines of the main file up to about version 1, known only by
//     the text of their prompt; later they have files of their own, whose lines
//     name the root's session and not the call that caused them.
//   - The end of a background task is written up to four times (queue-operation,
//     attachment, user line, and again in a fork), each time as pseudo-XML.
//   - A fork begins with a copy of its origin's lines. Their messages have the
//     origin's session and keys, so that they are the same messages and count once.
package claudecode

import (
	_ "embed"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
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
		Name:          "claude-code",
		Version:       "1.0.0",
		Revision:      7,
		Summary:       "Transcripts of Claude Code sessions and their sub-agents.",
		Transports:    []frame.Kind{frame.Line, frame.Body},
		MetadataFiles: []string{"agent-*.meta.json"},
		Documents:     []string{"*.json"},
	}
}

// New returns a decoder for one file. There are no options.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	d := &transcript{file: parseOrigin(s.Origin)}
	d.line = claude.Line{State: &d.State, Form: d, Chained: true}
	return d, conversation.NoOptions("claude-code", s.Options)
}

// transcript decodes the lines of one file.
type transcript struct {
	doc  jsonv.Doc
	file origin
	line claude.Line // the record that is being decoded
	state
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	claude.State
	Notified bounded.Set[uint64] `json:",omitzero"` // digests of the notices that were emitted, oldest first
}

// stateVersion is that of package snapshot. The host decodes a stream whose snapshot is of
// another version from its beginning.
const stateVersion = 2

var (
	_ decoder.Decoder     = (*transcript)(nil)
	_ decoder.Snapshotter = (*transcript)(nil)
	_ claude.Form         = (*transcript)(nil)
)

// Snapshot implements decoder.Snapshotter.
func (d *transcript) Snapshot() ([]byte, error) { return snapshot.Of(stateVersion, &d.state) }

// Restore implements decoder.Snapshotter.
func (d *transcript) Restore(b []byte) error { return snapshot.Restore(stateVersion, b, &d.state) }

// Decode decodes one line, or a whole file that is one document.
func (d *transcript) Decode(f *frame.Frame, out *decoder.Output) error {
	switch f.Kind {
	case frame.Close:
	case frame.Body:
		d.body(f.Data, out)
	default:
		for data := f.Data; data != nil; {
			data = d.next(data, out)
		}
	}
	return nil
}

// next decodes the first record of a line and returns the bytes after it: two processes that write
// at a time leave two records on one line.
func (d *transcript) next(data []byte, out *decoder.Output) (more []byte) {
	root, more, ok := conversation.ParseFirst(&d.doc, data, out)
	if !ok {
		return nil
	}
	before := len(out.Messages)
	if d.record(root, out) != claude.RuleRepeated {
		rest.Keep(&d.doc, out, before, func(m *msg.Message) { m.Session = d.SessionOf(root.Get("sessionId"), d.file.session) })
	}
	return more
}

// body decodes a file beside the transcripts, which is one document.
func (d *transcript) body(data []byte, out *decoder.Output) {
	root, ok := conversation.Parse(&d.doc, data, out)
	if !ok {
		return
	}
	if !root.Is(jsonv.Object) && !root.Is(jsonv.Array) {
		out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
		return
	}
	before, ln := len(out.Messages), &d.line
	ln.Reset(root, out)
	switch {
	case root.Is(jsonv.Array):
		d.inbox(ln)
	case isTeam(root):
		d.team(ln)
	case isTask(root):
		d.task(ln)
	default:
		d.flat(ln)
		d.metadata(ln)
	}
	rest.Keep(&d.doc, out, before, func(m *msg.Message) { m.Session = ln.Name })
}

// Flush emits the usage of the open responses.
func (d *transcript) Flush(out *decoder.Output) error {
	d.State.Flush(out)
	return nil
}

// record decodes one line. It returns the rule by which the line has no message,
// if it has none.
func (d *transcript) record(root jsonv.Value, out *decoder.Output) (rule string) {
	ln, typ := &d.line, root.Get("type")
	ln.Reset(root, out)
	if !ln.UUID.Is(jsonv.String) && !chained(typ) {
		d.flat(ln)
		d.beside(ln, typ.Str())
	} else {
		d.envelope(ln)
		repeated := false
		if ln.UUID.Is(jsonv.String) {
			_, repeated = find(ln.Lane, ln.Digest())
		}
		switch {
		case typ.Equal("assistant"):
			rule = ln.Assistant()
		case repeated:
			return claude.RuleRepeated
		case typ.Equal("user"):
			ln.User()
		case typ.Equal("system"):
			d.system(ln)
		case typ.Equal("progress"):
			d.progress(ln)
		case typ.Equal("attachment"):
			d.attachment(ln)
		default:
			d.beside(ln, typ.Str())
		}
	}
	if ln.Emitted == 0 && rule == "" {
		ln.Unknown(typ.Str(), root)
	}
	remember(ln)
	return rule
}

// chained reports whether records of the type are links of the conversation,
// which name the one before them.
func chained(typ jsonv.Value) bool {
	return typ.In("assistant", "user", "system", "progress", "attachment")
}
