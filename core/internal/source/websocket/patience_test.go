package websocket

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/earshot-dev/earshot/core/internal/source/recordtest"
)

// TestPingWaits: a server that does not answer a ping because it is in the midst of a long message, or because the recorder has
// no room and nothing is read, is not gone.
func TestPingWaits(t *testing.T) {
	t.Run("long message", func(t *testing.T) {
		const pieces, piece = 12, 1 << 10
		u := slowly(t, pieces, piece, 50*time.Millisecond)
		rec := recordtest.New()
		run(t, rec, Settings{Config: Config{URL: u}, PingInterval: 60 * time.Millisecond, PingTimeout: 120 * time.Millisecond})
		s := rec.Want(t, "a message", func(s []recordtest.Stream) bool { return len(s) > 0 && len(s[0].Frames) > 0 })
		if f := s[0].Frames[0]; len(f.Data) != pieces*piece || f.Reason != "" {
			t.Errorf("%d bytes, reason %q", len(f.Data), f.Reason)
		}
	})
	t.Run("recorder without room", func(t *testing.T) {
		u := serve(t, func(c *websocket.Conn, _ *http.Request) {
			for range 4 {
				send(c, websocket.MessageText, "m")
			}
			silent(c)
		})
		rec := recordtest.New()
		release := rec.Hold()
		run(t, rec, Settings{Config: Config{URL: u}, PingInterval: 20 * time.Millisecond, PingTimeout: 50 * time.Millisecond})
		time.Sleep(300 * time.Millisecond)
		release()
		s := rec.Want(t, "messages", func(s []recordtest.Stream) bool { return len(s) > 0 && len(s[0].Frames) >= 4 })
		if len(s) != 1 || s[0].Text() != strings.Repeat("text m\n", 4) {
			t.Errorf("%d streams, the first: %s", len(s), s[0].Text())
		}
	})
}

// slowly serves one message in one frame, in pieces, and answers no ping.
func slowly(t *testing.T, pieces, piece int, pause time.Duration) (url string) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				sum := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
				head := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + base64.StdEncoding.EncodeToString(sum[:]) + "\r\n\r\n\x82\x7f"
				_, _ = c.Write(binary.BigEndian.AppendUint64([]byte(head), uint64(pieces*piece)))
				for range pieces {
					time.Sleep(pause)
					if _, err := c.Write(make([]byte, piece)); err != nil {
						return
					}
				}
				_, _ = c.Read(make([]byte, 1<<10))
				time.Sleep(pause)
			}()
		}
	}()
	return "ws://" + l.Addr().String()
}
