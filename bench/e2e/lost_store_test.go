package e2e

import (
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestLostStore empties the store behind the checkpoint, or a part of it: the next run reports
// it, doctor fails, and a retry of the dead letters restores everything.
func TestLostStore(t *testing.T) {
	h := newHome(t).notes(1)
	lines := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			b.WriteString(note(i, ""))
		}
		return b.String()
	}
	h.write("in/a.jsonl", lines(0, 100))
	h.write("in/b.jsonl", lines(100, 150))
	h.drain()
	h.admin("DROP DATABASE earshot SYNC")
	h.add("in/a.jsonl", lines(150, 160))
	if out := h.drain(); !strings.Contains(out, "rows are missing") {
		t.Errorf("the run does not report it:\n%s", out)
	}
	if found, well := h.doctor(); well || !has(found, "fail losses notes clickhouse does not have the last") {
		t.Errorf("doctor: %q", found)
	}
	h.run("dlq", "retry")
	if got := h.query("SELECT count() FROM messages FINAL"); got[0] != "160" {
		t.Errorf("%s messages after a retry, want 160", got)
	}
	if found, _ := h.doctor(); has(found, "fail losses") {
		t.Errorf("doctor after a retry: %q", found)
	}
	// A run over a complete store reports nothing.
	h.add("in/b.jsonl", lines(160, 170))
	if out := h.drain(); strings.Contains(out, "rows are missing") {
		t.Errorf("a store that is whole:\n%s", out)
	}
}

// TestReplacedStore replaces the store of a sidecar that runs: it reports that within a minute, as a
// metric too, and goes on with the new one.
func TestReplacedStore(t *testing.T) {
	h := newHome(t).notes(1, `telemetry: {listen: "127.0.0.1:0"}`)
	h.write("in/a.jsonl", note(1, "")+note(2, ""))
	p := h.start("run")
	defer func() {
		if t.Failed() {
			t.Logf("its output:\n%s", &p.out)
		}
	}()
	h.until("the rows", func() bool { return slices.Equal(h.tryQuery("SELECT count() FROM messages"), []string{"2"}) })
	h.until("the account", func() bool { return slices.Equal(h.tryQuery("SELECT count() FROM source_ledger"), []string{"1"}) })
	h.admin("DROP DATABASE earshot SYNC")
	h.until("the report", func() bool { return strings.Contains(p.out.String(), "rows are missing") })
	if !strings.Contains(p.out.String(), "the store is not the one that had the rows until now") {
		t.Errorf("no word of another store:\n%s", &p.out)
	}
	resp, err := http.Get("http://" + strings.TrimSpace(string(h.read("data/metrics.addr"))) + "/metrics")
	h.must(err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	h.must(err)
	if !strings.Contains(string(b), `earshot_store_behind_streams{exporter="clickhouse"} 1`) {
		t.Error("the metric does not show it")
	}
	h.add("in/a.jsonl", note(3, ""))
	h.until("the next row", func() bool { return slices.Equal(h.tryQuery("SELECT count() FROM messages"), []string{"1"}) })
}

func (h *home) read(name string) []byte {
	h.Helper()
	b, err := os.ReadFile(h.path(name))
	h.must(err)
	return b
}
