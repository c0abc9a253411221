package clickhouse

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestSessionsAndModelsOfSpans checks the columns of spans whose conversation has no
// id, of models that were asked for and that answered, and of rows from before there was an
// attribute of our own for the session.
func TestSessionsAndModelsOfSpans(t *testing.T) {
	x, c := exporter(t, nil)
	chat := func(id byte, asked, answered string) msg.Span {
		return msg.Span{
			Tenant: "default", Source: "harbour", Format: "claude-stream", Session: "plan", Unnamed: true, Run: "r", Kind: msg.SpanChat, State: msg.SpanClosed,
			TraceID: msg.TraceID{1}, ID: msg.SpanID{id}, Start: int64(id) * 1e9, End: int64(id)*1e9 + 1, AskedModel: asked, Model: answered,
		}
	}
	export1(t, x, &export.Batch{Spans: []msg.Span{chat(1, "tern", "tern-2026"), chat(2, "tern", "tern"), chat(3, "", "tern-2026")}})
	if err := c.Exec(t.Context(), `INSERT INTO otel_traces (Timestamp, TraceId, SpanId, ScopeName, SpanAttributes) VALUES
		(toDateTime64(4, 9), '01', '04', 'github.com/earshot-dev/earshot', {'gen_ai.operation.name': 'chat', 'gen_ai.conversation.id': 's0', 'gen_ai.request.model': 'tern-2025', 'gen_ai.response.model': 'tern-2025'})`); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"session_id": "plan", "model": "tern-2026", "named": json.Number("0")},
		{"session_id": "plan", "model": "tern", "named": json.Number("0")},
		{"session_id": "plan", "model": "tern-2026", "named": json.Number("0")},
		{"session_id": "s0", "model": "tern-2025", "named": json.Number("1")},
	}
	got := rows(t, c, `SELECT session_id, model, countIf(SpanAttributes['gen_ai.conversation.id'] != '') AS named
		FROM v_spans JOIN otel_traces ON SpanId = span_id GROUP BY ts, session_id, model ORDER BY ts`)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
