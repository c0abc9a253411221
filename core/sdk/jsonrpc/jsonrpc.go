// Package jsonrpc reads messages of JSON-RPC connections, of one direction or of both, as they were
// sent or as a recorder wrapped them: {t, dir: in | out, frame}, where dir is that of the client. earshot
// wrap writes that, and so do recorders of ACP clients.
//
// Ids of requests count from 0 or 1 in each direction of each connection. A response has the id alone, so
// that without the direction both requests of an id may be the ones that it answers.
package jsonrpc

import (
	"slices"

	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// Sender is who sent a message.
type Sender uint8

// The senders.
const (
	Unknown Sender = iota
	Client
	Server // an MCP server, or an ACP agent
)

// Message is a message.
type Message struct {
	jsonv.Value // {method, params}, with an id if it is a request; {id, result} or {id, error}
	From        Sender
	At          conversation.Time // of the recorder
	Lost        string            // bytes that the recorder dropped before its end
}

// Of returns the message of a record. Value is no object where it was none.
func Of(root jsonv.Value) Message {
	dir := root.Get("dir")
	if !dir.Exists() {
		return Message{Value: root}
	}
	m := Message{Value: root.Get("frame"), At: conversation.TimeOf(root.Get("t")), Lost: root.Get("lost").Digits()}
	switch {
	case dir.Equal("out"):
		m.From = Client
	case dir.Equal("in"):
		m.From = Server
	}
	return m
}

// ID returns the id of a request or of a response, for Requests; "" of a notification.
func (m Message) ID() string { return ident.Bounded(string(m.Get("id").Peek())) }

// Request is a request that has no response.
type Request struct {
	ID      string
	From    Sender
	Method  string
	Session string `json:",omitempty"`
	Run     string `json:",omitempty"`
	Call    string `json:",omitempty"`
	Note    string `json:",omitempty"`
}

// maxRequests is the number of requests that a table keeps.
const maxRequests = 256

// Requests are the requests without a response, the oldest first.
type Requests []Request

// Add adds a request. Beyond the limit the oldest is forgotten.
func (r *Requests) Add(q Request) {
	if len(*r) >= maxRequests {
		*r = slices.Delete(*r, 0, 1)
	}
	*r = append(*r, q)
}

// Take removes the request that a message answers. Without directions it is the newest of that
// id that fits.
func (r *Requests) Take(m Message, fits func(Request) bool) (q Request, ok bool) {
	id := m.ID()
	for i, q := range slices.Backward(*r) {
		if q.ID == id && (m.From == Unknown || q.From != m.From) && fits(q) {
			*r = slices.Delete(*r, i, i+1)
			return q, true
		}
	}
	return Request{}, false
}

// Open reports whether a request of that method has no response, in the session.
func (r Requests) Open(session string, methods ...string) bool {
	return slices.ContainsFunc(r, func(q Request) bool { return q.Session == session && slices.Contains(methods, q.Method) })
}
