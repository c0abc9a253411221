package meter

import (
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"
	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/semconv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type rig struct {
	*Meter
	t       *testing.T
	metrics *telemetry.Metrics
	reader  *sdk.ManualReader
}

func newRig(t *testing.T, profile string) *rig {
	t.Helper()
	p, err := semconv.New(profile)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, metrics: telemetry.New(), reader: sdk.NewManualReader()}
	if r.Meter, err = New(p, r.metrics, r.reader); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(t.Context()) })
	return r
}

// read returns the metrics by name.
func (r *rig) read() map[string]metricdata.Metrics {
	r.t.Helper()
	var rm metricdata.ResourceMetrics
	if err := r.reader.Collect(r.t.Context(), &rm); err != nil {
		r.t.Fatal(err)
	}
	out := make(map[string]metricdata.Metrics)
	for _, s := range rm.ScopeMetrics {
		for _, m := range s.Metrics {
			out[m.Name] = m
		}
	}
	return out
}

// count is how many values a histogram has, and their sum.
func (r *rig) count(name string) (n uint64, sum float64) {
	r.t.Helper()
	switch d := r.read()[name].Data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			n, sum = n+p.Count, sum+p.Sum
		}
	case metricdata.Histogram[int64]:
		for _, p := range d.DataPoints {
			n, sum = n+p.Count, sum+float64(p.Sum)
		}
	}
	return n, sum
}

// counter is a counter's values by that attribute.
func (r *rig) counter(name string, key attribute.Key) map[string]int64 {
	out := make(map[string]int64)
	if d, ok := r.read()[name].Data.(metricdata.Sum[int64]); ok {
		for _, p := range d.DataPoints {
			v, _ := p.Attributes.Value(key)
			out[v.AsString()] += p.Value
		}
	}
	return out
}

func span(kind msg.SpanKind, name string, seconds float64) msg.Span {
	const start = 1_780_000_000e9
	return msg.Span{
		Tenant: "default", Source: "harbour", Format: "legion", Kind: kind, State: msg.SpanClosed,
		TraceID: msg.NewTraceID("default", "legion", "s", "r"), ID: msg.NewSpanID("default", "legion", "s", kind, name),
		Start: start, End: start + int64(seconds*1e9), FirstToken: start + 2e8,
		Agent: msg.Agent{Name: "pilot"}, Model: "tern-2", Provider: "anthropic", Tool: msg.Tool{Name: "tide_table"}, Outcome: msg.OutcomeOK,
	}
}

func usage(key string, t msg.Tokens) msg.Message {
	m := msg.Message{Key: key, Session: "s", Run: "r", Kind: msg.Usage, Complete: msg.Complete, Model: "tern-2", Provider: "anthropic", ResponseID: "resp", Usage: t}
	m.Host = msg.Host{Tenant: "default", Source: "harbour", Format: "legion", ID: msg.NewID("default", "legion", "s", key), TraceID: msg.NewTraceID("default", "legion", "s", "r"), SpanID: msg.NewSpanID("default", "legion", "s", msg.SpanChat, "resp")}
	return m
}

func TestNamesAreThoseOfTheRelease(t *testing.T) {
	m := newRig(t, semconv.GenAI141)
	s := span(msg.SpanChat, "a", 1.5)
	s.Usage, s.AskedModel, s.Server = msg.Tokens{Input: 1}, "tern", "models.harbour:443"
	m.Record(&export.Batch{Spans: exporttest.Records(s)})
	got := m.read()
	for name, unit := range map[string]string{
		genaiconv.ClientOperationDuration{}.Name():         genaiconv.ClientOperationDuration{}.Unit(),
		genaiconv.ClientOperationTimeToFirstChunk{}.Name(): genaiconv.ClientOperationTimeToFirstChunk{}.Unit(),
		genaiconv.ClientTokenUsage{}.Name():                genaiconv.ClientTokenUsage{}.Unit(),
	} {
		if got[name].Name == "" || got[name].Unit != unit {
			t.Errorf("%s: %q in %q", name, got[name].Name, got[name].Unit)
		}
	}
	p := got["gen_ai.client.operation.duration"].Data.(metricdata.Histogram[float64]).DataPoints[0]
	want := attribute.NewSet(
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", "anthropic"), attribute.String("gen_ai.request.model", "tern"),
		attribute.String("gen_ai.response.model", "tern-2"), attribute.String("server.address", "models.harbour"), attribute.Int64("server.port", 443),
		attribute.String("gen_ai.agent.name", "pilot"),
		attribute.String("earshot.source", "harbour"), attribute.String("earshot.format", "legion"),
	)
	if !p.Attributes.Equals(&want) {
		t.Errorf("attributes %v", p.Attributes.ToSlice())
	}
}

func TestDurationsByKind(t *testing.T) {
	for profile, names := range map[string][4]string{
		semconv.GenAI141:    {"gen_ai.client.operation.duration", "earshot.execute_tool.duration", "earshot.delegation.duration", "earshot.invoke_agent.duration"},
		semconv.GenAILatest: {"gen_ai.client.inference.duration", "gen_ai.execute_tool.duration", "earshot.delegation.duration", "gen_ai.invoke_agent.duration"},
	} {
		m := newRig(t, profile)
		b := &export.Batch{}
		for i, kind := range []msg.SpanKind{msg.SpanChat, msg.SpanTool, msg.SpanDelegation, msg.SpanRun} {
			b.Spans = append(b.Spans, new(span(kind, "a", float64(i+1))))
			open := span(kind, "b", 1)
			open.State = msg.SpanOpen
			gone := span(kind, "c", 1)
			gone.Tombstone = true
			b.Spans = append(b.Spans, new(open), new(gone))
		}
		m.Record(b)
		for i, name := range names {
			if n, sum := m.count(name); n != 1 || sum != float64(i+1) {
				t.Errorf("%s: %s: %d values, %v s", profile, name, n, sum)
			}
		}
	}
}

// TestFailuresHaveAClass: error.type is there for failures, and only there.
func TestFailuresHaveAClass(t *testing.T) {
	m := newRig(t, "")
	ok, failed, nameless := span(msg.SpanTool, "a", 1), span(msg.SpanTool, "b", 1), span(msg.SpanTool, "c", 1)
	failed.Outcome, failed.ErrorType = msg.OutcomeError, "timeout"
	nameless.Outcome = msg.OutcomeError
	m.Record(&export.Batch{Spans: exporttest.Records(ok, failed, nameless)})
	got := make(map[string]uint64)
	for _, p := range m.read()["earshot.execute_tool.duration"].Data.(metricdata.Histogram[float64]).DataPoints {
		v, _ := p.Attributes.Value("error.type")
		got[v.AsString()] += p.Count
	}
	if len(got) != 3 || got[""] != 1 || got["timeout"] != 1 || got["_OTHER"] != 1 {
		t.Errorf("by error.type: %v", got)
	}
}

// TestTokensCountOnce: a partial count is part of the full one, tombstones
// and rows that are emitted again are not counted; the classes exclude each other, and
// the convention's input contains the cached tokens.
func TestTokensCountOnce(t *testing.T) {
	full := usage("u", msg.Tokens{Input: 10, Output: 20, CacheRead: 300, CacheWrite: 4000, Reasoning: 5})
	partial, gone := usage("u", msg.Tokens{Input: 10, Output: 1}), usage("v", msg.Tokens{Input: 9})
	partial.Complete, gone.Host.Tombstone = msg.Partial, true
	answer := span(msg.SpanChat, "resp", 1)
	answer.Usage = full.Usage
	whole := usage("run", msg.Tokens{Input: 7, Output: 7})
	whole.ResponseID = ""
	for _, profile := range []string{semconv.GenAI141, semconv.GenAILatest} {
		m := newRig(t, profile)
		m.Record(&export.Batch{Messages: exporttest.Records(partial)})
		m.Record(&export.Batch{Messages: exporttest.Records(gone, full), Spans: exporttest.Records(answer)})
		m.Record(&export.Batch{Messages: exporttest.Records(full, whole), Spans: exporttest.Records(answer)})
		got := m.counter("earshot.tokens", semconv.KeyTokenClass)
		want := map[string]int64{"input": 17, "output": 27, "cache_read": 300, "cache_write": 4000, "reasoning": 5}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", profile, got, want)
		}
		if profile == semconv.GenAI141 {
			if n, sum := m.count("gen_ai.client.token.usage"); n != 4 || sum != 4335+14 {
				t.Errorf("token.usage: %d values, %v tokens", n, sum)
			}
			continue
		}
		for name, want := range map[string]int64{"input_tokens": 4310, "output_tokens": 25, "cache_read.input_tokens": 300, "cache_write.input_tokens": 4000, "reasoning.output_tokens": 5} {
			if got := m.counter("gen_ai.client.inference.usage."+name, semconv.KeyOperation)["chat"]; got != want {
				t.Errorf("%s: %d, want %d", name, got, want)
			}
		}
	}
}

// TestEmittedAgainCountsOnce: a span that is emitted twice, in one batch or in two, counts
// once, with the last row of the first batch.
func TestEmittedAgainCountsOnce(t *testing.T) {
	m := newRig(t, "")
	b := &export.Batch{Spans: exporttest.Records(span(msg.SpanTool, "a", 1), span(msg.SpanTool, "a", 3))}
	m.Record(b)
	m.Record(b)
	if n, sum := m.count("earshot.execute_tool.duration"); n != 1 || sum != 3 {
		t.Errorf("%d values, %v s", n, sum)
	}
}

// TestLabelsAreBounded: names that a model invents do not make series without end.
func TestLabelsAreBounded(t *testing.T) {
	m := newRig(t, "")
	const n = 5000
	b := &export.Batch{}
	for i := range n {
		s := span(msg.SpanTool, fmt.Sprint(i), 1)
		s.Tool.Name = fmt.Sprintf("\xff%d%s", i, strings.Repeat("x", 1000))
		b.Spans = append(b.Spans, new(s))
	}
	m.Record(b)
	points := m.read()["earshot.execute_tool.duration"].Data.(metricdata.Histogram[float64]).DataPoints
	total := uint64(0)
	for _, p := range points {
		total += p.Count
		if v, _ := p.Attributes.Value("gen_ai.tool.name"); len(v.AsString()) > telemetry.MaxNameBytes+3 || strings.Contains(v.AsString(), "\xff") {
			t.Fatalf("a value of %d bytes: %.10q", len(v.AsString()), v.AsString())
		}
	}
	if len(points) != telemetry.MaxNames+1 || total != n {
		t.Errorf("%d series, %d values", len(points), total)
	}
	if len(m.labels.spans) > maxSets {
		t.Errorf("%d sets are remembered", len(m.labels.spans))
	}
}

// TestMemoryOfIdsIsBounded: the oldest counted spans are forgotten, the newest are not.
func TestMemoryOfIdsIsBounded(t *testing.T) {
	m := newRig(t, "")
	known := m.counted.spans
	for i := range uint64(3 * remembered) {
		if !known.Add(i, struct{}{}) {
			t.Fatalf("%d is known", i)
		}
	}
	if known.Len() != remembered {
		t.Errorf("%d ids", known.Len())
	}
	for i := uint64(2 * remembered); i < 3*remembered; i++ {
		if known.Add(i, struct{}{}) {
			t.Fatalf("%d was forgotten", i)
		}
	}
}

// TestExemplarsPointToSpans: in OpenMetrics, a bucket names a span that is in it.
func TestExemplarsPointToSpans(t *testing.T) {
	m := newRig(t, "")
	s, u := span(msg.SpanDelegation, "a", 100), usage("u", msg.Tokens{Input: 5})
	m.Record(&export.Batch{Spans: exporttest.Records(s), Messages: exporttest.Records(u)})
	w, q := httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil)
	q.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	m.metrics.Handler().ServeHTTP(w, q)
	body, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]msg.SpanID{`earshot_delegation_duration_seconds_bucket`: s.ID, `earshot_tokens_total`: u.Host.SpanID} {
		found := false
		for line := range strings.Lines(string(body)) {
			found = found || strings.HasPrefix(line, name+"{") && strings.Contains(line, "# {") &&
				strings.Contains(line, `trace_id="`+s.TraceID.String()+`"`) && strings.Contains(line, `span_id="`+id.String()+`"`)
		}
		if !found {
			t.Errorf("no exemplar of %s names its span:\n%s", name, body)
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	p, err := semconv.New("")
	if err != nil {
		b.Fatal(err)
	}
	m, err := New(p, telemetry.New())
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close(b.Context())
	batch := &export.Batch{}
	for i := range 1000 {
		batch.Spans = append(batch.Spans, new(span(msg.SpanKind(i%4), fmt.Sprint(i), 1)))
	}
	b.ReportAllocs()
	for b.Loop() {
		m.counted.spans, m.counted.responses = bounded.NewMap[uint64, struct{}](remembered), bounded.NewMap[uint64, struct{}](remembered)
		m.Record(batch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/span")
}

// TestPausesOfAResponse counts the time between the chunks of a response from an observed
// server, once, and of no other.
func TestPausesOfAResponse(t *testing.T) {
	const name = "gen_ai.client.operation.time_per_output_chunk"
	m := newRig(t, semconv.GenAI141)
	observed, other := span(msg.SpanChat, "a", 1.5), span(msg.SpanChat, "b", 1.5)
	observed.Server = "models.harbour:443"
	stream := func(s *msg.Span) msg.Stream {
		return msg.Stream{Chat: s.ID, Pace: msg.Pace{Chunks: 4, Gaps: "10:2 20:1"}}
	}
	m.Record(&export.Batch{Spans: exporttest.Records(observed, other)})
	m.Record(&export.Batch{Streams: []msg.Stream{stream(&observed), stream(&other), {Pace: msg.Pace{Gaps: "3:1"}}}})
	m.Record(&export.Batch{Streams: []msg.Stream{stream(&observed)}})
	n, sum := m.count(name)
	if want := 2*0.75*1024e-6 + 0.75*1048576e-6; n != 3 || sum < want*0.999 || sum > want*1.001 {
		t.Errorf("%d pauses of %g s together, want 3 of %g s", n, sum, want)
	}
}
