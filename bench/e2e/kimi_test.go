package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestKimiSession reads the files of a session of Kimi CLI while they grow, with those of a sub-agent, which is read first, and a fork: the
// sub-agent is below its call, each text is there once, the turns of the fork count in the session that it copies, and the tokens are those of
// the records.
func TestKimiSession(t *testing.T) {
	h := newHome(t).configure("sources:", `  - {name: kimi, type: file, format: kimi, paths: ["DIR/sessions/*/*/wire.jsonl", "DIR/sessions/*/*/subagents/*/*.json*", "DIR/sessions/*/*/state.json"]}`)
	const session, fork = "8e000000-0000-4000-8000-000000000001", "8e000000-0000-4000-8000-00000000000f"
	read := func(name string) string {
		text, err := os.ReadFile("../../plugins/kimi/testdata/" + name)
		h.must(err)
		return string(text)
	}
	lines := strings.SplitAfter(read("session/in.jsonl"), "\n")
	dir := "sessions/0cc1/" + session
	h.write(dir+"/subagents/a1b2c3d4/wire.jsonl", read("agent/in.jsonl"))
	h.drain()
	h.write(dir+"/wire.jsonl", strings.Join(lines[:10], ""))
	h.drain()
	h.write(dir+"/wire.jsonl", strings.Join(lines, ""))
	h.write(dir+"/state.json", read("state/in.json"))
	h.write(dir+"/subagents/a1b2c3d4/meta.json", read("meta/in.json"))
	h.drain()
	end := 0
	for i, l := range lines {
		if strings.Contains(l, `"TurnEnd"`) && !strings.Contains(l, "SubagentEvent") {
			end = i + 1
			break
		}
	}
	h.write("sessions/0cc1/"+fork+"/wire.jsonl", strings.Join(lines[:end], "")+
		`{"timestamp": 1788400990.5, "message": {"type": "TurnBegin", "payload": {"user_input": "Count the auks."}}}`+"\n"+
		`{"timestamp": 1788400990.6, "message": {"type": "StepBegin", "payload": {"n": 1}}}`+"\n"+
		`{"timestamp": 1788400992.5, "message": {"type": "ContentPart", "payload": {"type": "text", "text": "No auks."}}}`+"\n"+
		`{"timestamp": 1788400992.6, "message": {"type": "StatusUpdate", "payload": {"token_usage": {"input_other": 7, "output": 3, "input_cache_read": 0, "input_cache_creation": 0}, "message_id": "chatcmpl-auk-1"}}}`+"\n"+
		`{"timestamp": 1788400992.7, "message": {"type": "TurnEnd", "payload": {}}}`+"\n")
	h.drain()

	got := h.query("SELECT concat(session_id, ' ', toString(sum(input_tokens)), ' ', toString(sum(output_tokens)), ' ', toString(sum(cache_read_tokens)), ' ', toString(sum(cache_write_tokens))) FROM v_usage GROUP BY session_id ORDER BY session_id")
	if fmt.Sprint(got) != "["+session+" 3050 332 25200 200 "+fork+" 7 3 0 0]" {
		t.Errorf("tokens %q", got)
	}
	if got := h.query("SELECT content FROM v_messages WHERE kind IN ('user', 'assistant', 'reasoning') AND length(run_id) > 0 GROUP BY content, run_id HAVING count() != 1"); len(got) > 0 {
		t.Errorf("not once: %q", got)
	}
	if got := h.query("SELECT content FROM v_messages WHERE kind = 'user' AND session_id = '" + fork + "'"); fmt.Sprint(got) != "[Count the auks.]" {
		t.Errorf("prompts of the fork %q", got)
	}
	if got := h.query("SELECT concat(status, ' ', child_run_id, ' ', link_method) FROM v_delegations ORDER BY ts"); fmt.Sprint(got) != "[ok a1b2c3d4 native_id ok a5e6f7a8 native_id cancelled a1b2c3d4 native_id]" {
		t.Errorf("delegations %q", got)
	}
	if got := h.query("SELECT concat(p.kind, ' ', p.tool_name) FROM v_spans AS s JOIN v_spans AS p ON p.span_id = s.parent_span_id WHERE s.kind = 'run' AND s.run_id = 'a1b2c3d4'"); fmt.Sprint(got) != "[delegation Agent]" {
		t.Errorf("the sub-agent is below %q", got)
	}
	if got := h.query("SELECT any(title) FROM v_sessions WHERE session_id = '" + session + "'"); fmt.Sprint(got) != "[Count the terns of the island]" {
		t.Errorf("title %q", got)
	}
}
