// Package jsonrpc reads messages of JSON-RPC connections, of one direction or of both, as they were
// sent or as a recorder wrapped them: {t, dir: in | out, frame}, where dir is that of the client. earshot
// wrap writes that, and so do recorders of ACP clients, of which some write the frame as a string, or name
// the members ts and direction.
//
// Ids of requests count from 0 or 1 in each direction of each connection. A response has the id alone, so
// that without the direction both requests of an id may be the ones that it answers.
package jsonrpc

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
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
	Beside      string            // the dir of a record that is neither in nor out: stderr, an error of the client
}

// Of returns the message of a record in a frame. Value is no object where it was none. A record without
// a direction has that of its frame.
func Of(f *frame.Frame, root jsonv.Value) Message {
	dir := root.First("dir", "direction")
	if !dir.Is(jsonv.String) {
		m := Message{Value: root}
		switch {
		case f.FromClient || f.Kind == frame.Request:
			m.From = Client
		case f.Kind == frame.Body || f.Kind == frame.Event:
			m.From = Server
		}
		return m
	}
	m := Message{Value: root.First("frame", "json", "message"), At: conversation.TimeOf(root.First("t", "ts", "timestamp")), Lost: root.Get("lost").Digits()}
	switch {
	case dir.In("out", "outgoing", "send", "sent", "client_to_agent", "client_to_server"):
		m.From = Client
	case dir.In("in", "incoming", "recv", "received", "agent_to_client", "server_to_client"):
		m.From = Server
	default:
		m.Beside = ident.Of(dir)
	}
	return m
}

// Note returns the key and the type of a record that is no message: a text, or one of the recorder. The same record
// is the same note at its time only.
func (m Message) Note(at conversation.Time) (key, typ string, ok bool) {
	if m.Beside == "" && !m.Is(jsonv.String) {
		return "", "", false
	}
	return "beside:" + msg.HashKey(m.Beside, string(m.Peek()), strconv.FormatInt(at.Nanos, 10)), cmp.Or(m.Beside, "text"), true
}

// Text parses a message that is a string, into a document of its own.
func (m *Message) Text(doc *jsonv.Doc) (ok bool) {
	b := m.Chars()
	if m.Beside != "" || len(b) == 0 || b[0] != '{' || doc.Parse(b) != nil {
		return false
	}
	m.MarkRead()
	m.Value = doc.Root()
	return true
}

// ID returns the id of a request or of a response, for Requests; "" of a notification.
func (m Message) ID() string { return ident.Bounded(string(m.Get("id").Peek())) }

// Failed makes a message that of an error, {code, message, data}, and reports whether there is one.
func Failed(m *msg.Message, fault jsonv.Value) bool {
	if !fault.Exists() {
		return false
	}
	m.IsError, m.Content, m.Tool.ErrorType = true, fault.Get("message").Text(), fault.Get("code").Digits()
	m.SetAttr("data", conversation.ShortJSON(fault.Get("data")))
	return true
}

// Request is a request that has no response.
type Request struct {
	ID      string
	From    Sender
	Method  string
	Session string `json:",omitempty"`
	Run     string `json:",omitempty"`
	Call    string `json:",omitempty"`
	Dir     string `json:",omitempty"` // in which a session works
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
