package clickhouse

import (
	"context"
	"fmt"
	"time"
)

// settled is a day of a table that is over, in several parts, or in one without the text index.
type settled struct {
	table, day string
	one        bool
}

// unsearchable is the size of a day's one part from which a search without the text index is felt.
const unsearchable = 1 << 20

// settledDays lists them, newest first: those that have had no new part for a time, so that a late
// row has a day merged again, and a replay does not have it merged for each batch. A part that was neither merged nor
// mutated has the level 0 and the version of its block: as it was inserted, without the text index.
func (c *Conn) settledDays(ctx context.Context, idle time.Duration) (out []settled, err error) {
	rows, err := c.db.Query(ctx, fmt.Sprintf(`SELECT table, partition_id, count() = 1 FROM system.parts
		WHERE active AND database = %s AND table IN ('messages', 'spans', 'agent_spans', 'span_facts_by_day') AND length(partition_id) = 8 AND partition_id < toString(toYYYYMMDD(now('UTC')))
		GROUP BY table, partition_id
		HAVING (count() > 1 OR table = 'messages' AND max(level) = 0 AND max(data_version) = max(min_block_number) AND sum(data_uncompressed_bytes) >= %d) AND max(modification_time) <= now() - %d
		ORDER BY partition_id DESC, table`, quoteText(c.database), unsearchable, int64(idle.Seconds())))
	if err != nil {
		return nil, fmt.Errorf("clickhouse: read parts: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var d settled
		if err := rows.Scan(&d.table, &d.day, &d.one); err != nil {
			return nil, fmt.Errorf("clickhouse: read parts: %w", err)
		}
		out = append(out, d)
	}
	return out, rows.Err()
}

// mergeSettled merges each of them into one part, which builds the text index, or builds that alone, one after the other, and
// rests four times as long as each takes. To read one part with FINAL costs no more than without. It returns how many.
func (c *Conn) mergeSettled(ctx context.Context, idle time.Duration, sleep func(context.Context, time.Duration) error) (int, error) {
	days, err := c.settledDays(ctx, idle)
	if err != nil {
		return 0, err
	}
	for n, d := range days {
		began := time.Now()
		if err := c.Exec(ctx, d.merge(c.database)); err != nil {
			return n, err
		}
		if err := sleep(ctx, 4*time.Since(began)); err != nil {
			return n, err
		}
	}
	return len(days), nil
}

func (d settled) merge(database string) string {
	table := quoteName(database) + "." + quoteName(d.table)
	if d.one {
		return "ALTER TABLE " + table + " MATERIALIZE INDEX " + textIndex + " IN PARTITION ID " + quoteText(d.day) + " SETTINGS mutations_sync = 1"
	}
	return "OPTIMIZE TABLE " + table + " PARTITION ID " + quoteText(d.day) + " FINAL"
}

// Settle brings a store to the state that it has when nothing was stored for an hour: it computes the tables
// that are computed from rows and merges the days that are over, without rests. Nothing may be stored
// meanwhile. Measurements use it.
func Settle(ctx context.Context, s ConnSettings) error {
	c, err := open(s, false)
	if err != nil {
		return err
	}
	defer c.Close()
	sleep := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	p := roller{c: c, s: Schema{Database: c.database}, sleep: sleep}
	for _, r := range everyComputed() {
		if _, err := p.pass(ctx, r); err != nil {
			return err
		}
	}
	_, err = c.mergeSettled(ctx, 0, sleep)
	return err
}
