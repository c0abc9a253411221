// Package claudecode decodes the transcripts that Claude Code keeps of its
// sessions: ~/.claude/projects/<directory>/<session>.jsonl, the transcripts of
// sub-agents beside and below it, and the small agent-<id>.meta.json files that
// say which call caused a sub-agent.
//
// Facts of the format that are easy to get wrong, and that this decoder is built
// around:
//
//   - One response of the model is several lines, one for each content block, and
//     each repeats the token usage as it stood when the line was written. Counts
//     are therefore taken per response (message.id and requestId), the highest of
//     each class, and given once, when the response is known to be over. Lines of
//     a response may have tool results of its first calls between them, and in
//     some versions all of them carry the stop reason, so that neither ends it.
//   - The final count is often missing: what is given then is a lower bound, with
//     provenance transcript_partial.
//   - Byte order is the order of things. Times run backwards in a fifth of the
//     files and are passed on as they are.
//   - A tool_result line is a user line. So are injected texts (isMeta), summaries
//     of a compacted context, echoes of local commands, notices of background work
//     and interrupts; only what is left is a prompt, and begins a run.
//   - Sub-agents were lines of the main file up to about version 1, known only by
//     the text of their prompt; later they have files of their own, whose lines
//     name the root's session and not the call that caused them.
//   - The end of a background task is told up to four times (queue-operation,
//     attachment, user line, and again in a fork), each time as pseudo-XML.
//   - A fork begins with a copy of its origin's lines. They are given under the
//     origin's session and keys, so that they are the same messages and count once.
package claudecode

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
		Name:          "claude-code",
		Version:       "1.0.0",
		Revision:      2,
		Summary:       "Transcripts of Claude Code sessions and their sub-agents.",
		Transports:    []frame.Kind{frame.Line, frame.Body},
		MetadataFiles: []string{"agent-*.meta.json"},
	}
}

// New returns a decoder for one file. There are no options.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	if len(s.Options) > 0 {
		var options map[string]json.RawMessage
		if err := json.Unmarshal(s.Options, &options); err != nil {
			return nil, fmt.Errorf("claude-code: options: %w", err)
		}
		for name := range options {
			return nil, fmt.Errorf("claude-code: option %q: there are no options", name)
		}
	}
	return &transcript{file: parseOrigin(s.Origin)}, nil
}

// transcript decodes the lines of one file.
type transcript struct {
	doc  jsonv.Doc
	file origin

	session  string      // of the last line that named one
	lanes    []*lane     // least recently used first
	calls    []*call     // open ones, oldest first
	recent   []*response // responses that are over, oldest first
	notified []uint64    // hashes of the notices that were given, oldest first
}

var (
	_ decoder.Decoder     = (*transcript)(nil)
	_ decoder.Snapshotter = (*transcript)(nil)
)

// Decode decodes one line, or a whole companion file.
func (d *transcript) Decode(f *frame.Frame, out *decoder.Output) error {
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
	before, repeated := len(out.Messages), false
	switch {
	case !root.Is(jsonv.Object):
		out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
	case f.Kind == frame.Body:
		d.companion(root, out)
	default:
		repeated = d.record(root, out) == ruleRepeated
	}
	if repeated {
		return nil
	}
	rest.Keep(&d.doc, out, before, func(m *msg.Message) { m.Session = d.sessionOf(root.Get("sessionId")) })
	return nil
}

// Flush gives the usage of the responses that may still go on.
func (d *transcript) Flush(out *decoder.Output) error {
	for _, l := range d.lanes {
		l.usage(out, msg.Partial)
	}
	return nil
}

// The rules by which a line gives no message of its own.
const (
	ruleRepeated  = "repeated line"     // the same line of a response once more
	ruleUsageOnly = "nothing but usage" // adds to the response's counts
)

// record decodes one line. It returns the rule by which the line gave no
// message, if it gave none.
func (d *transcript) record(root jsonv.Value, out *decoder.Output) (rule string) {
	ln := line{root: root, out: out, uuid: root.Get("uuid")}
	typ := root.Get("type")
	if !ln.uuid.Is(jsonv.String) && !chained(typ) {
		d.flat(&ln)
		d.sidecar(&ln, typ.Str())
	} else {
		d.envelope(&ln)
		_, again := ln.lane.follows(ln.uuid)
		switch {
		case typ.Equal("assistant"):
			rule = d.assistant(&ln)
		case again:
			return ruleRepeated
		case typ.Equal("user"):
			d.user(&ln)
		case typ.Equal("system"):
			d.system(&ln)
		case typ.Equal("progress"):
			d.progress(&ln)
		case typ.Equal("attachment"):
			d.attachment(&ln)
		default:
			d.sidecar(&ln, typ.Str())
		}
	}
	if ln.given == 0 && rule == "" {
		d.unknown(&ln, typ.Str(), root)
	}
	ln.remember()
	return rule
}

// chained reports whether records of the type are links of the conversation,
// which name the one before them.
func chained(typ jsonv.Value) bool {
	return typ.Equal("assistant") || typ.Equal("user") || typ.Equal("system") || typ.Equal("progress") || typ.Equal("attachment")
}
