package dashboards

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/dashboards/internal/macro"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
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
		out[fmt.Sprint(a, " ", a.kind)] = r.text()
	}
	return out
}

// text is the rows, a line each.
func (r result) text() string {
	var b strings.Builder
	for _, row := range r.rows {
		for _, v := range row {
			if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && !p.IsNil() {
				v = p.Elem().Interface()
			}
			if f, ok := v.(float64); ok { // parts that are added up in another order differ in the last digits
				v = fmt.Sprintf("%.9g", f)
			}
			fmt.Fprintf(&b, "%v\t", v)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestComputedTablesChangeNoPanel: the tables that long ranges are read from have the numbers of the rows, when no hour is computed, when all are, and
// when an earlier build has computed them; of whole hours, and of a range that cuts them.
func TestComputedTablesChangeNoPanel(t *testing.T) {
	w := theWorld(t)
	settings := clickhouse.ConnSettings{DSN: w.dsn("default") + "/earshot"}
	c, err := clickhouse.Open(settings)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	exec := func(sql string) {
		t.Helper()
		if err := c.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	list := slices.DeleteFunc(queries(t), func(a asked) bool {
		return !slices.Contains([]string{"Longest pauses", "Unknown types", "Slowest calls", "Why calls end badly", "Slowest", "Widest turns", "Fan-out", "Turns in this range", "By tool", "By conversation"}, a.title)
	})
	if len(list) < 10 {
		t.Fatalf("%d panels", len(list))
	}
	numbers := func() map[string]string {
		out := make(map[string]string)
		for _, a := range list {
			for i, cut := range []time.Duration{0, 17*time.Minute + 123*time.Millisecond, 3 * time.Hour} {
				for _, pick := range []macro.Value{{All: true}, macro.Of("claude-code")} {
					q := w.all(a)
					q.From, q.To, q.Variables["format"] = q.From.Truncate(time.Hour).Add(cut), q.To.Truncate(time.Hour).Add(-cut/3), pick
					sql, err := q.Expand(a.sql)
					if err != nil {
						t.Fatal(err)
					}
					r, err := run(t, w.reader(t), sql)
					if err != nil {
						t.Fatalf("%s: %v\n%s", a, err, sql)
					}
					out[fmt.Sprint(a, " ", i, " ", pick.All)] = r.text()
				}
			}
		}
		return out
	}
	exec("TRUNCATE TABLE rollup_hours")
	want := numbers()
	for _, now := range []struct {
		name string
		make func() error
	}{
		{"computed", func() error { return clickhouse.Settle(t.Context(), settings) }},
		{"computed by an earlier build", func() error {
			return c.Exec(t.Context(), "ALTER TABLE pauses_rollup CLEAR COLUMN longest SETTINGS mutations_sync = 1")
		}},
	} {
		if err := now.make(); err != nil {
			t.Fatal(err)
		}
		for what, got := range numbers() {
			if d := cmp.Diff(strings.Split(want[what], "\n"), strings.Split(got, "\n")); d != "" {
				t.Errorf("%s, %s (-rows +computed):\n%s", what, now.name, d)
			}
		}
	}
	exec("TRUNCATE TABLE rollup_hours") // as other tests found it
}
