package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/frame/fixture"
	"github.com/earshot-dev/earshot/core/internal/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// file is a recording in memory.
type file struct {
	bytes.Buffer
	closed int
}

func (f *file) Close() error { f.closed++; return nil }

func TestRecorderWritesAFileForEachStream(t *testing.T) {
	var files []*file
	r := NewRecorder(func(n int, origin string) (io.WriteCloser, error) {
		if n != len(files) {
			t.Errorf("file %d, want %d", n, len(files))
		}
		f := &file{}
		fmt.Fprintf(f, "# %s\n", origin)
		files = append(files, f)
		return f, nil
	})
	begin := func(key string) source.Recording {
		s, err := r.Begin(t.Context(), "f", source.ID{Key: key, Origin: "/" + key})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b := begin("a"), begin("")
	_ = begin("") // silent: no file
	record := func(s source.Recording, data string) {
		if err := s.Record(t.Context(), &frame.Frame{Kind: frame.Event, ID: "7", At: 1e9, Data: []byte(data)}); err != nil {
			t.Fatal(err)
		}
	}
	record(a, "1")
	record(b, "x")
	a.Gap("slow", 1, 5)
	if err := a.Mark([]byte("state")); err != nil {
		t.Fatal(err)
	}
	if got := string(begin("a").State()); got != "state" {
		t.Errorf("state %q", got)
	}
	record(begin("a"), "2") // goes on
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.Record(t.Context(), &frame.Frame{}); err == nil {
		t.Error("a frame was recorded after Close")
	}
	record(begin("a"), "3") // another
	if err := r.Close(); err == nil {
		t.Error("Close does not say what went wrong")
	}
	var got []string
	for _, f := range files {
		got = append(got, strings.ReplaceAll(f.String(), `"at":"1970-01-01T00:00:01Z",`, ""))
		if f.closed != 1 {
			t.Errorf("closed %d times", f.closed)
		}
		if _, err := fixture.Read(fixture.Frames, f.Bytes()); err != nil {
			t.Error(err)
		}
	}
	want := []string{
		"# /a\n" + `{"kind":"event","id":"7","data":"1"}` + "\n" + `{"kind":"line","dropped":5,"reason":"slow"}` + "\n" + `{"kind":"event","id":"7","data":"2"}` + "\n",
		"# /\n" + `{"kind":"event","id":"7","data":"x"}` + "\n",
		"# /a\n" + `{"kind":"event","id":"7","data":"3"}` + "\n",
	}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if files, frames, bytes := r.Count(); files != 3 || frames != 5 || bytes != 4 {
		t.Errorf("count %d %d %d", files, frames, bytes)
	}
}

func TestRecorderSaysWhatWentWrong(t *testing.T) {
	full := errors.New("disk full")
	r := NewRecorder(func(int, string) (io.WriteCloser, error) { return nil, full })
	s, err := r.Begin(t.Context(), "f", source.ID{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Record(t.Context(), &frame.Frame{}); !errors.Is(err, full) {
		t.Error(err)
	}
	if err := r.Close(); !errors.Is(err, full) {
		t.Error(err)
	}
}

func reader(t testing.TB, text string) Frames {
	t.Helper()
	r, err := fixture.NewReader(strings.NewReader(text), fixture.Frames)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPlayKeepsThePace(t *testing.T) {
	const text = `{"kind":"event","at":1000000000,"data":"a"}
{"kind":"event","at":3000000000,"data":"b"}
{"kind":"event","data":"c"}
{"kind":"event","at":2000000000,"data":"d"}
{"kind":"event","at":7000000000,"data":"e"}
`
	for speed, want := range map[float64]string{1: "a0s b2s c2s d2s e6s ", 2: "a0s b1s c1s d1s e3s ", 0: "a0s b0s c0s d0s e0s "} {
		synctest.Test(t, func(t *testing.T) {
			began, got := time.Now(), ""
			err := Play(t.Context(), reader(t, text), speed, func(f *frame.Frame) error {
				got += string(f.Data) + time.Since(began).String() + " "
				return nil
			})
			if err != nil || got != want {
				t.Errorf("speed %v: %q, want %q: %v", speed, got, want, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := Play(ctx, reader(t, text), 1, func(*frame.Frame) error { return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func serve(t *testing.T, text string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(&Server{Open: func() (Frames, io.Closer, error) { return reader(t, text), io.NopCloser(nil), nil }})
	t.Cleanup(func() {
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

const events = `{"kind":"request","name":"POST /v1/runs","from_client":true,"data":"{}"}
{"kind":"event","name":"start","id":"1","data":"{\"a\":1}"}
{"kind":"line","dropped":5,"reason":"slow"}
{"kind":"event","id":"2","data":"two\nlines"}
{"kind":"event","name":"end","id":"3","data":"bye"}
{"kind":"close"}
`

func get(t *testing.T, method, url, last string) (int, string, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("prompt"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Last-Event-ID", last)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(b)
}

func TestServer(t *testing.T) {
	const one, two, three = "id: 1\nevent: start\ndata: {\"a\":1}\n\n", "id: 2\ndata: two\ndata: lines\n\n", "id: 3\nevent: end\ndata: bye\n\n"
	for _, c := range []struct {
		name, text, method, last string
		status                   int
		kind, body               string
	}{
		{"events", events, "GET", "", 200, "text/event-stream", one + two + three},
		{"events of a POST", events, "POST", "", 200, "text/event-stream", one + two + three},
		{"resumed", events, "GET", "2", 200, "text/event-stream", three},
		{"resumed after an unknown event", events, "GET", "9", 200, "text/event-stream", one + two + three},
		{"resumed at the end", events, "GET", "3", 204, "", ""},
		{"a document", `{"kind":"body","data":{"runs":[]}}` + "\n", "GET", "", 200, "application/json", `{"runs":[]}`},
		{"lines", `{"kind":"line","data":"1"}` + "\n" + `{"kind":"line","data":"2"}` + "\n", "GET", "", 200, "application/x-ndjson", "1\n2\n"},
		{"damaged", "{", "GET", "", 200, "text/plain; charset=utf-8", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, kind, body := get(t, c.method, serve(t, c.text).URL+"/any/path?x=1", c.last)
			if c.name == "damaged" {
				return // it must not hang or panic
			}
			if status != c.status || kind != c.kind || body != c.body {
				t.Errorf("%d %s %q, want %d %s %q", status, kind, body, c.status, c.kind, c.body)
			}
		})
	}
}

func TestServerOverWebSocket(t *testing.T) {
	text := `{"kind":"text","data":"one"}
{"kind":"text","from_client":true,"data":"subscribe"}
{"kind":"binary","data_base64":"AP8="}
`
	c, resp, err := websocket.Dial(t.Context(), serve(t, text).URL, &websocket.DialOptions{Subprotocols: []string{"agents"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if got := resp.Header.Get("Sec-WebSocket-Protocol"); got != "agents" {
		t.Errorf("subprotocol %q", got)
	}
	var got []string
	for {
		kind, b, err := c.Read(t.Context())
		if websocket.CloseStatus(err) == websocket.StatusNormalClosure {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %q", kind, b))
	}
	if fmt.Sprint(got) != `[MessageText "one" MessageBinary "\x00\xff"]` {
		t.Error(got)
	}
}
