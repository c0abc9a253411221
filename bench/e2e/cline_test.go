package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestClineSession reads the documents of a session with a sub-agent, which Cline writes again with other ids of messages: everything is
// there once, the tokens are those of the responses, and the sub-agent is below its call.
func TestClineSession(t *testing.T) {
	h := newHome(t).configure("sources:", files("cline", "sessions/*/*.json"))
	const session = "1788300000000_wharf"
	dir := "sessions/" + session + "/"
	document := func(name string) string {
		text, err := os.ReadFile("../../plugins/cline/testdata/" + name + "/in.json")
		h.must(err)
		return string(text)
	}
	h.write(dir+session+".json", document("session"))
	h.write(dir+"agent_crane7.messages.json", document("agent")) // before that of its caller, whose call is over by then
	h.drain()
	h.write(dir+session+".messages.json", document("lead"))
	h.drain()
	h.write(dir+session+".messages.json", strings.ReplaceAll(document("lead"), `"id": "msg_m`, `"id": "msg_again_`))
	h.drain()

	const lead, agent = "input 3550 output 232 cache 5300", "input 300 output 40 cache 0"
	got := h.query("SELECT concat('input ', toString(sum(input_tokens)), ' output ', toString(sum(output_tokens)), ' cache ', toString(sum(cache_read_tokens + cache_write_tokens))) FROM v_usage GROUP BY agent_name ORDER BY agent_name")
	if fmt.Sprint(got) != fmt.Sprint([]string{lead, agent}) {
		t.Errorf("tokens %q", got)
	}
	if got := h.query("SELECT content FROM v_messages WHERE kind IN ('user', 'assistant', 'reasoning', 'system') GROUP BY content, run_id HAVING count() != 1"); len(got) > 0 {
		t.Errorf("not once: %q", got)
	}
	if got := h.query("SELECT concat(status, ' ', child_run_id, ' ', link_method) FROM v_delegations WHERE tool_name = 'spawn_agent'"); len(got) != 1 || !strings.HasPrefix(got[0], "ok task:") || !strings.HasSuffix(got[0], " prompt") {
		t.Errorf("delegations: %q", got)
	}
	if got := h.query("SELECT p.kind FROM v_spans AS s JOIN v_spans AS p ON p.span_id = s.parent_span_id WHERE s.kind = 'run' AND s.agent_name = 'agent_crane7'"); len(got) != 1 || got[0] != "delegation" {
		t.Errorf("the sub-agent is below %q", got)
	}
	h.oneCrane()
	if got := h.query("SELECT waits_for FROM v_tool_calls WHERE tool_name = 'ask_question'"); len(got) != 1 || got[0] != "person" {
		t.Errorf("the question waits for %q", got)
	}
	if got := h.query("SELECT any(title) FROM v_sessions"); len(got) != 1 || got[0] != "The cranes of the wharf" {
		t.Errorf("title %q", got)
	}
}

// oneCrane checks that all steps of the sub-agent are in the trace of its call.
func (h *home) oneCrane() {
	h.Helper()
	if got := h.query("SELECT concat(toString(count()), ' in ', toString(uniqExact(trace_id))) FROM v_spans WHERE agent_name = 'agent_crane7' OR tool_name = 'spawn_agent'"); len(got) != 1 || got[0] != "5 in 1" {
		h.Errorf("the steps of the sub-agent and its call: %q", got)
	}
}

// TestDocumentIsReadAgain: a sub-agent's document is read, and its stream closed, long before that of its caller, as that of a
// sub-agent is that ends before its siblings. When its call is read, all of its steps move below it.
func TestDocumentIsReadAgain(t *testing.T) {
	h := newHome(t).configure("sources:", files("cline", "sessions/*/*.json"))
	const session = "1788300000000_wharf"
	document := func(name string) string {
		text, err := os.ReadFile("../../plugins/cline/testdata/" + name + "/in.json")
		h.must(err)
		return string(text)
	}
	h.write("sessions/"+session+"/agent_crane7.messages.json", document("agent"))
	p := h.startRunning()
	h.until("the sub-agent is stored", func() bool {
		return len(h.tryQuery("SELECT 1 FROM v_spans WHERE agent_name = 'agent_crane7' AND kind = 'run'")) > 0
	})
	h.write("sessions/"+session+"/"+session+".messages.json", document("lead"))
	h.until("its steps are below its call", func() bool {
		got := h.tryQuery("SELECT uniqExact(trace_id) = 1 AND count() = 5 FROM v_spans WHERE agent_name = 'agent_crane7' OR tool_name = 'spawn_agent'")
		return len(got) == 1 && got[0] == "1"
	})
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)
	h.oneCrane()
}
