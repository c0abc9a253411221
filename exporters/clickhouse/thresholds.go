package clickhouse

import (
	"context"
	"fmt"
	"time"
)

// writeThresholds sets thresholds to those of the settings. v_open_spans derives from them
// whether a span is silent, and every view of open work reads v_open_spans.
func (x *Exporter) writeThresholds(ctx context.Context) error {
	for name, after := range map[string]time.Duration{"silent": x.settings.SilentAfter} {
		var is uint64
		table := x.schema.name("thresholds")
		if err := x.conn.db.QueryRow(ctx, fmt.Sprintf("SELECT argMax(after_ms, ver) FROM %s WHERE name = %s", table, quoteText(name))).Scan(&is); err != nil {
			return err
		}
		want := uint64(after.Milliseconds())
		if is == want {
			continue
		}
		if err := x.conn.db.Exec(ctx, fmt.Sprintf("INSERT INTO %s (name, after_ms) VALUES (%s, %d)", table, quoteText(name), want)); err != nil {
			return err
		}
	}
	return nil
}
