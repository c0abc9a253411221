// Package codex decodes the transcripts that the Codex CLI keeps of its threads:
// ~/.codex/sessions/<year>/<month>/<day>/rollout-<local time>-<thread>.jsonl. Every
// thread has a file of its own, a sub-agent's too.
//
// Facts of the format that are easy to get wrong, and that this decoder is built
// around:
//
//   - What is said stands there up to three times: as a response_item (what goes to
//     the model and comes from it), as an event_msg (what a user interface shows) and,
//     in some modes of keeping history, as an item_completed event. The order changed
//     between versions. Whichever comes first is the message; the others are noted.
//   - A transcript has no ids of model responses. A response is what the model gave
//     between two inputs, and takes the key of its first part for its id.
//   - token_count comes behind the items of its response, or, up to 0.40, before them.
//   - token_count tells the sum over the thread and the counts of the last response. It
//     is repeated whenever a rate limit changes, and its last_token_usage becomes an
//     estimate after a compaction. It counts when the sum has moved, and only then.
//   - Input counts include what came from the cache, output counts the reasoning.
//   - A user message is not always a user's: instructions, the environment, notices
//     of sub-agents and of aborted turns are injected as such.
//   - A fork, a sub-agent that was given its parent's history and some resumed threads
//     begin with a copy of another thread's records, stamped anew with the instant of
//     the copy, and with a second session_meta. The copy counts nowhere.
//   - The session_id of a sub-agent is that of the thread that leads it, its own id
//     stands in id. Newer versions encrypt what agents tell each other.
package codex

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
		Name:       "codex",
		Version:    "1.0.0",
		Revision:   2,
		Summary:    "Transcripts (rollout files) of Codex CLI threads and their sub-agents.",
		Transports: []frame.Kind{frame.Line},
	}
}

// New returns a decoder for one file. There are no options.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	if len(s.Options) > 0 {
		var options map[string]json.RawMessage
		if err := json.Unmarshal(s.Options, &options); err != nil {
			return nil, fmt.Errorf("codex: options: %w", err)
		}
		for name := range options {
			return nil, fmt.Errorf("codex: option %q: there are no options", name)
		}
	}
	return &thread{origin: threadOf(s.Origin)}, nil
}

// thread decodes the lines of one file.
type thread struct {
	doc    jsonv.Doc
	inner  jsonv.Doc // of JSON in a string
	origin string    // the thread that the file's name names
	state
}

var (
	_ decoder.Decoder     = (*thread)(nil)
	_ decoder.Snapshotter = (*thread)(nil)
)

// Decode decodes one line.
func (d *thread) Decode(f *frame.Frame, out *decoder.Output) error {
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
	if !root.Is(jsonv.Object) {
		out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
		return nil
	}
	before := len(out.Messages)
	if d.record(root, out) == "" {
		d.named(root.Get("payload"))
		rest.Keep(&d.doc, out, before, func(m *msg.Message) { m.Session, m.Run = d.session(), d.Run })
	}
	return nil
}

// named marks the ids as read that name the thread and the turn that go on.
func (d *thread) named(p jsonv.Value) {
	p.Get("turn_id").In(d.Turn, d.Run, d.Ended)
	p.First("internal_chat_message_metadata_passthrough", "metadata").Get("turn_id").In(d.Turn, d.Run)
	for _, name := range [...]string{"thread_id", "sender_thread_id"} {
		p.Get(name).In(d.Thread, d.session())
	}
}

// Flush gives nothing: a line is complete, and so is what it says.
func (d *thread) Flush(*decoder.Output) error { return nil }

// ruleCopied is the one rule by which a record gives no message.
const ruleCopied = "copied history"

// record decodes one line. It returns the rule by which the line gave no message,
// if it gave none.
func (d *thread) record(root jsonv.Value, out *decoder.Output) (rule string) {
	r := newRecord(root, out)
	typ := root.Get("type")
	switch {
	case !r.p.Is(jsonv.Object):
		d.unknown(&r, typ.Str())
		return ""
	case typ.Equal("session_meta"):
		if d.meta(&r) {
			return ruleCopied
		}
		return ""
	case !known(typ):
		d.unknown(&r, typ.Str())
		return ""
	case d.copied(&r):
		return ruleCopied
	}
	d.Own = true
	switch {
	case typ.Equal("response_item"):
		d.item(&r)
	case typ.Equal("event_msg"):
		d.event(&r)
	case typ.Equal("turn_context"):
		d.context(&r)
	case typ.Equal("compacted"):
		d.compacted(&r)
	case typ.Equal("inter_agent_communication"):
		d.communication(&r)
	default:
		d.status(&r, r.id(), typ.Str())
	}
	return ""
}

func known(typ jsonv.Value) bool {
	return typ.Equal("response_item") || typ.Equal("event_msg") || typ.Equal("turn_context") || typ.Equal("compacted") ||
		typ.Equal("world_state") || typ.Equal("inter_agent_communication") || typ.Equal("inter_agent_communication_metadata")
}
