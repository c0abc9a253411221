package clickhouse

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestSessionsAndModelsOfSpans checks the columns of spans whose conversation has no
// id, and of models that were asked for and that answered.
func TestSessionsAndModelsOfSpans(t *testing.T) {
	x, c := exporter(t, nil)
	chat := func(id byte, asked, answered string) msg.Span {
		return msg.Span{
			Tenant: "default", Source: "harbour", Format: "claude-stream", Session: "plan", Unnamed: true, Run: "r", Kind: msg.SpanChat, State: msg.SpanClosed,
			TraceID: msg.TraceID{1}, ID: msg.SpanID{id}, Start: int64(id) * 1e9, End: int64(id)*1e9 + 1, AskedModel: asked, Model: answered,
		}
	}
	export1(t, x, &export.Batch{Spans: exporttest.Records(chat(1, "tern", "tern-2026"), chat(2, "tern", "tern"), chat(3, "", "tern-2026"))})
	want := []map[string]any{
		{"session_id": "plan", "model": "tern-2026", "named": json.Number("0")},
		{"session_id": "plan", "model": "tern", "named": json.Number("0")},
		{"session_id": "plan", "model": "tern-2026", "named": json.Number("0")},
	}
	got := rows(t, c, `SELECT session_id, model, countIf(SpanAttributes['gen_ai.conversation.id'] != '') AS named
		FROM v_spans JOIN otel_traces ON SpanId = span_id GROUP BY ts, session_id, model ORDER BY ts`)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
