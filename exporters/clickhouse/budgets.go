package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/attribution"
	"github.com/earshot-dev/earshot/core/msg"
)

// alertKey identifies an alert.
type alertKey struct {
	span  msg.SpanID
	name  string
	since int64
}

// budgeting holds the findings of the last look at budgets.
type budgeting struct {
	firing map[alertKey]msg.Verdict // nil before the first look
	rows   map[alertKey]msg.Verdict // those that have a row that has not ended, as they began
}

// alerts are the alerts of the budgets that begin or end, each with its row. An alert is one in a period; its
// begin is that of the period, so that it is the same after a restart. The first call returns an end for each
// that does not fire, because it may have fired before the restart, and for each row of an earlier period.
func (g *budgeting) alerts(ctx context.Context, x *Exporter, now time.Time) ([]msg.Verdict, error) {
	firing, first := map[alertKey]msg.Verdict{}, g.firing == nil
	if first && len(x.settings.Budgets) > 0 {
		if err := g.load(ctx, x); err != nil {
			return nil, err
		}
	}
	var out []msg.Verdict
	for i := range x.settings.Budgets {
		b := &x.settings.Budgets[i]
		spent, err := x.spent(ctx, b, b.Begins(now))
		if err != nil {
			return nil, err
		}
		since, _ := b.Period(now)
		before, _ := b.Period(since.Add(-time.Hour))
		for _, a := range b.Alerts(now, spent) {
			v := msg.Verdict{
				Tenant: "default", Source: "budgets", Span: budgetSpan(b.Name, a.Name), Name: a.Name,
				Since: since.UnixNano(), At: now.UnixNano(), Evidence: a.Evidence, Path: b.Name, Ver: uint64(now.UnixNano()),
			}
			key := keyOfAlert(&v)
			if a.Firing {
				firing[key] = v
			}
			if _, fired := g.firing[key]; a.Firing && !fired {
				out = append(out, v)
			}
			if first {
				if !a.Firing {
					out = append(out, over(v, now))
				}
				v.Since = before.UnixNano()
				out = append(out, over(v, now))
			}
		}
	}
	if first {
		// Others that write into the database may have budgets of their own.
		checked := func(v msg.Verdict) bool {
			return slices.ContainsFunc(x.settings.Budgets, func(b attribution.Budget) bool { return b.Name == v.Path })
		}
		for key, v := range g.rows {
			known := func(o msg.Verdict) bool { return keyOfAlert(&o) == key }
			if _, fires := firing[key]; !fires && !slices.ContainsFunc(out, known) && checked(v) {
				out = append(out, over(v, now))
			}
		}
	}
	for key, v := range g.firing {
		if _, fires := firing[key]; !fires {
			out = append(out, over(v, now))
		}
	}
	if err := g.store(ctx, x, out); err != nil {
		return nil, err
	}
	g.firing = firing
	return out, nil
}

func budgetSpan(budget, alert string) msg.SpanID {
	return msg.NewSpanID("", "budget", budget, msg.SpanRun, alert)
}

func keyOfAlert(v *msg.Verdict) alertKey { return alertKey{v.Span, v.Name, v.Since} }

// load reads the rows that have not ended.
func (g *budgeting) load(ctx context.Context, x *Exporter) error {
	g.rows = map[alertKey]msg.Verdict{}
	rows, err := x.conn.db.Query(ctx, "SELECT toString(budget), toString(alert), period, at, evidence FROM "+x.schema.name("budget_alerts")+" FINAL WHERE resolved IS NULL")
	if err != nil {
		return fmt.Errorf("clickhouse: alerts of budgets: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var period, at time.Time
		v := msg.Verdict{Tenant: "default", Source: "budgets"}
		if err := rows.Scan(&v.Path, &v.Name, &period, &at, &v.Evidence); err != nil {
			return fmt.Errorf("clickhouse: alerts of budgets: %w", err)
		}
		v.Span, v.Since, v.At = budgetSpan(v.Path, v.Name), period.UnixNano(), at.UnixNano()
		g.rows[keyOfAlert(&v)] = v
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("clickhouse: alerts of budgets: %w", err)
	}
	return nil
}

// store writes the rows of alerts that begin, once, and of those that end and have one.
func (g *budgeting) store(ctx context.Context, x *Exporter, list []msg.Verdict) error {
	changed := slices.DeleteFunc(slices.Clone(list), func(v msg.Verdict) bool {
		_, kept := g.rows[keyOfAlert(&v)]
		return kept == (v.Resolved == 0)
	})
	if len(changed) == 0 {
		return nil
	}
	b, err := x.conn.db.PrepareBatch(ctx, "INSERT INTO "+x.schema.name("budget_alerts")+" (tenant, budget, alert, period, until, at, resolved, resolution, evidence, ver)")
	if err != nil {
		return fmt.Errorf("clickhouse: alerts of budgets: %w", err)
	}
	for i := range changed {
		v := &changed[i]
		at, resolved := time.Unix(0, v.At).UTC(), (*time.Time)(nil)
		if v.Resolved != 0 {
			t := time.Unix(0, v.Resolved).UTC()
			at, resolved = time.Unix(0, g.rows[keyOfAlert(v)].At).UTC(), &t
		}
		if err := b.Append(v.Tenant, v.Path, v.Name, time.Unix(0, v.Since).UTC(), g.until(x, v), at, resolved, v.Resolution, v.Evidence, v.Ver); err != nil {
			return fmt.Errorf("clickhouse: alerts of budgets: %w", err)
		}
	}
	if err := b.Send(); err != nil {
		return fmt.Errorf("clickhouse: alerts of budgets: %w", err)
	}
	for i := range changed {
		if v := &changed[i]; v.Resolved == 0 {
			g.rows[keyOfAlert(v)] = *v
		} else {
			delete(g.rows, keyOfAlert(v))
		}
	}
	return nil
}

// until is the end of an alert's period; 1970 of a budget that is unknown here.
func (g *budgeting) until(x *Exporter, v *msg.Verdict) time.Time {
	for i := range x.settings.Budgets {
		if b := &x.settings.Budgets[i]; b.Name == v.Path {
			_, to := b.Period(time.Unix(0, v.Since))
			return to
		}
	}
	return time.Unix(0, 0).UTC()
}

// over is the end of an alert.
func over(v msg.Verdict, now time.Time) msg.Verdict {
	v.Resolved, v.Resolution, v.Ver = now.UnixNano(), "the budget lasts", uint64(now.UnixNano())
	return v
}

// spent returns the dollars or tokens of the work that a budget is of, since each of the times.
func (x *Exporter) spent(ctx context.Context, b *attribution.Budget, since []time.Time) ([]float64, error) {
	what := "u.cost_usd"
	if b.Tokens > 0 {
		what = "toFloat64(u.tokens)"
	}
	where := "TRUE"
	for name, value := range b.Where {
		column := "u.more[" + quoteText(name) + "]"
		if slices.Contains(attribution.Builtin(), name) {
			column = "u." + quoteName(name)
		}
		where += " AND " + column + " = " + quoteText(value)
	}
	sums := make([]string, len(since))
	for i, at := range since {
		sums[i] = fmt.Sprintf("ifNull(sumIf(%s, u.ts >= toDateTime(%d, 'UTC')), 0)", what, at.Unix())
	}
	var out []float64
	err := x.conn.db.QueryRow(ctx, fmt.Sprintf("SELECT [%s] FROM %s AS u WHERE u.ts >= toDateTime(%d, 'UTC') AND %s",
		strings.Join(sums, ", "), x.schema.name("v_attributed_usage"), slices.MinFunc(since, time.Time.Compare).Unix(), where)).Scan(&out)
	if err != nil {
		return nil, fmt.Errorf("clickhouse: budget %s: %w", b.Name, err)
	}
	return out, nil
}

// onWork are the verdicts with a row among the verdicts: those on work, and not alerts.
func onWork(list []msg.Verdict) (out []msg.Verdict) {
	for i := range list {
		if list[i].TraceID != (msg.TraceID{}) {
			out = append(out, list[i])
		}
	}
	return out
}
