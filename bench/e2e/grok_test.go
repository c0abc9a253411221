package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestGrokSession reads the files of a session of Grok Build while they grow, with that of its sub-agent, which is read first, and a fork: the
// sub-agent is below its call, in the same trace, each text is there once, and the tokens are those of the turns, which have the sub-agent's.
func TestGrokSession(t *testing.T) {
	h := newHome(t).configure("sources:", `  - {name: grok, type: file, format: grok, paths: ["DIR/sessions/*/*/updates.jsonl", "DIR/sessions/*/*/summary.json"]}`)
	const session, child, fork = "01a20001-0000-7000-8000-00000000a001", "01a20001-0000-7000-8000-00000000c001", "01a20003-0000-7000-8000-00000000f003"
	read := func(name string) string {
		text, err := os.ReadFile("../../plugins/grok/testdata/" + name)
		h.must(err)
		return string(text)
	}
	write := func(session, name, text string) { h.write("sessions/%2Fsrv%2Fharbour/"+session+"/"+name, text) }
	write(child, "updates.jsonl", read("child/in.jsonl"))
	h.drain()
	lines := strings.SplitAfter(read("turn/in.jsonl"), "\n")
	write(session, "updates.jsonl", strings.Join(lines[:7], ""))
	h.drain()
	write(session, "updates.jsonl", strings.Join(lines, ""))
	write(session, "summary.json", read("summary/in.json"))
	write(fork, "updates.jsonl", read("fork/in.jsonl"))
	h.drain()

	got := h.query("SELECT concat(session_id, ' ', toString(sum(input_tokens)), ' ', toString(sum(output_tokens)), ' ', toString(sum(cache_read_tokens))) FROM v_usage GROUP BY session_id ORDER BY session_id")
	if fmt.Sprint(got) != "["+session+" 3200 178 2000 "+fork+" 200 10 900]" {
		t.Errorf("tokens %q", got)
	}
	if got := h.query("SELECT content FROM v_messages WHERE kind IN ('user', 'assistant', 'reasoning') AND length(run_id) > 0 GROUP BY content, run_id HAVING count() != 1"); len(got) > 0 {
		t.Errorf("not once: %q", got)
	}
	if got := h.query("SELECT content FROM v_messages WHERE kind = 'user' AND session_id = '" + fork + "'"); fmt.Sprint(got) != "[And the ladder?]" {
		t.Errorf("prompts of the fork %q", got)
	}
	if got := h.query("SELECT concat(s.session_id, ' ', s.agent_name, ' ', p.tool_name, ' ', p.delegate_to, ' ', toString(s.trace_id = p.trace_id)) FROM v_spans AS s JOIN v_spans AS p ON p.span_id = s.parent_span_id WHERE s.kind = 'run' AND p.kind = 'delegation'"); fmt.Sprint(got) !=
		"["+child+" explore spawn_subagent explore 1]" {
		t.Errorf("sub-agents are below %q", got)
	}
	if got := h.query("SELECT concat(tool_name, ' ', status) FROM v_spans WHERE kind IN ('tool', 'delegation') AND session_id = '" + session + "' ORDER BY ts, tool_name"); fmt.Sprint(got) !=
		"[spawn_subagent ok run_terminal_command ok run_terminal_command error list_dir ok]" {
		t.Errorf("calls %q", got)
	}
	if got := h.query("SELECT concat(any(title), ' ', any(project)) FROM v_sessions WHERE session_id = '" + session + "'"); fmt.Sprint(got) != "[The crane at noon /srv/harbour]" {
		t.Errorf("title and project %q", got)
	}
}
