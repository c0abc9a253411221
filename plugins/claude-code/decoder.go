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
//     Newer versions write the copies of a session that is resumed under another name without a mark, and with
//     another promptId; a response has the origin's name in requestSessionId.
//   - The file of a helper that answers from the whole conversation, which compacts it (acompact) or
//     answers a question of /btw (aside_question), begins in many versions with a copy of all of it, under
//     the same session, uuids and times. Other versions refer to it (fork-context-ref).
package claudecode

import (
	_ "embed"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/claude"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory { return format().Factory() }

func format() record.Format[state] {
	return record.Format[state]{
		Info: decoder.Info{
			Name:          "claude-code",
			Revision:      13,
			Summary:       "Transcripts of Claude Code sessions and their sub-agents.",
			Transports:    []frame.Kind{frame.Line, frame.Body},
			MetadataFiles: []string{"agent-*.meta.json"},
			Documents:     []string{"*.json"},
		},
		LeavesOut: leavesOut,
		State:     2,
		Takes:     func(f *frame.Frame, root jsonv.Value) bool { return f.Kind == frame.Body && root.Is(jsonv.Array) },
		Open: func(r *record.Current, s *state) record.Reader {
			d := &transcript{Current: r, state: s, file: parseOrigin(r.Origin)}
			d.line = claude.Line{State: &s.State, Form: d, Chained: true}
			return d
		},
	}
}

// transcript decodes the lines of one file.
type transcript struct {
	*record.Current
	*state
	file origin
	line claude.Line // the record that is being decoded
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	claude.State
	Notified bounded.Set[uint64] `json:",omitzero"`  // digests of the notices that were emitted, oldest first
	Referred bool                `json:",omitempty"` // the file refers to the conversation that it goes on with, and does not copy it
	Begun    int64               `json:",omitempty"` // when the first prompt was queued, of a file that begins with it
	Resumes  string              `json:",omitempty"` // the session whose records the file began with
}

// Read decodes one line, or a whole file that is one document.
func (d *transcript) Read() {
	if d.Frame.Kind == frame.Body {
		d.body()
	} else if d.record(d.Root) == claude.RuleRepeated {
		d.Root.MarkRead()
	}
}

// In returns the session that the record names; of a document that of its messages.
func (d *transcript) In() (session, run string) {
	if d.Frame.Kind == frame.Body {
		return d.line.Name, ""
	}
	return d.SessionOf(d.Root.Get("sessionId"), d.file.session), ""
}

// body decodes a file beside the transcripts, which is one document.
func (d *transcript) body() {
	root, ln := d.Root, &d.line
	ln.Reset(root, d.Out)
	switch {
	case root.Is(jsonv.Array):
		d.inbox(ln)
	case root.Get("leadAgentId").Is(jsonv.String) && root.Get("members").Is(jsonv.Array):
		d.team(ln)
	case root.Get("id").Is(jsonv.String) && root.Get("subject").Is(jsonv.String) && root.Get("status").Is(jsonv.String):
		d.task(ln)
	default:
		d.flat(ln)
		d.metadata(ln)
	}
}

// Flush emits the usage of the open responses.
func (d *transcript) Flush() { d.State.Flush(d.Out) }

// record decodes one line. It returns the rule by which the line has no message,
// if it has none.
func (d *transcript) record(root jsonv.Value) (rule string) {
	ln, typ := &d.line, root.Get("type")
	ln.Reset(root, d.Out)
	if !ln.UUID.Is(jsonv.String) && !typ.In("assistant", "user", "system", "progress", "attachment") { // a link of no chain
		d.flat(ln)
		d.beside(ln, typ.Str())
	} else {
		repeated := d.envelope(ln)
		if repeated {
			return claude.RuleRepeated
		}
		if ln.Lane.Copies {
			d.copied(ln)
		}
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
