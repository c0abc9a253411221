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
	"cmp"
	_ "embed"
	"encoding/json"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory { return format().Factory() }

func format() record.Format[state] {
	rules := rules()
	return record.Format[state]{
		Info: decoder.Info{
			Name:       "agno",
			Revision:   10,
			Summary:    "Runs of AGNO agents, teams and workflows: event streams and reloaded sessions.",
			Transports: []frame.Kind{frame.Event, frame.Text, frame.Body, frame.Request, frame.Line},
			Reload:     true,
			Resume: json.RawMessage(`{"run":"run_id","nested":"parent_run_id","session":"session_id","number":"event_index","path":"/runs/{{run}}/resume",` +
				`"method":"POST","parameters":{"last_event_index":"{{number}}","session_id":"{{session}}"},"in":"form","end":"close"}`),
			Pages: json.RawMessage(`{"items":"data","number":"page","total":"meta.total_pages","each":{"list":"/sessions","id":"session_id",` +
				`"path":"/{{id}}/runs","without":["page","limit","sort_by","sort_order","session_name"]}}`),
		},
		LeavesOut: leavesOut,
		State:     3,
		Wrapped:   true,
		Open: func(r *record.Current, s *state) record.Reader {
			return &stream{Current: r, state: s, rules: rules, origin: sessionOf(r.Origin)}
		},
	}
}

// stream decodes one stream: it finds the records in the frames and routes them to the runs.
type stream struct {
	*record.Current
	*state
	rules   map[string]*rule
	inner   jsonv.Doc // of JSON that is a string in the frame
	e       event     // of the frame
	origin  string    // the session that the stream's origin names
	body    *body     // the runs of a reloaded body; nil for a stream
	summary bool      // the event that is decoded is of a stored run
}

// state is bounded: see the limits of its types.
type state struct {
	Session  string                        `json:",omitempty"` // of the last event that named one
	Runs     runs                          `json:",omitzero"`
	Pending  []pending                     `json:",omitempty"`
	Reloaded bounded.Set[conversation.Sum] `json:",omitzero"` // trees of runs
	Names    names                         `json:",omitempty"`
}

// Read decodes one frame.
func (s *stream) Read() {
	switch f := s.Frame; f.Kind {
	case frame.Close:
		s.releasePending(true)
	case frame.Request:
		s.request(f)
	case frame.Text:
		s.socket(f)
	default:
		s.document(f.Kind, f.Name, f.Data)
	}
}

// In returns the session and the run of a document.
func (s *stream) In() (session, run string) {
	return s.sessionFor(s.Root.Get("session_id")), ident.OrNumber(s.Root.Get("run_id"))
}

// Flush emits the open texts and the token counts of open responses as partial messages. The
// state does not change.
func (s *stream) Flush() {
	for _, r := range s.Runs.Open {
		r.emitOpen()
	}
}

// Restored rebuilds the parts that a snapshot lacks.
func (s *stream) Restored() {
	s.Runs.byID = make(map[string]*run)
	for _, r := range s.Runs.Open {
		r.s, s.Runs.byID[r.ID] = s, r
		s.Runs.text += r.Text.size()
	}
}

// document decodes a JSON document: an event, or a body that a session is reloaded from.
func (s *stream) document(kind frame.Kind, name string, data []byte) {
	root, ok := s.Parse(data)
	if !ok {
		return
	}
	e := &s.e
	*e = event{v: root}
	e.read(root)
	if e.typ.Is(jsonv.String) && !e.messages.Is(jsonv.Array) {
		s.event(e)
		return
	}
	switch {
	case kind == frame.Body && root.Is(jsonv.Array), isRun(root), root.Get("runs").Is(jsonv.Array), root.Get("chat_history").Is(jsonv.Array):
		s.reload(root)
	default:
		s.stray(name, root)
	}
}

// stray keeps a document that is neither an event nor a run.
func (s *stream) stray(typ string, v jsonv.Value) {
	if !v.Is(jsonv.Object) {
		s.Out.Problem(msg.ReasonWrongType, "expected an object, got "+v.Kind().String())
		return
	}
	named := func(name string) string { return ident.PeekOrNumber(v.Get(name)) }
	m := s.Out.Unknown(cmp.Or(typ, named("event"), named("type"), named("action"), "unknown"), v.Raw())
	if r := s.Runs.get(ident.Peek(v.Get("run_id"))); r != nil {
		r.own(m)
	}
	m.Session = s.sessionFor(v.Get("session_id"))
	m.Key = "unknown:" + msg.HashKey(canonical(v))
	conversation.TimeOf(v.Get("created_at")).Set(m)
}
