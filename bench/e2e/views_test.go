package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// viewRows are what the tables have of a conversation that several views show.
var viewRows = []string{
	"SELECT run_id, kind, tool_call_id, content, input_tokens, output_tokens, format, span_id FROM messages FINAL ORDER BY ALL",
	"SELECT session_id, runs, user_messages, tool_calls, input_tokens, output_tokens FROM v_sessions ORDER BY ALL",
	"SELECT kind, run_id, ts, trace_id, span_id, parent_span_id, output_tokens, seen_by, tokens_from, times_from, conflict FROM v_spans ORDER BY ALL",
	"SELECT run_id, responses, tool_calls, input_tokens, output_tokens FROM v_turns ORDER BY ALL",
}

// TestViewsAreStoredOnce: a transcript and the telemetry of the same session, whichever is read first, with
// a restart between the two, are one session with one set of runs, calls and tokens.
func TestViewsAreStoredOnce(t *testing.T) {
	views := map[string]string{"claude-code": "prompt_ids", "claude-code-otel": "transcribed"}
	read := func(order ...string) *home {
		h := newHome(t).configure("sources:", files("claude-code", "claude-code/*.jsonl"), files("claude-code-otel", "claude-code-otel/*.jsonl"))
		for _, format := range order {
			b, err := os.ReadFile(fixture(t, format+"/testdata/"+views[format]+"/in.jsonl"))
			h.must(err)
			h.write(format+"/5e550000-0000-4000-8000-0000000000b7.jsonl", string(b))
			h.drain()
		}
		return h
	}
	first, second := read("claude-code", "claude-code-otel"), read("claude-code-otel", "claude-code")
	defer first.store()()
	for _, sql := range viewRows {
		rows := first.query(sql)
		if len(rows) == 0 {
			t.Errorf("no rows: %s", sql)
		}
		if diff := cmp.Diff(rows, second.query(sql)); diff != "" {
			t.Errorf("%s (-transcript first +telemetry first):\n%s", sql, tail(diff))
		}
	}
	want := []string{"5e550000-0000-4000-8000-0000000000b7\t2\t3\t1\t28\t72"}
	if diff := cmp.Diff(want, first.query(viewRows[1])); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
	show := string(first.command("show", "5e550000-0000-4000-8000-0000000000b7"))
	t.Log(show)
	if !strings.Contains(show, "seen by claude-code, claude-code-otel") {
		t.Errorf("show prints no provenance:\n%s", show)
	}
}
