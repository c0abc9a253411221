package e2e

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestWhoBeganTheWork: a thread of Codex that Claude Code runs elsewhere, on another branch and in another
// project, belongs to who began it, and one that a person begins to that person. A change of the rules changes
// all of it without a message that is written, and the sums stay those of the usage.
func TestWhoBeganTheWork(t *testing.T) {
	const thread = "019d0000-0000-7000-8000-0000000000f%d"
	rules := []string{"dimensions:", `  - {field: project, match: '^/srv/(?P<team>[a-z]+)/(?P<repository>[a-z]+)$'}`}
	sources := []string{"sources:", files("claude-code", "c/*.jsonl"), files("codex", "x/*.jsonl")}
	h := newHome(t).configure(append(rules, sources...)...)
	id := func(n int) string { return fmt.Sprintf(thread, n) }
	rollout := func(n int, project string) {
		of := strings.ReplaceAll(codexThread(id(n), fmt.Sprint("ebb", n)), "/srv/harbour", project)
		h.write("x/rollout-2026-11-02T10-00-03-"+id(n)+".jsonl", of)
	}
	rollout(1, "/srv/ferry/decks")
	rollout(2, "/srv/ferry/decks")
	session := strings.ReplaceAll(claudeSession("caller1", "When is ebb1?", "OpenAI Codex v0.146.0\nsession id: "+id(1)+"\nAt noon."), `"cwd":"/srv/harbour"`, `"cwd":"/srv/harbour/lights","gitBranch":"ada/QUAY-17-lamps"`)
	h.write("c/caller1.jsonl", session)
	h.drain()
	who := func(args ...string) [][]string {
		t.Helper()
		got, err := csv.NewReader(strings.NewReader(string(h.command(append([]string{"who", "-o", "csv"}, args...)...)))).ReadAll()
		h.must(err)
		return got
	}
	month := []string{"--month", "2026-11", "--by", "team,repository,ticket"}
	rows := who(month...)
	var got []string
	for _, r := range rows {
		got = append(got, strings.Join(append(r[:4:4], r[9]), " "))
	}
	if want := []string{"month team repository ticket tokens", "2026-11 harbour lights QUAY-17 1168", "2026-11 ferry decks unknown 1020"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	messages := h.query("SELECT count(), max(ingest_ts) FROM messages")
	total := h.query("SELECT sum(tokens), round(sum(cost_usd), 9) FROM v_usage")
	h.stopStore()
	h.configure(append([]string{"dimensions:", `  - {field: branch, match: '^(?P<team>[a-z]+)/'}`, `  - {field: format, dimension: team, values: {codex: people}}`}, sources...)...)
	for range 2 {
		if out := string(h.command("who", "apply")); !strings.HasPrefix(out, "applied ") {
			t.Errorf("who apply: %s", out)
		}
		got := h.query("SELECT team, began_by, sum(tokens) FROM v_attributed_usage GROUP BY ALL ORDER BY ALL")
		if want := []string{"ada\tcaller1\t1168", "people\t" + id(2) + "\t1020"}; !slices.Equal(got, want) {
			t.Errorf("by the new rules: %q, want %q", got, want)
		}
		if got := h.query("SELECT sum(tokens), round(sum(cost_usd), 9) FROM v_attributed_usage"); !slices.Equal(got, total) {
			t.Errorf("the sum is %q, of the usage %q", got, total)
		}
	}
	if got := h.query("SELECT count(), max(ingest_ts) FROM messages"); !slices.Equal(got, messages) {
		t.Errorf("messages were written: %q, before %q", got, messages)
	}
}

// TestBudgetAlertReachesTheWebhook: a sidecar finds that a budget is spent, and a notification of it waits on the disk
// until the webhook that is down is there, across a kill.
func TestBudgetAlertReachesTheWebhook(t *testing.T) {
	var up atomic.Bool
	alerts := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var n struct {
			Status string
			Alerts []struct{ Verdict, Evidence string }
		}
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			t.Error(err)
		}
		for _, a := range n.Alerts {
			alerts <- n.Status + " " + a.Verdict + ": " + a.Evidence
		}
	}))
	defer hook.Close()
	h := newHome(t).configure("budgets:", "  - {name: lights, where: {repository: harbour}, tokens: 1000, per: month}",
		"exporters:", fmt.Sprintf("  webhook: {url: %q}", hook.URL), "sources:", files("claude-code", "c/*.jsonl"))
	today := time.Now().UTC().Format("2006-01-02T")
	h.write("c/now.jsonl", strings.ReplaceAll(claudePrompt("now", 1, "When?")+reply("now", 2, "m", text("At noon."), "end_turn", 1000, 0, 0, 50), "2026-11-02T", today))
	h.drain()
	p := h.startRunning()
	h.until("the webhook is tried", func() bool { return strings.Contains(p.out.String(), "webhook") })
	h.must(p.Process.Kill())
	<-p.done
	up.Store(true)
	p = h.startRunning()
	h.until("the webhook has it", func() bool { return len(alerts) > 0 })
	h.must(p.Process.Signal(os.Interrupt))
	<-p.done
	if len(alerts) != 1 {
		t.Errorf("%d notifications", len(alerts))
	}
	if got := <-alerts; !strings.HasPrefix(got, "firing budget_spent: lights (repository harbour) has spent 1050 tokens of 1000 tokens since ") {
		t.Errorf("the alert: %s", got)
	}
}
