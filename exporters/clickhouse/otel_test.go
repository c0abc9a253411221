package clickhouse

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/msg/msgtest"
	"github.com/earshot-dev/earshot/core/semconv"
)

// spanColumns are the columns that the documented queries of the collector's exporter select.
const spanColumns = `Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, Duration, StatusCode, StatusMessage,
	toString(SpanAttributes), toString(ResourceAttributes), toString(Events.Name), toString(Links.TraceId)`

// traceBounds is how the collector's documentation and Grafana's data source find the time of a trace.
const traceBounds = `(SELECT min(Start) FROM otel_traces_trace_id_ts WHERE TraceId = trace_id) AS trace_start, (SELECT max(End) + 1 FROM otel_traces_trace_id_ts WHERE TraceId = trace_id) AS trace_end`

// TestDocumentedQueries runs the queries that the collector's exporter documents and Grafana's
// ClickHouse data source makes, on the views that have the names of their tables. Each finds the
// one span that it describes, and a trace by its id is looked up in an index.
func TestDocumentedQueries(t *testing.T) {
	x, c := exporter(t, nil)
	s := sampleSpan()
	s.Start = time.Now().Add(-time.Minute).UnixNano()
	s.End, s.LastSeen = s.Start+int64(1500*time.Millisecond), s.Start+int64(1500*time.Millisecond)
	fast := s
	fast.ID, fast.TraceID, fast.Parent, fast.Source, fast.End, fast.Outcome = msg.SpanID{7}, msg.TraceID{7}, msg.SpanID{}, "harbour", s.Start+5, msg.OutcomeOK
	export1(t, x, &export.Batch{Spans: exporttest.Records(s, fast)})
	trace := s.TraceID.String()
	for name, sql := range map[string]string{
		"collector: attribute": `SELECT ` + spanColumns + ` FROM otel_traces WHERE ServiceName = 'legion' AND SpanAttributes['gen_ai.tool.name'] = 'Task' AND Timestamp >= NOW() - INTERVAL 1 HOUR LIMIT 100`,
		"collector: trace":     `WITH '` + trace + `' AS trace_id, ` + traceBounds + ` SELECT ` + spanColumns + ` FROM otel_traces WHERE TraceId = trace_id AND Timestamp >= trace_start AND Timestamp <= trace_end LIMIT 100`,
		"collector: errors":    `SELECT ` + spanColumns + ` FROM otel_traces WHERE ServiceName = 'legion' AND StatusCode = 'Error' AND Timestamp >= NOW() - INTERVAL 1 HOUR LIMIT 100`,
		"collector: slow":      `SELECT ` + spanColumns + ` FROM otel_traces WHERE ServiceName = 'legion' AND Duration > 1 * 1e9 AND Timestamp >= NOW() - INTERVAL 1 HOUR LIMIT 100`,
		"grafana: search": `SELECT "TraceId" AS traceID, "ServiceName" AS serviceName, "SpanName" AS operationName, "Timestamp" AS startTime, multiply("Duration", 0.000001) AS duration
			FROM "otel_traces" WHERE ( Timestamp >= now() - 3600 AND Timestamp <= now() ) AND ( ParentSpanId = '' ) AND ( Duration > 0 ) ORDER BY Timestamp DESC, Duration DESC LIMIT 1000`,
		"grafana: trace": `WITH '` + trace + `' AS trace_id, ` + traceBounds + ` SELECT "TraceId" AS traceID, "SpanId" AS spanID, "ParentSpanId" AS parentSpanID, "ServiceName" AS serviceName,
			"SpanName" AS operationName, multiply(toUnixTimestamp64Nano("Timestamp"), 0.000001) AS startTime, multiply("Duration", 0.000001) AS duration,
			arrayMap(key -> map('key', key, 'value', "SpanAttributes"[key]), mapKeys("SpanAttributes")) AS tags,
			arrayMap(key -> map('key', key, 'value', "ResourceAttributes"[key]), mapKeys("ResourceAttributes")) AS serviceTags,
			if("StatusCode" IN ('Error', 'STATUS_CODE_ERROR'), 2, 0) AS statusCode, "StatusMessage" AS statusMessage, "SpanKind" AS kind, "TraceState" AS traceState,
			arrayMap((name, timestamp, attributes) -> tuple(name, toString(toUnixTimestamp64Milli(timestamp)), arrayMap(key -> map('key', key, 'value', attributes[key]), mapKeys(attributes)))::Tuple(name String, timestamp String, fields Array(Map(String, String))),
				"Events.Name", "Events.Timestamp", "Events.Attributes") AS logs,
			arrayMap((traceID, spanID, attributes) -> tuple(traceID, spanID, arrayMap(key -> map('key', key, 'value', attributes[key]), mapKeys(attributes)))::Tuple(traceID String, spanID String, tags Array(Map(String, String))),
				"Links.TraceId", "Links.SpanId", "Links.Attributes") AS references
			FROM "otel_traces" WHERE traceID = trace_id AND "Timestamp" >= trace_start AND "Timestamp" <= trace_end LIMIT 1000`,
	} {
		for _, final := range []string{"", " SETTINGS final = 1"} { // the data source may set it
			if got := rows(t, c, sql+final); len(got) != 1 {
				t.Errorf("%s%s: %d rows", name, final, len(got))
			}
		}
	}
	if err := c.Exec(t.Context(), "OPTIMIZE TABLE spans FINAL"); err != nil { // a merge builds the index
		t.Fatal(err)
	}
	for _, sql := range []string{
		"SELECT * FROM otel_traces WHERE TraceId = '" + trace + "'", "SELECT min(Start) FROM otel_traces_trace_id_ts WHERE TraceId = '" + trace + "'",
		"SELECT * FROM tool_calls FINAL WHERE trace_id = '" + trace + "'", "SELECT * FROM v_spans WHERE trace_id = '" + trace + "'",
	} {
		if plan := count(t, c, "EXPLAIN indexes = 1 "+sql); !strings.Contains(plan, "idx_trace") {
			t.Errorf("the index of traces is not used by %s:\n%s", sql, plan)
		}
	}
}

// TestAttributesAreThoseOfTheConventions changes one field of a span of each kind at a time: in
// both versions of the conventions otel_traces has the attributes that an OTLP receiver gets.
func TestAttributesAreThoseOfTheConventions(t *testing.T) {
	for _, version := range []string{semconv.GenAI141, semconv.GenAILatest} {
		profile, err := semconv.New(version)
		if err != nil {
			t.Fatal(err)
		}
		x, c := exporter(t, func(s *Settings) { s.Profile = profile })
		want := make(map[string]map[string]any)
		changed := make(map[string]string)
		var list []msg.Span
		for _, kind := range []msg.SpanKind{msg.SpanRun, msg.SpanChat, msg.SpanTool, msg.SpanDelegation, msg.SpanWorkflow} {
			base := sampleSpan()
			base.Kind, base.FirstToken, base.Server = kind, base.Start+123456789, "models.internal:443"
			msgtest.EachField(base, func(name string, s msg.Span) {
				if s.State == msg.SpanOpen || s.Tombstone || s.Kind > msg.SpanWorkflow {
					return
				}
				s.ID = msg.NewSpanID("", "", "", kind, name)
				attributes := make(map[string]any)
				profile.Attributes(&s, func(k string, v semconv.Value) { attributes[k] = string(v.AppendText(nil)) })
				want[s.ID.String()], changed[s.ID.String()] = attributes, kind.String()+" "+name
				list = append(list, s)
			})
		}
		export1(t, x, &export.Batch{Spans: exporttest.Records(list...)})
		got := rows(t, c, "SELECT SpanId, SpanAttributes FROM otel_traces")
		if len(got) != len(want) {
			t.Errorf("%s: %d spans of %d", version, len(got), len(want))
		}
		for _, r := range got {
			id := r["SpanId"].(string)
			if d := cmp.Diff(any(want[id]), r["SpanAttributes"]); d != "" {
				t.Errorf("%s, %s (-want +got):\n%s", version, changed[id], d)
			}
		}
	}
}
