package inspect

import (
	"context"
	"fmt"
	"time"
)

// BudgetAlert is an alert of a budget.
type BudgetAlert struct {
	Budget, Alert string
	At            time.Time
	Resolved      time.Time // zero while it holds
	Resolution    string
	Evidence      string // a sentence
}

// State is when the alert began, and whether it is over.
func (b *BudgetAlert) State(zone *time.Location) string {
	if b.Resolved.IsZero() {
		return "since " + Stamp(b.At, zone)
	}
	return "from " + Stamp(b.At, zone) + " to " + Stamp(b.Resolved, zone) + ", " + b.Resolution
}

// LoadBudgetAlerts returns the alerts of budgets that held within a time, those that hold first, then the latest.
func LoadBudgetAlerts(ctx context.Context, q Querier, since time.Duration) (out []BudgetAlert, err error) {
	err = q.Each(ctx, `SELECT toString(budget), toString(alert), at, ifNull(resolved, toDateTime64(0, 3, 'UTC')), toString(resolution), evidence
		FROM v_budget_alerts WHERE resolved IS NULL OR resolved >= now() - toIntervalSecond({since:Int64}) ORDER BY resolved IS NULL DESC, at DESC LIMIT 100`,
		map[string]string{"since": fmt.Sprint(int64(since / time.Second))}, func(v []any) error {
			r := reader{values: v}
			b := BudgetAlert{Budget: r.str(), Alert: r.str(), At: r.time(), Resolved: r.time(), Resolution: r.str(), Evidence: r.str()}
			if b.Resolved.Unix() == 0 {
				b.Resolved = time.Time{}
			}
			out = append(out, b)
			return r.err
		})
	if err != nil {
		return nil, fmt.Errorf("alerts of budgets: %w", err)
	}
	return out, nil
}
