package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestKimiCodeSession reads the files of a session of Kimi Code while they grow, with those of its sub-agents, one of which is read first, and a
// fork of all of them: each agent is below its call, of a swarm as well, each text is there once, the turns of the fork count in the session that it
// copies, and the tokens are those of the records, of compactions too.
func TestKimiCodeSession(t *testing.T) {
	h := newHome(t).configure("sources:", `  - {name: kimi-code, type: file, format: kimi-code, paths: ["DIR/sessions/*/*/agents/*/wire.jsonl", "DIR/sessions/*/*/state.json"]}`)
	const session, fork = "session_9c000000-0000-4000-8000-000000000001", "session_9c000000-0000-4000-8000-00000000000f"
	read := func(name string) string {
		text, err := os.ReadFile("../../plugins/kimi-code/testdata/" + name)
		h.must(err)
		return string(text)
	}
	lines := strings.SplitAfter(read("session/in.jsonl"), "\n")
	agent := func(name string) string { // the steps of each have ids of their own
		text := strings.NewReplacer("agent-0", name, "9d0f0000", "9d0f00"+name[6:]+"1").Replace(read("agent/in.jsonl"))
		if name == "agent-0" {
			return text
		}
		return regexp.MustCompile(`17887500\d{5}`).ReplaceAllStringFunc(text, func(ms string) string { // after the calls of the third turn
			n, err := strconv.Atoi(ms)
			h.must(err)
			return strconv.Itoa(n + 106000)
		})
	}
	dir, copied := "sessions/wd_moor/"+session+"/", "sessions/wd_moor/"+fork+"/"
	h.write(dir+"agents/agent-0/wire.jsonl", agent("agent-0"))
	h.drain()
	h.write(dir+"agents/main/wire.jsonl", strings.Join(lines[:20], ""))
	h.drain()
	for _, name := range []string{"agent-1", "agent-2", "agent-3"} {
		h.write(dir+"agents/"+name+"/wire.jsonl", agent(name))
	}
	h.write(dir+"agents/main/wire.jsonl", strings.Join(lines, ""))
	h.write(dir+"state.json", read("state/in.json"))
	h.drain()
	end := 0
	for i, l := range lines {
		if strings.Contains(l, `"turn.ended"`) {
			end = i + 1
			break
		}
	}
	h.write(copied+"agents/agent-0/wire.jsonl", agent("agent-0")+`{"type": "forked", "agentId": "agent-0", "time": 1788750300000}`+"\n")
	h.write(copied+"agents/main/wire.jsonl", strings.Join(lines[:end], "")+`{"type": "forked", "agentId": "main", "time": 1788750300000}
{"type": "turn.prompt", "agentId": "main", "input": [{"type": "text", "text": "Plant birches."}], "origin": {"kind": "user"}, "time": 1788750301000}
{"type": "context.append_loop_event", "agentId": "main", "event": {"type": "step.begin", "uuid": "9dee0000-0000-4000-8000-000000000001", "turnId": "1", "step": 1}, "time": 1788750301005}
{"type": "usage.record", "agentId": "main", "model": "kimi-code/kimi-k2.5", "usage": {"inputOther": 7, "output": 3, "inputCacheRead": 0, "inputCacheCreation": 0}, "usageScope": "turn", "time": 1788750302000}
{"type": "context.append_loop_event", "agentId": "main", "event": {"type": "content.part", "stepUuid": "9dee0000-0000-4000-8000-000000000001", "part": {"type": "text", "text": "Planted."}}, "time": 1788750302001}
{"type": "turn.ended", "agentId": "main", "turnId": 1, "reason": "completed", "time": 1788750302003}
`)
	h.drain()

	got := h.query("SELECT concat(session_id, ' ', toString(sum(input_tokens)), ' ', toString(sum(output_tokens)), ' ', toString(sum(cache_read_tokens)), ' ', toString(sum(cache_write_tokens))) FROM v_usage GROUP BY session_id ORDER BY session_id")
	if fmt.Sprint(got) != "["+session+" 10564 762 19680 100 "+fork+" 7 3 0 0]" {
		t.Errorf("tokens %q", got)
	}
	if got := h.query("SELECT content FROM v_messages WHERE kind IN ('user', 'assistant', 'reasoning') AND length(run_id) > 0 GROUP BY content, run_id HAVING count() != 1"); len(got) > 0 {
		t.Errorf("not once: %q", got)
	}
	if got := h.query("SELECT content FROM v_messages WHERE kind = 'user' AND session_id = '" + fork + "'"); fmt.Sprint(got) != "[Plant birches.]" {
		t.Errorf("prompts of the fork %q", got)
	}
	if got := h.query("SELECT concat(s.run_id, ' ', p.tool_name) FROM v_spans AS s JOIN v_spans AS p ON p.span_id = s.parent_span_id WHERE s.kind = 'run' AND p.kind = 'delegation' ORDER BY s.run_id"); fmt.Sprint(got) !=
		"[agent-0@1788750006000 Agent agent-1@1788750112000 Agent agent-2@1788750112000 AgentSwarm agent-3@1788750112000 AgentSwarm]" {
		t.Errorf("sub-agents are below %q", got)
	}
	if got := h.query("SELECT status FROM v_spans WHERE kind = 'run' AND session_id = '" + session + "' AND run_id NOT LIKE 'agent%' ORDER BY ts"); fmt.Sprint(got) != "[ok cancelled ok ok error unset]" {
		t.Errorf("runs %q", got)
	}
	if got := h.query("SELECT DISTINCT concat(agent_name, ' ', toString(run_id LIKE 'agent%')) AS a FROM v_spans WHERE kind = 'run' AND agent_name != '' ORDER BY a"); fmt.Sprint(got) != "[agent 0 explore 1]" {
		t.Errorf("names of agents %q", got)
	}
	if got := h.query("SELECT any(title) FROM v_sessions WHERE session_id = '" + session + "'"); fmt.Sprint(got) != "[The depth of the peat]" {
		t.Errorf("title %q", got)
	}
}
