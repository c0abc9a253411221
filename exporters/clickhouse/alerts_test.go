package clickhouse

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestChangesAreAlerts: a change that was found is an alert once, has the same key after a restart, is over after a
// day, and an old one is none.
func TestChangesAreAlerts(t *testing.T) {
	x, _ := exporter(t, func(*Settings) {})
	now := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	change := func(found time.Time) ChangeRow {
		return ChangeRow{
			Tenant: "default", Found: found, At: found.Add(-time.Hour), Kind: "tool", Agent: "pilot", Name: "Bash", Metric: "duration", Since: []string{"client 2.1.224"},
			Ratio: 1.2, Summary: "pilot, tool Bash: duration +20% since client 2.1.224.", TraceBefore: "aa", TraceAfter: "bb", Version: uint64(now.UnixMicro()),
		}
	}
	store := func(rows ...ChangeRow) {
		t.Helper()
		if err := x.StoreChanges(t.Context(), rows); err != nil {
			t.Fatal(err)
		}
	}
	look := func(when, want string) (v msg.Verdict) {
		t.Helper()
		list, err := x.Alerts(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, v = range list {
			got += fmt.Sprintln(v.Name, v.Agent, v.Tool, v.Evidence, v.Resolution)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
		return v
	}
	const begins, ends = "change pilot Bash pilot, tool Bash: duration +20% since client 2.1.224. \n", "change pilot Bash pilot, tool Bash: duration +20% since client 2.1.224. known for a day\n"
	look("nothing", "")
	store(change(now.Add(-time.Hour)), change(now.Add(-72*time.Hour)))
	first := look("found", begins)
	store(change(now.Add(-time.Hour))) // the next look finds it as well
	look("found again", "")
	x.alerting.changes.firing = nil
	if again := look("after a restart", begins); keyOfAlert(&again) != keyOfAlert(&first) {
		t.Error("another key after a restart")
	}
	now = now.Add(23 * time.Hour) // to the second
	look("a day later", ends)
	look("and later", "")
	x.alerting.changes.firing = nil
	look("after another restart", ends)
}

// TestChangesAreLookedFor: when some were stored since the last look, when one is not news any more, and at the first look; again where that has failed.
func TestChangesAreLookedFor(t *testing.T) {
	now := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	var failed error
	asked := 0
	conn, _ := scriptedConn(func(string) ([][]any, error) { asked++; return nil, failed })
	x := doubleOf(conn)
	look := func(when string, want int) {
		t.Helper()
		if _, err := x.Alerts(t.Context(), now); !errors.Is(err, failed) || asked != want {
			t.Errorf("%s: asked %d times, %v", when, asked, err)
		}
		asked = 0
	}
	look("before the tables are known", 0)
	x.ready = true
	failed = errors.New("no answer")
	look("a failure", 1)
	look("and another", 1)
	failed = nil
	look("the first time", 1)
	if err := x.StoreChanges(t.Context(), nil); err != nil {
		t.Error(err)
	}
	look("nothing was stored", 0)
	x.alerting.changes.stored.Store(true)
	look("one was stored", 1)
	x.alerting.changes.firing = map[alertKey]msg.Verdict{{since: now.Add(-newsFor + 1).UnixNano()}: {}, {since: now.UnixNano()}: {}}
	look("it is news", 0)
	x.alerting.changes.firing[alertKey{since: now.Add(-newsFor).UnixNano()}] = msg.Verdict{}
	look("it is none any more", 1)
	x.conn.standby, x.conn.embedded = closedEngine(t).standby, true
	x.alerting.changes.stored.Store(true)
	look("an engine that is closed, without budgets", 1)
}
