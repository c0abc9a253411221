package push

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
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

// lingers is how long net/http keeps a connection that it closes with a request half
// read, so that the client reads the answer. It is as long as goleak waits.
const lingers = 500 * time.Millisecond

func TestMain(m *testing.M) {
	code := m.Run()
	time.Sleep(lingers)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "goleak:", err)
		code = 1
	}
	os.Exit(code)
}

type fixture struct {
	*testing.T
	server *Server
	rec    *recordtest.Recorder
	url    string
	client *http.Client
	stop   func()
}

func start(t *testing.T, rec *recordtest.Recorder, change ...func(*Settings)) *fixture {
	t.Helper()
	s := Settings{Env: source.Env{Name: "push", Format: "fmt"}, Config: Config{Listen: "127.0.0.1:0", Path: "/in"}, Grace: 50 * time.Millisecond}
	for _, c := range change {
		c(&s)
	}
	server, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	stop := rec.Run(t, server)
	transport := &http.Transport{}
	f := &fixture{T: t, server: server, rec: rec, client: &http.Client{Transport: transport, Timeout: 20 * time.Second}}
	f.stop = sync.OnceFunc(func() {
		transport.CloseIdleConnections()
		stop()
		if n := server.memory.Used(); n != 0 || !server.Idle() {
			t.Errorf("%d bytes of memory are not given back, idle %v", n, server.Idle())
		}
	})
	t.Cleanup(f.stop)
	f.url = "http://" + server.Addr(t.Context()).String() + "/in"
	return f
}

// post sends a body with headers "Name: value" and returns the answer as text.
func (f *fixture) post(path, contentType string, body io.Reader, headers ...string) string {
	f.Helper()
	r, err := http.NewRequest("POST", f.url+path, body)
	if err != nil {
		f.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	for _, h := range headers {
		k, v, _ := strings.Cut(h, ": ")
		if r.Header.Set(k, v); k == "Host" {
			r.Host = v
		}
	}
	res, err := f.client.Do(r)
	if err != nil {
		f.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		f.Fatal(err)
	}
	if ct := res.Header.Get("Content-Type"); ct != "application/json" {
		f.Errorf("content type %q", ct)
	}
	return fmt.Sprintf("%d %s", res.StatusCode, strings.TrimSuffix(string(b), "\n"))
}

func (f *fixture) want(got, want string) {
	f.Helper()
	if got != want {
		f.Errorf("got %s, want %s", got, want)
	}
}

// pushed are the streams without the ledger.
func pushed(all []recordtest.Stream) (out []recordtest.Stream) {
	for _, s := range all {
		if s.Key != "idempotency" {
			out = append(out, s)
		}
	}
	return out
}

func (f *fixture) streams() []recordtest.Stream { return pushed(f.rec.Streams()) }

// wait waits until the streams are as wanted.
func (f *fixture) wait(wanted func([]recordtest.Stream) bool) []recordtest.Stream {
	f.Helper()
	return pushed(f.rec.Want(f, "streams", func(s []recordtest.Stream) bool { return wanted(pushed(s)) }))
}

func zipped(text string) *bytes.Buffer {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return &b
}

func TestBodies(t *testing.T) {
	for name, c := range map[string]struct{ contentType, body, answer, frames string }{
		"json":   {"application/json", `{"a":1}`, `200 {"frames":1}`, "body {\"a\":1}\nclose \n"},
		"ndjson": {"application/x-ndjson", "{\"a\":1}\n\n{\"a\":2}", `200 {"frames":2}`, "line {\"a\":1}\nline {\"a\":2}\nclose \n"},
		"events": {"text/event-stream", "data: 1\n\nevent: x\ndata: 2\n\n", `200 {"frames":2}`, "event 1\nevent 2\nclose \n"},
	} {
		for _, encoded := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, gzip %v", name, encoded), func(t *testing.T) {
				f := start(t, recordtest.New())
				var in io.Reader = strings.NewReader(c.body)
				var headers []string
				if encoded {
					in, headers = zipped(c.body), []string{"Content-Encoding: gzip"}
				}
				f.want(f.post("?conversation_id=7&token=x", c.contentType, in, headers...), c.answer)
				s := f.streams()[0]
				f.want(s.Text(), c.frames)
				f.want(s.ID.Origin, "http://127.0.0.1:0/in?conversation_id=7")
				if s.Synced != len(s.Frames) || !s.Closed {
					t.Errorf("synced %d of %d, closed %v", s.Synced, len(s.Frames), s.Closed)
				}
			})
		}
	}
}

// Who sent a stream is kept with it; a named stream has many senders.
func TestTraceparentIsKept(t *testing.T) {
	f := start(t, recordtest.New())
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	f.want(f.post("", "application/json", strings.NewReader("{}"), "Traceparent: "+parent, "Tracestate: k=v"), `200 {"frames":1}`)
	f.want(f.post("?stream=x", "application/json", strings.NewReader("{}"), "Traceparent: "+parent), `200 {"frames":1}`)
	for i, s := range f.streams() {
		facts, ok := source.ParseResponseInfo(s.State)
		if want := i == 0; ok != want || want && (facts.Traceparent != parent || facts.Tracestate != "k=v" || facts.Method != "POST") {
			t.Errorf("stream %d: facts %+v", i, facts)
		}
	}
}

// A response is sent only when the recorder has synced.
func TestAnsweredWhenSafe(t *testing.T) {
	f := start(t, recordtest.New(), func(s *Settings) { s.RecordTimeout = 50 * time.Millisecond })
	release := f.rec.Hold()
	f.want(f.post("", "application/json", strings.NewReader("{}")), `503 {"error":"it cannot be recorded now"}`)
	release()
	f.want(f.post("", "application/json", strings.NewReader("{}")), `200 {"frames":1}`)
	f.rec.Fail(errors.New("disk on fire"))
	f.want(f.post("", "application/json", strings.NewReader("{}")), `503 {"error":"it cannot be recorded now"}`)
}

func TestRefused(t *testing.T) {
	f := start(t, recordtest.New(), func(s *Settings) { s.Token, s.MaxBody = spec.NewSecret("s3cret"), 1000 })
	long := strings.Repeat("x", 1001)
	const auth = "Authorization: Bearer s3cret"
	f.want(f.post("", "application/json", strings.NewReader("{}"), auth), `200 {"frames":1}`)
	f.want(f.post("", "application/json", strings.NewReader("{}"), "Authorization: bearer  s3cret"), `200 {"frames":1}`)
	for _, h := range []string{"X: y", "Authorization: Bearer s3cret2", "Authorization: Bearer ", "Authorization: Basic s3cret", "Authorization: s3cret"} {
		f.want(f.post("", "application/json", strings.NewReader("{}"), h), `401 {"error":"the bearer token is missing or wrong"}`)
	}
	f.want(f.post("/other", "application/json", strings.NewReader("{}"), auth), `404 {"error":"nothing is taken at \"/in/other\""}`)
	f.want(f.post("", "application/json", strings.NewReader(long), auth), `413 {"error":"the body is larger than max_body, 1000 bytes"}`)
	f.want(f.post("", "application/x-ndjson", io.MultiReader(strings.NewReader(long)), auth), `413 {"error":"the body is larger than max_body, 1000 bytes"}`)
	f.want(f.post("", "application/json", zipped(long), auth, "Content-Encoding: gzip"), `413 {"error":"the body is larger than max_body, 1000 bytes"}`)
	f.want(f.post("", "text/event-stream", zipped("data: 1\n\n"+strings.Repeat(": no\n", 1000)), auth, "Content-Encoding: gzip"),
		`413 {"error":"the body is larger than max_body, 1000 bytes"}`)
	f.want(f.post("", "text/html", strings.NewReader("x"), auth), `415 {"error":"content type \"text/html\": not one of application/json, application/x-ndjson, text/event-stream"}`)
	f.want(f.post("", "application/json", strings.NewReader("x"), auth, "Content-Encoding: rot13"), `415 {"error":"unknown content encoding: \"rot13\""}`)
	f.want(f.post("", "application/json", strings.NewReader(" \n"), auth), `400 {"error":"the body is empty"}`)
	if got := f.post("", "application/json", strings.NewReader("rubbish, no gzip"), auth, "Content-Encoding: gzip"); !strings.HasPrefix(got, "400 ") {
		t.Error(got)
	}
	if got := f.post("?stream="+strings.Repeat("n", 300), "application/json", strings.NewReader("{}"), auth); !strings.HasPrefix(got, "400 ") {
		t.Error(got)
	}
	res, err := f.client.Get(f.url)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("GET without token: %d", res.StatusCode)
	}
	for _, s := range f.streams() {
		if got := s.Text(); got != "body {}\nclose \n" && got != "event 1\n" {
			t.Errorf("recorded: %s", got)
		}
	}
}

// TestPagesAreRefused: a page whose name was led to this machine, which the browser takes for the listener's own, pushes nothing.
func TestPagesAreRefused(t *testing.T) {
	f := start(t, recordtest.New())
	page := []string{"Host: page.example:7802", "Origin: http://page.example:7802", "Sec-Fetch-Site: same-origin"}
	f.want(f.post("", "application/json", strings.NewReader("{}"), page...), `403 {"error":"the request comes from a web page: it needs a token"}`)
	f.want(f.post("", "application/json", strings.NewReader("{}"), page[0]), `200 {"frames":1}`) // an agent in a container
	if n := len(f.streams()); n != 1 {
		t.Errorf("%d streams", n)
	}
	f = start(t, recordtest.New(), func(s *Settings) { s.Token = spec.NewSecret("s3cret") })
	f.want(f.post("", "application/json", strings.NewReader("{}"), append(page, "Authorization: Bearer s3cret")...), `200 {"frames":1}`)
}

func TestIdempotency(t *testing.T) {
	rec := recordtest.New()
	f := start(t, rec)
	const key = "Idempotency-Key: k1"
	for range 3 {
		f.want(f.post("", "application/x-ndjson", strings.NewReader("1\n2\n"), key), `200 {"frames":2}`)
	}
	f.want(f.post("", "application/x-ndjson", strings.NewReader("other"), key), `422 {"error":"this idempotency key was used for another body"}`)
	f.want(f.post("", "application/x-ndjson", strings.NewReader("1\n2\n"), "Idempotency-Key: k2"), `200 {"frames":2}`)
	// A failure is not remembered.
	rec.Fail(errors.New("no"))
	f.want(f.post("", "application/json", strings.NewReader("1"), "Idempotency-Key: k3"), `503 {"error":"it cannot be recorded now"}`)
	rec.Fail(nil)
	f.want(f.post("", "application/json", strings.NewReader("1"), "Idempotency-Key: k3"), `200 {"frames":1}`)
	f.stop()
	if s := f.streams(); len(s) != 3 || len(s[0].Frames) != 3 {
		t.Errorf("%+v", s)
	}

	// Another process knows it from the recording.
	g := start(t, rec)
	g.want(g.post("", "application/x-ndjson", strings.NewReader("1\n2\n"), key), `200 {"frames":2}`)
	g.want(g.post("", "application/x-ndjson", strings.NewReader("other"), "Idempotency-Key: k2"), `422 {"error":"this idempotency key was used for another body"}`)
	if s := f.streams(); len(s) != 3 || len(s[0].Frames) != 3 {
		t.Errorf("%+v", s)
	}
}

func TestKeysAreBounded(t *testing.T) {
	k := newKeys()
	for i := range 3 * maxKeys {
		before, done := k.begin(fmt.Sprint(i), "")
		if before != nil {
			t.Fatal(i)
		}
		done(&answer{Status: 200})
	}
	if len(k.known) > maxKeys || k.order.Len() != len(k.known) {
		t.Errorf("%d keys, %d in order", len(k.known), k.order.Len())
	}
	if before, _ := k.begin(fmt.Sprint(3*maxKeys-1), ""); before == nil {
		t.Error("the newest is forgotten")
	}
	_, done := k.begin("a", "")
	if before, _ := k.begin("a", ""); before == nil || before.Status != http.StatusConflict {
		t.Errorf("%+v", before)
	}
	done(refuse(503, "x"))
	if before, _ := k.begin("a", ""); before != nil {
		t.Errorf("%+v", before)
	}
}

// Requests of one name are one stream.
func TestNamedStreams(t *testing.T) {
	f := start(t, recordtest.New())
	for i := range 3 {
		f.want(f.post("?stream=s%201", "application/x-ndjson", strings.NewReader(fmt.Sprintf("%d\n", i))), `200 {"frames":1}`)
		f.want(f.post("?stream=s2", "application/json", strings.NewReader(fmt.Sprint(10+i)), fmt.Sprintf("Idempotency-Key: %d", i)), `200 {"frames":1}`)
	}
	s := f.streams()
	if len(s) != 2 || s[0].Closed || s[1].Closed {
		t.Fatalf("%+v", s)
	}
	f.want(s[0].Text(), "line 0\nline 1\nline 2\n")
	f.want(s[1].Text(), "body 10\nbody 11\nbody 12\n")
	var wg sync.WaitGroup
	for i := range source.MaxRecordings + 20 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			f.post(fmt.Sprintf("?stream=n%d", i%(source.MaxRecordings+10)), "application/json", strings.NewReader("1"))
		}()
		if i%20 == 19 {
			wg.Wait()
		}
	}
	wg.Wait()
	if n := f.server.recordings.Len(); n > source.MaxRecordings {
		t.Errorf("%d streams are open", n)
	}
	if s := f.streams(); !s[0].Closed {
		t.Error("the stream used longest ago is open")
	}
}

// Events are recorded as they arrive; the events before the sender's death remain.
func TestEventsAsTheyCome(t *testing.T) {
	f := start(t, recordtest.New())
	pr, pw := io.Pipe()
	answered := make(chan string, 1)
	go func() { answered <- f.post("", "text/event-stream", pr) }()
	for i := 1; i <= 3; i++ {
		fmt.Fprintf(pw, "data: %d\n\n", i)
		f.wait(func(s []recordtest.Stream) bool { return len(s) == 1 && len(s[0].Frames) == i })
	}
	_ = pw.Close()
	f.want(<-answered, `200 {"frames":3}`)

	c, err := net.Dial("tcp", f.server.Addr(t.Context()).String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "POST /in HTTP/1.1\r\nHost: h\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n13\r\ndata: 1\n\ndata: {\"ha\r\n")
	f.wait(func(s []recordtest.Stream) bool { return len(s) == 2 && len(s[1].Frames) == 1 })
	_ = c.Close()
	s := f.wait(func(s []recordtest.Stream) bool { return s[1].Closed })
	f.want(s[1].Text(), "event 1\nevent {\"ha !connection_lost\n")
}

// A sender that sends a byte now and then gets an error, and its connection is closed.
func TestSlowLoris(t *testing.T) {
	f := start(t, recordtest.New(), func(s *Settings) { s.BodyTimeout, s.IdleTimeout = 100*time.Millisecond, 100*time.Millisecond })
	for _, contentType := range []string{"application/json", "text/event-stream"} {
		c, err := net.Dial("tcp", f.server.Addr(t.Context()).String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(c, "POST /in HTTP/1.1\r\nHost: h\r\nContent-Type: %s\r\nContent-Length: 100\r\n\r\n{", contentType)
		b, err := io.ReadAll(c) // until the server closes
		if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 408 ") {
			t.Errorf("%s: %v %s", contentType, err, b)
		}
		_ = c.Close()
	}
}

// Many large bodies at once take no more memory than the limit.
func TestMemoryIsBounded(t *testing.T) {
	const limit = 4 << 20
	f := start(t, recordtest.New(), func(s *Settings) { s.MaxMemory = limit })
	f.rec.Discard()
	var wg sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{}
	hold := make(chan struct{})
	for range 20 {
		pr, pw := io.Pipe()
		wg.Add(2)
		go func() {
			defer wg.Done()
			_, _ = io.WriteString(pw, strings.Repeat("x", 1<<20))
			<-hold
			_ = pw.Close()
		}()
		go func() {
			defer wg.Done()
			a := f.post("", "application/json", pr)[:3]
			_ = pr.Close()
			mu.Lock()
			answers[a]++
			mu.Unlock()
		}()
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); runtime.Gosched() {
		mu.Lock()
		n := answers["503"]
		mu.Unlock()
		if n >= 16 {
			break
		}
		if m := f.server.memory.Used(); m > limit {
			t.Fatalf("%d bytes", m)
		}
	}
	close(hold)
	wg.Wait()
	if answers["503"] < 16 || answers["200"] == 0 {
		t.Errorf("%v", answers)
	}
}

func TestSettings(t *testing.T) {
	for want, s := range map[string]Settings{
		"listen": {}, "path": {Config: Config{Listen: "127.0.0.1:0", Path: "x"}}, "max_body": {Config: Config{Listen: "127.0.0.1:0", MaxBody: -1}},
		"limit": {Config: Config{Listen: "127.0.0.1:0"}, MaxMemory: -1},
	} {
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A small body that unpacks to a large one takes no more memory than the limit, in any shape.
func TestUnpackedBodiesAreBounded(t *testing.T) {
	const limit, size = 16 << 20, 6 << 20
	for _, contentType := range []string{"application/json", "application/x-ndjson", "text/event-stream"} {
		f := start(t, recordtest.New(), func(s *Settings) { s.MaxMemory = limit })
		f.rec.Discard()
		bomb := zipped("data: " + strings.Repeat("a", size)).Bytes()
		hold := make(chan struct{})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				pr, pw := io.Pipe()
				go func() {
					_, _ = pw.Write(bomb[:len(bomb)-9])
					<-hold
					_ = pw.Close()
				}()
				_ = f.post("", contentType, pr, "Content-Encoding: gzip")
				_ = pr.Close()
			})
		}
		most := int64(0)
		// A slow machine takes longer to unpack; once enough is taken, more could come for a while.
		end := time.Now().Add(20 * time.Second)
		for enough := false; time.Now().Before(end); time.Sleep(time.Millisecond) {
			if !enough && most >= 2*size {
				enough, end = true, time.Now().Add(200*time.Millisecond)
			}
			most = max(most, f.server.memory.Used())
		}
		if most > limit || most < 2*size {
			t.Errorf("%s: %d bytes are taken", contentType, most)
		}
		close(hold)
		wg.Wait()
		f.stop()
		if n := f.server.memory.Used(); n != 0 {
			t.Errorf("%s: %d bytes are still taken", contentType, n)
		}
	}
}
