package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStopsWithoutRoom: a sidecar whose store is away and whose spools are full ends when it is told to, also one that is to end by itself, and does not acknowledge the rows that
// wait: the next one stores them all, once.
func TestStopsWithoutRoom(t *testing.T) {
	h := newHome(t)
	var turns strings.Builder
	for n := range 4000 {
		turns.WriteString(strings.Replace(legionTurn("s", n), "answer", "answer "+strings.Repeat("x", 500), 1))
	}
	h.write("logs/a.jsonl", turns.String())
	source := "sources:\n" + files("legion", "logs/*.jsonl")
	delivery := `delivery: {batch_bytes: 256KiB, spool_max: 512KiB}`
	h.configure(source, fmt.Sprintf("exporters: {clickhouse: {dsn: %q}}", "http://u:p@"+freeAddress(t)+"/earshot"), delivery)
	for _, args := range [][]string{{"run"}, {"run", "--until-idle", "100ms"}} {
		p := h.start(args...)
		h.until("full spools", func() bool { return strings.Contains(p.out.String(), "spools are full") })
		h.must(p.Process.Signal(syscall.SIGTERM))
		began := time.Now()
		h.waitExit(p)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%v ended after %s", args, took)
		}
	}
	h.must(os.Remove(h.path("earshot.yaml")))
	h.configure(source, delivery)
	h.drain()
	if got := h.query("SELECT count(), uniqExact(message_id) FROM messages FINAL"); got[0] != "8000\t8000" {
		t.Errorf("messages: %q", got)
	}
	if got := h.query("SELECT sum(read_bytes), sum(messages) FROM (SELECT max(read_bytes) AS read_bytes, argMax(messages, ver) AS messages FROM source_ledger GROUP BY source, stream)"); got[0] != fmt.Sprintf("%d\t8000", turns.Len()) {
		t.Errorf("the ledger: %q", got)
	}
}

// TestIdleForLong: a run that ends before decoders are flushed by silence, and one that ends behind that, store the same rows, those of a line without an end and of work that is open too.
func TestIdleForLong(t *testing.T) {
	var all [2][]string
	for i, idle := range []string{"50ms", "4s"} {
		h := newHome(t)
		h.configure("sources:", files("legion", "logs/*.jsonl"))
		h.write("logs/a.jsonl", legionTurn("s", 0)+legionTurn("s", 1)+strings.TrimSuffix(legionTurn("s", 2), "\n"))
		h.write("logs/b.jsonl", legionTurn("t", 0)+`{"type":"user","content":"open","timestamp":1761073300.0,"session_id":"t"}`+"\n")
		h.waitExit(h.start("run", "--until-idle", idle))
		all[i] = append(h.query("SELECT * EXCEPT (ingest_ts, ts_observed, origin) FROM messages FINAL ORDER BY message_id"),
			h.query("SELECT trace_id, span_id, parent_span_id, name, state, ts, duration_ns FROM spans FINAL WHERE is_deleted = 0 ORDER BY trace_id, span_id")...)
		if len(all[i]) < 9+9 {
			t.Errorf("%s: %d rows", idle, len(all[i]))
		}
	}
	if a, b := strings.Join(all[0], "\n"), strings.Join(all[1], "\n"); a != b {
		t.Errorf("idle for a moment:\n%s\nfor long:\n%s", a, b)
	}
}
