package truth

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/coder/websocket"

	"github.com/earshot-dev/earshot/core/frame"
)

// socket reports whether a stream is the messages of a WebSocket.
func (s *Stream) socket() bool {
	for _, f := range s.Frames {
		if f.Kind != frame.Text && f.Kind != frame.Binary && f.Kind != frame.Close {
			return false
		}
	}
	return true
}

// maxMessage is more than any message of a scenario.
const maxMessage = 1 << 20

// serve answers a connection as it was recorded: each message of the server once all before it are there.
func (s *Stream) serve(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	c.SetReadLimit(maxMessage)
	if s.take(r.Context(), c, false) == nil {
		_ = c.Close(websocket.StatusNormalClosure, "")
	}
}

// dial makes the connection, as its client.
func (s *Stream) dial(ctx context.Context, url string) error {
	c, resp, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return err
	}
	defer c.CloseNow()
	if resp.Body != nil {
		defer resp.Body.Close()
	}
	c.SetReadLimit(maxMessage)
	if err := s.take(ctx, c, true); err != nil {
		return fmt.Errorf("%s: %w", s.Origin, err)
	}
	_, _, err = c.Read(ctx)
	if closed := (websocket.CloseError{}); errors.As(err, &closed) {
		return nil
	}
	return fmt.Errorf("%s: it was not closed: %w", s.Origin, err)
}

// take writes the messages of one end in their order, and reads those of the other.
func (s *Stream) take(ctx context.Context, c *websocket.Conn, client bool) error {
	for _, f := range s.Frames {
		var err error
		switch {
		case f.Kind == frame.Close:
			return nil
		case f.FromClient != client:
			_, _, err = c.Read(ctx)
		case f.Kind == frame.Binary:
			err = c.Write(ctx, websocket.MessageBinary, f.Data)
		default:
			err = c.Write(ctx, websocket.MessageText, f.Data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
