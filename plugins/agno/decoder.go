// Package agno decodes the traffic of AGNO's AgentOS: the event streams of
// agents, teams and workflows (SSE, WebSocket, a file of events) and the runs
// that a session is reloaded from.
//
// Facts of the format that are easy to get wrong, and that this decoder is built
// around:
//
//   - Times have whole seconds. A reload lists children before their parents and has no
//     deltas. So a key is made of ids (run, call), never of a time where an id exists,
//     and messages have the order of the events.
//   - The text of a run arrives in pieces between its tool calls. The last event repeats
//     all pieces in one string, without separators: only the end of that string is the
//     final answer.
//   - A reloaded team run keeps the events of its descendants among its own, each child
//     keeps them again, and the team's last event embeds whole child runs a third time.
//     So the decoder replays the events of the top run through the code of the stream and
//     takes the texts, which the stream has in deltas, from the stored messages.
//   - The parent_run_id of a child's own events is its parent. The child_run_id of a call
//     is null when the call starts, and later the id of the child that ended last.
//   - 2.9 reports a failed call twice (ToolCallCompleted and ToolCallError), and a
//     resumed stream repeats events under their old event_index.
//   - Members have their own token counts; a team's do not contain them.
package agno

import (
	_ "embed"
	"encoding/json"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/snapshot"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// New returns the factory of decoders of this format.
func New() decoder.Factory { return factory{} }

type factory struct{}

func (factory) Info() decoder.Info {
	return decoder.Info{
		Name:       "agno",
		Version:    "1.0.0",
		Revision:   5,
		Summary:    "Runs of AGNO agents, teams and workflows: event streams and reloaded sessions.",
		Transports: []frame.Kind{frame.Event, frame.Text, frame.Body, frame.Request, frame.Line},
		Reload:     true,
		Resume: json.RawMessage(`{"run":"run_id","nested":"parent_run_id","session":"session_id","number":"event_index","path":"/runs/{{run}}/resume",` +
			`"method":"POST","parameters":{"last_event_index":"{{number}}","session_id":"{{session}}"},"in":"form","end":"close"}`),
		Pages: json.RawMessage(`{"items":"data","number":"page","total":"meta.total_pages","each":{"list":"/sessions","id":"session_id",` +
			`"path":"/{{id}}/runs","without":["page","limit","sort_by","sort_order","session_name"]}}`),
	}
}

// New returns a decoder for one stream. There are no options.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	return &stream{origin: sessionOf(s.Origin)}, conversation.NoOptions("agno", s.Options)
}

// stream decodes one stream: it finds the records in the frames and routes them to the runs.
type stream struct {
	state
	doc    jsonv.Doc // of the frame
	inner  jsonv.Doc // of JSON that is a string in the frame
	spare  []*event  // that are not in use: an event is the same memory as the one before
	out    *decoder.Output
	origin string // the session that the stream's origin names
	body   *body  // the runs of a reloaded body; nil for a stream
}

// stateVersion rises when the state's form changes.
const stateVersion = 2

// state is bounded: see the limits of its types.
type state struct {
	Session  string                        `json:",omitempty"` // of the last event that named one
	Runs     runs                          `json:",omitzero"`
	Pending  []pending                     `json:",omitempty"`
	Reloaded bounded.Set[conversation.Sum] `json:",omitzero"` // trees of runs
	Names    names                         `json:",omitempty"`
}

var (
	_ decoder.Decoder     = (*stream)(nil)
	_ decoder.Snapshotter = (*stream)(nil)
)

// Decode decodes one frame.
func (s *stream) Decode(f *frame.Frame, out *decoder.Output) error {
	s.out = out
	problems := len(out.Problems)
	switch f.Kind {
	case frame.Close:
		s.releasePending(true)
	case frame.Request:
		s.request(f)
	case frame.Text:
		s.socket(f)
	default:
		s.read(f.Data, func(root jsonv.Value) { s.document(f, root) })
	}
	out.Problems = out.Problems[:min(len(out.Problems), problems+1)] // one of a frame
	s.out = nil
	return nil
}

// Flush emits the open texts and the token counts of open responses as partial messages. The
// state does not change.
func (s *stream) Flush(out *decoder.Output) error {
	s.out = out
	for _, r := range s.Runs.Open {
		r.emitOpen()
	}
	s.out = nil
	return nil
}

// Snapshot returns the state after the frames so far.
func (s *stream) Snapshot() ([]byte, error) { return snapshot.Of(stateVersion, &s.state) }

// Restore restores the state of a snapshot.
func (s *stream) Restore(b []byte) error {
	if err := snapshot.Restore(stateVersion, b, &s.state); err != nil {
		return err
	}
	s.Runs.restore(s)
	return nil
}

// rest keeps the unread values of a document: the protocol has most values more than once. A
// value counts as read where a message has it, where it equals a value of a message, and where
// its place makes it a copy.
var rest = unknown.NewKeeper(leavesOut)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// read decodes a JSON text, and keeps its unread values.
func (s *stream) read(data []byte, decode func(root jsonv.Value)) {
	root, ok := conversation.Parse(&s.doc, data, s.out)
	if !ok {
		return
	}
	before := len(s.out.Messages)
	decode(root)
	rest.Keep(&s.doc, s.out, before, func(m *msg.Message) {
		m.Session, m.Run = s.sessionFor(root.Get("session_id")), ident.OrNumber(root.Get("run_id"))
	})
}

// document decodes a JSON document: an event, or a body that a session is reloaded from.
func (s *stream) document(f *frame.Frame, root jsonv.Value) {
	switch {
	case root.Is(jsonv.Object) && root.Get("event").Is(jsonv.String) && !root.Get("messages").Is(jsonv.Array):
		s.event(root, jsonv.Value{})
	case f.Kind == frame.Body && root.Is(jsonv.Array), root.Is(jsonv.Object) && reloads(root):
		s.reload(root)
	default:
		s.stray(f.Name, root)
	}
}

// stray keeps a document that is neither an event nor a run.
func (s *stream) stray(typ string, v jsonv.Value) {
	if !v.Is(jsonv.Object) {
		s.out.Problem(msg.ReasonWrongType, "expected an object, got "+v.Kind().String())
		return
	}
	for _, name := range [...]string{"event", "type", "action"} {
		if typ == "" {
			typ = ident.OrNumber(v.Get(name))
		}
	}
	if typ == "" {
		typ = "unknown"
	}
	m := s.out.Unknown(typ, v.Raw())
	if r := s.Runs.get(ident.Peek(v.Get("run_id"))); r != nil {
		r.own(m)
	}
	m.Session = s.sessionFor(v.Get("session_id"))
	m.Key = "unknown:" + msg.HashKey(canonical(v))
	conversation.TimeOf(v.Get("created_at")).Set(m)
}
