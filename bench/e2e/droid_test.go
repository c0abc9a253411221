package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestDroidSession reads the files of a session with a sub-agent while they grow: the sub-agent, a session of its own, is below its call, and
// the tokens are the last sum of the session's settings.
func TestDroidSession(t *testing.T) {
	h := newHome(t).configure("sources:", `  - {name: droid, type: file, format: droid, paths: ["DIR/sessions/**/*.jsonl", "DIR/sessions/**/*.settings.json"]}`)
	const session, agent = "3d000000-0000-4000-8000-000000000001", "3d000000-0000-4000-8000-000000000002"
	read := func(name string) string {
		text, err := os.ReadFile("../../plugins/droid/testdata/" + name)
		h.must(err)
		return string(text)
	}
	lines := strings.SplitAfter(read("session/in.jsonl"), "\n")
	h.write("sessions/-reef/"+session+".settings.json", strings.Replace(read("settings/in.json"), "41000", "9000", 1))
	h.write("sessions/-reef/"+session+".jsonl", strings.Join(lines[:4], ""))
	h.drain()
	h.write("sessions/-reef/"+agent+".jsonl", read("agent/in.jsonl"))
	h.drain()
	h.write("sessions/-reef/"+session+".jsonl", strings.Join(lines, ""))
	h.write("sessions/-reef/"+session+".settings.json", read("settings/in.json"))
	h.drain()

	got := h.query("SELECT concat(session_id, ' ', toString(sum(input_tokens)), ' ', toString(sum(output_tokens)), ' ', toString(sum(reasoning_tokens)), ' ', toString(sum(cache_read_tokens)), ' ', toString(sum(cache_write_tokens))) FROM v_usage GROUP BY session_id")
	if fmt.Sprint(got) != "["+session+" 210 340 60 41000 5200]" {
		t.Errorf("tokens %q", got)
	}
	if got := h.query("SELECT content FROM v_messages WHERE kind IN ('user', 'assistant', 'reasoning') GROUP BY content, run_id HAVING count() != 1"); len(got) > 0 {
		t.Errorf("not once: %q", got)
	}
	if got := h.query("SELECT concat(status, ' ', child_run_id, ' ', link_method) FROM v_delegations"); fmt.Sprint(got) != "[ok "+agent+" native_id]" {
		t.Errorf("delegations %q", got)
	}
	if got := h.query("SELECT p.kind FROM v_spans AS s JOIN v_spans AS p ON p.span_id = s.parent_span_id WHERE s.kind = 'run' AND s.run_id = '" + agent + "'"); fmt.Sprint(got) != "[delegation]" {
		t.Errorf("the sub-agent is below %q", got)
	}
	if got := h.query("SELECT status FROM v_spans WHERE kind = 'run' ORDER BY ts"); fmt.Sprint(got) != "[ok ok cancelled]" {
		t.Errorf("runs %q", got)
	}
	if got := h.query("SELECT any(title) FROM v_sessions WHERE session_id = '" + session + "'"); fmt.Sprint(got) != "[Count the corals of the reef]" {
		t.Errorf("title %q", got)
	}
}
