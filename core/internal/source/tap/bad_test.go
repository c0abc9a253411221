package tap

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/recordtest"
)

// A recorder that blocks delays no traffic: all bytes pass, those that fit the queue are
// recorded later, and the hole is counted.
func TestFailOpen(t *testing.T) {
	const n = 300
	event := func(i int) string {
		return fmt.Sprintf("data: {\"n\":%d,\"pad\":%q}\n\n", i, strings.Repeat("x", 1000))
	}
	in := make(chan string)
	f := start(t, events(in), func(s *Settings) { s.MaxQueue = 64 << 10 })
	release := f.rec.Hold()
	res, err := f.client.Do(f.request("GET", "/x", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	send := func(i int) {
		e := event(i)
		in <- e
		buf := make([]byte, len(e))
		if _, err := io.ReadFull(res.Body, buf); err != nil || string(buf) != e {
			t.Fatalf("event %d: %q %v", i, buf, err)
		}
	}
	for i := range n {
		send(i)
	}
	release()
	// The events after the hole are recorded.
	f.rec.Wait(f.deadline(), func(s []recordtest.Stream) bool { return len(s) == 1 && s[0].Missing() > 0 })
	for i := range 5 {
		send(n + i)
	}
	close(in)
	s := f.closed(1)[0]
	whole, bytes := 0, int64(0)
	for _, fr := range s.Frames {
		if fr.Reason == "" && fr.Kind.String() == "event" {
			whole++
			bytes += int64(len("data: \n\n") + len(fr.Data))
		}
	}
	last := string(s.Frames[len(s.Frames)-2].Data)
	if whole < 20 || whole > 200 || !strings.HasPrefix(last, fmt.Sprintf(`{"n":%d,`, n+4)) {
		t.Errorf("%d events were recorded, the last %.20s", whole, last)
	}
	total := int64(0)
	for i := range n + 5 {
		total += int64(len(event(i)))
	}
	if missing := s.Missing(); missing == 0 || bytes+missing != total || f.tap.Counts().Lost != missing {
		t.Errorf("%d bytes recorded + %d missing of %d; counted %d", bytes, missing, total, f.tap.Counts().Lost)
	}
	if s.Gaps[0].Reason != "listener_full" {
		t.Errorf("gaps: %+v", s.Gaps)
	}
}

// The bytes that a recorder refuses are counted, and the traffic passes.
func TestRecorderFails(t *testing.T) {
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"a":1}`)
	}))
	f.rec.Fail(errors.New("disk on fire"))
	if _, got := f.do(f.request("POST", "/x", strings.NewReader("12345"))); got != `{"a":1}` {
		t.Errorf("body %q", got)
	}
	f.stop()
	if lost := f.tap.Counts().Lost; lost != 12 {
		t.Errorf("%d bytes lost", lost)
	}
}

// measured runs f and returns by how much the heap had grown while it ran.
func measured(f func(sample func())) uint64 {
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most := before.HeapAlloc
	f(func() {
		runtime.GC()
		runtime.ReadMemStats(&now)
		most = max(most, now.HeapAlloc)
	})
	return most - before.HeapAlloc
}

// flood is a response of that head and then total bytes of filler.
func flood(contentType, head, filler, end string, total int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, head)
		chunk := bytes.Repeat([]byte(filler), 64<<10/len(filler))
		for n := 0; n < total; n += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, end)
	}
}

// swallow reads a response to its end and returns its length.
func (f *fixture) swallow(sample func()) int64 {
	f.Helper()
	res, err := f.client.Do(f.request("GET", "/x", nil))
	if err != nil {
		f.Fatal(err)
	}
	defer res.Body.Close()
	n, buf := int64(0), make([]byte, 256<<10)
	for reads := 1; ; reads++ {
		k, err := res.Body.Read(buf)
		n += int64(k)
		if reads%64 == 0 {
			sample()
		}
		if errors.Is(err, io.EOF) {
			sample()
			return n
		}
		if err != nil {
			f.Fatal(err)
		}
	}
}

// Input without end takes bounded memory, and passes in full.
func TestEndlessInput(t *testing.T) {
	const total, limit, queue = 48 << 20, 1 << 20, 1 << 20
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		want string // of the last frames
	}{
		"line without newline": {flood("application/x-ndjson", "", "x", "\n{}\n", total), "line {}\nclose \n"},
		"event without end":    {flood("text/event-stream", "data: ", "x", "\n\ndata: {}\n\n", total), "event {}\nclose \n"},
		"comments":             {flood("text/event-stream", "", ": nothing\n", "data: {}\n\n", total), "event {}\nclose \n"},
		"field name":           {flood("text/event-stream", "", "x", "\n\ndata: {}\n\n", total), "event {}\nclose \n"},
		"document":             {flood("application/json", "[", "1,", "1]", total), "!too_long\nclose \n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, c.h, func(s *Settings) { s.MaxBody, s.MaxQueue = limit, queue })
			f.rec.Discard()
			grown := measured(func(sample func()) {
				if n := f.swallow(sample); n < total {
					t.Errorf("%d bytes passed", n)
				}
				f.closed(1)
			})
			if grown > total*2/3 { // 6 to 17 MiB were seen: garbage counts while it is measured
				t.Errorf("the heap grew by %d MiB", grown>>20)
			}
		})
	}
}

// An event longer than the limit is set aside with its head, and its length is
// recorded; the ones around it are whole.
func TestEventBeyondTheLimit(t *testing.T) {
	long := strings.Repeat("x", 5000)
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\ndata: "+long+"\n\ndata: 2\n\n")
	}), func(s *Settings) { s.MaxBody = 1000 })
	if _, got := f.do(f.request("GET", "/x", nil)); len(got) != 5000+26 {
		t.Errorf("%d bytes passed", len(got))
	}
	s := f.closed(1)[0]
	recordtest.Equal(t, "frames", show(s.Frames), "event 1\nevent "+long[:1000]+" !too_long\nevent 2\nclose \n")
	if s.Frames[1].Dropped != 4000 {
		t.Errorf("dropped %d", s.Frames[1].Dropped)
	}
}

// A request longer than the limit passes, and is set aside with its head.
func TestRequestBeyondTheLimit(t *testing.T) {
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, n)
	}), func(s *Settings) { s.MaxBody = 1000 })
	if _, got := f.do(f.request("POST", "/x", strings.NewReader(strings.Repeat("x", 5000)))); got != "5000" {
		t.Errorf("%s bytes passed", got)
	}
	s := f.closed(1)[0]
	recordtest.Equal(t, "frames", show(s.Frames), "request< POST /x "+strings.Repeat("x", 1000)+" !too_long\nbody 5000\nclose \n")
	if s.Frames[0].Dropped != 4000 {
		t.Errorf("dropped %d", s.Frames[0].Dropped)
	}
}

// TestRequestWithoutMemory: a request for which the memory of all streams has no room passes, and is set aside for that reason.
func TestRequestWithoutMemory(t *testing.T) {
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, n)
	}), func(s *Settings) { s.MaxMemory = 2000 })
	if _, got := f.do(f.request("POST", "/x", strings.NewReader(strings.Repeat("x", 5000)))); got != "5000" {
		t.Errorf("%s bytes passed", got)
	}
	if r := f.closed(1)[0].Frames[0]; r.Kind != frame.Request || int64(len(r.Data))+r.Dropped != 5000 || r.Reason != source.ReasonFull {
		t.Errorf("%s, %d dropped, reason %q", r.Kind, r.Dropped, r.Reason)
	}
}

// The memory of all streams together has a limit.
func TestMemoryOfAllStreams(t *testing.T) {
	const streams, limit = 20, 4 << 20
	hold := make(chan struct{})
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flood("application/json", "[", "1,", "1", 1<<20)(w, r)
		_ = http.NewResponseController(w).Flush()
		<-hold
		_, _ = io.WriteString(w, "]")
	}), func(s *Settings) { s.MaxMemory = limit })
	f.rec.Discard()
	var bodies []io.ReadCloser
	for range streams {
		res, err := f.client.Do(f.request("GET", "/x", nil))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if _, err := io.CopyN(io.Discard, res.Body, 1<<20); err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, res.Body)
	}
	if free := f.tap.memory.free.Load(); free < 0 || free > limit {
		t.Errorf("%d bytes free", free)
	}
	close(hold)
	for _, b := range bodies {
		if _, err := io.Copy(io.Discard, b); err != nil {
			t.Fatal(err)
		}
	}
	whole, cut := 0, 0
	for _, s := range f.closed(streams) {
		switch {
		case len(s.Frames) > 0 && s.Frames[0].Reason == "":
			whole++
		case s.Missing() > 0:
			cut++
		}
	}
	if whole == 0 || cut == 0 || whole+cut != streams {
		t.Errorf("%d whole, %d cut", whole, cut)
	}
}

// A stream whose decoder has no memory left passes, and is a hole.
func TestNoMemoryToDecode(t *testing.T) {
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "br")
		z := brotli.NewWriter(w)
		_, _ = io.WriteString(z, "data: 1\n\n")
		_ = z.Close()
	}), func(s *Settings) { s.MaxMemory = 1 << 20 })
	_, got := f.do(f.request("GET", "/x", nil))
	if s := f.closed(1)[0]; len(s.Frames) != 0 || s.Missing() != int64(len(got)) || s.Gaps[0].Reason != "listener_full" {
		t.Errorf("%+v", s)
	}
}

// Streams on which nothing happens cost little, and end with the tap.
func TestThousandIdleStreams(t *testing.T) {
	const streams = 1000
	in := make(chan string)
	f := start(t, events(in))
	transport := &http.Transport{Protocols: protocols(false, false, true)}
	defer transport.CloseIdleConnections()
	f.client = &http.Client{Transport: transport}
	var bodies []io.Closer
	for range streams {
		res, err := f.client.Do(f.request("GET", "/x", nil))
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, res.Body)
	}
	if n := f.tap.open.Load(); n != 2*streams {
		t.Errorf("%d open", n)
	}
	if free := f.tap.memory.free.Load(); free != f.tap.MaxMemory {
		t.Errorf("idle streams hold %d bytes", f.tap.MaxMemory-free)
	}
	f.stop()
	for _, b := range bodies {
		_ = b.Close()
	}
}

// A client that does not read delays its own response only, and no memory fills.
func TestSlowClient(t *testing.T) {
	sent := make(chan int, 1)
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		n := 0
		rc := http.NewResponseController(w)
		for r.Context().Err() == nil && n < 256<<20 {
			_ = rc.SetWriteDeadline(time.Now().Add(time.Second))
			k, err := io.WriteString(w, "data: "+strings.Repeat("x", 32<<10)+"\n\n")
			if n += k; err != nil {
				break
			}
		}
		sent <- n
		panic(http.ErrAbortHandler)
	}))
	f.rec.Discard()
	conn := dial(t, strings.TrimPrefix(f.url, "http://"))
	_, _ = io.WriteString(conn, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
	var n int
	select {
	case n = <-sent: // it could not send on
	case <-f.deadline().Done():
		t.Fatal("the server was never held up")
	}
	if n > 64<<20 {
		t.Errorf("%d MiB went somewhere", n>>20)
	}
	_ = conn.Close()
}

// Requests that two servers could read in two ways never reach the agent server.
func TestHeaderSmuggling(t *testing.T) {
	reached := false
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/" || len(b) > 5 {
			reached = true
		}
	}))
	for name, c := range map[string]struct{ request, want string }{
		"two lengths":        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 60\r\n\r\nhello", "400"},
		"length list":        {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5, 6\r\n\r\nhello", "400"},
		"signed length":      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +5\r\n\r\nhello", "400"},
		"space before colon": {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length : 5\r\n\r\nhello", "400"},
		"odd encoding":       {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "501"},
		"encoding twice":     {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", "501"},
		"folded":             {"POST / HTTP/1.1\r\nHost: h\r\nX: a\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /stolen HTTP/1.1\r\nHost: h\r\n\r\n", ""},
		"two hosts":          {"GET / HTTP/1.1\r\nHost: h\r\nHost: g\r\n\r\n", "400"},
		"no host":            {"GET / HTTP/1.1\r\n\r\n", "400"},
		"bad chunk":          {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;\nx\r\nhello\r\n0\r\n\r\n", ""},
		"NUL":                {"GET / HTTP/1.1\r\nHost: h\r\nX: a\x00b\r\n\r\n", "400"},
		"line end in header": {"GET / HTTP/1.1\r\nHost: h\r\nX: a\rb: c\r\n\r\n", "400"},
		// The chunks win, the length does not go on: one request, however one reads it.
		"length and chunks": {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, strings.TrimPrefix(f.url, "http://"))
			_, _ = io.WriteString(conn, c.request)
			_ = conn.Conn.(*net.TCPConn).CloseWrite()
			got, err := answer(conn, "POST")
			if c.want != "" && (err != nil || !strings.HasPrefix(got, c.want)) {
				t.Errorf("%v %s", err, got)
			}
			_ = conn.Close()
		})
	}
	f.stop()
	if reached {
		t.Error("a smuggled request reached the agent server")
	}
}

// A tap in front of itself does not start; one whose request returns to it another way
// logs the loop, and the client receives an answer.
func TestLoop(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	for _, upstream := range []string{"http://" + addr, "http://" + strings.Replace(addr, "127.0.0.1", "localhost", 1) + "/x"} {
		tap, err := New(Settings{Env: source.Env{Format: "f"}, Config: Config{Listen: addr, Upstream: upstream}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := tap.Run(ctx, recordtest.New()); !errors.Is(err, errItself) {
			t.Errorf("%s: %v", upstream, err)
		}
		cancel()
	}

	t.Run("through another tap", func(t *testing.T) {
		loops := source.NewConnections()
		through := func(s *Settings) { s.Connections = loops }
		// The first tap listens on a free port, not on the second one's.
		taken, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		first := startAt(t, "http://"+addr, through)
		_ = taken.Close()
		second := startAt(t, first.url, through, func(s *Settings) { s.Listen = addr })
		for range 3 {
			res, body := second.do(second.request("GET", "/x", nil))
			if res.StatusCode != http.StatusLoopDetected || !strings.Contains(body, "through this tap") {
				t.Errorf("%d %s", res.StatusCode, body)
			}
		}
	})

	t.Run("two taps in a row", func(t *testing.T) {
		loops := source.NewConnections()
		through := func(s *Settings) { s.Connections = loops }
		inner := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") }), through)
		outer := startAt(t, inner.url, through)
		for range 3 {
			if res, body := outer.do(outer.request("GET", "/x", nil)); body != "ok" {
				t.Errorf("%d %s", res.StatusCode, body)
			}
		}
		outer.stop()
		inner.stop()
		if n := loops.Len(); n != 0 {
			t.Errorf("%d connections are still tracked", n)
		}
	})
}

// A panic of the recorder does not reach the traffic.
func TestPanicInRecorder(t *testing.T) {
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flood("text/event-stream", "", "data: 1\n\n", "", 1<<20)(w, r)
	}), func(s *Settings) { s.MaxQueue = 4 << 20 })
	f.tap.rec = nil
	f.swallow(func() {})
	f.swallow(func() {})
}

// A small body that unpacks to a large one costs no more than the memory of all streams, whichever
// side sends it, and the traffic passes.
func TestUnpackedBodiesAreBounded(t *testing.T) {
	const requests, size, limit = 40, 8 << 20, 32 << 20
	// The test measures the bytes in use: at the usual pace half of the heap is garbage, and
	// more while a loaded machine is late to collect it.
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	// Noise among repeated bytes: less than a hundred times smaller when it is packed.
	text := bytes.Repeat([]byte("a"), size)
	noise := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < size; i += 256 {
		binary.LittleEndian.PutUint64(text[i:], noise.Uint64())
	}
	bomb := func(encoding string) []byte {
		var b bytes.Buffer
		w := map[string]func() io.WriteCloser{
			"gzip": func() io.WriteCloser { return gzip.NewWriter(&b) },
			"br":   func() io.WriteCloser { return brotli.NewWriter(&b) },
			"zstd": func() io.WriteCloser { z, _ := zstd.NewWriter(&b); return z },
		}[encoding]()
		_, _ = w.Write(text)
		_ = w.Close()
		return b.Bytes()
	}
	for _, encoding := range []string{"gzip", "br", "zstd"} {
		packed := bomb(encoding)
		for _, side := range []string{"request", "response"} {
			t.Run(side+" "+encoding, func(t *testing.T) {
				f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.Copy(io.Discard, r.Body)
					if side == "response" {
						w.Header().Set("Content-Encoding", encoding)
						_, _ = w.Write(packed)
					}
				}), func(s *Settings) { s.MaxMemory = limit })
				f.rec.Discard()
				stop, peak := heapPeak()
				var wg sync.WaitGroup
				for range requests {
					wg.Go(func() {
						body := []byte("{}")
						if side == "request" {
							body = packed
						}
						r := f.request("POST", "/x", bytes.NewReader(body))
						if side == "request" {
							r.Header.Set("Content-Encoding", encoding)
						}
						res, err := f.client.Do(r)
						if err != nil {
							t.Error(err)
							return
						}
						if b, err := io.ReadAll(res.Body); err != nil || side == "response" && !bytes.Equal(b, packed) {
							t.Errorf("the traffic is not what was sent: %d bytes, %v", len(b), err)
						}
						_ = res.Body.Close()
					})
				}
				wg.Wait()
				f.closed(requests)
				close(stop)
				// Up to four times the limit, of 640 MiB: a decoder takes more than its estimate.
				if got := <-peak; got > 4*limit {
					t.Errorf("%d MiB of heap for a limit of %d MiB", got>>20, limit>>20)
				}
			})
		}
	}
}

// heapPeak measures the most bytes of heap that are in use until stop is closed.
func heapPeak() (stop chan struct{}, peak chan uint64) {
	stop, peak = make(chan struct{}), make(chan uint64, 1)
	runtime.GC()
	go func() {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		most := uint64(0)
		for {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return stop, peak
}

// A body that is made to be large when it is unpacked stays small: its beginning is recorded, with the reason.
func TestBomb(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(bytes.Repeat([]byte("a"), 32<<20))
	_ = z.Close()
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, bytes.Equal(got, b.Bytes()))
	}))
	r := f.request("POST", "/x", bytes.NewReader(b.Bytes()))
	r.Header.Set("Content-Encoding", "gzip")
	if _, got := f.do(r); got != "true" {
		t.Error("the upstream did not get what was sent")
	}
	first := f.closed(1)[0].Frames[0]
	if first.Reason != "too_long" || first.Dropped == 0 || len(first.Data) > 4<<20 {
		t.Errorf("%d bytes, %d dropped, reason %q", len(first.Data), first.Dropped, first.Reason)
	}
}
