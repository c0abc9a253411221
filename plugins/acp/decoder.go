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
//   - used of usage_update is how full the context is. The tokens that were spent are usage of the response.
//   - session/load answers with the whole history as updates, which happened before.
//   - Ids of requests are independent in each direction.
package acp

import (
	_ "embed"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonrpc"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/snapshot"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// unread keeps the members that the decoder did not read.
var unread = unknown.NewKeeper(leavesOut)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory { return factory{} }

type factory struct{}

func (factory) Info() decoder.Info {
	return decoder.Info{
		Name: "acp", Version: "1.0.0", Revision: 1,
		Summary:    "Agent Client Protocol between an editor and a coding agent.",
		Transports: []frame.Kind{frame.Line, frame.Text},
	}
}

// New returns a decoder for one connection. There are no options.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	return &connection{origin: strings.ToValidUTF8(s.Origin, "\uFFFD")}, conversation.NoOptions("acp", s.Options)
}

const (
	stateVersion = 1
	maxSessions  = 32
	maxText      = 1 << 20 // bytes of a message that is not complete
)

// connection decodes the messages of one connection.
type connection struct {
	doc    jsonv.Doc
	inner  jsonv.Doc // of a message that a recorder wrote as a string
	origin string
	state

	s    *session // of the current message
	m    jsonrpc.Message
	at   conversation.Time
	out  *decoder.Output
	root jsonv.Value
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
	ID       string
	Run      conversation.Run          `json:",omitzero"`
	Turns    int                       `json:",omitempty"` // that began without a prompt
	Prompted bool                      `json:",omitempty"` // the prompt of the run is known
	Parts    int                       `json:",omitempty"` // of the run
	Open     conversation.Deltas       `json:",omitzero"`  // the message whose chunks come
	Message  string                    `json:",omitempty"` // its id, if it has one
	At       conversation.Time         `json:",omitzero"`  // of its last chunk
	History  bool                      `json:",omitempty"` // it happened before
	Model    string                    `json:",omitempty"`
	Dir      string                    `json:",omitempty"`
	Calls    conversation.Calls[*call] `json:",omitzero"`
}

// call is a tool call of which the result has not come.
type call struct {
	conversation.Call
	Run     string            `json:",omitempty"`
	Title   string            `json:",omitempty"`
	Kind    string            `json:",omitempty"`
	Parent  string            `json:",omitempty"` // the call of the sub-agent that made this one
	Input   string            `json:",omitempty"` // JSON
	Output  string            `json:",omitempty"`
	At      conversation.Time `json:",omitzero"`
	Denied  bool              `json:",omitempty"`
	History bool              `json:",omitempty"`
}

var (
	_ decoder.Decoder     = (*connection)(nil)
	_ decoder.Snapshotter = (*connection)(nil)
)

// Snapshot implements decoder.Snapshotter.
func (d *connection) Snapshot() ([]byte, error) { return snapshot.Of(stateVersion, &d.state) }

// Restore implements decoder.Snapshotter.
func (d *connection) Restore(b []byte) error { return snapshot.Restore(stateVersion, b, &d.state) }

// Decode decodes one message.
func (d *connection) Decode(f *frame.Frame, out *decoder.Output) error {
	if f.Kind == frame.Close {
		return nil
	}
	root, ok := conversation.ParseObject(&d.doc, f.Data, out)
	if !ok {
		return nil
	}
	before := len(out.Messages)
	d.root, d.m, d.out = root, jsonrpc.Of(root), out
	if d.m.From == jsonrpc.Unknown && f.FromClient {
		d.m.From = jsonrpc.Client
	}
	d.at = d.m.At
	d.enter("")
	own := func(m *msg.Message) { m.Session, m.Run = d.s.ID, d.s.Run.ID }
	if d.m.Text(&d.inner) {
		d.message()
		unread.Keep(&d.inner, out, before, own)
	} else {
		d.message()
	}
	unread.Keep(&d.doc, out, before, own)
	return nil
}

// Flush emits the messages whose chunks still come.
func (d *connection) Flush(out *decoder.Output) error {
	for _, s := range d.Sessions {
		for _, p := range s.Open.Parts {
			if !p.Empty() {
				d.text(out.Add(), s, p, msg.Partial)
			}
		}
	}
	return nil
}

// enter makes a session that of the current message. A message without one is of the session
// before it, and of the connection before there is one.
func (d *connection) enter(id string) {
	if id == "" {
		if n := len(d.Sessions); n > 0 {
			d.s = d.Sessions[n-1]
			return
		}
		d.s = &session{ID: nameOf(d.origin)}
		return
	}
	for i, s := range d.Sessions {
		if s.ID == id {
			d.Sessions = append(append(d.Sessions[:i:i], d.Sessions[i+1:]...), s)
			d.s = s
			return
		}
	}
	if len(d.Sessions) >= maxSessions {
		d.Sessions = d.Sessions[1:]
	}
	d.s = &session{ID: id}
	d.Sessions = append(d.Sessions, d.s)
}

// nameOf is the name of a connection: that of its recording.
func nameOf(origin string) string {
	name := strings.TrimSuffix(origin[strings.LastIndexAny(origin, `/\`)+1:], ".jsonl")
	if name == "" {
		return "unknown"
	}
	return name
}

// add adds a message of the session.
func (d *connection) add(kind msg.Kind, key string) *msg.Message {
	m := d.out.Add()
	m.Kind, m.Key, m.Session, m.Complete = kind, key, d.s.ID, msg.Complete
	m.Agent = msg.Agent{Name: d.Agent, Kind: msg.KindAgent}
	d.at.Set(m)
	if d.s.Run.Active() {
		d.s.Run.Mark(m)
	}
	return m
}

// status adds a message that a user would not see.
func (d *connection) status(key, typ string) *msg.Message {
	m := d.add(msg.Status, key)
	m.Hidden = true
	m.SetAttr("type", typ)
	return m
}

// unknown keeps a message that is of no known kind.
func (d *connection) unknown(typ string) {
	m := d.out.Unknown(typ, d.root.Raw())
	m.Session, m.Run, m.Key = d.s.ID, d.s.Run.ID, "unknown:"+msg.HashKey(string(d.root.Peek()))
	d.at.Set(m)
}
