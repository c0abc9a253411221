package tap

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/earshot-dev/earshot/core/frame/eventstream"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/recordtest"
)

// events is a handler that sends the events as they come.
func events(in <-chan string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case e, ok := <-in:
				if !ok {
					return
				}
				_, _ = io.WriteString(w, e)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
}

// The client receives every event before the server sends the next one, and the recording
// has the request, the events and the end.
func TestEventsAreFlushedAndRecorded(t *testing.T) {
	in := make(chan string)
	f := start(t, events(in))
	r := f.request("POST", "/v1/run%2Fx?api_key=hush&agent_id=a1", strings.NewReader(`{"prompt":"hello"}`))
	r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	r.Header.Set("X-Claude-Code-Session-Id", "harbour")
	r.Header.Set("Session_id", "harbour")
	r.Header.Set("Authorization", "Bearer hush")
	r.Header.Set("X-Api-Key", "hush")
	res, err := f.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	buf := make([]byte, 100)
	for i := range 5 {
		e := fmt.Sprintf("event: tick\nid: %d\ndata: {\"n\":%d}\n\n", i, i)
		in <- e
		if _, err := io.ReadFull(res.Body, buf[:len(e)]); err != nil || string(buf[:len(e)]) != e {
			t.Fatalf("event %d: %q %v", i, buf[:len(e)], err)
		}
	}
	if f.tap.Idle() {
		t.Error("idle while a response is open")
	}
	close(in)
	if n, err := res.Body.Read(buf); n != 0 || err != io.EOF {
		t.Fatalf("end: %d %v", n, err)
	}
	s := f.closed(1)[0]
	recordtest.Equal(t, "frames", show(s.Frames), "request< POST /v1/run%2Fx #{\"session_id\":\"harbour\",\"x-claude-code-session-id\":\"harbour\"} {\"prompt\":\"hello\"}\n"+
		"event tick #0 {\"n\":0}\nevent tick #1 {\"n\":1}\nevent tick #2 {\"n\":2}\nevent tick #3 {\"n\":3}\nevent tick #4 {\"n\":4}\nclose \n")
	recordtest.Equal(t, "origin", s.ID.Origin, f.upstream.URL+"/v1/run%2Fx?agent_id=a1")
	if s.Format != "fmt" || len(s.Gaps) != 0 {
		t.Errorf("format %q, gaps %+v", s.Format, s.Gaps)
	}
	var facts source.ResponseInfo
	if err := json.Unmarshal(s.State, &facts); err != nil {
		t.Fatal(err)
	}
	tm := facts.Timing
	if facts.Traceparent != "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" || facts.Status != 200 || facts.Method != "POST" || tm == nil {
		t.Fatalf("facts: %s", s.State)
	}
	if tm.Events != 5 || tm.Chunks != 5 || tm.FirstByte <= 0 || tm.FirstEvent < tm.FirstChunk || tm.Total < tm.FirstEvent || tm.LongestStall <= 0 || tm.Buffered {
		t.Errorf("timing: %+v", tm)
	}
	for i := 1; i < len(s.Frames); i++ {
		if s.Frames[i].At < s.Frames[i-1].At || s.Frames[i].At > time.Now().UnixNano() {
			t.Errorf("frame %d at %d after %d", i, s.Frames[i].At, s.Frames[i-1].At)
		}
	}
	f.stop()
	if !f.tap.Idle() {
		t.Error("not idle at the end")
	}
}

func TestShapes(t *testing.T) {
	for name, c := range map[string]struct {
		contentType, body, want string
	}{
		"json":          {"application/json; charset=utf-8", `{"a":1}`, "body {\"a\":1}\nclose \n"},
		"problem":       {"application/problem+json", `{"e":1}`, "body {\"e\":1}\nclose \n"},
		"ndjson":        {"application/x-ndjson", "{\"a\":1}\n\n{\"a\":2}", "line {\"a\":1}\nline {\"a\":2}\nclose \n"},
		"bad parameter": {"Application/JSON; charset", `[]`, "body []\nclose \n"},
		"binary": {
			"application/vnd.amazon.eventstream",
			string(eventstream.Append(eventstream.Append(nil, []byte(`{"n":1}`), ":event-type", "metadata"), []byte("2"))),
			"event metadata {\"n\":1}\nevent 2\nclose \n",
		},
		"no blank line": {"text/event-stream", "data: 1\n\ndata: 2", "event 1\nevent 2\nclose \n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", c.contentType)
				_, _ = io.WriteString(w, c.body)
			}))
			if _, got := f.do(f.request("GET", "/x", nil)); got != c.body {
				t.Errorf("body %q", got)
			}
			recordtest.Equal(t, "frames", show(f.closed(1)[0].Frames), c.want)
		})
	}
}

// A response that no decoder reads passes and leaves no recording.
func TestNotRecorded(t *testing.T) {
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/none":
		case "/204":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNoContent)
		case "/json":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{}")
		default:
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<p>")
		}
	}))
	for _, r := range []*http.Request{
		f.request("GET", "/html", nil), f.request("GET", "/none", nil), f.request("GET", "/204", nil), f.request("HEAD", "/json", nil),
		f.request("POST", "/html", strings.NewReader("x")),
	} {
		f.do(r)
	}
	f.stop()
	if s := f.rec.Streams(); len(s) != 0 {
		t.Errorf("recorded: %+v", s)
	}
	if c := f.tap.Counts(); c.Requests != 5 || c.Lost != 0 {
		t.Errorf("counts: %+v", c)
	}
}

// The request is recorded also when the answer is an error that no decoder reads.
func TestFailedRequestIsRecorded(t *testing.T) {
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		http.Error(w, "Internal Server Error", http.StatusInternalServerError)
	}))
	f.do(f.request("GET", "/page", nil))
	if _, got := f.do(f.request("POST", "/runs", strings.NewReader(`{"prompt":"x"}`))); got != "Internal Server Error\n" {
		t.Errorf("body %q", got)
	}
	s := f.closed(1)
	recordtest.Equal(t, "frames", show(s[0].Frames), "request< POST /runs {\"prompt\":\"x\"}\n")
	facts, ok := source.ParseResponseInfo(s[0].State)
	if !ok || facts.Status != 500 || facts.Failure != "500" || facts.Timing.FirstByte <= 0 {
		t.Errorf("facts %s", s[0].State)
	}
	f.stop()
	if n := len(f.rec.Streams()); n != 1 || f.tap.memory.free.Load() != f.tap.MaxMemory {
		t.Errorf("%d streams, %d bytes are held", n, f.tap.MaxMemory-f.tap.memory.free.Load())
	}
}

func TestRoutes(t *testing.T) {
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Want"))
		_, _ = io.WriteString(w, "data: 1\n\n")
	}), func(s *Settings) {
		s.Format = "unused"
		s.Routes = []Route{
			{Path: "/v1/messages", ContentType: "text/event-stream", Format: "stream"},
			{Path: "/v1/*", Format: "api"},
			{Host: "Agent.Example", Format: "host"},
			{Path: "/raw/**", ContentType: "text/plain", Format: "raw"},
		}
	})
	for i, c := range []struct{ path, host, contentType, want string }{
		{"/v1/messages", "", "text/event-stream", "stream"},
		{"/v1/messages", "", "application/json", "api"},
		{"/v1/a/b", "", "application/json", ""},
		{"/other", "", "application/json", ""},
		{"/other", "agent.example:80", "application/json", "host"},
		{"/raw/a/b", "", "text/plain; charset=utf-8", "raw"},
		{"/raw/a/b", "", "application/json", ""},
		{"/v1/x", "", "text/plain", ""},
	} {
		r := f.request("GET", c.path, nil)
		r.Header.Set("Want", c.contentType)
		if c.host != "" {
			r.Host = c.host
		}
		before := len(f.rec.Streams())
		f.do(r)
		if c.want == "" {
			continue // held against the number of streams in the end
		}
		s := f.closed(before + 1)
		if got := s[before].Format; got != c.want {
			t.Errorf("%d: format %q, want %q", i, got, c.want)
		}
	}
	f.stop()
	if n := len(f.rec.Streams()); n != 4 {
		t.Errorf("%d streams", n)
	}
}

func compressors() map[string]func(io.Writer) io.WriteCloser {
	return map[string]func(io.Writer) io.WriteCloser{
		"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
		"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
		"zstd": func(w io.Writer) io.WriteCloser {
			z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
			if err != nil {
				panic(err)
			}
			return z
		},
	}
}

// Encoded streams pass untouched, event by event, and are decoded for the copy as
// they come.
func TestEncodedStreams(t *testing.T) {
	for encoding, compress := range compressors() {
		t.Run(encoding, func(t *testing.T) {
			next := make(chan struct{})
			var sent bytes.Buffer
			f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.Header().Set("Content-Encoding", encoding)
				z := compress(io.MultiWriter(&sent, w))
				for i := range 3 {
					fmt.Fprintf(z, "data: {\"n\":%d}\n\n", i)
					if err := z.(interface{ Flush() error }).Flush(); err != nil {
						t.Error(err)
					}
					_ = http.NewResponseController(w).Flush()
					<-next
				}
				_ = z.Close()
			}))
			res, err := f.client.Do(f.request("GET", "/x", nil))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			var got []byte
			for i := range 3 {
				buf := make([]byte, 4096)
				n, err := res.Body.Read(buf)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, buf[:n]...)
				want := i + 1
				if _, ok := f.rec.Wait(f.deadline(), func(s []recordtest.Stream) bool { return len(s) == 1 && len(s[0].Frames) >= want }); !ok {
					t.Fatalf("event %d was not decoded when it was flushed", i)
				}
				next <- struct{}{}
			}
			rest, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, rest...); !bytes.Equal(got, sent.Bytes()) || res.Header.Get("Content-Encoding") != encoding {
				t.Error("the encoded bytes were changed")
			}
			s := f.closed(1)[0]
			recordtest.Equal(t, "frames", show(s.Frames), "event {\"n\":0}\nevent {\"n\":1}\nevent {\"n\":2}\nclose \n")
			if len(s.Gaps) != 0 {
				t.Errorf("gaps: %+v", s.Gaps)
			}
		})
	}
}

func TestBadEncodings(t *testing.T) {
	var whole bytes.Buffer
	z := gzip.NewWriter(&whole)
	_, _ = z.Write([]byte("data: 1\n\ndata: 2\n\n"))
	_ = z.Close()
	for name, c := range map[string]struct {
		encoding, body, want string
		missing              bool
	}{
		"unknown":   {"dcz", "data: 1\n\n", "", true},
		"not gzip":  {"gzip", "data: 1\n\n", "", true},
		"truncated": {"gzip", whole.String()[:whole.Len()-9], "event 1\nevent 2\n", false},
		"listed":    {"gzip, identity", whole.String(), "event 1\nevent 2\nclose \n", false},
		"identity":  {"identity", "data: 1\n\n", "event 1\nclose \n", false},
		"too many":  {"gzip,gzip,gzip,gzip", whole.String(), "", true},
		"empty":     {"gzip", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.Header().Set("Content-Encoding", c.encoding)
				_, _ = io.WriteString(w, c.body)
			}))
			if _, got := f.do(f.request("GET", "/x", nil)); got != c.body {
				t.Errorf("body %q", got)
			}
			f.stop()
			var s recordtest.Stream
			if all := f.rec.Streams(); len(all) > 0 {
				s = all[0]
			}
			recordtest.Equal(t, "frames", show(s.Frames), c.want)
			if (s.Missing() > 0) != c.missing {
				t.Errorf("gaps: %+v", s.Gaps)
			}
		})
	}
}

func TestEncodedRequest(t *testing.T) {
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"got":%d}`, len(b))
	}))
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(`{"prompt":"hi"}`))
	_ = z.Close()
	n := b.Len()
	r := f.request("POST", "/x", &b)
	r.Header.Set("Content-Encoding", "gzip")
	if _, got := f.do(r); got != fmt.Sprintf(`{"got":%d}`, n) {
		t.Errorf("the request was changed: %s", got)
	}
	recordtest.Equal(t, "frames", show(f.closed(1)[0].Frames), fmt.Sprintf("request< POST /x {\"prompt\":\"hi\"}\nbody {\"got\":%d}\nclose \n", n))
}

// A client that goes away cancels the request at the agent server.
func TestClientAbortReachesTheUpstream(t *testing.T) {
	gone := make(chan struct{})
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\ndata: hal")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	r := f.request("GET", "/x", nil)
	ctx, cancel := context.WithCancel(r.Context())
	res, err := f.client.Do(r.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 18)); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = res.Body.Close()
	select {
	case <-gone:
	case <-f.deadline().Done():
		t.Fatal("the upstream goes on")
	}
	recordtest.Equal(t, "frames", show(f.closed(1)[0].Frames), "event 1\nevent hal !connection_lost\n")
}

// A server that dies in the middle of an event breaks the client's response too,
// and the half event is set aside.
func TestServerDiesMidEvent(t *testing.T) {
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\ndata: {\"ha")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	res, err := f.client.Do(f.request("GET", "/x", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err == nil || string(b) != "data: 1\n\ndata: {\"ha" {
		t.Errorf("%q %v: the client does not see that the response broke", b, err)
	}
	recordtest.Equal(t, "frames", show(f.closed(1)[0].Frames), "event 1\nevent {\"ha !connection_lost\n")
}

func TestUpstreamDown(t *testing.T) {
	f := startAt(t, "http://127.0.0.1:1")
	res, body := f.do(f.request("POST", "/x", strings.NewReader("{}")))
	if res.StatusCode != http.StatusBadGateway || !strings.Contains(body, "earshot") {
		t.Errorf("%d %q", res.StatusCode, body)
	}
	f.stop()
	s := f.closed(1)
	recordtest.Equal(t, "frames", show(s[0].Frames), "request< POST /x {}\n")
	facts, _ := source.ParseResponseInfo(s[0].State)
	if c := f.tap.Counts(); c.Failed != 1 || facts.Failure != source.FailureNone || facts.Status != 502 || !strings.Contains(facts.Reason, "refused") {
		t.Errorf("counts %+v, facts %s", c, s[0].State)
	}
}

func TestSettings(t *testing.T) {
	good := Settings{Env: source.Env{Format: "f"}, Config: Config{Listen: "127.0.0.1:0", Upstream: "http://h"}}
	for want, change := range map[string]func(*Settings){
		"upstream":   func(s *Settings) { s.Upstream = "ftp://h" },
		"query":      func(s *Settings) { s.Upstream = "http://h?x" },
		"listen":     func(s *Settings) { s.Listen = "" },
		"format":     func(s *Settings) { s.Format = "" },
		"not a glob": func(s *Settings) { s.Routes = []Route{{Path: "/[", Format: "f"}} },
		"max_body":   func(s *Settings) { s.MaxBody = -1 },
		"negative":   func(s *Settings) { s.MaxQueue = -1 },
	} {
		s := good
		change(&s)
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	tap, err := New(good)
	if err != nil {
		t.Fatal(err)
	}
	tap.Listen = "127.0.0.1:999999"
	if err := tap.Run(t.Context(), recordtest.New()); err == nil {
		t.Error("an address that cannot be listened on is no error")
	}
}
