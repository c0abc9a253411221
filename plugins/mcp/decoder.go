// Package mcp decodes the Model Context Protocol, by which an agent calls the tools of a server:
// JSON-RPC as lines of a program's standard streams, as earshot wrap records them, or as exchanges over
// HTTP, as a tap does: a request, and the response as a body or as a stream of events.
//
// Facts of the format that are easy to get wrong:
//
//   - Ids of requests count from 0 in each direction of each connection.
//   - isError in a result is a failure of the tool, error one of the protocol.
//   - structuredContent repeats the texts of content.
//   - A cancelled call may still be answered, and usually is not.
//   - The agent's id of a call is only in _meta, and few clients send one.
//   - Since 2026-07-28 there is no initialize: each request names the client. A result of the type
//     input_required ends nothing: the client sends the call again, with a new id.
package mcp

import (
	"bytes"
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
		Name: "mcp", Version: "1.0.0", Revision: 2, LocalIDs: true,
		Summary:    "Model Context Protocol between an agent and a server of tools.",
		Transports: []frame.Kind{frame.Line, frame.Text, frame.Request, frame.Body, frame.Event},
	}
}

// New returns a decoder for one connection. There are no options.
func (factory) New(s decoder.Stream) (decoder.Decoder, error) {
	return &connection{session: sessionOf(strings.ToValidUTF8(s.Origin, "\uFFFD"))}, conversation.NoOptions("mcp", s.Options)
}

// sessionOf is the name of a connection: that of its recording, or the address of the server.
func sessionOf(origin string) string {
	if name, ok := strings.CutSuffix(origin[strings.LastIndexAny(origin, `/\`)+1:], ".jsonl"); ok && name != "" {
		name, _, _ = strings.Cut(name, ".") // a recording may have several files
		return name
	}
	if origin == "" {
		return "unknown"
	}
	return origin
}

const stateVersion = 1

// connection decodes the messages of one connection, or of one exchange over HTTP.
type connection struct {
	doc     jsonv.Doc
	session string
	state

	m   jsonrpc.Message
	at  conversation.Time
	out *decoder.Output
}

// state is the decoder's state; its JSON is the snapshot.
type state struct {
	Server   string                    `json:",omitempty"`
	Client   string                    `json:",omitempty"`
	Requests jsonrpc.Requests          `json:",omitempty"`
	Calls    conversation.Calls[*call] `json:",omitzero"`
}

// call is a tools/call.
type call struct {
	conversation.Call
	Token     string           `json:",omitempty"` // of its progress
	Same      string           `json:",omitempty"` // hash of name and arguments
	Run       conversation.Run `json:",omitzero"`
	Waiting   bool             `json:",omitempty"` // for input of the client
	Cancelled bool             `json:",omitempty"`
}

var (
	_ decoder.Decoder     = (*connection)(nil)
	_ decoder.Snapshotter = (*connection)(nil)
)

// Snapshot implements decoder.Snapshotter.
func (d *connection) Snapshot() ([]byte, error) { return snapshot.Of(stateVersion, &d.state) }

// Restore implements decoder.Snapshotter.
func (d *connection) Restore(b []byte) error { return snapshot.Restore(stateVersion, b, &d.state) }

// Flush implements decoder.Decoder. It adds no message: messages are whole.
func (d *connection) Flush(*decoder.Output) error { return nil }

// Decode decodes one message, or a list of them.
func (d *connection) Decode(f *frame.Frame, out *decoder.Output) error {
	if f.Kind == frame.Close || f.Kind == frame.Request && len(bytes.TrimSpace(f.Data)) == 0 { // a GET
		return nil
	}
	root, ok := conversation.Parse(&d.doc, f.Data, out)
	if !ok {
		return nil
	}
	before := len(out.Messages)
	d.out = out
	switch {
	case root.Is(jsonv.Object):
		d.record(f, root)
	case root.Is(jsonv.Array) && root.Len() > 0:
		for v := range root.Elems() {
			d.record(f, v)
		}
	default:
		out.Problem(msg.ReasonWrongType, "expected an object, got "+root.Kind().String())
		return nil
	}
	unread.Keep(&d.doc, out, before, func(m *msg.Message) { m.Session = d.session })
	return nil
}

// record decodes one message.
func (d *connection) record(f *frame.Frame, root jsonv.Value) {
	d.m = jsonrpc.Of(root)
	if d.at = d.m.At; d.m.From == jsonrpc.Unknown {
		switch {
		case f.FromClient || f.Kind == frame.Request:
			d.m.From = jsonrpc.Client
		case f.Kind == frame.Body || f.Kind == frame.Event:
			d.m.From = jsonrpc.Server
		}
	}
	d.message(root)
}

// add adds a message of the connection.
func (d *connection) add(kind msg.Kind, key string) *msg.Message {
	m := d.out.Add()
	m.Kind, m.Key, m.Session, m.Complete = kind, key, d.session, msg.Complete
	m.Agent = msg.Agent{Name: d.Server, Kind: msg.KindAgent}
	d.at.Set(m)
	return m
}

// of adds a message of a call, which is a run.
func (d *connection) of(c *call, kind msg.Kind, key string) *msg.Message {
	m := d.add(kind, key)
	c.Run.Mark(m)
	m.Tool.CallID, m.Tool.Name, m.Tool.Server = c.ID, c.Name, d.Server
	return m
}

// status adds a message that a user would not see, of a call if there is one.
func (d *connection) status(c *call, key, typ string) *msg.Message {
	m := d.add(msg.Status, key)
	if c != nil {
		c.Run.Mark(m)
		m.Tool.CallID, m.Tool.Name = c.ID, c.Name
	}
	m.Hidden = true
	m.SetAttr("type", typ)
	return m
}
