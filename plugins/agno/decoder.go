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
	"encoding/json"
	"errors"
	"fmt"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// New returns the factory of decoders of this format.
func New() decoder.Factory { return factory{} }

type factory struct{}

func (factory) Info() decoder.Info {
	return decoder.Info{
		Name:       "agno",
		Version:    "1.0.0",
		Revision:   3,
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
	if len(s.Options) > 0 {
		var options map[string]json.RawMessage
		if err := json.Unmarshal(s.Options, &options); err != nil {
			return nil, fmt.Errorf("agno: options: %w", err)
		}
		for name := range options {
			return nil, fmt.Errorf("agno: option %q: there are no options", name)
		}
	}
	return &stream{origin: sessionOf(s.Origin), runs: make(map[string]*run)}, nil
}

// stream decodes one stream. Its state is bounded: see the limits in run.go, pending.go and
// reload.go.
type stream struct {
	doc   jsonv.Doc // of the frame
	inner jsonv.Doc // of JSON that is a string in the frame
	out   *decoder.Output
	buf   []byte
	bad   bool // a problem of the current frame is reported

	origin  string // the session that the stream's origin names
	session string // of the last event that named one

	runs     map[string]*run // open
	count    uint64          // of runs that began
	ended    recent          // ids of runs that are over
	text     int             // bytes of text that is not emitted yet, of all runs
	pending  []pending
	reloaded digests
	agents   agentNames

	index *bodyIndex // the runs of a reloaded body; nil for a stream
}

var (
	_ decoder.Decoder     = (*stream)(nil)
	_ decoder.Snapshotter = (*stream)(nil)
)

// Decode decodes one frame.
func (s *stream) Decode(f *frame.Frame, out *decoder.Output) error {
	s.out, s.bad = out, false
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
	s.out = nil
	return nil
}

// Flush emits the open texts and the token counts of open responses as partial messages. The
// state does not change.
func (s *stream) Flush(out *decoder.Output) error {
	s.out = out
	for _, r := range s.inOrder() {
		s.emitOpen(r)
	}
	s.out = nil
	return nil
}

// parse parses a document, or reports a problem of the frame.
func (s *stream) parse(data []byte) (root jsonv.Value, ok bool) {
	if err := s.doc.Parse(data); err != nil {
		reason := msg.ReasonInvalidJSON
		var syntax *jsonv.SyntaxError
		if errors.As(err, &syntax) && syntax.UTF8 {
			reason = msg.ReasonInvalidUTF8
		}
		s.problem(reason, err.Error())
		return jsonv.Value{}, false
	}
	return s.doc.Root(), true
}

// problem reports the frame as bad, once.
func (s *stream) problem(reason, detail string) {
	if !s.bad {
		s.bad = true
		s.out.Problem(reason, detail)
	}
}

// document decodes a JSON document: an event, or a body that a session is reloaded from.
func (s *stream) document(f *frame.Frame, root jsonv.Value) {
	switch {
	case root.Is(jsonv.Object) && root.Get("event").Is(jsonv.String) && !root.Get("messages").Is(jsonv.Array):
		s.event(root, jsonv.Value{})
	case f.Kind == frame.Body && root.Is(jsonv.Array), root.Is(jsonv.Object) && reloads(root):
		s.reload(root)
	case root.Is(jsonv.Object):
		s.unknown(f.Name, root)
	default:
		s.problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
	}
}

// unknown keeps a document that the decoder does not know.
func (s *stream) unknown(typ string, v jsonv.Value) *msg.Message {
	for _, name := range [...]string{"event", "type", "action"} {
		if typ == "" {
			typ = ident(v.Get(name))
		}
	}
	if typ == "" {
		typ = "unknown"
	}
	m := s.out.Unknown(typ, v.Raw())
	m.Session = s.sessionFor(v.Get("session_id"))
	m.Key = "unknown:" + msg.HashKey(s.canonical(v))
	if r := s.runs[string(rawString(v.Get("run_id")))]; r != nil {
		m.Run, m.ParentRun, m.ParentCall, m.Agent = r.ID, r.parentRun(), r.Call, r.Agent
	}
	at := stampOf(v.Get("created_at"))
	m.Time, m.Precision = at.NS, at.Precision
	return m
}
