package semconv_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/meter"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
	"github.com/earshot-dev/earshot/exporters/otel"
	"github.com/earshot-dev/earshot/plugins"
)

// registry are the facts of a version of the conventions; see testdata/README.md.
type registry struct {
	Attributes map[string]struct {
		Type   string
		Values []string
	}
	Spans map[string]struct {
		Kind       string
		Attributes map[string]string // requirement levels
	}
	Metrics map[string]struct {
		Instrument, Unit string
		Bounds           []float64
		Attributes       map[string]string
	}
	Events map[string]struct{ Attributes map[string]string }
	latest bool
}

// open are attributes whose values may be others than the well-known ones: providers that
// the conventions do not list, and classes of errors.
var open = []string{semconv.KeyProvider, semconv.KeyErrorType}

func load(t *testing.T, version string) *registry {
	t.Helper()
	b, err := os.ReadFile("testdata/registry-" + version + ".json")
	if err != nil {
		t.Fatal(err)
	}
	r := &registry{latest: version == semconv.GenAILatest}
	if err := json.Unmarshal(b, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEmittedFollowsTheRegistry sends the messages of every decoder's recorded cases
// through the assembler and the exporters, in both versions, with contents and without:
// every attribute of every span, event, log record and metric has a name of the
// convention, and that one's type and values, or a name of our own.
func TestEmittedFollowsTheRegistry(t *testing.T) {
	var batches []*export.Batch
	for _, name := range slices.Sorted(maps.Keys(plugins.Bundled())) {
		batches = append(batches, recorded(t, plugins.Bundled()[name]())...)
	}
	for _, version := range []string{semconv.GenAI141, semconv.GenAILatest} {
		r := load(t, version)
		profile, err := semconv.New(version)
		if err != nil {
			t.Fatal(err)
		}
		for _, content := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s content %t", version, content), func(t *testing.T) {
				spans, records := sent(t, profile, content, batches)
				seen := &seen{names: make(map[string]int)}
				for _, s := range spans {
					r.span(t, s, seen)
				}
				for _, l := range records {
					r.record(t, l, seen)
				}
				seen.has(t, content, r.latest)
			})
		}
		t.Run(version+" metrics", func(t *testing.T) { r.metrics(t, measured(t, profile, batches)) })
	}
}

// recorded are the batches of a decoder's cases: one for each.
func recorded(t *testing.T, f decoder.Factory) []*export.Batch {
	t.Helper()
	format := f.Info().Name
	cases, err := conformance.Load(os.DirFS("../../plugins/" + format + "/testdata"))
	if err != nil {
		t.Fatal(err)
	}
	var out []*export.Batch
	for i := range cases {
		c := &cases[i]
		b := &export.Batch{ID: format + "/" + c.Name}
		sink := &spans{batch: b}
		a := assemble.New(assemble.Settings{}, none{}, sink)
		for form, frames := range [][]frame.Frame{c.Frames, c.Reload} {
			stream := c.Stream
			if form == 1 {
				stream = c.ReloadStream
			}
			if len(frames) == 0 {
				continue
			}
			s, err := conformance.NewLocal(f).Open(t.Context(), stream, nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := s.Decode(t.Context(), conformance.Batch{Frames: frames, Flush: true})
			if err != nil {
				continue // an expected failure of the decoder
			}
			for n := range answer.Messages {
				m := answer.Messages[n]
				if m.Validate() != nil {
					continue
				}
				if m.Time == 0 {
					m.Time, m.Precision = 1_780_000_000e9+int64(n), msg.Inferred
				}
				m.Host = msg.Host{
					Tenant: "default", Source: "harbour", Format: format, Seq: uint64(n), Ver: uint64(n), Origin: stream.Origin, Server: "agents.internal:7777",
				}
				if _, err := a.Apply(&m, uint64(form+1), 1, time.Time{}, m.Time); err != nil {
					t.Fatal(err)
				}
				b.Messages = append(b.Messages, new(m))
			}
			s.Close()
		}
		if err := a.Finish(); err != nil {
			t.Fatal(err)
		}
		if err := a.Commit(func(string, bool, []byte) {}); err != nil {
			t.Fatal(err)
		}
		for i := range b.Spans { // each response that was asked for over HTTP came in two pieces
			if s := b.Spans[i]; s.Kind == msg.SpanChat {
				b.Streams = append(b.Streams, msg.Stream{Chat: s.ID, Pace: msg.Pace{Chunks: 2, Gaps: "13:1"}})
			}
		}
		out = append(out, b)
	}
	return out
}

type spans struct{ batch *export.Batch }

func (s *spans) Span(x msg.Span)                        { s.batch.Spans = append(s.batch.Spans, new(x)) }
func (s *spans) ReplayChildren(uint64, assemble.RunRef) {}
func (s *spans) Verdict(msg.Verdict)                    {}

func (s *spans) Replayable(uint64) bool { return false }

func (s *spans) Flush(uint64)           {}
func (s *spans) Message(msg.Message)    {}
func (s *spans) Finding(string, string) {}

type none struct{}

func (none) Group(string) ([]byte, error) { return nil, nil }

// sent returns the spans and log records that a receiver gets.
func sent(t *testing.T, p *semconv.Profile, content bool, batches []*export.Batch) (all []*tracepb.Span, records []*logspb.LogRecord) {
	t.Helper()
	var mu sync.Mutex
	take := func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		z, err := gzip.NewReader(q.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body, err := io.ReadAll(z)
		var traces coltracepb.ExportTraceServiceRequest
		var logs collogspb.ExportLogsServiceRequest
		switch {
		case err != nil:
		case q.URL.Path == "/v1/traces":
			err = proto.Unmarshal(body, &traces)
		default:
			err = proto.Unmarshal(body, &logs)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, r := range traces.ResourceSpans {
			for _, s := range r.ScopeSpans {
				all = append(all, s.Spans...)
			}
		}
		for _, r := range logs.ResourceLogs {
			for _, s := range r.ScopeLogs {
				records = append(records, s.LogRecords...)
			}
		}
	}
	server := httptest.NewServer(http.HandlerFunc(take))
	defer server.Close()
	x, err := otel.New(t.Context(), otel.Settings{Endpoint: server.URL, Content: content, Profile: p, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := x.Export(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return all, records
}

// seen counts the attributes that occurred, so that the test proves that it covers them.
type seen struct{ names map[string]int }

func (s *seen) has(t *testing.T, content, latest bool) {
	t.Helper()
	want := []string{
		semconv.KeyConversation, semconv.KeyAgentName, semconv.KeyRequestModel, semconv.KeyResponseModel, semconv.KeyRequestStream, semconv.KeyMaxTokens,
		semconv.KeyFinishReasons, semconv.KeyServerAddress, semconv.KeyServerPort, semconv.KeyUsageReasoning, semconv.KeyErrorType, semconv.KeyMCPMethod,
	}
	if content {
		want = append(want, semconv.KeyInputMessages, semconv.KeyOutputMessages, semconv.KeyInstructions, semconv.KeyToolDefinitions, semconv.KeyToolArguments, semconv.KeyToolResult)
	}
	if latest {
		want = append(want, semconv.KeyTransferMode, semconv.KeyTransferTarget, semconv.KeyTransferType)
	} else {
		want = append(want, semconv.KeyAgentID)
	}
	for _, name := range want {
		if s.names[name] == 0 {
			t.Errorf("no span of any case has %s", name)
		}
	}
}

func (r *registry) span(t *testing.T, s *tracepb.Span, seen *seen) {
	t.Helper()
	attrs := r.attributes(t, s.Name, s.Attributes, seen)
	op := attrs[semconv.KeyOperation].GetStringValue()
	def, known := r.Spans[op]
	if !known {
		t.Errorf("%s: operation %q", s.Name, op)
		return
	}
	if kind := strings.ToLower(strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_")); kind != def.Kind {
		t.Errorf("%s: kind %s, want %s", s.Name, kind, def.Kind)
	}
	required(t, s.Name, def.Attributes, attrs)
	if s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR && attrs[semconv.KeyErrorType] == nil {
		t.Errorf("%s: failed without error.type", s.Name)
	}
	r.messages(t, s.Name, attrs)
	for _, e := range s.Events {
		if !strings.HasPrefix(e.Name, "earshot.") {
			t.Errorf("%s: event %s", s.Name, e.Name)
		}
		r.attributes(t, s.Name+" event "+e.Name, e.Attributes, seen)
	}
	for _, l := range s.Links {
		r.attributes(t, s.Name+" link", l.Attributes, seen)
	}
}

func (r *registry) record(t *testing.T, l *logspb.LogRecord, seen *seen) {
	t.Helper()
	def, known := r.Events[l.EventName]
	if !known || len(l.TraceId) != 16 || len(l.SpanId) != 8 {
		t.Errorf("event %q of %x %x", l.EventName, l.TraceId, l.SpanId)
	}
	required(t, l.EventName, def.Attributes, r.attributes(t, l.EventName, l.Attributes, seen))
}

// attributes checks each attribute's name, type and value.
func (r *registry) attributes(t *testing.T, of string, list []*commonpb.KeyValue, seen *seen) map[string]*commonpb.AnyValue {
	t.Helper()
	out := make(map[string]*commonpb.AnyValue, len(list))
	for _, a := range list {
		out[a.Key] = a.Value
		if strings.HasPrefix(a.Key, "earshot.") {
			continue
		}
		seen.names[a.Key]++
		def, known := r.Attributes[a.Key]
		if !known {
			t.Errorf("%s: the convention has no %s", of, a.Key)
			continue
		}
		if got := typeOf(a.Value); got != def.Type && def.Type != "any" {
			t.Errorf("%s: %s is %s, want %s", of, a.Key, got, def.Type)
		}
		if v := a.Value.GetStringValue(); len(def.Values) > 0 && !slices.Contains(open, a.Key) && !slices.Contains(def.Values, v) {
			t.Errorf("%s: %s is %q, want one of %q", of, a.Key, v, def.Values)
		}
	}
	if (out[semconv.KeyServerAddress] == nil) != (out[semconv.KeyServerPort] == nil) {
		t.Errorf("%s: an address without a port, or a port without an address", of)
	}
	return out
}

func typeOf(v *commonpb.AnyValue) string {
	switch x := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return "string"
	case *commonpb.AnyValue_IntValue:
		return "int"
	case *commonpb.AnyValue_DoubleValue:
		return "double"
	case *commonpb.AnyValue_BoolValue:
		return "boolean"
	case *commonpb.AnyValue_ArrayValue:
		if len(x.ArrayValue.Values) > 0 && typeOf(x.ArrayValue.Values[0]) == "string" {
			return "string[]"
		}
	}
	return fmt.Sprintf("%T", v.GetValue())
}

func required(t *testing.T, of string, levels map[string]string, attrs map[string]*commonpb.AnyValue) {
	t.Helper()
	for name, level := range levels {
		if level == "required" && attrs[name] == nil {
			t.Errorf("%s: no %s", of, name)
		}
	}
}

// messages checks the schema of the content attributes, where the span has them.
func (r *registry) messages(t *testing.T, of string, attrs map[string]*commonpb.AnyValue) {
	t.Helper()
	for _, key := range []string{semconv.KeyInputMessages, semconv.KeyOutputMessages} {
		v := attrs[key]
		if v == nil {
			continue
		}
		var list []struct {
			Role         string
			Parts        []map[string]any
			FinishReason *string `json:"finish_reason"`
		}
		if err := json.Unmarshal([]byte(v.GetStringValue()), &list); err != nil || len(list) == 0 {
			t.Errorf("%s: %s: %v", of, key, err)
		}
		for _, m := range list {
			if wants := key == semconv.KeyOutputMessages && !r.latest; wants != (m.FinishReason != nil) {
				t.Errorf("%s: %s: a finish_reason is wanted: %t", of, key, wants)
			}
			if !slices.Contains([]string{"user", "assistant", "tool"}, m.Role) || len(m.Parts) == 0 {
				t.Errorf("%s: %s: role %q, %d parts", of, key, m.Role, len(m.Parts))
			}
			for _, p := range m.Parts {
				for _, member := range map[any][]string{
					"text": {"content"}, "reasoning": {"content"}, "tool_call": {"name"}, "tool_call_response": {"response"}, "uri": {"uri", "modality"}, "attachment": {},
				}[p["type"]] {
					if p[member] == nil {
						t.Errorf("%s: %s: part %v without %s", of, key, p, member)
					}
				}
			}
		}
	}
	if v := attrs[semconv.KeyInstructions]; v != nil {
		var parts []struct{ Type, Content string }
		if err := json.Unmarshal([]byte(v.GetStringValue()), &parts); err != nil || len(parts) == 0 || parts[0].Type != "text" {
			t.Errorf("%s: instructions %s: %v", of, v.GetStringValue(), err)
		}
	}
	if v := attrs[semconv.KeyToolDefinitions]; v != nil {
		var tools []struct{ Type, Name string }
		if err := json.Unmarshal([]byte(v.GetStringValue()), &tools); err != nil || len(tools) == 0 || tools[0].Type == "" || tools[0].Name == "" {
			t.Errorf("%s: tools %s: %v", of, v.GetStringValue(), err)
		}
	}
}

// measured are the metrics of the batches.
func measured(t *testing.T, p *semconv.Profile, batches []*export.Batch) []metricdata.Metrics {
	t.Helper()
	reader := sdk.NewManualReader()
	m, err := meter.New(p, telemetry.New(), reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		m.Record(b)
	}
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return rm.ScopeMetrics[0].Metrics
}

func (r *registry) metrics(t *testing.T, list []metricdata.Metrics) {
	t.Helper()
	found := make(map[string]bool)
	for _, m := range list {
		found[m.Name] = true
		def, known := r.Metrics[m.Name]
		if !known && !strings.HasPrefix(m.Name, "earshot.") {
			t.Errorf("the convention has no metric %s", m.Name)
		}
		if known && m.Unit != def.Unit {
			t.Errorf("%s in %s, want %s", m.Name, m.Unit, def.Unit)
		}
		instrument := "histogram"
		var sets []attribute.Set
		var bounds []float64
		switch d := m.Data.(type) {
		case metricdata.Histogram[float64]:
			for _, p := range d.DataPoints {
				sets, bounds = append(sets, p.Attributes), p.Bounds
			}
		case metricdata.Histogram[int64]:
			for _, p := range d.DataPoints {
				sets, bounds = append(sets, p.Attributes), p.Bounds
			}
		case metricdata.Sum[int64]:
			instrument = "counter"
			for _, p := range d.DataPoints {
				sets = append(sets, p.Attributes)
			}
		}
		if known && (instrument != def.Instrument || !slices.Equal(bounds, def.Bounds)) {
			t.Errorf("%s is a %s with %v, want a %s with %v", m.Name, instrument, bounds, def.Instrument, def.Bounds)
		}
		for _, s := range sets {
			r.labels(t, m.Name, s, def.Attributes)
		}
	}
	for name := range r.Metrics {
		if !found[name] && !strings.HasPrefix(name, "gen_ai.server.") {
			t.Errorf("nothing was measured for %s", name)
		}
	}
}

func (r *registry) labels(t *testing.T, of string, set attribute.Set, levels map[string]string) {
	t.Helper()
	for _, a := range set.ToSlice() {
		key := string(a.Key)
		if strings.HasPrefix(key, "earshot.") {
			continue
		}
		def, known := r.Attributes[key]
		kind := map[attribute.Type]string{attribute.STRING: "string", attribute.INT64: "int"}[a.Value.Type()]
		if !known || def.Type != kind {
			t.Errorf("%s: %s is %s, the convention has %q", of, key, kind, def.Type)
		}
		if v := a.Value.AsString(); len(def.Values) > 0 && !slices.Contains(open, key) && !slices.Contains(def.Values, v) {
			t.Errorf("%s: %s is %q, want one of %q", of, key, v, def.Values)
		}
	}
	for name, level := range levels {
		if _, ok := set.Value(attribute.Key(name)); level == "required" && !ok {
			t.Errorf("%s: no %s in %v", of, name, set.ToSlice())
		}
	}
}
