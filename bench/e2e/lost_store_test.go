package e2e

import (
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
