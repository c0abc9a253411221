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
