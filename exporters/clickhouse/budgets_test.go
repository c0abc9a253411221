package clickhouse

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/attribution"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestBudgets: alerts begin once, begin again under the same key after a restart, and end with the burn and with the
// period, also one that a restart has forgotten; and they have no row among the verdicts on work.
func TestBudgets(t *testing.T) {
	x, c := exporter(t, func(s *Settings) {
		s.Dimensions = []attribution.Rule{{Field: "user", Dimension: "cost_center", Values: map[string]string{"ada": "17"}}}
		s.Budgets = []attribution.Budget{
			{Name: "ada", Where: map[string]string{"user": "ada", "cost_center": "17"}, Tokens: 72000, Per: attribution.PerMonth},
			{Name: "all", USD: 1, Per: attribution.PerDay},
			{Name: "nobody", Where: map[string]string{"team": "o'hara"}, Tokens: 1, Per: attribution.PerWeek},
		}
	})
	now := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	use := func(n byte, ago time.Duration, tokens uint64) {
		t.Helper()
		f := &forest{}
		m := f.message("s", now.Add(-ago).UnixNano())
		m.Kind, m.Model, m.Usage = msg.Usage, "claude-opus-4-5", msg.Tokens{Input: tokens}
		m.Host.ID, m.Host.TraceID = msg.NewID("", "", "s", fmt.Sprint(n)), msg.TraceID{n}
		s := msg.Span{Tenant: "default", TraceID: m.Host.TraceID, ID: msg.SpanID{n}, Kind: msg.SpanRun, Start: m.Time, End: m.Time + 1, State: msg.SpanClosed, Ver: 1, Session: "s", Client: msg.Client{User: "ada"}}
		export1(t, x, &export.Batch{Messages: exporttest.Records(m), Spans: exporttest.Records(s)})
		if _, err := ApplyRules(t.Context(), c, x.schema, x.settings.Dimensions); err != nil {
			t.Fatal(err)
		}
	}
	var began []string
	want := func(when string, want ...string) {
		t.Helper()
		list, err := x.Alerts(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range list {
			state := " ends"
			if v.Resolved == 0 {
				state = " begins"
				began = append(began, fmt.Sprint(v.Span, v.Name, v.Since))
			}
			got = append(got, v.Path+" "+v.Name+state)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
		export1(t, x, &export.Batch{ID: when, Verdicts: list})
	}
	if list, err := x.Alerts(t.Context(), now); err != nil || len(list) != 18 || slices.ContainsFunc(list, func(v msg.Verdict) bool { return v.Resolved == 0 }) {
		t.Errorf("nothing is spent: %d, %v", len(list), err)
	}
	ends := map[alertKey]bool{} // each alert of this period and of the one before
	x.alerting.budgets = budgeting{}
	if list, err := x.Alerts(t.Context(), now); err != nil {
		t.Error(err)
	} else {
		for i := range list {
			ends[keyOfAlert(&list[i])] = true
		}
	}
	if len(ends) != 18 {
		t.Errorf("%d alerts end", len(ends))
	}
	use(1, 20*24*time.Hour, 1e9) // in the month before
	use(2, 10*24*time.Hour, 40_000)
	want("as planned")
	use(3, 2*time.Minute, 2000)
	want("a burst", "ada budget_fast begins")
	want("and on")
	x.alerting.budgets = budgeting{} // a restart
	if list, err := x.Alerts(t.Context(), now); err != nil || fmt.Sprint(list[0].Span, list[0].Name, list[0].Since) != began[0] {
		t.Errorf("after a restart: %+v, %v", list, err)
	}
	now = now.Add(20 * time.Minute)
	want("the burst is over", "ada budget_fast ends")
	use(4, time.Hour, 1_000_000)
	want("all is spent", "ada budget_spent begins", "all budget_spent begins")
	now = now.Add(24 * time.Hour)
	want("the next day", "all budget_spent ends")
	now = now.AddDate(0, 1, 0)
	want("the next month", "ada budget_spent ends")
	use(5, 10*24*time.Hour, 100_000)
	want("spent again", "ada budget_spent begins")
	x.alerting.budgets = budgeting{}
	now = now.AddDate(0, 3, 0)
	if list, err := x.Alerts(t.Context(), now); err != nil || !slices.ContainsFunc(list, func(v msg.Verdict) bool {
		return v.Path == "ada" && fmt.Sprint(v.Span, v.Name, v.Since) == began[len(began)-1]
	}) {
		t.Errorf("three months without a sidecar: %+v, %v", list, err)
	}
	if n := count(t, c, "SELECT count() FROM v_budget_alerts WHERE resolved IS NULL"); n != "0" {
		t.Errorf("%s alerts of months ago hold", n)
	}
	if n := count(t, c, "SELECT count() FROM verdicts"); n != "0" {
		t.Errorf("%s verdicts on work", n)
	}
	rows := count(t, c, "SELECT arrayStringConcat(groupArray(concat(budget, ' ', alert, ' ', toString(dateDiff('minute', at, resolved)))), ', ') FROM (SELECT * FROM v_budget_alerts ORDER BY at, budget)")
	if want := "ada budget_fast 20, ada budget_spent 44640, all budget_spent 1440, ada budget_spent 129600"; rows != want {
		t.Errorf("rows %q, want %q", rows, want)
	}
	// A budget that no sidecar checks any more: its alerts end with their period.
	for alert, until := range map[string]string{"budget_fast": "now() - 60", "budget_slow": "toDateTime(0)", "budget_spent": "now() + 3600"} {
		q := "INSERT INTO budget_alerts (tenant, budget, alert, period, until, at, evidence, ver) SELECT 'default', 'gone', '" + alert + "', now() - toIntervalDay(40), " + until + ", now64(3) - 7200, 'All is spent', 1"
		if err := c.db.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	open := count(t, c, "SELECT arrayStringConcat(groupArray(concat(alert, ' ', resolution)), ', ') FROM (SELECT * FROM v_budget_alerts WHERE budget = 'gone' ORDER BY alert)")
	if want := "budget_fast its period is over, budget_slow its period is over, budget_spent"; open != want {
		t.Errorf("alerts of a budget that was removed: %q, want %q", open, want)
	}
	x.alerting.budgets = budgeting{} // which leaves those of budgets of others alone
	list, err := x.Alerts(t.Context(), now)
	if err != nil || slices.ContainsFunc(list, func(v msg.Verdict) bool { return v.Path == "gone" }) {
		t.Errorf("alerts of a budget of others: %v", err)
	}
}
