// Package acp decodes the Agent Client Protocol, by which an editor or another program runs a coding
// agent: JSON-RPC as lines, of one direction or of both, as they are or as a recorder wrapped them.
//
// Facts of the format that are easy to get wrong:
//
//   - A turn is the request session/prompt until its response. Versions from 2 answer it at once
//     and end the turn by state_update.
//   - Few agents name messages: consecutive chunks of a kind are one message.
//   - tool_call has a title for people and no name of the tool. The adapter of Claude Code sends
//     it twice for one call, the first time without input, and the name in _meta.
//   - An update of a call has the fields that changed; its content replaces the content before.
//   - Content of the type terminal names a terminal. Its output is in the client's answers to
//     terminal/output; the adapters of Claude Code and Codex run it themselves and have it in
//     _meta.terminal_output, a piece in each update.
//   - used of usage_update is how full the context is. The tokens that were spent are usage of the response.
//   - session/load answers with the whole history as updates, which happened before. Gemini CLI
//     sends most of them after its response.
//   - Ids of requests are independent in each direction.
package acp

import (
	"cmp"
	_ "embed"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
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
			Name: "acp", Revision: 6,
			Summary:    "Agent Client Protocol between an editor and a coding agent.",
			Transports: []frame.Kind{frame.Line, frame.Text},
		},
		LeavesOut: leavesOut,
		State:     1,
		Open:      func(r *record.Current, s *state) record.Reader { return &connection{Current: r, state: s} },
	}.Factory()
}

const (
	maxSessions = 32
	maxWaiting  = 64
	maxText     = 1 << 20 // bytes of a message that is not complete, or of a terminal
	maxScreens  = 16      // terminals of a session
)

// connection decodes the messages of one connection.
type connection struct {
	inner jsonv.Doc // of a message that a recorder wrote as a string
	*record.Current
	*state

	s *session // of the current message
	m jsonrpc.Message
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Sessions []*session       `json:",omitempty"` // the last active one at the end
	Requests jsonrpc.Requests `json:",omitempty"`
	Agent    string           `json:",omitempty"` // name of the program
	Release  string           `json:",omitempty"` // version of the program
}

// session is the state of a session.
type session struct {
	ID        string
	Run       conversation.Run          `json:",omitzero"`
	Waiting   []conversation.Run        `json:",omitempty"` // prompts that came before the turn ended
	Turns     int                       `json:",omitempty"` // that began without a prompt
	Prompted  bool                      `json:",omitempty"` // the prompt of the run is known
	Parts     int                       `json:",omitempty"` // of the run
	Responses int                       `json:",omitempty"` // of the run that had their own usage
	Open      conversation.Deltas       `json:",omitzero"`  // the message whose chunks come
	Message   string                    `json:",omitempty"` // its id, if it has one
	Author    string                    `json:",omitempty"` // its run, if it is of a sub-agent
	At        conversation.Time         `json:",omitzero"`  // of its last chunk
	History   bool                      `json:",omitempty"` // it happened before
	Loaded    bool                      `json:",omitempty"` // session/load was answered, and no prompt has come since
	Model     string                    `json:",omitempty"`
	Dir       string                    `json:",omitempty"`
	Calls     conversation.Calls[*call] `json:",omitzero"`
	Screens   []*screen                 `json:",omitempty"` // the last used one at the end
}

// screen is the output of a terminal.
type screen struct{ Terminal, Text string }

// call is a tool call of which the result has not come.
type call struct {
	conversation.Delegation
	Run      string            `json:",omitempty"`
	Title    string            `json:",omitempty"`
	Kind     string            `json:",omitempty"`
	Parent   string            `json:",omitempty"` // the call of the sub-agent that made this one, where it is not known
	Input    string            `json:",omitempty"` // JSON
	Shown    string            `json:",omitempty"` // of the input, for people, where it is not known
	Output   string            `json:",omitempty"`
	Terminal string            `json:",omitempty"` // in which it runs
	Files    []msg.Attachment  `json:",omitempty"` // of the output
	Response string            `json:",omitempty"` // of the tool, as the adapter of Claude Code has it
	At       conversation.Time `json:",omitzero"`
	Denied   bool              `json:",omitempty"`
	Left     bool              `json:",omitempty"` // the turn was cancelled before a person answered whether it may be made
	History  bool              `json:",omitempty"`
}

// Read decodes one message.
func (d *connection) Read() {
	d.m = jsonrpc.Of(d.Frame, d.Root)
	d.At = d.m.At
	d.enter("")
	text := d.m.Text(&d.inner)
	d.message()
	if text {
		d.KeepUnread(&d.inner, d.First())
	}
}

// In returns the session and its run.
func (d *connection) In() (session, run string) {
	return d.s.ID, d.s.Run.ID
}

// Flush emits the messages whose chunks still come.
func (d *connection) Flush() {
	for _, s := range d.Sessions {
		for _, p := range s.Open.Parts {
			if !p.Empty() {
				d.text(d.Out.Add(), s, p, msg.Partial)
			}
		}
	}
}

// enter makes a session that of the current message. A message without one is of the session
// before it, and of the connection before there is one.
func (d *connection) enter(id string) {
	if id == "" {
		if n := len(d.Sessions); n > 0 {
			d.s = d.Sessions[n-1]
			return
		}
		d.s = &session{ID: nameOf(d.Origin)}
		return
	}
	d.s = bounded.Use(&d.Sessions, maxSessions, func(s *session) bool { return s.ID == id }, func() *session { return &session{ID: id} }, nil)
}

// nameOf is the name of a connection: that of its recording.
func nameOf(origin string) string {
	return cmp.Or(ident.OfFile(origin, ".jsonl"), "unknown")
}

// add adds a message of the session.
func (d *connection) add(kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	m.Agent.Name = d.Agent
	if d.s.Run.Active() {
		d.s.Run.Mark(m)
	}
	return m
}

// status adds a message that a user would not see.
func (d *connection) status(key, typ string) *msg.Message {
	return record.Hide(d.add(msg.Status, key), typ)
}
