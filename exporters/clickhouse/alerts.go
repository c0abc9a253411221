package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

var _ export.Alerter = (*Exporter)(nil)

// alerting holds the findings of the last Alerts.
type alerting struct {
	budgets budgeting
	changes changing
	spent   atomic.Bool // rows were stored since the last look at budgets
}

// Alerts implements export.Alerter: the alerts of budgets, and the changes that were found. Where nothing was stored since the
// last look, nothing is spent: while the embedded store has closed its engine, a budget whose period ends waits until it is open.
func (x *Exporter) Alerts(ctx context.Context, now time.Time) ([]msg.Verdict, error) {
	if !x.isReady() {
		return nil, nil
	}
	if len(x.settings.Budgets) > 0 && !x.alerting.spent.Swap(false) && x.conn.standby.now(ctx) {
		return nil, nil
	}
	list, err := x.alerting.budgets.alerts(ctx, x, now)
	if err != nil {
		x.alerting.spent.Store(true)
	}
	changes, failed := x.alerting.changes.alerts(ctx, x, now)
	return append(list, changes...), errors.Join(err, failed)
}

// newsFor is for how long a change is an alert: later it is still true, and no news.
const newsFor = 24 * time.Hour

// changing are the changes that are alerts now.
type changing struct {
	firing map[alertKey]msg.Verdict // nil before the first look
	stored atomic.Bool              // since the last look
}

// due reports whether a look may find something: an idle store is not asked each minute.
func (g *changing) due(now time.Time) bool {
	due := g.stored.Swap(false) || g.firing == nil
	for key := range g.firing {
		due = due || now.UnixNano()-key.since >= int64(newsFor)
	}
	return due
}

// alerts are the changes that were found within newsFor, each once, and the ends of those that were before. The first
// call returns both for all that a restart may have forgotten; their keys are the same.
func (g *changing) alerts(ctx context.Context, x *Exporter, now time.Time) (out []msg.Verdict, err error) {
	if !g.due(now) {
		return nil, nil
	}
	defer func() {
		if err != nil {
			g.stored.Store(true)
		}
	}()
	rows, err := x.conn.db.Query(ctx, fmt.Sprintf(`SELECT toString(tenant), found, at, toString(kind), toString(agent_name), toString(name), toString(model), toString(metric), summary, trace_before, trace_after
		FROM %s WHERE found >= toDateTime(%d, 'UTC')`, x.schema.name("v_changes"), now.Add(-2*newsFor).Unix()))
	if err != nil {
		return nil, fmt.Errorf("clickhouse: alerts of changes: %w", err)
	}
	defer rows.Close()
	firing := map[alertKey]msg.Verdict{}
	for rows.Next() {
		var found, at time.Time
		var tenant, kind, agent, name, model, metric, summary, before, after string
		if err := rows.Scan(&tenant, &found, &at, &kind, &agent, &name, &model, &metric, &summary, &before, &after); err != nil {
			return nil, fmt.Errorf("clickhouse: alerts of changes: %w", err)
		}
		v := msg.Verdict{
			Tenant: tenant, Source: "changes", Span: msg.NewSpanID(tenant, agent, strings.Join([]string{kind, name, model, metric}, "\x00"), msg.SpanRun, "change"), Name: msg.AlertOfChange, Agent: agent,
			Since: found.UnixNano(), At: now.UnixNano(), Evidence: summary, Ver: uint64(now.UnixNano()),
			Path: "since " + at.UTC().Format(time.DateTime) + ", a median before: trace " + before + ", after: trace " + after,
		}
		if kind == "tool" {
			v.Tool = name
		}
		key := keyOfAlert(&v)
		_, fired := g.firing[key]
		switch {
		case now.Sub(found) < newsFor:
			if firing[key] = v; !fired {
				out = append(out, v)
			}
		case g.firing == nil || fired:
			v.Resolved, v.Resolution = now.UnixNano(), "known for a day"
			out = append(out, v)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("clickhouse: alerts of changes: %w", err)
	}
	g.firing = firing
	return out, nil
}
