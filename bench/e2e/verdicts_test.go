package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestVerdictIsPushed: a run that repeats itself has a verdict, as a row, in top and as a metric,
// and one notification, although the receiver was down at first and the sidecar was killed; when
// the run goes on, the verdict is resolved, there too, and an event of its span.
func TestVerdictIsPushed(t *testing.T) {
	var mu sync.Mutex
	var got []string
	down := true
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if down {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		var n struct {
			Status, Link string
			Alerts       []struct{ Verdict, Evidence, Path, Agent string }
		}
		if err := json.Unmarshal(body, &n); err != nil || len(n.Alerts) != 1 {
			t.Errorf("%v in %s", err, body)
			return
		}
		got = append(got, n.Status+" "+n.Alerts[0].Verdict+" "+n.Link)
	}))
	defer hook.Close()
	received := func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(got) }
	metrics := freeAddress(t)
	h := newHome(t).configure("telemetry: {listen: "+metrics+"}", "sources:", files("claude-code", "c/*.jsonl"),
		"exporters:\n  webhook: {url: "+hook.URL+", rules: {link: \"http://page/session/{session}\"}}")
	p := h.startRunning()
	today := strings.NewReplacer("2026-11-02T10:00:", time.Now().UTC().Format("2006-01-02T15:04:"))
	lines := claudePrompt("round", 0, "Wait for the tide.")
	for n := range 5 {
		call := fmt.Sprintf(`{"type":"tool_use","id":"toolu_poll%d","name":"Bash","input":{"command":"tide"}}`, n)
		lines += reply("round", 2*n+1, fmt.Sprint("m_poll", n), call, "tool_use", 10, 0, 0, 5) +
			claude("round", "user", 2*n+2, fmt.Sprintf(`"isSidechain":false,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_poll%d","content":"low"}]}`, n))
	}
	h.write("c/round.jsonl", today.Replace(lines))
	h.until("the verdict's row", func() bool {
		rows := h.tryQuery("SELECT verdict, holds, evidence LIKE '%the same results of Bash 5 times%' FROM v_verdicts")
		return len(rows) == 1 && strings.HasPrefix(rows[0], "looping\t")
	})
	h.until("the metric", func() bool {
		r, err := http.Get("http://" + metrics + "/metrics")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		return strings.Contains(string(text), `earshot_verdicts{verdict="looping"} 1`)
	})
	if rows := h.tryQuery("SELECT DISTINCT state, verdict FROM v_open_spans"); len(rows) != 1 || rows[0] != "stuck\tlooping" {
		t.Errorf("open: %q", rows)
	}
	p.kill() // with the notification in the spool
	mu.Lock()
	down = false
	mu.Unlock()
	p = h.startRunning()
	h.until("the notification", func() bool { return len(received()) > 0 })
	h.add("c/round.jsonl", today.Replace(reply("round", 40, "m_done", text("High at last."), "end_turn", 20, 0, 0, 3)+claude("round", "system", 41, `"isSidechain":false,"subtype":"turn_duration","durationMs":42000`)))
	h.until("the end of it", func() bool { return len(received()) > 1 })
	if want := []string{"firing looping http://page/session/round", "resolved looping http://page/session/round"}; !slices.Equal(received(), want) {
		t.Errorf("received %q", received())
	}
	h.until("the resolved row", func() bool {
		rows := h.tryQuery("SELECT verdict, resolution FROM v_verdicts WHERE NOT holds AND resolved IS NOT NULL")
		return len(rows) == 1 && rows[0] == "looping\tended"
	})
	h.until("the event of the span", func() bool {
		rows := h.tryQuery("SELECT count() FROM spans FINAL WHERE kind = 'run' AND has(events.name, 'earshot.verdict')")
		return len(rows) == 1 && rows[0] == "1"
	})
	if t.Failed() {
		t.Log(tail(p.out.String()))
	}
}
