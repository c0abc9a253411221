package websocket

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/internal/source/recordtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve passes each connection to the next script, and all after it to the last one.
func serve(t *testing.T, scripts ...func(*websocket.Conn, *http.Request)) string {
	var mu sync.Mutex
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		script := scripts[min(n, len(scripts))-1]
		mu.Unlock()
		if script == nil {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"v2"}})
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		script(c, r)
	}))
	t.Cleanup(srv.Close)
	return "ws" + strings.TrimPrefix(srv.URL, "http")
}

func run(t *testing.T, rec *recordtest.Recorder, s Settings) (*Client, func()) {
	t.Helper()
	s.Format, s.RetryMin, s.RetryMax = "fmt", time.Millisecond, 20*time.Millisecond
	c, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return c, rec.Run(t, c)
}

func send(c *websocket.Conn, kind websocket.MessageType, text string) {
	_ = c.Write(context.Background(), kind, []byte(text))
}

// silent reads and sends nothing until the client disconnects.
func silent(c *websocket.Conn) {
	for {
		if _, _, err := c.Read(context.Background()); err != nil {
			return
		}
	}
}

func TestMessages(t *testing.T) {
	asked := make(chan string, 10)
	u := serve(t,
		func(c *websocket.Conn, r *http.Request) {
			for range 2 {
				_, b, _ := c.Read(context.Background())
				asked <- string(b)
			}
			asked <- r.Header.Get("Authorization") + " " + c.Subprotocol()
			send(c, websocket.MessageText, `{"n":1}`)
			send(c, websocket.MessageBinary, "\x00\x01")
			send(c, websocket.MessageText, "")
			_ = c.Close(websocket.StatusGoingAway, "restart")
		},
		nil, nil,
		func(c *websocket.Conn, r *http.Request) {
			send(c, websocket.MessageText, `{"n":2}`)
			silent(c)
		},
	)
	rec := recordtest.New()
	c, stop := run(t, rec, Settings{Config: Config{URL: u + "/ws?token=hush", Headers: spec.Headers{"Authorization": spec.NewSecret("Bearer x")}, Subprotocols: []string{"v3", "v2"}, Send: []string{`{"subscribe":"all"}`, "hi"}}})
	s := rec.Want(t, "two connections", func(s []recordtest.Stream) bool { return len(s) == 2 && len(s[1].Frames) == 1 })
	if got := s[0].Text(); got != "text {\"n\":1}\nbinary \x00\x01\ntext \nclose \n" {
		t.Errorf("first: %q", got)
	}
	if got := s[1].Text(); got != "text {\"n\":2}\n" {
		t.Errorf("second: %q", got)
	}
	if !s[0].Closed || s[1].Closed || c.Idle() || s[0].ID.Origin != u+"/ws" || !strings.Contains(string(s[0].State), `"subprotocol":"v2"`) {
		t.Errorf("%+v", s)
	}
	for _, want := range []string{`{"subscribe":"all"}`, "hi", "Bearer x v2"} {
		if got := <-asked; got != want {
			t.Errorf("asked %q, want %q", got, want)
		}
	}
	stop()
	if s := rec.Streams(); !s[1].Closed || !c.Idle() {
		t.Error("not closed at the end")
	}
}

// A message beyond the limit is set aside, and the connection goes on.
func TestMessageBeyondTheLimit(t *testing.T) {
	u := serve(t, func(c *websocket.Conn, r *http.Request) {
		send(c, websocket.MessageText, strings.Repeat("x", 3000))
		send(c, websocket.MessageText, "ok")
		silent(c)
	})
	rec := recordtest.New()
	run(t, rec, Settings{Config: Config{URL: u}, MaxMessage: 1000})
	s := rec.Want(t, "both", func(s []recordtest.Stream) bool { return len(s) == 1 && len(s[0].Frames) == 2 })
	f := s[0].Frames[0]
	if f.Reason != "too_long" || f.Dropped != 2000 || !bytes.Equal(f.Data, bytes.Repeat([]byte("x"), 1000)) || string(s[0].Frames[1].Data) != "ok" {
		t.Errorf("%+v", s[0].Frames)
	}
}

// A server that dies in the middle of a message leaves a frame with the beginning.
func TestServerDiesMidMessage(t *testing.T) {
	u := serve(t, func(c *websocket.Conn, r *http.Request) {
		w, err := c.Writer(context.Background(), websocket.MessageText)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(w, strings.Repeat("{", 9000)) // more than is buffered
		_ = c.CloseNow()
	})
	rec := recordtest.New()
	run(t, rec, Settings{Config: Config{URL: u}})
	s := rec.Want(t, "connection", func(s []recordtest.Stream) bool { return len(s) > 0 && s[0].Closed })
	if len(s[0].Frames) != 1 || s[0].Frames[0].Reason != "connection_lost" {
		t.Errorf("%d frames, %+v", len(s[0].Frames), s[0].Gaps)
	}
}

// The client closes a connection whose server does not answer pings.
func TestHalfOpenPeer(t *testing.T) {
	hold := make(chan struct{})
	u := serve(t, func(c *websocket.Conn, r *http.Request) { <-hold }, // reads nothing, so answers nothing
		func(c *websocket.Conn, r *http.Request) {
			send(c, websocket.MessageText, "back")
			silent(c)
		})
	rec := recordtest.New()
	run(t, rec, Settings{Config: Config{URL: u}, PingInterval: 10 * time.Millisecond, PingTimeout: 200 * time.Millisecond})
	rec.Want(t, "second connection", func(s []recordtest.Stream) bool {
		return len(s) > 1 && len(s[1].Frames)+len(s[len(s)-1].Frames) > 0
	})
	close(hold)
}

// A recorder without room stops the reading from the server, and no memory fills.
func TestBackpressure(t *testing.T) {
	sent := make(chan int, 1)
	u := serve(t, func(c *websocket.Conn, r *http.Request) {
		n, text := 0, bytes.Repeat([]byte("x"), 64<<10)
		for n < 256<<20 {
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			err := c.Write(ctx, websocket.MessageText, text)
			cancel()
			if err != nil {
				break
			}
			n += len(text)
		}
		sent <- n
	}, nil)
	rec := recordtest.New()
	release := rec.Hold()
	run(t, rec, Settings{Config: Config{URL: u}})
	if n := <-sent; n > 64<<20 {
		t.Errorf("%d MiB went somewhere", n>>20)
	}
	release()
}

func TestSettings(t *testing.T) {
	for want, s := range map[string]Settings{
		"url":            {Config: Config{URL: "http://h"}},
		"subprotocol":    {Config: Config{URL: "ws://h", Subprotocols: []string{"a b"}}},
		"limit":          {Config: Config{URL: "ws://h"}, MaxMessage: -1},
		"no {{field}}":   {Config: Config{URL: "ws://h", Resume: `{"action":"reconnect"}`}},
		"names no field": {Config: Config{URL: "ws://h", Resume: `{"run":{{}}}`}},
	} {
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
