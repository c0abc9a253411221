package pipeline

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/source/file"
	"github.com/earshot-dev/earshot/core/msg"
)

// BenchmarkSessions reads sessions that all go on, in a file each, and one of ten times
// as many messages as there are sessions, and goes on for three seconds after that: the
// sessions are silent for long enough then to be flushed. longest-ms is the longest wait for
// a call of the core, gc-ms the longest stop of the garbage collector, and KiB/session the
// live memory divided by the sessions. The decoder is in this process, so that its memory is
// counted too.
func BenchmarkSessions(b *testing.B) {
	for _, open := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("open=%d", open), func(b *testing.B) {
			dir := b.TempDir()
			for i := range open {
				writeOpenSession(b, filepath.Join(dir, fmt.Sprintf("s%05d", i)), 2)
			}
			writeOpenSession(b, filepath.Join(dir, "long"), 10*open)
			for range b.N {
				openSessions(b, filepath.Join(dir, "*/messages.jsonl"), open+1)
			}
		})
	}
}

// writeOpenSession writes a session that has not answered its prompt to the end, up to now: an old one would be history.
func writeOpenSession(b *testing.B, dir string, messages int) {
	var text strings.Builder
	began := time.Now().Unix() - int64(messages)
	for i := range messages {
		kind := "assistant"
		if i == 0 {
			kind = "user"
		}
		fmt.Fprintf(&text, `{"type":%q,"content":"message %d: %s","timestamp":%d.5}`+"\n", kind, i, strings.Repeat("words ", 20), began+int64(i))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "messages.jsonl"), []byte(text.String()), 0o644); err != nil {
		b.Fatal(err)
	}
}

func openSessions(b *testing.B, pattern string, open int) {
	ctx, cancel := context.WithCancel(b.Context())
	sink := &openSpans{ids: make(map[msg.SpanID]bool)}
	p := New(Settings{MaxInFlight: 16 << 20}, nothingKnown{}, sink)
	_, ended := inThisProcess(ctx, b, p)
	feed, err := p.AddFeed("legion", "default", "legion", "", false)
	if err != nil {
		b.Fatal(err)
	}
	src, err := file.New(file.Settings{Name: "legion", Paths: []string{pattern}})
	if err != nil {
		b.Fatal(err)
	}
	memory, stops := liveMemory(), gcStops()
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.runCore(ctx); err != nil {
			b.Error(err)
		}
	})
	running.Go(func() {
		if err := src.Run(ctx, feed); err != nil {
			b.Error(err)
		}
	})
	longest, read := time.Duration(0), time.Time{}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for read.IsZero() || time.Since(read) < 3*time.Second {
		<-tick.C
		asked := time.Now()
		_ = p.inbox.call(ctx, func(*core) {})
		longest = max(longest, time.Since(asked))
		if read.IsZero() && src.Drained() && p.inbox.pending.Load() == 0 {
			read = time.Now()
		}
	}
	memory = liveMemory() - memory
	b.ReportMetric(float64(memory)/1024/float64(open), "KiB/session")
	b.ReportMetric(float64(longest.Microseconds())/1e3, "longest-ms")
	b.ReportMetric(1e3*longestStop(stops, gcStops()), "gc-ms")
	cancel()
	running.Wait()
	ended()
	if len(sink.ids) < open {
		b.Errorf("%d spans were open in %d sessions", len(sink.ids), open)
	}
}

// openSpans is a sink that remembers the open spans.
type openSpans struct{ ids map[msg.SpanID]bool }

func (o *openSpans) Submit(_ context.Context, batch *export.Batch, _ checkpoint.Delta, _ bool, released, done func()) error {
	for _, s := range batch.Spans {
		if s.State == msg.SpanOpen {
			o.ids[s.ID] = true
		}
	}
	released()
	done()
	return nil
}

// liveMemory is the live memory of this process in bytes.
func liveMemory() int64 {
	var m runtime.MemStats
	for range 3 { // pools release their memory in the second
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// gcStops is how often and for how long the garbage collector has stopped the process.
func gcStops() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64Histogram()
}

// longestStop is the upper bound of the longest stop between two looks, in seconds.
func longestStop(before, after *metrics.Float64Histogram) float64 {
	for i := len(after.Counts) - 1; i >= 0; i-- {
		if after.Counts[i] > before.Counts[i] && !math.IsInf(after.Buckets[i+1], 0) {
			return after.Buckets[i+1]
		}
	}
	return 0
}
