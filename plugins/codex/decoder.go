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
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/codex"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return codex.Framing[state]{
		Name: "codex", Revision: 8, Version: 2, LeavesOut: leavesOut,
		Summary:    "Transcripts (rollout files) of Codex CLI threads and their sub-agents.",
		Transports: []frame.Kind{frame.Line},
		Thread:     threadOf,
		Open: func(t *codex.Thread, s *state) func(jsonv.Value) bool {
			t.State = &s.State
			d := &thread{turns: turns{Thread: t, turn: &s.turn, texts: &s.Texts}, s: s}
			d.calls = calls{turns: &d.turns, ended: &s.Ended}
			return d.line
		},
	}.Factory()
}

// threadOf returns the thread that the name of a file has:
//
//	rollout-2026-03-04T09-10-11-019c1a2b-....jsonl
//	rollout-2026-03-04T09-10-11-019c1a2b-..._2.jsonl   a later window of its history
func threadOf(path string) string {
	const uuid = 36
	name := ident.OfFile(path, ".jsonl") // followed by the number of a rotation or .gz
	if i := strings.LastIndexByte(name, '_'); i > uuid && strings.HasPrefix(name, "rollout-") {
		name = name[:i]
	}
	if strings.HasPrefix(name, "rollout-") && len(name) > uuid {
		return name[len(name)-uuid:]
	}
	return name
}

// state is the memory of a file.
type state struct {
	codex.State
	identity
	turn
	Ended bounded.Set[uint64] `json:",omitzero"` // hashes of the ids of calls that have ended
	Texts texts               `json:",omitempty"`
}

// thread decodes the lines of one file. Messages are added by its parts: turns have the runs
// and the responses of the model, calls the tool calls and the agents.
type thread struct {
	turns
	calls calls
	s     *state
}

// record is one line while it is decoded: {timestamp, type, payload}.
type record struct {
	root, p jsonv.Value
	typ     jsonv.Value
	family  family
	key     string // computed on the first call of id
}

// line decodes one line. It reports whether its unread fields are kept: not those of a
// copied history, the one reason for which a line has no message.
func (d *thread) line(root jsonv.Value) (keep bool) {
	r := &record{root: root, p: root.Get("payload"), typ: root.Get("type"), family: byEvent}
	d.At = conversation.TimeOf(root.Get("timestamp"))
	meta := r.typ.Equal("session_meta")
	switch {
	case !r.p.Is(jsonv.Object):
		d.bare(r)
	case meta && d.meta(r):
		return false
	case meta:
	case !r.typ.In("response_item", "event_msg", "turn_context", "compacted", "world_state", "inter_agent_communication", "inter_agent_communication_metadata"):
		d.unknown(r, r.typ.Str())
	case d.copied(r):
		return false
	default:
		d.s.Own = true
		d.record(r)
	}
	r.p.Get("turn_id").In(d.Turn, d.Run, d.Stopped) // ids of the active thread and turn count as read
	r.metadata().Get("turn_id").In(d.Turn, d.Run)
	for _, name := range [...]string{"thread_id", "sender_thread_id"} {
		r.p.Get(name).In(d.ID, d.SessionID())
	}
	return true
}

// bare decodes a line without a payload, as they were up to version 0.31: the identity of the thread,
// then its items as the model's API has them, without times, and states of the CLI between them.
func (d *thread) bare(r *record) {
	r.p = r.root
	switch typ := r.typ; {
	case r.root.Get("record_type").Equal("state"):
		r.after(&d.s.Line)
		d.Status(r.id(), "state")
	case !typ.Exists() && r.root.Get("id").Is(jsonv.String) && r.root.Get("timestamp").Is(jsonv.String):
		r.key = "thread:" + ident.Of(r.root.Get("id"))
		d.meta(r)
	case typ.In("message", "reasoning", "function_call", "function_call_output", "local_shell_call", "custom_tool_call", "custom_tool_call_output", "web_search_call"):
		r.family, d.s.Own = byItem, true
		r.after(&d.s.Line)
		d.item(r)
	default:
		d.unknown(r, typ.Str())
	}
}

// after makes the key of a record without id and time: a hash of its facts and of the key of the one before.
func (r *record) after(last *string) {
	if r.key = ident.Of(r.p.Get("id")); r.key == "" {
		facts := []string{*last}
		for _, name := range [...]string{"record_type", "type", "role", "content", "summary", "call_id", "name", "arguments", "input", "action", "output"} {
			facts = append(facts, string(r.p.Get(name).Peek()))
		}
		r.key = "line:" + msg.HashKey(facts...)
	}
	*last = r.key
}

// record decodes a line of the thread itself.
func (d *thread) record(r *record) {
	switch {
	case r.typ.Equal("response_item"):
		r.family = byItem
		d.item(r)
	case r.typ.Equal("event_msg"):
		d.event(r)
	case r.typ.Equal("turn_context"):
		d.context(r)
	case r.typ.Equal("compacted"):
		d.compacted(r)
	case r.typ.Equal("inter_agent_communication"):
		d.agentMessage(r, "inter_agent_communication")
	default:
		d.Status(r.id(), r.typ.Str())
	}
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

func (r *record) metadata() jsonv.Value {
	return r.p.First("internal_chat_message_metadata_passthrough", "metadata")
}

// turn is the turn that the record names; empty when it names none.
func (r *record) turn() string {
	id := r.p.Get("turn_id")
	if !id.Is(jsonv.String) {
		id = r.metadata().Get("turn_id")
	}
	return ident.Peek(id)
}
