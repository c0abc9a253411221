package clickhouse

import (
	"context"
	"fmt"
	"time"
)

// ChangeRow is a row of the table changes. Its fields are the columns; see migrations/0092_tables.sql.
type ChangeRow struct {
	Tenant      string    `ch:"tenant"`
	Found       time.Time `ch:"found"`
	At          time.Time `ch:"at"`
	Kind        string    `ch:"kind"`
	Agent       string    `ch:"agent_name"`
	Name        string    `ch:"name"`
	Model       string    `ch:"model"`
	Metric      string    `ch:"metric"`
	Test        string    `ch:"test"`
	Since       []string  `ch:"since"`
	RunsBefore  uint32    `ch:"runs_before"`
	RunsAfter   uint32    `ch:"runs_after"`
	P50Before   float64   `ch:"p50_before"`
	P50After    float64   `ch:"p50_after"`
	P95Before   float64   `ch:"p95_before"`
	P95After    float64   `ch:"p95_after"`
	MeanBefore  float64   `ch:"mean_before"`
	MeanAfter   float64   `ch:"mean_after"`
	Ratio       float64   `ch:"ratio"`
	Low         float64   `ch:"ratio_low"`
	High        float64   `ch:"ratio_high"`
	Summary     string    `ch:"summary"`
	TraceBefore string    `ch:"trace_before"`
	TraceAfter  string    `ch:"trace_after"`
	Version     uint64    `ch:"ver"`
}

// StoreChanges stores changes that were found; one that is there already is replaced.
func (x *Exporter) StoreChanges(ctx context.Context, list []ChangeRow) error {
	if len(list) == 0 {
		return nil
	}
	b, err := x.conn.db.PrepareBatch(ctx, `INSERT INTO `+x.schema.name("changes")+` (tenant, found, at, kind, agent_name, name, model, metric, test, since, runs_before, runs_after,
		p50_before, p50_after, p95_before, p95_after, mean_before, mean_after, ratio, ratio_low, ratio_high, summary, trace_before, trace_after, ver)`)
	if err != nil {
		return fmt.Errorf("clickhouse: changes: %w", err)
	}
	for i := range list {
		if err := b.AppendStruct(&list[i]); err != nil {
			return fmt.Errorf("clickhouse: changes: %w", err)
		}
	}
	if err := b.Send(); err != nil {
		return fmt.Errorf("clickhouse: changes: %w", err)
	}
	x.alerting.changes.stored.Store(true)
	return nil
}
