// Package codex decodes the transcripts that the Codex CLI keeps of its threads:
// ~/.codex/sessions/<year>/<month>/<day>/rollout-<local time>-<thread>.jsonl. Every
// thread has a file of its own, a sub-agent's too.
//
// Facts of the format that are easy to get wrong, and that this decoder is built
// around:
//
//   - A text occurs up to three times: as a response_item (an input or an output of the
//     model), as an event_msg (for the user interface) and, in some modes of keeping
//     history, as an item_completed event. The order changed between versions. The first
//     occurrence is the message, the others are hidden statuses.
//   - A transcript has no ids of model responses. A response is the output of the model
//     between two inputs, and its id is the key of its first part.
//   - token_count follows the items of its response, or, up to 0.40, precedes them.
//   - token_count has the sum over the thread and the counts of the last response. It
//     is repeated when a rate limit changes, and its last_token_usage becomes an
//     estimate after a compaction. It counts if and only if the sum has moved.
//   - Input counts include the cached tokens, output counts the reasoning.
//   - A user message is not always a user's: instructions, the environment, notices
//     of sub-agents and of aborted turns are injected as such.
//   - A fork, a sub-agent with the history of its parent and some resumed threads begin
//     with a copy of another thread's records, whose times are the instant of the copy,
//     and with a second session_meta. The copy counts nowhere.
//   - The session_id of a sub-agent is that of the thread that leads it, its own id is
//     the field id. Newer versions encrypt the messages between agents.
package codex

import (
	_ "embed"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/codex"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/snapshot"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// rest keeps the fields that the decoder does not read.
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
		Revision:   3,
		Summary:    "Transcripts (rollout files) of Codex CLI threads and their sub-agents.",
		Transports: []frame.Kind{frame.Line},
	}
}

// New returns a decoder for one file. There are no options.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	if err := conversation.NoOptions("codex", s.Options); err != nil {
		return nil, err
	}
	return &thread{Thread: codex.Thread{Origin: threadOf(s.Origin)}}, nil
}

// thread decodes the lines of one file.
type thread struct {
	doc   jsonv.Doc
	inner jsonv.Doc // of JSON in a string
	codex.Thread
	local
}

// local is the part of the state that codex-exec does not have.
type local struct {
	Path     string `json:",omitempty"` // of the thread in the tree: /root/reviewer
	Provider string `json:",omitempty"`
	Model    string `json:",omitempty"`
	Dir      string `json:",omitempty"` // working directory

	Own  bool     `json:",omitempty"` // a record beside session_meta was read that is no copy
	Copy *history `json:",omitempty"` // the copied history that the records belong to

	Turn      string    `json:",omitempty"` // the protocol's id of the turn, which is the run's unless a prompt came first
	Stopped   string    `json:",omitempty"` // the last turn whose end was read
	Lifecycle bool      `json:",omitempty"` // the format version has records of turns (task_started)
	Prompted  bool      `json:",omitempty"` // the run has a prompt
	Replied   bool      `json:",omitempty"` // the model has answered in the run
	Response  *response `json:",omitempty"`
	Compacted bool      `json:",omitempty"` // and the model has not answered since

	Ended bounded.Set[uint64] `json:",omitzero"`  // hashes of the ids of calls that have ended
	Texts []knownText         `json:",omitempty"` // that another family of records may repeat, oldest first
}

// stateVersion rises when the state's form changes, see package snapshot.
const stateVersion = 2

type state struct {
	codex.State
	local
}

// Snapshot implements decoder.Snapshotter.
func (d *thread) Snapshot() ([]byte, error) {
	return snapshot.Of(stateVersion, &state{d.State, d.local})
}

// Restore implements decoder.Snapshotter.
func (d *thread) Restore(b []byte) error {
	var s state
	err := snapshot.Restore(stateVersion, b, &s)
	d.State, d.local = s.State, s.local
	return err
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
	root, ok := conversation.ParseObject(&d.doc, f.Data, out)
	if !ok {
		return nil
	}
	before := len(out.Messages)
	if !d.record(root, out) {
		d.markNames(root.Get("payload"))
		rest.Keep(&d.doc, out, before, func(m *msg.Message) { m.Session, m.Run = d.SessionID(), d.Run })
	}
	d.Out = nil
	return nil
}

// markNames marks the ids of the active thread and turn as read.
func (d *thread) markNames(p jsonv.Value) {
	p.Get("turn_id").In(d.Turn, d.Run, d.Stopped)
	p.First("internal_chat_message_metadata_passthrough", "metadata").Get("turn_id").In(d.Turn, d.Run)
	for _, name := range [...]string{"thread_id", "sender_thread_id"} {
		p.Get(name).In(d.ID, d.SessionID())
	}
}

// Flush adds no message: each line is complete.
func (d *thread) Flush(*decoder.Output) error { return nil }

// record is one line while it is decoded: {timestamp, type, payload}.
type record struct {
	root, p jsonv.Value
	typ     jsonv.Value
	key     string // computed on the first call of id
}

// record decodes one line. It reports whether the line belongs to a copied history, the one
// reason for which a line has no message.
func (d *thread) record(root jsonv.Value, out *decoder.Output) (copied bool) {
	r := &record{root: root, p: root.Get("payload"), typ: root.Get("type")}
	d.Out, d.At = out, conversation.TimeOf(root.Get("timestamp"))
	meta := r.typ.Equal("session_meta")
	switch {
	case !r.p.Is(jsonv.Object):
		d.unknown(r, r.typ.Str())
		return false
	case meta:
		return d.meta(r)
	case !r.typ.In("response_item", "event_msg", "turn_context", "compacted", "world_state", "inter_agent_communication", "inter_agent_communication_metadata"):
		d.unknown(r, r.typ.Str())
		return false
	case d.copied(r):
		return true
	}
	d.Own = true
	switch {
	case r.typ.Equal("response_item"):
		d.item(r)
	case r.typ.Equal("event_msg"):
		d.event(r)
	case r.typ.Equal("turn_context"):
		d.context(r)
	case r.typ.Equal("compacted"):
		d.compacted(r)
	case r.typ.Equal("inter_agent_communication"):
		d.communication(r)
	default:
		d.Status(r.id(), r.typ.Str())
	}
	return false
}

// id is the record's own key: the id of its item, or a hash of the record.
func (r *record) id() string {
	if r.key == "" {
		if id := r.p.Get("id"); r.typ.Equal("response_item") && len(id.Escaped()) > 0 {
			r.key = ident.Of(id)
		} else {
			r.key = "line:" + msg.HashKey(string(r.root.Get("timestamp").Peek()), r.typ.PeekStr(), string(r.p.Peek()))
		}
	}
	return r.key
}

// turn is the turn that the record names; empty when it names none.
func (r *record) turn() string {
	id := r.p.Get("turn_id")
	if !id.Is(jsonv.String) {
		id = r.p.First("internal_chat_message_metadata_passthrough", "metadata").Get("turn_id")
	}
	return ident.Peek(id)
}

// repeated adds a hidden message for a record whose facts are in other messages.
func (d *thread) repeated(r *record, key, typ string, facts ...jsonv.Value) {
	for _, v := range facts {
		v.MarkRead()
	}
	d.Status(key, typ)
}

func (d *thread) unknown(r *record, typ string) {
	d.Unknown(msg.HashKey(string(r.root.Peek())), typ, r.root)
}

// parse parses JSON that may be in a string, and returns null for a string that has none.
func (d *thread) parse(v jsonv.Value) jsonv.Value {
	if !v.Is(jsonv.String) {
		return v
	}
	if d.inner.Parse([]byte(v.Str())) != nil {
		return jsonv.Value{}
	}
	return d.inner.Root()
}
