package tap

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/earshot-dev/earshot/core/internal/source/recordtest"
)

// echoSocket answers every message with it twice.
func echoSocket(t *testing.T, mode websocket.CompressionMode) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{
			CompressionMode: mode, CompressionThreshold: 1, Subprotocols: []string{"chat"}, InsecureSkipVerify: true,
		})
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(-1)
		for {
			kind, data, err := c.Read(r.Context())
			if err != nil {
				return
			}
			if err := c.Write(r.Context(), kind, append(data, data...)); err != nil {
				return
			}
		}
	}
}

func TestWebSocket(t *testing.T) {
	for name, mode := range map[string]websocket.CompressionMode{
		"plain": websocket.CompressionDisabled, "takeover": websocket.CompressionContextTakeover, "no takeover": websocket.CompressionNoContextTakeover,
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, echoSocket(t, mode))
			ctx := f.deadline()
			c, res, err := websocket.Dial(ctx, f.url+"/ws?session_id=s1", &websocket.DialOptions{
				CompressionMode: mode, CompressionThreshold: 1, Subprotocols: []string{"chat"}, HTTPHeader: http.Header{"Traceparent": {"00-a-b-01"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.CloseNow()
			c.SetReadLimit(-1)
			if deflate := strings.Contains(res.Header.Get("Sec-Websocket-Extensions"), "permessage-deflate"); deflate != (mode != websocket.CompressionDisabled) {
				t.Errorf("extensions %q", res.Header.Get("Sec-Websocket-Extensions"))
			}
			if c.Subprotocol() != "chat" {
				t.Errorf("subprotocol %q", c.Subprotocol())
			}
			want := ""
			for i := range 20 {
				kind, text := websocket.MessageText, fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, strings.Repeat("again and again ", i*i*20))
				if i%5 == 4 {
					kind = websocket.MessageBinary
				}
				if err := c.Write(ctx, kind, []byte(text)); err != nil {
					t.Fatal(err)
				}
				_, got, err := c.Read(ctx)
				if err != nil || string(got) != text+text {
					t.Fatalf("message %d: %d bytes, %v", i, len(got), err)
				}
				name := map[websocket.MessageType]string{websocket.MessageText: "text", websocket.MessageBinary: "binary"}[kind]
				want += name + "< " + text + "\n" + name + " " + text + text + "\n"
			}
			if err := c.Close(websocket.StatusNormalClosure, "done"); err != nil {
				t.Error(err)
			}
			s := f.closed(1)[0]
			recordtest.Equal(t, "frames", show(s.Frames), want+"close \n")
			recordtest.Equal(t, "origin", s.ID.Origin, f.upstream.URL+"/ws?session_id=s1")
			if len(s.Gaps) != 0 || !strings.Contains(string(s.State), "00-a-b-01") || !strings.Contains(string(s.State), `"status":101`) {
				t.Errorf("gaps %+v, state %s", s.Gaps, s.State)
			}
		})
	}
}

// switching answers an upgrade with the head, and then passes the connection to the
// test.
func switching(head string, then func(net.Conn, *bufio.Reader)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, head)
		if then != nil {
			then(c, rw.Reader)
		}
	}
}

const upgrade = "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

const switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"

// Upgrades that are none end as they would without the tap, or with an error, and
// the tap serves the next request.
func TestInvalidUpgrade(t *testing.T) {
	for name, c := range map[string]struct {
		request, answer, want string
	}{
		"refused":        {upgrade, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", "403 Forbidden"},
		"not upgraded":   {upgrade, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", "200 OK"},
		"other protocol": {upgrade, strings.Replace(switched, "websocket", "other", 1) + "\r\n", "502 Bad Gateway"},
		"none":           {upgrade, "HTTP/1.1 101 Switching Protocols\r\n\r\n", "502 Bad Gateway"},
		"not asked for":  {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", switched + "\r\n", "502 Bad Gateway"},
		"bad name":       {strings.Replace(upgrade, "Upgrade: websocket", "Upgrade: \x7f", 1), switched + "\r\n", "400 Bad Request"},
		"no answer":      {upgrade, "", "502 Bad Gateway"},
		"rubbish":        {upgrade, "\x16\x03\x01\x02\x00\r\n\r\n", "502 Bad Gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, switching(c.answer, nil))
			conn := dial(t, strings.TrimPrefix(f.url, "http://"))
			_, _ = io.WriteString(conn, c.request)
			got, err := answer(conn, "GET")
			if err != nil || !strings.HasPrefix(got, c.want) {
				t.Errorf("%v %s", err, got)
			}
			_ = conn.Close()
			f.stop()
			if s := f.rec.Streams(); len(s) != 0 {
				t.Errorf("recorded: %+v", s)
			}
		})
	}
}

// Bytes that are no WebSocket pass all the same; the copy is a hole.
func TestBrokenWebSocketPasses(t *testing.T) {
	f := start(t, switching(switched+"\r\n", func(c net.Conn, br *bufio.Reader) {
		_, _ = io.WriteString(c, "\x81\x02ok\xf5\x7frubbish")
		_, _ = io.Copy(c, br)
	}))
	conn := dial(t, strings.TrimPrefix(f.url, "http://"))
	_, _ = io.WriteString(conn, upgrade)
	if _, err := http.ReadResponse(conn.br, nil); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 13)
	if _, err := io.ReadFull(conn.br, buf); err != nil || string(buf) != "\x81\x02ok\xf5\x7frubbish" {
		t.Fatalf("%q %v", buf, err)
	}
	_, _ = io.WriteString(conn, "\x82\x03abc and more")
	if err := conn.Conn.(*net.TCPConn).CloseWrite(); err != nil { // half closed
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(conn.br); err != nil || string(rest) != "\x82\x03abc and more" {
		t.Errorf("%q %v", rest, err)
	}
	s := f.closed(1)[0]
	if got := show(s.Frames); !strings.Contains(got, "text ok\n") || !strings.Contains(got, "binary< abc\n") || strings.Contains(got, "close") {
		t.Errorf("frames: %s", got)
	}
	if s.Missing() == 0 || s.Gaps[0].Reason != "protocol_error" {
		t.Errorf("gaps: %+v", s.Gaps)
	}
}

// An extension that is not known, and another protocol, pass unrecorded.
func TestOtherProtocolsPass(t *testing.T) {
	for name, head := range map[string]string{
		"unknown extension": switched + "Sec-WebSocket-Extensions: x-odd\r\n\r\n",
		"other protocol":    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, switching(head, func(c net.Conn, br *bufio.Reader) { _, _ = io.Copy(c, br) }))
			conn := dial(t, strings.TrimPrefix(f.url, "http://"))
			_, _ = io.WriteString(conn, upgrade)
			if _, err := http.ReadResponse(conn.br, nil); err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(conn, "hello")
			buf := make([]byte, 5)
			if _, err := io.ReadFull(conn.br, buf); err != nil || string(buf) != "hello" {
				t.Fatalf("%q %v", buf, err)
			}
			_ = conn.Close()
			f.stop()
			if s := f.rec.Streams(); len(s) != 0 {
				t.Errorf("recorded: %+v", s)
			}
		})
	}
}

// An open WebSocket ends with the tap.
func TestStopEndsWebSockets(t *testing.T) {
	f := start(t, echoSocket(t, websocket.CompressionDisabled))
	ctx := f.deadline()
	c, _, err := websocket.Dial(ctx, f.url+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if err := c.Write(ctx, websocket.MessageText, []byte("x")); err != nil {
		t.Fatal(err)
	}
	f.rec.Wait(ctx, func(s []recordtest.Stream) bool { return len(s) == 1 && len(s[0].Frames) == 2 })
	f.stop()
	if _, _, err := c.Read(context.Background()); err == nil {
		_, _, err = c.Read(context.Background())
		if err == nil {
			t.Error("the connection is open")
		}
	}
	if s := f.closed(1)[0]; len(s.Frames) != 2 {
		t.Errorf("%s", show(s.Frames))
	}
}
