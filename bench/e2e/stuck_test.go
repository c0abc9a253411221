package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// TestStuckNow: a delegation that waits for its answer is an open span with its age, the
// same after kill -9 and a new start, and ends once. The loop that its caller ran before
// is an event of the run's span, a row and a metric.
func TestStuckNow(t *testing.T) {
	metrics := freeAddress(t)
	h := newHome(t).configure("telemetry: {listen: "+metrics+"}", "sources:", files("claude-code", "c/*.jsonl"))
	// Two hours ago: older history has ended.
	hours := strings.NewReplacer("2026-11-02T10:00:", time.Now().Add(-2*time.Hour).UTC().Format("2006-01-02T15:04:"))
	lines := claudePrompt("stuck", 0, "Wait for the tide.")
	for n := range 5 {
		call := fmt.Sprintf(`{"type":"tool_use","id":"toolu_poll%d","name":"Bash","input":{"command":"tide"}}`, n)
		lines += reply("stuck", 2*n+1, fmt.Sprint("m_poll", n), call, "tool_use", 10, 0, 0, 5) +
			claude("stuck", "user", 2*n+2, fmt.Sprintf(`"isSidechain":false,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_poll%d","content":"low"}]}`, n))
	}
	h.write("c/stuck.jsonl", hours.Replace(lines+reply("stuck", 12, "m_ask", task("toolu_ask", "pilot"), "tool_use", 10, 0, 0, 5)))
	open := `SELECT kind, delegate_to, state, age_ms > 7000000, silent_ms > 7000000 FROM v_open_spans WHERE kind = 'delegation'`
	want := "delegation\tpilot\tsilent\ttrue\ttrue" // it is too old for a verdict
	shown := func() bool {
		got := h.tryQuery(open)
		return len(got) == 1 && strings.ReplaceAll(got[0], "\t1\t1", "\ttrue\ttrue") == want
	}
	p := h.startRunning()
	h.until("the open delegation", shown)
	h.until("the loop's metric", func() bool {
		r, err := http.Get("http://" + metrics + "/metrics")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		return strings.Contains(string(text), `earshot_findings_total{format="claude-code",kind="repeat"} 1`)
	})
	h.until("the loop's row", func() bool {
		got := h.tryQuery("SELECT kind, tool_name, count FROM v_findings")
		return len(got) == 1 && got[0] == "repeat\tBash\t5"
	})
	p.kill()
	p = h.startRunning()
	h.until("the delegation to be open still", shown)
	h.add("c/stuck.jsonl", hours.Replace(claude("stuck", "user", 40, `"isSidechain":false,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_ask","content":"At noon."}]},"toolUseResult":{"status":"completed"}`)+
		reply("stuck", 41, "m_done", text("At noon."), "end_turn", 20, 0, 0, 3)+claude("stuck", "system", 42, `"isSidechain":false,"subtype":"turn_duration","durationMs":42000`)))
	var got, left []string
	h.Cleanup(func() {
		if h.Failed() {
			h.Logf("%q\n%s\n%s", got, strings.Join(left, "\n"), tail(p.out.String()))
		}
	})
	h.until("everything to be over", func() bool {
		left = h.tryQuery("SELECT *, ver FROM open_spans ORDER BY ALL")
		got = h.tryQuery("SELECT (SELECT count() FROM v_open_spans), (SELECT countIf(status = 'ok') FROM v_delegations), (SELECT count() FROM v_spans WHERE kind = 'run')")
		return len(got) == 1 && got[0] == "0\t1\t1"
	})
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)
	if got := h.query(`SELECT countIf(Operation = 'invoke_agent'), countIf(ToolName = 'Agent'), arrayCount(n -> n = 'earshot.finding', anyIf(Events.Name, Operation = 'invoke_agent')) FROM otel_traces FINAL`); len(got) != 1 || got[0] != "1\t1\t1" {
		t.Errorf("runs, delegations, findings on the run's span: %q", got)
	}
}
