package tap

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/bench/proc"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

const benchStreams = 1000

// discard is a recorder that accepts every frame and keeps none.
type discard struct{ frames atomic.Int64 }

func (n *discard) Begin(context.Context, string, source.ID) (source.Recording, error) { return n, nil }
func (n *discard) Record(context.Context, *frame.Frame) error                         { n.frames.Add(1); return nil }
func (n *discard) Gap(string, int64, int64)                                           {}
func (n *discard) Mark([]byte) error                                                  { return nil }
func (n *discard) State() []byte                                                      { return nil }
func (n *discard) Sync(context.Context) error                                         { return nil }
func (n *discard) Close() error                                                       { return nil }

// agent is a server whose open streams the benchmark drives.
type agent struct{ joined chan chan string }

func (a *agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	_ = rc.Flush()
	in := make(chan string, 4)
	a.joined <- in
	for {
		select {
		case text := <-in:
			_, _ = io.WriteString(w, text)
			_ = rc.Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// BenchmarkSSE measures the delay between an agent server and its clients: the time
// from the server's write of an event until the client has it, with 1,000 open
// streams each: direct, through a bare reverse proxy, and through the tap. One
// operation is an event on every stream of each, a fifth of a second for each in
// turn, evenly paced. Other load of the machine so affects all three alike, and the
// ratios are the result. p50 and p99 are of a round's events, in the median of
// the rounds; added is the delay beyond that of direct.
func BenchmarkSSE(b *testing.B) {
	a := &agent{joined: make(chan chan string)}
	up := httptest.NewServer(a)
	defer up.Close()
	target, err := url.Parse(up.URL)
	if err != nil {
		b.Fatal(err)
	}
	reverse := httputil.NewSingleHostReverseProxy(target)
	transport := &http.Transport{MaxIdleConnsPerHost: benchStreams}
	defer transport.CloseIdleConnections()
	reverse.Transport = transport
	proxy := httptest.NewServer(reverse)
	defer proxy.Close()
	rec := &discard{}
	tap, err := New(Settings{Env: source.Env{Format: "f"}, Config: Config{Listen: "127.0.0.1:0", Upstream: up.URL}, Grace: 10 * time.Millisecond})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tap.Run(ctx, rec) }()

	direct := a.open(b, target.Host)
	bare := a.open(b, proxy.Listener.Addr().String())
	tapped := a.open(b, tap.Addr(ctx).String())
	b.ResetTimer()
	for range b.N {
		for _, s := range []*subject{direct, bare, tapped} {
			s.round()
		}
	}
	b.StopTimer()
	for _, s := range []*subject{direct, bare, tapped} {
		s.close()
	}
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	if n := rec.frames.Load(); n < int64(b.N*benchStreams) || tap.Counts().Lost != 0 {
		b.Errorf("%d of %d events were recorded, %d bytes lost", n, b.N*benchStreams, tap.Counts().Lost)
	}
	report := func(name, unit string, of func(*subject) float64) {
		base, one, two := of(direct), of(bare)-of(direct), of(tapped)-of(direct)
		b.Logf("%-16s direct %7.1f, added by a bare proxy %7.1f, by the tap %7.1f: %.2f of it", name+" "+unit, base, one, two, two/one)
		b.ReportMetric(two, "added-"+name+"-"+unit)
		b.ReportMetric(two/one, name+"/bare")
	}
	report("p50", "µs", func(s *subject) float64 { return median(s.p50) })
	report("p99", "µs", func(s *subject) float64 { return median(s.p99) })
	report("cpu", "µs/event", func(s *subject) float64 { return float64(s.cpu.Microseconds()) / float64(len(s.p50)*benchStreams) })
	report("memory", "KiB/stream", func(s *subject) float64 { return s.memory })
	b.ReportMetric(0, "ns/op")
}

// subject is one way from the agent server to its clients.
type subject struct {
	streams []chan string // into each
	conns   []net.Conn
	clients sync.WaitGroup
	got     sync.WaitGroup // of the round
	epoch   time.Time
	cpu     time.Duration
	memory  float64 // KiB that a stream takes, on all sides

	took     [benchStreams]time.Duration // by stream; sorted after a round
	p50, p99 []time.Duration             // of the rounds
}

// open opens the streams of a subject that listens at addr.
func (a *agent) open(b *testing.B, addr string) *subject {
	s := &subject{epoch: time.Now()}
	before := inUse()
	for i := range benchStreams {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		s.conns = append(s.conns, c)
		fmt.Fprintf(c, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
		select {
		case in := <-a.joined:
			s.streams = append(s.streams, in)
		case <-time.After(time.Minute):
			b.Fatalf("stream %d was not opened", i)
		}
		s.clients.Go(func() { s.read(i, c) })
	}
	s.memory = (inUse() - before) / benchStreams / 1024
	return s
}

// inUse is how many bytes of memory are in use.
func inUse() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// read takes the events of stream i.
func (s *subject) read(i int, c net.Conn) {
	for in := bufio.NewScanner(c); in.Scan(); {
		if text, ok := strings.CutPrefix(in.Text(), "data: "); ok {
			at, _, _ := strings.Cut(text, " ")
			ns, _ := strconv.ParseInt(at, 10, 64)
			s.took[i] = time.Since(s.epoch) - time.Duration(ns)
			s.got.Done()
		}
	}
}

// round sends an event on each stream and waits until all have come.
func (s *subject) round() {
	pad := strings.Repeat("x", 100)
	cpu, begun := proc.Own(), time.Now()
	for i, in := range s.streams {
		s.got.Add(1)
		in <- fmt.Sprintf("data: %d %s\n\n", time.Since(s.epoch), pad)
		if i%5 == 4 { // every millisecond
			time.Sleep(time.Until(begun.Add(time.Duration(i+1) * 200 * time.Microsecond)))
		}
	}
	s.got.Wait()
	s.cpu += proc.Own() - cpu
	slices.Sort(s.took[:])
	s.p50, s.p99 = append(s.p50, s.took[benchStreams/2]), append(s.p99, s.took[benchStreams*99/100])
}

func (s *subject) close() {
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.clients.Wait()
}

// median is in microseconds. It leaves out the rounds that other load disturbed.
func median(of []time.Duration) float64 {
	slices.Sort(of)
	return float64(of[len(of)/2].Nanoseconds()) / 1e3
}
