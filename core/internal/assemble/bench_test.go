package assemble

import (
	"bytes"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/earshot-dev/earshot/bench/gen"
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/plugins/legion"
)

type emptyStore struct{}

func (emptyStore) Group(string) ([]byte, error) { return nil, nil }

type countSpans int

func (n *countSpans) Span(msg.Span)                 { *n++ }
func (n *countSpans) ReplayChildren(uint64, RunRef) {}
func (n *countSpans) Finding(string, string)        {}
func (n *countSpans) Verdict(msg.Verdict)           {}

func (n *countSpans) Replayable(uint64) bool { return false }

func (n *countSpans) Flush(uint64) {}

// session decodes the lines of a session of about 4 MB.
func session(tb testing.TB) (messages []msg.Message, size int) {
	tb.Helper()
	_, data, _ := gen.Legion(gen.Options{Sessions: 1, Bytes: 4e6, Seed: 1}).Session(0)
	d, err := legion.New().New(decoder.Stream{Origin: "x"})
	if err != nil {
		tb.Fatal(err)
	}
	var out decoder.Output
	for i, line := range bytes.Split(data, []byte("\n")) {
		out.Begin(int32(i))
		if err := d.Decode(&frame.Frame{Data: line}, &out); err != nil {
			tb.Fatal(err)
		}
	}
	return out.Messages, len(data)
}

// applyAll applies the messages, and returns the number of spans.
func applyAll(tb testing.TB, messages []msg.Message) int {
	var spans countSpans
	now := time.Unix(0, 0)
	a := New(Settings{}, emptyStore{}, &spans)
	for i := range messages {
		m := &messages[i]
		m.Host = msg.Host{Tenant: "t", Source: "s", Format: "legion", Ver: uint64(i)}
		if _, err := a.Apply(m, 1, 1, now, now.UnixNano()); err != nil {
			tb.Fatal(err)
		}
	}
	return int(spans)
}

// BenchmarkApply applies the messages of one session. Bytes are those of the session's lines,
// so that stages compare.
func BenchmarkApply(b *testing.B) {
	messages, size := session(b)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if applyAll(b, messages) == 0 {
			b.Fatal("no spans")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(messages)), "ns/message")
	b.ReportMetric(float64(len(messages)), "records/op")
}

// TestApplyAllocates limits the memory of a message: the ids of open spans, and no span on the
// heap.
func TestApplyAllocates(t *testing.T) {
	messages, _ := session(t)
	spans := applyAll(t, messages)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	applyAll(t, messages)
	runtime.ReadMemStats(&after)
	per := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(messages))
	t.Logf("%.0f bytes a message, %d spans of %d messages", per, spans, len(messages))
	if limit := float64(unsafe.Sizeof(msg.Span{})); per > limit { // every other message has a span
		t.Errorf("a message allocates %.0f bytes, more than %.0f", per, limit)
	}
}
