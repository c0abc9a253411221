package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestFirstStart is a first start over an agent's history on a machine: last year's
// conversations, some of which were interrupted, and one that continues. Only that one runs,
// nothing is stuck, no alert about work or lag fires, and the question that is open now is the
// only one that waits.
func TestFirstStart(t *testing.T) {
	h := newHome(t)
	// A copy: the files are of today, their records are not.
	h.configure("sources:", files("claude-code", "c/*.jsonl"))
	date := regexp.MustCompile(`"timestamp":"[^"]*"`)
	at := func(began time.Time, lines string) string {
		n := 0
		return date.ReplaceAllStringFunc(lines, func(string) string {
			n++
			return fmt.Sprintf(`"timestamp":%q`, began.Add(time.Duration(n)*time.Second).UTC().Format("2006-01-02T15:04:05.000Z"))
		})
	}
	call := func(id, tool, input string) string {
		return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, id, tool, input)
	}
	turn := func(session, use string) string {
		return claudePrompt(session, 0, "Mend the net.") + reply(session, 1, "m_"+session, use, "tool_use", 10, 0, 0, 5)
	}
	plan := call("toolu_plan", "ExitPlanMode", `{"plan":"Take the north pier."}`)
	lastYear := time.Now().AddDate(-1, 0, 0)
	for n, use := range []string{call("toolu_b", "Bash", `{"command":"haul"}`), task("toolu_t", "pilot"), plan} {
		session := fmt.Sprint("old", n)
		h.write("c/"+session+".jsonl", `{"type":"summary","summary":"Nets","leafUuid":"4f0c2f5e-6d0a-4d7e-9a55-0d3f1b7c9e11"}`+"\n"+at(lastYear.AddDate(0, n, 0), turn(session, use)))
	}
	// A conversation of last year that was interrupted, and continued a moment ago.
	h.write("c/again.jsonl", at(lastYear, turn("again", call("toolu_old", "Bash", `{"command":"wait"}`)))+
		at(time.Now().Add(-time.Minute), claudePrompt("again", 3, "And now?")+reply("again", 4, "m_now", text("It is mended."), "end_turn", 10, 0, 0, 5)+
			claude("again", "system", 5, `"isSidechain":false,"subtype":"turn_duration","durationMs":2000`)))
	p := h.start("run")
	h.until("history to be over", func() bool {
		got := h.tryQuery("SELECT (SELECT uniqExact(session_id) FROM v_messages), (SELECT count() FROM v_open_spans), (SELECT count() FROM v_tool_calls WHERE status = 'cancelled')")
		return len(got) == 1 && got[0] == "4\t0\t4"
	})
	h.write("c/new.jsonl", at(time.Now(), turn("new", call("toolu_n", "Bash", `{"command":"haul"}`))))
	h.write("c/asks.jsonl", at(time.Now(), turn("asks", strings.ReplaceAll(plan, "toolu_plan", "toolu_plan2"))))
	state := "SELECT state, countIf(leaf) FROM v_open_spans GROUP BY state ORDER BY state"
	h.until("the state of the sessions", func() bool { return strings.Join(h.tryQuery(state), " ") == "running\t1 waiting\t1" })
	time.Sleep(6 * time.Second) // and it stays so
	if got := strings.Join(h.query(state), " "); got != "running\t1 waiting\t1" {
		t.Errorf("the state of the sessions: %q", got)
	}
	var top struct {
		Running, Waiting, Stuck []struct{ Name, Session string }
	}
	out, err := h.earshot("top", "-o", "json").Output()
	h.must(err)
	h.must(json.Unmarshal(out, &top))
	if len(top.Running) != 1 || !strings.HasSuffix(top.Running[0].Name, "Bash") || len(top.Waiting) != 1 || !strings.HasSuffix(top.Waiting[0].Name, "ExitPlanMode") || len(top.Stuck) != 0 {
		t.Errorf("top: %s", out)
	}
	for sql, want := range map[string]string{
		"SELECT status, error_type, count() FROM v_tool_calls WHERE session_id LIKE 'old%' GROUP BY ALL ORDER BY ALL":               "cancelled\tno_result\t3",
		"SELECT countIf(status = 'ok') FROM v_spans WHERE session_id LIKE 'old%' AND kind IN ('run', 'tool', 'delegation')":         "0",
		"SELECT max(last_message) < now() - INTERVAL 1 WEEK, max(duration_ms) < 60000 FROM v_sessions WHERE session_id LIKE 'old%'": "true\ttrue",
		"SELECT max(latest) < now() - INTERVAL 1 WEEK FROM v_session_times WHERE session_id LIKE 'old%'":                            "true",
		"SELECT dateDiff('second', max(seen_at), now()) < 60, max(since) > now() - INTERVAL 5 MINUTE FROM source_ledger":            "true\ttrue",
	} {
		if got := strings.NewReplacer("1\t1", "true\ttrue").Replace(strings.Join(h.query(sql), " ")); got != want && !(want == "true" && got == "1") {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
	p.kill()
}
