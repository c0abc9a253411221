// Package mcp decodes the Model Context Protocol, by which an agent calls the tools of a server:
// JSON-RPC as lines of a program's standard streams, as earshot wrap records them, or as exchanges over
// HTTP, as a tap does: a request, and the response as a body or as a stream of events.
//
// Facts of the format that are easy to get wrong:
//
//   - Ids of requests count from 0 in each direction of each connection.
//   - isError in a result is a failure of the tool, error one of the protocol.
//   - Over HTTP a server that refuses a request, as one does that has forgotten the session, answers without the id of the
//     request: with null, with "server-error" (the Python SDK up to 1.x) or without any, or with an error of OAuth.
//   - structuredContent repeats the texts of content: as JSON, and a value that is no object as {"result": …}, of which a list has a
//     text for each item.
//   - A cancelled call may still be answered, and usually is not.
//   - A result that is a task ends nothing: the result of the call is that of tasks/result, or, since 2026-07-28, in the
//     task when it is completed.
//   - The agent's id of a call is only in _meta, and few clients send one.
//   - Since 2026-07-28 there is no initialize: each request names the client. A result of the type
//     input_required ends nothing: the client sends the call again, with a new id.
package mcp

import (
	"cmp"
	_ "embed"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
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
			Name: "mcp", Revision: 7, LocalIDs: true,
			Summary:    "Model Context Protocol between an agent and a server of tools.",
			Transports: []frame.Kind{frame.Line, frame.Text, frame.Request, frame.Body, frame.Event},
		},
		LeavesOut: leavesOut,
		State:     1,
		Takes:     func(_ *frame.Frame, root jsonv.Value) bool { return root.Is(jsonv.Array) && root.Len() > 0 },
		Open: func(r *record.Current, s *state) record.Reader {
			r.Origin = sessionOf(r.Origin)
			return &connection{Current: r, state: s}
		},
	}.Factory()
}

// sessionOf is the name of a connection: that of its recording, or the address of the server.
func sessionOf(origin string) string {
	if name, ok := strings.CutSuffix(origin[strings.LastIndexAny(origin, `/\`)+1:], ".jsonl"); ok && name != "" {
		name, _, _ = strings.Cut(name, ".") // a recording may have several files
		return name
	}
	return cmp.Or(origin, "unknown")
}

// connection decodes the messages of one connection, or of one exchange over HTTP.
type connection struct {
	*record.Current
	*state

	m jsonrpc.Message
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
	Task      string           `json:",omitempty"` // that does it
	Run       conversation.Run `json:",omitzero"`
	Waiting   bool             `json:",omitempty"` // for input of the client, with which it is sent again
	Asked     bool             `json:",omitempty"` // its task waits for input of the client
	Cancelled bool             `json:",omitempty"`
}

// Read decodes one message, or a list of them.
func (d *connection) Read() {
	for v := range jsonv.Each(d.Root) {
		d.message(v)
	}
}

// add adds a message of the connection, in the run of a call if there is one.
func (d *connection) add(c *call, kind msg.Kind, key string) *msg.Message {
	m := d.Add(kind, key)
	if m.Agent.Name = d.Server; c != nil {
		c.Run.Mark(m)
	}
	return m
}

// of adds a message of a call, which is a run.
func (d *connection) of(c *call, kind msg.Kind, key string) *msg.Message {
	m := d.add(c, kind, key)
	m.Tool.CallID, m.Tool.Name, m.Tool.Server = c.ID, c.Name, d.Server
	return m
}

// status adds a message that a user would not see, of a call if there is one.
func (d *connection) status(c *call, key, typ string) *msg.Message {
	m := d.add(c, msg.Status, key)
	if c != nil {
		m.Tool.CallID, m.Tool.Name = c.ID, c.Name
	}
	return record.Hide(m, typ)
}
