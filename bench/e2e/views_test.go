package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// viewRows select the rows of a conversation that several views show.
var viewRows = []string{
	"SELECT run_id, kind, tool_call_id, content, input_tokens, output_tokens, format, span_id FROM messages FINAL ORDER BY ALL",
	"SELECT session_id, runs, user_messages, tool_calls, input_tokens, output_tokens FROM v_sessions ORDER BY ALL",
	"SELECT kind, run_id, ts, trace_id, span_id, parent_span_id, output_tokens, seen_by, tokens_from, times_from, conflict FROM v_spans ORDER BY ALL",
	"SELECT run_id, responses, tool_calls, input_tokens, output_tokens FROM v_turns ORDER BY ALL",
	"SELECT session_id, kind, tool_call_id, format, seen_by FROM v_message_views ORDER BY ALL",
}

// sameViewRows compares the rows of the same views, which were read in one order and in the other.
func sameViewRows(t *testing.T, first, second *home) {
	t.Helper()
	for _, sql := range viewRows {
		rows := first.query(sql)
		if len(rows) == 0 {
			t.Errorf("no rows: %s", sql)
		}
		if diff := cmp.Diff(rows, second.query(sql)); diff != "" {
			t.Errorf("%s (-telemetry last +telemetry first):\n%s", sql, tail(diff))
		}
	}
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
	sameViewRows(t, first, second)
	want := []string{"5e550000-0000-4000-8000-0000000000b7\t2\t3\t1\t28\t72"}
	if diff := cmp.Diff(want, first.query(viewRows[1])); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
	show := string(first.command("show", "5e550000-0000-4000-8000-0000000000b7"))
	t.Log(show)
	if !strings.Contains(show, "seen by claude-code, claude-code-otel") {
		t.Errorf("show prints no provenance:\n%s", show)
	}
	// The query of docs/provenance.md.
	seen := first.query("SELECT kind, format, arrayStringConcat(seen_by, ', ') AS views FROM v_message_views WHERE length(seen_by) > 1 ORDER BY kind, ts")
	t.Log(strings.Join(seen, "\n"))
	if len(seen) == 0 {
		t.Error("no message is seen by both")
	}
	if show := string(first.command("show", "-o", "json", "5e550000-0000-4000-8000-0000000000b7")); !strings.Contains(show, `"seen_messages"`) || !strings.Contains(show, `"tokens_from"`) || !strings.Contains(show, `"status_from"`) {
		t.Errorf("show has no provenance of messages:\n%s", show)
	}
}

// TestLeadingViewIsStoredOnce: a rollout of Codex and its telemetry, which has no ids of responses, whichever is
// read first: the rows of the rollout are stored, and rows that the telemetry had stored before are taken back.
func TestLeadingViewIsStoredOnce(t *testing.T) {
	const thread, turn = "019cb81c-a538-7000-8000-0000000000e1", "019cb81c-a920-7000-8000-0000000000e2"
	usage := `{"input_tokens":30,"cached_input_tokens":10,"output_tokens":5,"reasoning_output_tokens":0,"total_tokens":35}`
	rollout := strings.ReplaceAll(`{"timestamp":"2026-03-04T09:10:11.000Z","type":"session_meta","payload":{"id":"THREAD","session_id":"THREAD","timestamp":"2026-03-04T09:10:11.000Z","cwd":"/srv","originator":"codex_cli_rs","cli_version":"0.146.0","source":"cli","model_provider":"openai"}}
{"timestamp":"2026-03-04T09:10:12.000Z","type":"event_msg","payload":{"type":"task_started","turn_id":"`+turn+`"}}
{"timestamp":"2026-03-04T09:10:12.100Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Oil the gate."}]}}
{"timestamp":"2026-03-04T09:10:14.000Z","type":"response_item","payload":{"type":"function_call","call_id":"call_gate","name":"shell","arguments":"{\"command\":[\"oil\"]}"}}
{"timestamp":"2026-03-04T09:10:14.100Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":`+usage+`,"last_token_usage":`+usage+`}}}
{"timestamp":"2026-03-04T09:10:15.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_gate","output":"It swings."}}
{"timestamp":"2026-03-04T09:10:16.000Z","type":"event_msg","payload":{"type":"task_complete","turn_id":"`+turn+`"}}
`, "THREAD", thread)
	record := func(at, name, more string) string {
		return `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"0","body":null,"attributes":[{"key":"event.name","value":{"stringValue":"` + name + `"}},{"key":"event.timestamp","value":{"stringValue":"2026-03-04T09:10:` + at + `Z"}},{"key":"conversation.id","value":{"stringValue":"` + thread + `"}}` + more + `]}]}]}]}` + "\n"
	}
	attr := func(key, value string) string {
		return `,{"key":"` + key + `","value":{"stringValue":"` + value + `"}}`
	}
	telemetry := record("12.100", "codex.user_prompt", attr("prompt", "Oil the gate.")) +
		record("14.100", "codex.sse_event", attr("event.kind", "response.completed")+attr("input_token_count", "30")+attr("cached_token_count", "10")+attr("output_token_count", "5")+attr("tool_token_count", "35")) +
		record("15.000", "codex.tool_result", attr("call_id", "call_gate")+attr("tool_name", "shell")+attr("output", "It swings.")+attr("success", "true")+attr("duration_ms", "900"))
	texts := map[string]string{"codex": rollout, "codex-otel": telemetry}
	read := func(order ...string) *home {
		h := newHome(t).configure("sources:", files("codex", "codex/*.jsonl"), files("codex-otel", "codex-otel/*.jsonl"))
		for _, format := range order {
			h.write(format+"/rollout-2026-03-04T09-10-11-"+thread+".jsonl", texts[format])
			h.drain()
		}
		return h
	}
	first, second := read("codex", "codex-otel"), read("codex-otel", "codex")
	sameViewRows(t, first, second)
	want := []string{thread + "\t1\t1\t1\t20\t5"}
	if diff := cmp.Diff(want, first.query(viewRows[1])); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
}
