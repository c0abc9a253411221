package assemble

import (
	"bytes"
	"runtime"
	"strconv"
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
func (n *countSpans) Message(msg.Message)           {}
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

// stored is a store in memory.
type stored map[string][]byte

func (s stored) Group(key string) ([]byte, error) { return s[key], nil }

// BenchmarkReturning is the cost of a record of a session that is loaded for it and stored after it: 10,000 sessions
// are open, of which each has a record every ten seconds, so that each has been evicted in between. One operation is a
// record. state-bytes is the size of a session's state.
func BenchmarkReturning(b *testing.B) {
	const sessions, each = 10_000, 10
	store, size := make(stored, sessions), 0
	var spans countSpans
	a := New(Settings{}, store, &spans)
	now, n := time.Unix(1_700_000_000, 0), 0
	second := func() {
		for range sessions / each {
			s := strconv.Itoa(n % sessions)
			m := msg.Message{Session: s, Run: "r" + s, Kind: msg.ToolCall, Key: strconv.Itoa(n), Time: now.UnixNano(), Precision: msg.Millis, Complete: msg.Complete, Model: "m"}
			m.Tool = msg.Tool{CallID: strconv.Itoa(n / (2 * sessions)), Name: "Bash", Arguments: msg.Plain(`{"command":"make test"}`)}
			if n/sessions%2 == 1 {
				m.Kind, m.Content = msg.ToolResult, msg.Plain("ok")
			}
			m.Host = msg.Host{Tenant: "t", Source: "s", Format: "legion", Ver: uint64(n)}
			if _, err := a.Apply(&m, uint64(n%sessions), 1, now, now.UnixNano()); err != nil {
				b.Fatal(err)
			}
			n++
		}
		if err := a.Idle(now, 0); err != nil {
			b.Fatal(err)
		}
		if err := a.Commit(func(key string, _ bool, state []byte) { store[key], size = state, len(state) }); err != nil {
			b.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	for range 2 * each {
		second()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += sessions / each {
		second()
	}
	b.ReportMetric(float64(size), "state-bytes")
	if len(a.groups) > sessions*7/10 {
		b.Fatalf("%d sessions are in memory: they were not evicted", len(a.groups))
	}
}

// BenchmarkVerdicts is the cost of verdicts at 10,000 open sessions, of which each has a record
// every ten seconds: a run, its call, and its delegate's run in turn. One operation is ten seconds
// of traffic. It prints the share of judging in the time of the assembler, which is itself about a
// tenth of the sidecar's.
func BenchmarkVerdicts(b *testing.B) {
	const sessions = 10_000
	var spans countSpans
	a := New(Settings{}, emptyStore{}, &spans)
	now, n := time.Unix(1_700_000_000, 0), 0
	second := func() {
		for i := range sessions / 10 {
			s := strconv.Itoa((n*sessions/10 + i) % sessions)
			round := n / 10
			m := msg.Message{Session: s, Run: "r" + s, Kind: msg.ToolCall, Key: strconv.Itoa(n), Time: now.UnixNano(), Precision: msg.Millis, Complete: msg.Complete, Model: "m"}
			m.Tool = msg.Tool{CallID: strconv.Itoa(round / 2), Name: "Bash", Arguments: msg.Plain(`{"command":"make test"}`)}
			if round%2 == 1 {
				m.Kind, m.Content = msg.ToolResult, msg.Plain("ok "+strconv.Itoa(n))
			}
			m.Host = msg.Host{Tenant: "t", Source: "s", Format: "legion", Ver: uint64(n)}
			if _, err := a.Apply(&m, uint64(i), 1, now, now.UnixNano()); err != nil {
				b.Fatal(err)
			}
		}
		if err := a.Idle(now, 0); err != nil {
			b.Fatal(err)
		}
		if err := a.Commit(func(string, bool, []byte) {}); err != nil {
			b.Fatal(err)
		}
		n, now = n+1, now.Add(time.Second)
	}
	for range 10 {
		second()
	}
	a.learning.spent, a.learning.judged = 0, 0
	b.ResetTimer()
	for b.Loop() {
		for range 10 {
			second()
		}
	}
	b.ReportMetric(100*a.learning.spent.Seconds()/b.Elapsed().Seconds(), "%-of-assembler")
	b.ReportMetric(float64(a.learning.spent.Nanoseconds())/float64(max(a.learning.judged, 1)), "ns/judgement")
	b.ReportMetric(float64(a.learning.judged)/float64(b.N)/10, "judgements/s")
}
