package agno

import (
	"bytes"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// socket decodes a WebSocket message. The server sends the text of SSE events, and
// plain JSON about the connection; the client sends plain JSON.
func (s *stream) socket(f *frame.Frame) {
	body := bytes.TrimLeft(f.Data, " \t\r\n")
	if !isSSE(body) {
		s.read(f.Data, func(root jsonv.Value) {
			if f.FromClient && root.Is(jsonv.Object) {
				s.command(root)
			} else {
				s.document(f, root)
			}
		})
		return
	}
	var data []byte
	for line := range bytes.Lines(body) {
		line = bytes.TrimRight(line, "\r\n")
		rest, ok := bytes.CutPrefix(line, []byte("data:"))
		rest = bytes.TrimPrefix(rest, []byte(" "))
		switch {
		case ok && data == nil:
			data = rest
		case ok:
			data = append(append(data[:len(data):len(data)], '\n'), rest...)
		case len(line) == 0:
			s.socketEvent(data)
			data = nil
		}
	}
	s.socketEvent(data)
}

// isSSE reports whether a text begins with a field of an event stream.
func isSSE(body []byte) bool {
	field, _, ok := bytes.Cut(body[:min(len(body), 8)], []byte(":"))
	if !ok {
		return false
	}
	switch string(field) {
	case "event", "data", "id", "retry", "":
		return true
	}
	return false
}

func (s *stream) socketEvent(data []byte) {
	if data != nil {
		s.read(data, func(root jsonv.Value) { s.document(&frame.Frame{Kind: frame.Event}, root) })
	}
}

// command decodes a message of a WebSocket client:
//
//	{"action":"authenticate","token":"…"}
//	{"action":"start-workflow","workflow_id":"…","message":"…","session_id":"…","user_id":"…"}
//	{"action":"reconnect","run_id":"…","last_event_index":41}
//
// A token is no part of the conversation.
func (s *stream) command(root jsonv.Value) {
	action := ident(root.Get("action"))
	h := pending{
		Kind: pendingControl, Type: action, Session: ident(root.Get("session_id")), Run: ident(root.Get("run_id")),
		User: ident(root.Get("user_id")), Data: number(root.Get("last_event_index")),
	}
	switch action {
	case "":
		s.unknown("", root)
	case "start-workflow", "start-agent", "start-team":
		h.Kind, h.Text = pendingRequest, asText(root.First("message", "input")).String()
		s.addPending(h)
	case "authenticate", "reconnect", "ping", "cancel":
		s.emitControl(h)
	default:
		s.unknown("", root)
	}
}
