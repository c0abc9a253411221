package clickhouse

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestFindingsAreStored stores a run while it runs, once it has ended, and moved to
// another trace: each finding is one row, in its last version.
func TestFindingsAreStored(t *testing.T) {
	x, c := exporter(t, nil)
	run := sampleSpan()
	run.Kind, run.State = msg.SpanRun, msg.SpanOpen
	found := func(after int64, kind, count string) msg.SpanEvent {
		return msg.SpanEvent{Time: run.Start + after, Name: msg.EventFinding, Attrs: []msg.Attr{
			{Key: msg.FindingKind, Value: kind}, {Key: msg.FindingCount, Value: count}, {Key: msg.FindingTool, Value: "poll"},
		}}
	}
	run.Events = []msg.SpanEvent{{Time: run.Start, Name: "retry"}, found(1, "repeat", "5"), found(2, "repeat", "10")}
	export1(t, x, &export.Batch{ID: "1", Spans: exporttest.Records(run)})
	if got := count(t, c, "SELECT count() FROM v_findings"); got != "2" {
		t.Errorf("%s findings while it runs", got)
	}
	ended := run
	ended.State, ended.Ver, ended.TraceID = msg.SpanClosed, run.Ver+1, msg.TraceID{7}
	gone := ended
	gone.TraceID, gone.Tombstone = run.TraceID, true
	export1(t, x, &export.Batch{ID: "2", Spans: exporttest.Records(ended, gone)})
	export1(t, x, &export.Batch{ID: "3", Spans: exporttest.Records(run, ended, gone)})

	row := func(ts, count string) map[string]any {
		return map[string]any{
			"tenant": "default", "source": "legion", "format": "legion", "ts": ts, "kind": "repeat", "tool_name": "poll", "agent_name": "pilot",
			"count": json.Number(count), "session_id": "s1", "run_id": "r1", "trace_id": ended.TraceID.String(), "span_id": run.ID.String(),
		}
	}
	want := []map[string]any{row("2026-03-01 10:20:30.123456790", "5"), row("2026-03-01 10:20:30.123456791", "10")}
	if d := cmp.Diff(want, rows(t, c, "SELECT * FROM v_findings ORDER BY ts")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
