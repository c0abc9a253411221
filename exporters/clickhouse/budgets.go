package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/attribution"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

var _ export.Alerter = (*Exporter)(nil)

// alertKey identifies an alert of a budget in a period.
type alertKey struct {
	span  msg.SpanID
	name  string
	since int64
}

// Alerts implements export.Alerter: the alerts of the budgets that begin or end. An alert is one in a period; its
// begin is that of the period, so that it is the same after a restart. The first call returns an end for each
// that does not fire, because it may have fired before the restart.
func (x *Exporter) Alerts(ctx context.Context, now time.Time) ([]msg.Verdict, error) {
	if len(x.settings.Budgets) == 0 || !x.isReady() {
		return nil, nil
	}
	firing, first := map[alertKey]msg.Verdict{}, x.firing == nil
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
				Tenant: "default", Source: "budgets", Span: msg.NewSpanID("", "budget", b.Name, msg.SpanRun, a.Name), Name: a.Name,
				Since: since.UnixNano(), At: now.UnixNano(), Evidence: a.Evidence, Path: b.Name, Ver: uint64(now.UnixNano()),
			}
			key := alertKey{v.Span, v.Name, v.Since}
			if a.Firing {
				firing[key] = v
			}
			if _, fired := x.firing[key]; a.Firing && !fired {
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
	for key, v := range x.firing {
		if _, fires := firing[key]; !fires {
			out = append(out, over(v, now))
		}
	}
	x.firing = firing
	return out, nil
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

// onWork are the verdicts with a row: those on work, and not the alerts of budgets.
func onWork(list []msg.Verdict) (out []msg.Verdict) {
	for i := range list {
		if list[i].TraceID != (msg.TraceID{}) {
			out = append(out, list[i])
		}
	}
	return out
}
