package websocket

import (
	"context"
	"net/http"
	"testing"

	"github.com/coder/websocket"

	"github.com/earshot-dev/earshot/core/internal/source/recordtest"
)

// A stream that is resumed is one, over all connections and processes: the client sends
// the position, and the server sends a truncated message again.
func TestResume(t *testing.T) {
	asked := make(chan string, 10)
	read := func(c *websocket.Conn) {
		_, b, _ := c.Read(context.Background())
		asked <- string(b)
	}
	u := serve(t,
		func(c *websocket.Conn, _ *http.Request) {
			read(c)
			send(c, websocket.MessageText, `{"run":"r \"1\"","index":0}`)
			send(c, websocket.MessageText, `{"run":null,"index":7,"nested":{"index":9}}`)
			send(c, websocket.MessageText, `[1]`)
			w, err := c.Writer(context.Background(), websocket.MessageText)
			if err != nil {
				t.Error(err)
				return
			}
			big := make([]byte, 9000) // more than is buffered
			for i := range big {
				big[i] = ' '
			}
			_, _ = w.Write(big)
		},
		func(c *websocket.Conn, _ *http.Request) {
			read(c)
			read(c)
			send(c, websocket.MessageText, `{"index":8}`)
			_ = c.Close(websocket.StatusNormalClosure, "")
		},
		func(c *websocket.Conn, _ *http.Request) {
			read(c)
			read(c)
			silent(c)
		},
	)
	settings := Settings{Config: Config{URL: u, Send: []string{"hello"}, Resume: `{"go":{"on":{{run}}},"after":{{index}}}`}}
	rec := recordtest.New()
	_, stop := run(t, rec, settings)
	want := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if got := <-asked; got != text {
				t.Errorf("asked %q, want %q", got, text)
			}
		}
	}
	want("hello", "hello", `{"go":{"on":"r \"1\""},"after":7}`, "hello", `{"go":{"on":"r \"1\""},"after":8}`)
	stop()
	s := rec.Streams()
	if len(s) != 1 || s[0].Closed {
		t.Fatalf("%d streams, closed %v", len(s), s[0].Closed)
	}
	recordtest.Equal(t, "frames", s[0].Text(), "text {\"run\":\"r \\\"1\\\"\",\"index\":0}\n"+
		"text {\"run\":null,\"index\":7,\"nested\":{\"index\":9}}\ntext [1]\ntext {\"index\":8}\n")
	// Another process.
	run(t, rec, settings)
	want("hello", `{"go":{"on":"r \"1\""},"after":8}`)
	if n := len(rec.Streams()); n != 1 {
		t.Errorf("%d streams", n)
	}
}
