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
	"syscall"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

const benchStreams = 1000

// nothing is a recorder that takes everything and keeps nothing.
type nothing struct{ frames atomic.Int64 }

func (n *nothing) Begin(context.Context, string, source.ID) (source.Recording, error) { return n, nil }
func (n *nothing) Record(context.Context, *frame.Frame) error                         { n.frames.Add(1); return nil }
func (n *nothing) Gap(string, int64, int64)                                           {}
func (n *nothing) Mark([]byte) error                                                  { return nil }
func (n *nothing) State() []byte                                                      { return nil }
func (n *nothing) Sync(context.Context) error                                         { return nil }
func (n *nothing) Close() error                                                       { return nil }

// agent is a server whose open streams the benchmark drives.
type agent struct {
	mu      sync.Mutex
	streams []chan string
	joined  chan struct{}
}

func (a *agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	_ = rc.Flush()
	in := make(chan string, 4)
	a.mu.Lock()
	a.streams = append(a.streams, in)
	a.mu.Unlock()
	a.joined <- struct{}{}
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

// BenchmarkSSE measures what stands between a client and an agent server: the time
// from the server's write of an event until the client has it, with 1,000 open
// streams, to which 5,000 events a second go. One operation is an event on each.
func BenchmarkSSE(b *testing.B) {
	a := &agent{joined: make(chan struct{}, benchStreams)}
	up := httptest.NewServer(a)
	defer up.Close()
	target, err := url.Parse(up.URL)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("direct", func(b *testing.B) { a.drive(b, target.Host) })
	b.Run("bare", func(b *testing.B) {
		bare := httputil.NewSingleHostReverseProxy(target)
		transport := &http.Transport{MaxIdleConnsPerHost: benchStreams}
		defer transport.CloseIdleConnections()
		bare.Transport = transport
		proxy := httptest.NewServer(bare)
		defer proxy.Close()
		a.drive(b, proxy.Listener.Addr().String())
	})
	b.Run("tap", func(b *testing.B) {
		rec := &nothing{}
		tap, err := New(Settings{Listen: "127.0.0.1:0", Upstream: up.URL, Format: "f", Grace: 10 * time.Millisecond})
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- tap.Run(ctx, rec) }()
		sent := a.drive(b, tap.Addr(ctx).String())
		cancel()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		if n := rec.frames.Load(); n < sent || tap.Counts().Lost != 0 {
			b.Errorf("%d of %d events were recorded, %d bytes lost", n, sent, tap.Counts().Lost)
		}
	})
}

// drive opens the streams at addr, sends b.N events on each, and reports how long
// they took. It returns how many were sent.
func (a *agent) drive(b *testing.B, addr string) int64 {
	a.streams = nil
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var mu sync.Mutex
	var took []time.Duration
	var got sync.WaitGroup
	var clients sync.WaitGroup
	conns := make([]net.Conn, benchStreams)
	epoch := time.Now()
	for i := range conns {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		conns[i] = c
		fmt.Fprintf(c, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
		select {
		case <-a.joined:
		case <-time.After(time.Minute):
			b.Fatalf("stream %d was not opened", i)
		}
		clients.Add(1)
		go func() {
			defer clients.Done()
			mine := make([]time.Duration, 0, 64)
			for in := bufio.NewScanner(c); in.Scan(); {
				if text, ok := strings.CutPrefix(in.Text(), "data: "); ok {
					at, _, _ := strings.Cut(text, " ")
					ns, _ := strconv.ParseInt(at, 10, 64)
					mine = append(mine, time.Since(epoch)-time.Duration(ns))
					got.Done()
				}
			}
			mu.Lock()
			took = append(took, mine...)
			mu.Unlock()
		}()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	pad := strings.Repeat("x", 100)
	cpu := cpuTime()
	b.ResetTimer()
	for range b.N {
		begun := time.Now()
		for i, in := range a.streams {
			got.Add(1)
			in <- fmt.Sprintf("data: %d %s\n\n", time.Since(epoch), pad)
			if i%50 == 49 { // every 10 ms
				time.Sleep(time.Until(begun.Add(time.Duration(i+1) * 200 * time.Microsecond)))
			}
		}
	}
	got.Wait()
	b.StopTimer()
	used := cpuTime() - cpu
	for _, c := range conns {
		_ = c.Close()
	}
	clients.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(used.Microseconds())/float64(len(took)), "cpu-µs/event")
	b.ReportMetric(float64(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse)/benchStreams/1024, "KiB/stream")
	b.ReportMetric(0, "ns/op")
	return int64(len(took))
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
