package clickhouse

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
)

// TestTheAgentsOwnSpans: an agent sends spans of its own to agent_spans, by the
// collector's columns, and otel_traces has them beside ours. The query of docs/opentelemetry.md finds which are which, and the views
// count ours alone.
func TestTheAgentsOwnSpans(t *testing.T) {
	x, c := exporter(t, nil)
	call := sampleSpan()
	export1(t, x, &export.Batch{Spans: exporttest.Records(call)})
	own := func(scope, name, attributes string) {
		t.Helper()
		// The columns that the collector's exporter names.
		if err := c.Exec(t.Context(), `INSERT INTO agent_spans (Timestamp, TraceId, SpanId, ParentSpanId, TraceState, SpanName, SpanKind, ServiceName, ResourceAttributes,
			ScopeName, ScopeVersion, SpanAttributes, Duration, StatusCode, StatusMessage) VALUES ('2026-03-01 10:20:30.2', 'aa', '`+name+`', '', '', '`+name+`', 'Internal', 'claude-code', map(),
			'`+scope+`', '1', map(`+attributes+`), 1400000000, 'Ok', '')`); err != nil {
			t.Fatal(err)
		}
	}
	own("com.anthropic.claude_code.tracing", "claude_code.tool", `'tool_use_id', 'c1', 'session.id', 's1'`)
	own("com.anthropic.sdk.python", "execute_tool Task", `'gen_ai.tool.call.id', 'c1', 'gen_ai.operation.name', 'execute_tool'`)
	own("com.anthropic.claude_code.tracing", "claude_code.llm_request", `'session.id', 's1'`)

	page, err := os.ReadFile("../../docs/opentelemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sql, found := strings.Cut(string(page), "```sql\n")
	sql, _, closed := strings.Cut(sql, "\n```")
	if !found || !closed {
		t.Fatal("docs/opentelemetry.md has no SQL")
	}
	var got []string
	for _, r := range rows(t, c, sql) {
		if r["trace"] != call.TraceID.String() || r["tool"] != "Task" || r["own_trace"] != "aa" {
			t.Errorf("%v", r)
		}
		got = append(got, r["span"].(string))
	}
	if d := cmp.Diff([]string{"claude_code.tool", "execute_tool Task"}, got); d != "" {
		t.Errorf("its own spans (-want +got):\n%s", d)
	}
	for _, view := range []string{"v_spans", "v_tool_calls"} {
		if n := len(rows(t, c, "SELECT 1 FROM "+view)); n != 1 {
			t.Errorf("%s has %d rows", view, n)
		}
	}
}
