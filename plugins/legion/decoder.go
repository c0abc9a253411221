// Package legion decodes the messages.jsonl files of Claude Code WebUI, in which
// a "legion" of minions (one Claude Code session each) works and talks, and the
// comms.jsonl files beside them.
//
// One file mixes three generations of records, line by line:
//
//	1  {"type":"assistant","content":"…","timestamp":…,"metadata":{…}}
//	2  {"_type":"AssistantMessage","timestamp":…,"data":{"content":[blocks…]}}
//	3  {"_type":"ToolCallUpdate","data":{"tool_use_id":…,"status":"running",…}}
//
// The newest writers flatten the third into {"type":"tool_call",…}. A WebSocket
// carries the same records in an envelope, {"type":"message","data":{…}}.
//
// A timestamp is an ISO string or a float of seconds, in records of any type. The README has the other facts that are easily missed:
// the records of a call, the texts that are none, whose the texts with the role user are, and which counts of tokens count.
package legion

import (
	"cmp"
	_ "embed"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// Limits of the state, beside those of package conversation.
const (
	maxSessions  = 64   // of one stream; a file has one
	maxDir       = 1024 // bytes of a session's directory
	maxResponses = 256  // of a sub-agent, whose tokens were counted
)

// New returns the factory of this decoder.
func New() decoder.Factory {
	return record.Format[state]{
		Info: decoder.Info{
			Name:          "legion",
			Revision:      10,
			Summary:       "Claude Code WebUI (Legion) messages.jsonl and comms.jsonl, all generations, and their WebSocket form",
			Transports:    []frame.Kind{frame.Line, frame.Text, frame.Body},
			MetadataFiles: []string{"state.json"},
			Reload:        true,
		},
		LeavesOut: leavesOut,
		State:     3,
		Open: func(r *record.Current, s *state) record.Reader {
			return &stream{Current: r, state: s, origin: originOf(r.Origin)}
		},
	}.Factory()
}

// stream decodes one stream.
type stream struct {
	*record.Current
	*state
	origin origin
	s      *session // of the record
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Sessions []*session `json:",omitempty"` // least recently used first
}

// Read decodes one record.
func (d *stream) Read() {
	if d.Frame.Kind == frame.Body {
		d.metadata()
	} else {
		d.read()
	}
}

// In returns the session of the record.
func (d *stream) In() (session, run string) { return d.s.ID, "" }

// Flush emits the tokens of the turns that have not ended.
func (d *stream) Flush() {
	for _, s := range d.Sessions {
		s.emitTokens(d.Out, msg.Partial)
	}
}

// enterSession finds the session of a record: the one that it names, or else the last one, or
// the one that the file is named after.
func (d *stream) enterSession(h *members, envelope jsonv.Value) {
	id := cmp.Or(d.StrOf(h.session), d.StrOf(envelope))
	if last := len(d.Sessions) - 1; id == "" && last >= 0 {
		d.s = d.Sessions[last]
		return
	}
	id = cmp.Or(id, d.Str(h.metadata.Get("session_id").Chars()), d.origin.session)
	d.s = bounded.Use(&d.Sessions, maxSessions, func(s *session) bool { return s.ID == id }, func() *session { return &session{ID: strings.Clone(id)} },
		func(s *session) { s.emitTokens(d.Out, msg.Complete) })
}
