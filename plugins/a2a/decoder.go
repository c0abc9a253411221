// Package a2a decodes the Agent2Agent protocol, by which one agent hands work to another: JSON-RPC or
// plain HTTP, as exchanges that a tap records (a request, and the response as a body or as a stream of
// events), or as lines of a recorder. Versions 0.2, 0.3 and 1.0.
//
// Facts of the format that are easy to get wrong:
//
//   - Every event of a stream has the id of its request.
//   - Up to 0.3 the member kind of a result names its type, from 1.0 the name of its only member does;
//     states and roles are then TASK_STATE_COMPLETED and ROLE_AGENT.
//   - The server makes the id of the context, and of the task: the request that begins both has
//     neither. A request with a task goes on with it.
//   - An answer is in artifacts, in the messages of states, or in both. An artifact is sent in
//     chunks (append), and append: false begins it again.
//   - input-required and auth-required end the stream and not the task.
//   - The response to a message may come while the task is still at work: the client asks for it (tasks/get) until it ends.
//   - A polled task is whole: its history repeats the messages of earlier states.
//   - There are no tokens, and no tool calls. ADK writes those of the remote agent as data, which
//     metadata.adk_type names, and the tokens of a response into the metadata of its event, of the
//     artifact and of the task. kagent writes kagent_ for adk_ in some versions.
package a2a

import (
	_ "embed"
	"net/url"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonrpc"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return record.Format[state]{
		Info: decoder.Info{
			Name: "a2a", Revision: 4,
			Summary:    "Agent2Agent protocol: messages, tasks and their streams between agents.",
			Transports: []frame.Kind{frame.Request, frame.Body, frame.Event, frame.Line, frame.Text},
		},
		LeavesOut: leavesOut,
		State:     1,
		Open: func(r *record.Current, s *state) record.Reader {
			s.Server = serverOf(r.Origin)
			return &connection{Current: r, state: s}
		},
	}.Factory()
}

// serverOf is the name of an agent without a card: the address of its server.
func serverOf(origin string) string {
	if u, err := url.Parse(origin); err == nil && u.Host != "" {
		return u.Host
	}
	return "agent"
}

const (
	maxTasks = 256
	maxSeen  = 1024    // messages of a task
	maxText  = 4 << 20 // bytes of the artifacts of a task
)

// connection decodes one exchange over HTTP, or the messages of a recording.
type connection struct {
	inner jsonv.Doc // of a message that a recorder wrote as a string
	*record.Current
	*state

	m    jsonrpc.Message
	path string // of a request: "POST /v1/message:send"
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Server   string                   `json:",omitempty"` // name of the remote agent
	Hops     conversation.Calls[*hop] `json:",omitzero"`
	Requests jsonrpc.Requests         `json:",omitempty"` // that send no message
	Tasks    []*task                  `json:",omitempty"` // the last active one at the end
}

// hop is a message that one agent sends to another, and the response: a delegation, in a run of
// its own, which is that of the sender. Its ID is that of the message.
type hop struct {
	conversation.Call
	RPC       string            `json:",omitempty"` // id of the request
	From      jsonrpc.Sender    `json:",omitempty"`
	Context   string            `json:",omitempty"`
	Task      string            `json:",omitempty"` // that it goes on with
	Run       conversation.Run  `json:",omitzero"`
	Text      string            `json:",omitempty"`
	Files     []msg.Attachment  `json:",omitempty"`
	Attrs     []msg.Attr        `json:",omitempty"`
	At        conversation.Time `json:",omitzero"`
	Async     bool              `json:",omitempty"`
	Delegated bool              `json:",omitempty"` // the delegation was emitted
	Prompted  bool              `json:",omitempty"` // the prompt of the remote run was emitted
	Stream    bool              `json:",omitempty"`
	Accepted  bool              `json:",omitempty"` // the response came before the end of the task, which is asked for later
}

// task is the work of the remote agent: a run.
type task struct {
	ID        string
	Context   string
	Run       conversation.Run    `json:",omitzero"`
	State     string              `json:",omitempty"`
	Seen      bounded.Set[string] `json:",omitzero"` // messages
	Artifacts conversation.Deltas `json:",omitzero"`
	Texts     []byte              `json:",omitempty"` // texts of messages: the answer without artifacts
	Last      string              `json:",omitempty"` // the last of these
	At        conversation.Time   `json:",omitzero"`  // of the last state
	Calls     bounded.Set[string] `json:",omitzero"`
}

// Read decodes one message.
func (d *connection) Read() {
	d.m, d.path = jsonrpc.Of(d.Frame, d.Root), ""
	d.At = d.m.At
	if d.Frame.Kind == frame.Request {
		d.path = d.Frame.Name
	}
	text := d.m.Text(&d.inner)
	d.message()
	if text {
		d.KeepUnread(&d.inner, d.First())
	}
}

// In returns the context and the run of the last task.
func (d *connection) In() (session, run string) {
	if n := len(d.Tasks); n > 0 {
		return d.Tasks[n-1].Context, d.Tasks[n-1].Run.ID
	}
	return d.session(""), ""
}

// Flush emits the artifacts that are not complete. A message that has no context yet is in no
// conversation, and waits for the first response.
func (d *connection) Flush() {
	for _, t := range d.Tasks {
		d.artifacts(t, msg.Partial)
	}
}

// Begin looks at the end of a response: messages without an answer are delegations. A task that goes on then is asked for in
// other exchanges.
func (d *connection) Begin() (record bool) {
	if d.Frame.Kind == frame.Close {
		for _, h := range slices.Clone(d.Hops.Open) {
			if d.delegate(h); h.Accepted {
				t := d.task(h.Task, h.Context)
				d.answered(h, t, t.answer(), "")
				d.ended(h, "")
			}
		}
	}
	return true
}

// session is the conversation: the context, else the address or the name of the recording.
func (d *connection) session(context string) string {
	if context != "" {
		return context
	}
	if d.Origin == "" {
		return "unknown"
	}
	if name, ok := strings.CutSuffix(d.Origin[strings.LastIndexAny(d.Origin, `/\`)+1:], ".jsonl"); ok && name != "" {
		return name
	}
	return d.Origin
}

// task returns a task, which it adds if need be.
func (s *state) task(id, context string) *task {
	return bounded.Use(&s.Tasks, maxTasks, func(t *task) bool { return t.ID == id }, func() *task {
		return &task{ID: id, Context: context, Run: conversation.Run{ID: id, Child: true}}
	}, nil)
}

// add adds a message of a task, or of the session alone.
func (d *connection) add(t *task, kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	m.Agent.Name = d.Server
	if m.Session = d.session(""); t != nil {
		m.Session = t.Context
		t.Run.Mark(m)
	}
	return m
}

// status adds a message that a user would not see.
func (d *connection) status(t *task, key, typ string) *msg.Message {
	return record.Hide(d.add(t, msg.Status, key), typ)
}
