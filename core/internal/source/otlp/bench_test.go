package otlp

import (
	"encoding/json"
	"fmt"
	"testing"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// agentLogs are n events with the attributes that a coding agent's have.
func agentLogs(n int) *collogspb.ExportLogsServiceRequest {
	q := request("claude-code", n)
	for i, r := range q.ResourceLogs[0].ScopeLogs[0].LogRecords {
		r.TraceId, r.SpanId = nil, nil
		r.ObservedTimeUnixNano = r.TimeUnixNano
		r.Attributes = []*commonpb.KeyValue{
			text("event.name", "api_request"), text("event.timestamp", "2026-03-01T10:00:00.000Z"),
			{Key: "event.sequence", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(i)}}},
			text("session.id", "5f0c2b1e-7d41-4a53-9b6e-2f8f6f1f0a11"), text("prompt.id", "0d3a1f60-aaaa-4a53-9b6e-2f8f6f1f0a11"),
			text("model", "model-large"), text("cost_usd", "0.0123"), text("duration_ms", "5123"),
			text("input_tokens", "12"), text("output_tokens", "345"), text("cache_read_tokens", "45678"), text("cache_creation_tokens", "910"),
			text("request_id", fmt.Sprintf("req_%024d", i)), text("query_source", "main"), text("terminal.type", "xterm"),
		}
	}
	return q
}

// BenchmarkTranscript compares the frames of a request with those that the library's values and
// its JSON would take.
func BenchmarkTranscript(b *testing.B) {
	const n = 500
	q := agentLogs(n)
	raw := marshal(b, q)
	js, err := protojson.Marshal(q)
	if err != nil {
		b.Fatal(err)
	}
	t := &transcript{router: &router{format: "f"}, most: 1 << 30, index: make(map[string]int)}
	g := signals()[1]
	hold := func(int) error { return nil }
	rate := func(b *testing.B) { b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "records/s") }
	b.Run("protobuf", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			t.reset(g, hold)
			if err := t.protobuf(raw); err != nil {
				b.Fatal(err)
			}
		}
		rate(b)
		b.ReportMetric(float64(len(t.buf))/float64(len(raw)), "growth")
	})
	b.Run("json", func(b *testing.B) {
		b.SetBytes(int64(len(js)))
		b.ReportAllocs()
		for b.Loop() {
			t.reset(g, hold)
			if err := t.json(js); err != nil {
				b.Fatal(err)
			}
		}
		rate(b)
	})
	b.Run("library", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			var q collogspb.ExportLogsServiceRequest
			if err := proto.Unmarshal(raw, &q); err != nil {
				b.Fatal(err)
			}
			if _, err := protojson.Marshal(&q); err != nil {
				b.Fatal(err)
			}
		}
		rate(b)
	})
	b.Run("library, values alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var q collogspb.ExportLogsServiceRequest
			if err := proto.Unmarshal(raw, &q); err != nil {
				b.Fatal(err)
			}
		}
		rate(b)
	})
}

// FuzzTranscript: no bytes make it panic, and accepted input is valid JSON in frames.
func FuzzTranscript(f *testing.F) {
	f.Add(marshal(f, request("x", 2)), false)
	js, err := protojson.Marshal(request("x", 2))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(js, true)
	f.Add([]byte(`{"resource_logs":[{"scope_logs":[{"log_records":[{"severity_number":"SEVERITY_NUMBER_INFO","flags":1e0}]}]}]}`), true)
	all := signals()
	f.Fuzz(func(t *testing.T, in []byte, isJSON bool) {
		for _, g := range all {
			s := &transcript{router: &router{format: "f"}, most: 1 << 24, index: make(map[string]int)}
			s.reset(g, func(int) error { return nil })
			read := s.protobuf
			if isJSON {
				read = s.json
			}
			if read(in) != nil {
				continue
			}
			for _, p := range s.pieces {
				if data := s.buf[p.from:p.to]; !p.tooLong && !json.Valid(data) {
					t.Fatalf("%q", data)
				}
			}
		}
	})
}
