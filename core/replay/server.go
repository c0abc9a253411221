package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"github.com/earshot-dev/earshot/core/frame"
)

// Server answers every request with the recording, as the agent's server did: a
// WebSocket handshake with messages, and any other request with an event stream,
// lines of JSON or a document, by the kind of the recording's first frame. Frames of clients
// are left out. With a Last-Event-ID of the recording the response resumes behind that event.
type Server struct {
	// Open opens the recording, at least once for each request; the closer is called
	// when its frames are not needed any more.
	Open  func() (Frames, io.Closer, error)
	Speed float64 // see Play
	// Done, if set, is called at the end of each request.
	Done func(r *http.Request, frames int, err error)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := s.serve(w, r)
	if s.Done != nil {
		s.Done(r, n, err)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) (n int, err error) {
	const most = 64 << 20 // of a prompt
	if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, most)); err != nil {
		http.Error(w, "request body: "+err.Error(), http.StatusBadRequest)
		return 0, err
	}
	after, err := s.find(r.Header.Get("Last-Event-ID"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return 0, err
	}
	in, file, err := s.Open()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return 0, err
	}
	defer file.Close()
	var out answer
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: protocols(r)})
		if err != nil {
			return 0, err
		}
		defer c.CloseNow()
		out = &socket{c: c, ctx: c.CloseRead(r.Context())}
	} else {
		out = &response{w: w, rc: http.NewResponseController(w)}
	}
	i := 0
	err = Play(r.Context(), in, s.Speed, func(f *frame.Frame) error {
		if i++; i <= after || f.FromClient || f.Kind == frame.Request || f.Kind == frame.Close || f.Reason != "" {
			return nil
		}
		n++
		return out.send(f)
	})
	return n, errors.Join(err, out.end(err))
}

// protocols returns the subprotocols that the client offers, to accept any of them.
func protocols(r *http.Request) (out []string) {
	for _, h := range r.Header.Values("Sec-WebSocket-Protocol") {
		for p := range strings.SplitSeq(h, ",") {
			out = append(out, strings.TrimSpace(p))
		}
	}
	return out
}

// find returns the number of frames up to the event of that id; 0 when there is none.
func (s *Server) find(id string) (n int, err error) {
	if id == "" {
		return 0, nil
	}
	in, file, err := s.Open()
	if err != nil {
		return 0, err
	}
	defer file.Close()
	i := 0
	err = Play(context.Background(), in, 0, func(f *frame.Frame) error {
		if i++; f.ID == id {
			n = i
		}
		return nil
	})
	return n, err
}

// answer sends frames to the client.
type answer interface {
	send(*frame.Frame) error
	end(err error) error
}

// response is an answer over HTTP. The kind of its first frame decides the content type.
type response struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	kind frame.Kind
	sent bool
	buf  bytes.Buffer
}

func (a *response) send(f *frame.Frame) error {
	if !a.sent {
		a.sent, a.kind = true, f.Kind
		h := a.w.Header()
		switch f.Kind {
		case frame.Body:
			h.Set("Content-Type", "application/json")
		case frame.Line:
			h.Set("Content-Type", "application/x-ndjson")
		default:
			h.Set("Content-Type", "text/event-stream")
			h.Set("Cache-Control", "no-cache")
		}
	}
	a.buf.Reset()
	switch a.kind {
	case frame.Body:
		a.buf.Write(f.Data)
	case frame.Line:
		a.buf.Write(f.Data)
		a.buf.WriteByte('\n')
	default:
		event(&a.buf, f)
	}
	if _, err := a.w.Write(a.buf.Bytes()); err != nil {
		return err
	}
	return a.rc.Flush()
}

func (a *response) end(err error) error {
	if !a.sent && err == nil {
		a.w.WriteHeader(http.StatusNoContent) // an EventSource does not reconnect after 204
	}
	return nil
}

// event writes a frame as an event of a stream.
func event(b *bytes.Buffer, f *frame.Frame) {
	if f.ID != "" {
		fmt.Fprintf(b, "id: %s\n", f.ID)
	}
	if f.Name != "" {
		fmt.Fprintf(b, "event: %s\n", f.Name)
	}
	for line := range bytes.SplitSeq(f.Data, []byte("\n")) {
		b.WriteString("data: ")
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
}

// socket is an answer over WebSocket.
type socket struct {
	c   *websocket.Conn
	ctx context.Context
}

func (a *socket) send(f *frame.Frame) error {
	t := websocket.MessageText
	if f.Kind == frame.Binary {
		t = websocket.MessageBinary
	}
	return a.c.Write(a.ctx, t, f.Data)
}

func (a *socket) end(err error) error {
	if err != nil {
		return nil // the connection is cut
	}
	return a.c.Close(websocket.StatusNormalClosure, "")
}
