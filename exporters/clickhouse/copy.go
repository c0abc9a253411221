package clickhouse

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// A migration that moves rows to another table copies them by days, newest first, while the
// former tables are read and no row is written by this program: batches wait in the spool.
// A day that is copied is noted in schema_progress, and one that is copied twice has the
// same rows in the same versions. Then the former tables get other names, so that no other
// program writes to them, the rows that were stored in them meanwhile are copied too, and
// views with the former names replace them.

// copied is the condition for the rows of a former table that a statement copies: with no
// prefix those of a day, and with the prefix former_ those of spans of which a table has a
// row that was stored since the copying began.
func copied(s Schema, prefix, ts, id string) string {
	switch {
	case prefix == "" && s.printed:
		return "1"
	case prefix == "":
		return fmt.Sprintf("%[1]s >= toDateTime64({day:Date}, 9, 'UTC') AND %[1]s < toDateTime64({day:Date} + 1, 9, 'UTC')", ts)
	}
	var late []string
	for _, t := range []struct{ table, id, stored string }{
		{"otel_traces", "SpanId", "IngestTs"}, {"tool_calls", "span_id", "ingest_ts"}, {"delegations", "span_id", "ingest_ts"}, {"open_spans", "span_id", "ingest_ts"},
	} {
		late = append(late, fmt.Sprintf("SELECT toString(%s) FROM %s WHERE %s >= (SELECT min(at) FROM %s)",
			t.id, s.name(prefix+t.table), t.stored, s.name("schema_progress")))
	}
	return fmt.Sprintf("toString(%s) GLOBAL IN (%s)", id, strings.Join(late, " UNION ALL "))
}

// drop renders the statements that remove a former table.
func drop(s Schema, table string) string {
	sql := "DROP TABLE IF EXISTS " + s.name("former_"+table) + s.onCluster() + " SYNC"
	if s.Cluster != "" {
		sql += ";\nDROP TABLE IF EXISTS " + s.local(table) + s.onCluster() + " SYNC"
	}
	return sql
}

// step is a statement of a migration that is under way.
type step struct {
	s      Schema
	c      *Conn
	m      Migration
	number int
}

// run runs the statement.
func (p step) run(ctx context.Context) error {
	s, c, m, number, st := p.s, p.c, p.m, p.number, p.m.Statements[p.number]
	if n, err := p.countTables(ctx, st.While); err != nil || n < len(st.While) {
		return err
	}
	if st.Days == "" {
		return c.change(ctx, st.SQL)
	}
	days, err := p.days(ctx)
	if err != nil {
		return err
	}
	for i, day := range days {
		began := time.Now()
		if err := c.change(ctx, strings.ReplaceAll(st.SQL, "{day:Date}", "toDate("+quoteText(day)+")")); err != nil {
			return fmt.Errorf("day %s of %s: %w", day, st.While[0], err)
		}
		note := fmt.Sprintf("INSERT INTO %s (version, statement, day) VALUES (%d, %d, %s)", s.name("schema_progress"), m.Version, number, quoteText(day))
		if err := c.change(ctx, note); err != nil {
			return fmt.Errorf("day %s of %s: %w", day, st.While[0], err)
		}
		if s.Logger != nil {
			s.Logger.Info("clickhouse: a day of rows is copied to its new table", "migration", m.Version, "from", st.While[0], "day", day,
				"done", i+1, "of", len(days), "took", time.Since(began).Round(time.Millisecond))
		}
	}
	return nil
}

// countTables returns how many of the names are of tables, and not of views.
func (p step) countTables(ctx context.Context, names []string) (int, error) {
	if len(names) == 0 {
		return 0, nil
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quoteText(name)
	}
	var n uint64
	err := p.c.db.QueryRow(ctx, "SELECT count() FROM system.tables WHERE database = "+quoteText(p.s.withDefaults().Database)+
		" AND name IN ("+strings.Join(quoted, ", ")+") AND engine NOT LIKE '%View'").Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("look for tables: %w", err)
	}
	return int(n), nil
}

// days returns the days that a statement has not copied, newest first.
func (p step) days(ctx context.Context) ([]string, error) {
	st := p.m.Statements[p.number]
	rows, err := p.c.db.Query(ctx, fmt.Sprintf(`SELECT DISTINCT toString(toDate(%s, 'UTC')) AS day FROM %s
		WHERE toDate(day) NOT IN (SELECT day FROM %s WHERE version = %d AND statement = %d) ORDER BY day DESC`,
		quoteName(st.Days), p.s.name(st.While[0]), p.s.name("schema_progress"), p.m.Version, p.number))
	if err != nil {
		return nil, fmt.Errorf("days of %s: %w", st.While[0], err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var day string
		if err := rows.Scan(&day); err != nil {
			return nil, fmt.Errorf("days of %s: %w", st.While[0], err)
		}
		out = append(out, day)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("days of %s: %w", st.While[0], err)
	}
	return out, nil
}
