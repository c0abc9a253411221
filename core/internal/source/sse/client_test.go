package sse

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/recordtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The descriptions of two servers: one takes parameters in a form at a path of its own and
// ends a stream by closing it; the other takes a number in the query or in JSON, and may
// close a stream that goes on.
var (
	inForm = &source.Resume{
		Run: "run_id", Nested: "parent_run_id", Session: "session_id", Number: "event_index", Path: "/runs/{{run}}/resume", Method: "POST",
		Parameters: map[string]string{"last_event_index": "{{number}}", "session_id": "{{session}}"}, In: source.InForm, End: source.EndClose,
	}
	inJSON = &source.Resume{
		Run: "run_id", Nested: "parent_run_id", Number: "seq_id", Path: "/v1/runs/{{run}}/stream", Method: "POST",
		Parameters: map[string]string{"starting_after": "{{number}}"}, In: source.InJSON, End: source.EndEmpty,
	}
)

// server answers each request with the next script, and all after it with the last one.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	scripts []func(w http.ResponseWriter, r *http.Request)
	asked   []string // the requests, as text
	more    chan struct{}
}

func serve(t *testing.T, scripts ...func(w http.ResponseWriter, r *http.Request)) *server {
	s := &server{scripts: scripts, more: make(chan struct{}, 1000)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		line := r.Method + " " + r.RequestURI
		if id := r.Header.Get("Last-Event-ID"); id != "" {
			line += " last=" + id
		}
		if len(b) > 0 {
			line += " " + r.Header.Get("Content-Type") + " " + string(b)
		}
		s.mu.Lock()
		s.asked = append(s.asked, line)
		script := s.scripts[min(len(s.asked), len(s.scripts))-1]
		s.mu.Unlock()
		s.more <- struct{}{}
		script(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.asked, "\n")
}

// sends answers with the text and ends the response; dies breaks it off after the text;
// hangs keeps it open.
func sends(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
	}
}

func dies(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		sends(text)(w, r)
		panic(http.ErrAbortHandler)
	}
}

func hangs(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		sends(text)(w, r)
		<-r.Context().Done()
	}
}

func status(code int, contentType, text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}

// run runs a client until the test, or its stop, ends it.
func run(t *testing.T, rec *recordtest.Recorder, s Settings) (c *Client, stop func()) {
	t.Helper()
	s.Format, s.RetryMin, s.RetryMax = "fmt", time.Millisecond, 20*time.Millisecond
	c, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return c, rec.Run(t, c)
}

func wait(t *testing.T, rec *recordtest.Recorder, what string, wanted func([]recordtest.Stream) bool) []recordtest.Stream {
	t.Helper()
	return withoutLedger(rec.Want(t, what, func(s []recordtest.Stream) bool { return wanted(withoutLedger(s)) }))
}

func idOf(c *Client) source.ID { return source.ID{Key: c.key()} }

// withoutLedger returns the streams without the ledger.
func withoutLedger(all []recordtest.Stream) (out []recordtest.Stream) {
	for _, s := range all {
		if !strings.HasSuffix(s.Key, "-over") {
			out = append(out, s)
		}
	}
	return out
}

func first(n int) func([]recordtest.Stream) bool {
	return func(s []recordtest.Stream) bool { return len(s) > 0 && len(s[0].Frames) >= n }
}

func closed(s []recordtest.Stream) bool { return len(s) > 0 && s[0].Closed }

func TestLastEventID(t *testing.T) {
	srv := serve(t,
		dies("retry: 1\nid: a\ndata: 1\n\ndata: 2\n\nid: b\ndata: half"),
		sends("id: c\ndata: 3\n\n: comment\n\n"),
		status(503, "text/plain", "busy"),
		hangs("data: 4\n\n"),
	)
	rec := recordtest.New()
	c, stop := run(t, rec, Settings{Config: Config{URL: srv.URL + "/events?token=hush&agent_id=7", Resume: LastEventID}})
	s := wait(t, rec, "events", first(4))
	if c.Idle() {
		t.Error("idle while connected")
	}
	recordtest.Equal(t, "frames", s[0].Text(), "event 1\nevent 2\nevent 3\nevent 4\n")
	recordtest.Equal(t, "requests", srv.requests(), strings.ReplaceAll("GET /e\nGET /e last=a\nGET /e last=c\nGET /e last=c", "/e", "/events?token=hush&agent_id=7"))
	recordtest.Equal(t, "origin", s[0].ID.Origin, srv.URL+"/events?agent_id=7")
	stop()
	if s := withoutLedger(rec.Streams()); len(s) != 1 || s[0].Closed || len(s[0].Gaps) != 0 {
		t.Errorf("%+v", s)
	}

	// After a restart the stream continues where it was.
	again := serve(t, hangs("id: d\ndata: 5\n\n"))
	t.Run("restart", func(t *testing.T) {
		rec2 := recordtest.New()
		cl, err := New(Settings{Config: Config{URL: again.URL, Resume: LastEventID}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := rec2.Begin(t.Context(), "fmt", idOf(cl))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Mark([]byte(`{"last_id":"c"}`)); err != nil {
			t.Fatal(err)
		}
		run(t, rec2, Settings{Config: Config{URL: again.URL, Resume: LastEventID}})
		wait(t, rec2, "event", first(1))
		recordtest.Equal(t, "requests", again.requests(), "GET / last=c")
	})
}

// Without resumption each connection is a stream, a broken event is set aside, and
// a server that repeats the same events is requested less often.
func TestWithoutResumption(t *testing.T) {
	srv := serve(t, dies("data: 1\n\ndata: {\"ha"), sends("data: 2\n\ndata: 3"), status(200, "text/html", "<p>"), status(204, "", ""))
	rec := recordtest.New()
	c, _ := run(t, rec, Settings{Config: Config{URL: srv.URL, Method: "POST", Body: `{"q":1}`, Headers: spec.Headers{"Authorization": spec.NewSecret("Bearer x"), "Content-Type": spec.NewSecret("application/json")}}})
	s := wait(t, rec, "two streams", func(s []recordtest.Stream) bool { return len(s) == 2 && s[1].Closed })
	recordtest.Equal(t, "first", s[0].Text(), "event 1\nevent {\"ha !connection_lost\n")
	recordtest.Equal(t, "second", s[1].Text(), "event 2\nevent 3\nclose \n")
	for range 4 {
		<-srv.more
	}
	for deadline := time.Now().Add(time.Minute); !c.Idle() && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if !c.Idle() {
		t.Error("not idle after 204")
	}
	recordtest.Equal(t, "requests", srv.requests(), strings.TrimSuffix(strings.Repeat("POST / application/json {\"q\":1}\n", 4), "\n"))
	if !s[0].Closed {
		t.Errorf("%+v", s)
	}
	var st state
	if err := json.Unmarshal(s[1].State, &st); err != nil || st.Timing == nil || st.Timing.Events != 1 || st.Timing.FirstByte <= 0 {
		t.Errorf("state: %s %v", s[1].State, err)
	}
}

func TestDoneEndsAStream(t *testing.T) {
	srv := serve(t, sends("data: 1\n\ndata: [DONE]\n\n"), sends("data: never\n\n"))
	rec := recordtest.New()
	run(t, rec, Settings{Config: Config{URL: srv.URL}})
	s := wait(t, rec, "end", closed)
	recordtest.Equal(t, "frames", s[0].Text(), "event 1\nevent [DONE]\nclose \n")
	recordtest.Equal(t, "requests", srv.requests(), "GET /")
}

func TestResumeInAForm(t *testing.T) {
	ev := func(i int, more string) string {
		return fmt.Sprintf("event: RunContent\ndata: {\"run_id\":\"r 1\",\"session_id\":\"s1\",\"event_index\":%d%s}\n\n", i, more)
	}
	srv := serve(t,
		dies(ev(0, "")+ev(1, "")+`data: {"run_id":"child","parent_run_id":"r 1","event_index":2}`+"\n\ndata: {\"hal"),
		dies("event: catch_up\ndata: {\"event\":\"catch_up\",\"run_id\":\"r 1\"}\n\n"+ev(3, "")),
		sends(ev(4, "")),
	)
	rec := recordtest.New()
	c, stop := run(t, rec, Settings{Config: Config{URL: srv.URL + "/teams/t1/runs", Method: "POST", Body: "message=hi&stream=true", ResumeRequest: inForm, Headers: spec.Headers{"Content-Type": spec.NewSecret("application/x-www-form-urlencoded"), "Authorization": spec.NewSecret("x")}}})
	s := wait(t, rec, "end", closed)
	if got := s[0].Text(); strings.Count(got, "event {") != 6 || strings.Contains(got, "hal\n") || !strings.HasSuffix(got, "close \n") {
		t.Errorf("frames: %s", got)
	}
	resume := "POST /teams/t1/runs/r%201/resume application/x-www-form-urlencoded last_event_index="
	recordtest.Equal(t, "requests", srv.requests(), "POST /teams/t1/runs application/x-www-form-urlencoded message=hi&stream=true\n"+
		resume+"2&session_id=s1\n"+resume+"3&session_id=s1")
	stop()
	if !c.Idle() {
		t.Error("not idle at the end")
	}
	// A stream that is over is not requested again.
	again, _ := run(t, rec, Settings{Config: Config{URL: c.URL, Method: c.Method, Body: c.Body, ResumeRequest: inForm}})
	for deadline := time.Now().Add(time.Minute); !again.Idle() && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if !again.Idle() || len(withoutLedger(rec.Streams())) != 1 {
		t.Errorf("idle %v, %+v", again.Idle(), rec.Streams())
	}
	if n := strings.Count(srv.requests(), "\n"); n != 2 {
		t.Errorf("asked again: %s", srv.requests())
	}
}

// A run that cannot be resumed is not requested again.
func TestRunWithoutNumbers(t *testing.T) {
	srv := serve(t, dies("data: {\"run_id\":\"r1\"}\n\ndata: {\"ha"), sends("data: {}\n\n"))
	rec := recordtest.New()
	run(t, rec, Settings{Config: Config{URL: srv.URL + "/agents/a/runs", Method: "POST", Body: "message=hi", ResumeRequest: inForm}})
	s := wait(t, rec, "end", closed)
	recordtest.Equal(t, "frames", s[0].Text(), "event {\"run_id\":\"r1\"}\nevent {\"ha !connection_lost\n")
	if strings.Contains(srv.requests(), "\n") {
		t.Errorf("requests: %s", srv.requests())
	}
}

func TestResumeInQueryOrJSON(t *testing.T) {
	ev := func(i int) string { return fmt.Sprintf("data: {\"run_id\":\"run-1\",\"seq_id\":%d}\n\n", i) }
	for name, c := range map[string]struct {
		method, path, body, want string
	}{
		"get":   {"GET", "/v1/runs/run-1/stream?x=1", "", "GET /v1/runs/run-1/stream?x=1\nGET /v1/runs/run-1/stream?starting_after=2&x=1"},
		"post":  {"POST", "/v1/runs/run-1/stream", `{"include_pings":true}`, "POST /v1/runs/run-1/stream application/json {\"include_pings\":true}\nPOST /v1/runs/run-1/stream application/json {\"include_pings\":true,\"starting_after\":2}"},
		"begun": {"POST", "/v1/agents/a1/messages/stream", `{"background":true}`, "POST /v1/agents/a1/messages/stream application/json {\"background\":true}\nPOST /v1/runs/run-1/stream application/json {\"starting_after\":2}"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t, dies(ev(1)+ev(2)), sends("data: {\"run_id\":\"run-1\",\"seq_id\":3}\n\ndata: [DONE]\n\ndata: [DONE]\n\n"))
			rec := recordtest.New()
			run(t, rec, Settings{Config: Config{URL: srv.URL + c.path, Method: c.method, Body: c.body, ResumeRequest: inJSON}})
			s := wait(t, rec, "end", closed)
			if got := s[0].Text(); strings.Count(got, "seq_id") != 3 || !strings.HasSuffix(got, "close \n") {
				t.Errorf("frames: %s", got)
			}
			recordtest.Equal(t, "requests", srv.requests(), c.want)
		})
	}
}

// A response that is no event stream is a failure, which is retried for ever.
func TestFailuresAreTriedAgain(t *testing.T) {
	srv := serve(t,
		status(500, "text/plain", "no"), status(200, "application/json", "{}"), status(401, "text/plain", ""), status(200, "", ""),
		func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			sends("data: 1\n\n")(w, r)
		},
		hangs("data: ok\n\n"),
	)
	rec := recordtest.New()
	run(t, rec, Settings{Config: Config{URL: srv.URL}})
	s := wait(t, rec, "event", first(1))
	if len(s) != 1 {
		t.Errorf("%d streams; failures are none", len(s))
	}
	recordtest.Equal(t, "frames", s[0].Text(), "event ok\n")
}

// The client closes a connection on which the server goes silent.
func TestHalfOpenPeer(t *testing.T) {
	srv := serve(t, hangs("id: 1\ndata: 1\n\n"), hangs("data: 2\n\n"))
	rec := recordtest.New()
	run(t, rec, Settings{Config: Config{URL: srv.URL, Resume: LastEventID}, IdleTimeout: 50 * time.Millisecond})
	wait(t, rec, "both", first(2))
	if got := srv.requests(); !strings.HasPrefix(got, "GET /\nGET / last=1") {
		t.Errorf("requests: %s", got)
	}
}

// A recorder that blocks stops the reading from the server, and no memory fills.
func TestBackpressure(t *testing.T) {
	sent := make(chan int, 1)
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		n := 0
		for n < 256<<20 {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
			k, err := io.WriteString(w, "data: "+strings.Repeat("x", 32<<10)+"\n\n")
			if n += k; err != nil {
				break
			}
		}
		sent <- n
		panic(http.ErrAbortHandler)
	}, status(204, "", ""))
	rec := recordtest.New()
	release := rec.Hold()
	run(t, rec, Settings{Config: Config{URL: srv.URL}})
	if n := <-sent; n > 64<<20 {
		t.Errorf("%d MiB went somewhere", n>>20)
	}
	release()
	wait(t, rec, "end", closed)
}

// An event without end takes no memory beyond the limit.
func TestEndlessEvent(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sends("data: ")(w, r)
		chunk := strings.Repeat("x", 64<<10)
		for range 512 {
			_, _ = io.WriteString(w, chunk)
		}
		_, _ = io.WriteString(w, "\n\ndata: [DONE]\n\n")
	})
	rec := recordtest.New()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	run(t, rec, Settings{Config: Config{URL: srv.URL}, MaxEvent: 1 << 20})
	s := wait(t, rec, "end", closed)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if f := s[0].Frames[0]; f.Reason != "too_long" || len(f.Data) != 1<<20 || f.Dropped != 31<<20 {
		t.Errorf("%s, %d bytes, %d dropped", f.Reason, len(f.Data), f.Dropped)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

func TestSettings(t *testing.T) {
	for want, s := range map[string]Settings{
		"url":    {Config: Config{URL: "ws://h"}},
		"resume": {Config: Config{URL: "http://h", Resume: "maybe"}},
		"limit":  {Config: Config{URL: "http://h"}, MaxEvent: -1},
		"auto":   {Config: Config{URL: "http://h", Resume: Auto}},
		"path":   {Config: Config{URL: "http://h", ResumeRequest: &source.Resume{Run: "r", Number: "n", Path: "/{{run}}", Method: "GET", In: "query", End: "close"}}},
		"method": {Config: Config{URL: "http://h", Method: "A B"}},
	} {
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
