// Package codex decodes the transcripts that the Codex CLI keeps of its threads:
// ~/.codex/sessions/<year>/<month>/<day>/rollout-<local time>-<thread>.jsonl. Every
// thread has a file of its own, a sub-agent's too.
//
// A line becomes a record, whose name has its subject (record.go): the thread and the
// history that it copies (meta.go), its runs and responses (turn.go), its texts (text.go),
// a call (call.go) or an agent (agent.go).
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
//   - From version 0.151 on token_usage_record has the usage of each response, token_count has it again. Before
//     a version that is still to come, that of a request which compacts the context is in the former alone.
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
		Name: "codex", Revision: 13, Version: 3, LeavesOut: leavesOut,
		Summary:    "Transcripts (rollout files) of Codex CLI threads and their sub-agents.",
		Transports: []frame.Kind{frame.Line},
		Thread:     threadOf,
		Open: func(t *codex.Thread, s *state) func(jsonv.Value) bool {
			t.State = &s.State
			return (&thread{calls{turns: turns{t, &s.memory}}}).line
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
	if !strings.HasPrefix(name, "rollout-") {
		return name
	}
	if i := strings.LastIndexByte(name, '_'); i > uuid {
		name = name[:i]
	}
	return name[max(len(name)-uuid, 0):]
}

// state is the memory of a file.
type state struct {
	codex.State
	memory
}

// memory is the part of the state that other framings of a thread do not have.
type memory struct {
	Line   string   `json:",omitempty"` // the key of the last record that had no payload
	Own    bool     `json:",omitempty"` // a record beside session_meta was read that is no copy
	Replay replay   `json:",omitzero"`
	Copy   *history `json:",omitempty"` // the copied history that the records belong to

	Turn      string    `json:",omitempty"` // the protocol's id of the turn, which is the run's unless a prompt came first
	Stopped   string    `json:",omitempty"` // the last turn whose end was read
	Lifecycle bool      `json:",omitempty"` // the format version has records of turns (task_started)
	Prompted  bool      `json:",omitempty"` // the run has a prompt
	Replied   bool      `json:",omitempty"` // the model has answered in the run
	Response  *response `json:",omitempty"`
	Compacted bool      `json:",omitempty"` // and the model has not answered since

	// Recorded and Counted are the usages that token_usage_record has and token_count has not yet, and the other way about.
	Recorded []conversation.Counts `json:",omitempty"`
	Counted  []conversation.Counts `json:",omitempty"`

	Ended bounded.Set[conversation.Sum] `json:",omitzero"` // sums of the ids of calls that have ended
	Texts []knownText                   `json:",omitempty"`
}

// thread decodes the lines of one file.
type thread struct {
	calls
}
