package e2e

import (
	"fmt"
	"os"
	"testing"
)

// TestParentComesLate reads a sub-agent's file to its end, with the messages that its decoder
// holds back, before the parent's file exists: everything of the child ends up in the parent's
// trace under the parent's name for it.
func TestParentComesLate(t *testing.T) {
	h := newHome(t).configure("sources:", `  - {name: claude, type: file, format: claude-code, poll_interval: 1s, paths: ["DIR/c/**/*.jsonl"]}`)
	h.write("c/late/subagents/agent-af1.jsonl", sidechain("af1", claudePrompt("late", 3, "Look at the buoy.")+reply("late", 4, "m_x1", text("Fine."), "end_turn", 100, 0, 0, 7)))
	p := h.start("run")
	h.until("the message that was held back", func() bool { return len(h.tryQuery("SELECT message_id FROM messages WHERE kind = 'usage'")) == 1 })
	h.write("c/late.jsonl", claudePrompt("late", 1, "Look around.")+reply("late", 2, "m_f1", task("toolu_f1", "buoy"), "tool_use", 10, 0, 0, 50)+
		claude("late", "user", 9, `"isSidechain":false,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_f1","content":"Fine."}]},"toolUseResult":{"status":"completed","agentId":"af1"}`)+
		reply("late", 10, "m_f2", text("All fine."), "end_turn", 20, 0, 0, 3)+claude("late", "system", 11, `"isSidechain":false,"subtype":"turn_duration","durationMs":1000`))
	h.until("the parent", func() bool { return len(h.tryQuery("SELECT message_id FROM messages WHERE kind = 'stop'")) == 1 })
	h.until("the child's tokens to have its name", func() bool {
		return len(h.tryQuery("SELECT message_id FROM messages WHERE kind = 'usage' AND agent_name = 'buoy'")) == 1
	})
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)
	got := h.query("SELECT uniqExact(trace_id), countIf(kind = 'usage'), uniqExactIf(agent_name, run_id = 'af1' AND kind != 'user'), anyIf(agent_name, run_id = 'af1' AND kind = 'usage') FROM messages")
	if len(got) != 1 || got[0] != "1\t3\t1\tbuoy" {
		t.Errorf("traces, usage messages, names of the child, of its tokens: %q\n%s", got, fmt.Sprint(h.query("SELECT run_id, kind, agent_name, trace_id FROM messages ORDER BY ts")))
	}
}
