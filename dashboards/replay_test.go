package dashboards

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReplayChangesNoPanel drops the sidecar's checkpoint and has it read everything
// again into the same store: no panel shows another number.
func TestReplayChangesNoPanel(t *testing.T) {
	w := theWorld(t)
	before := everything(t, w)
	rows := ask(t, w, "self", "Storage", nil).sum(t, "Rows")
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(w.dir, "data", "checkpoint.db")); err != nil {
		t.Fatal(err)
	}
	if err := w.read(); err != nil {
		t.Fatal(err)
	}
	if err := w.start(); err != nil {
		t.Fatal(err)
	}
	if again := ask(t, w, "self", "Storage", nil).sum(t, "Rows"); again < rows {
		t.Errorf("there were %v rows and are %v: was it read again?", rows, again)
	}
	for what, after := range everything(t, w) {
		if before[what] != after {
			t.Errorf("%s (-before +after):\n%s", what, cmp.Diff(strings.Split(before[what], "\n"), strings.Split(after, "\n")))
		}
	}
}

// everything is the result of all panels that do not depend on the present.
func everything(t *testing.T, w *world) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, a := range queries(t) {
		now := []string{"ingest_ts", "now()", "source_ledger FINAL", "age_ms", "silent_ms", "v_dead_letters", "last_seen", "system.parts"}
		if a.kind == "alert" || slices.ContainsFunc(now, func(s string) bool { return strings.Contains(a.sql, s) }) {
			continue
		}
		r := askOne(t, w, a, nil)
		var b strings.Builder
		for _, row := range r.rows {
			for _, v := range row {
				if p, ok := v.(*float64); ok && p != nil {
					v = *p
				}
				if f, ok := v.(float64); ok { // parts that are added up in another order differ in the last digits
					v = fmt.Sprintf("%.9g", f)
				}
				fmt.Fprintf(&b, "%v\t", v)
			}
			b.WriteString("\n")
		}
		out[fmt.Sprint(a, " ", a.kind)] = b.String()
	}
	return out
}
