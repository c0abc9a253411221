package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// roller keeps the tables that are computed.
type roller struct {
	c *Conn
	s Schema
	// settle is how long after the time of its ingest_ts a row may come to be visible: longer than
	// an insert may take. Hours are computed when their rows are older.
	settle time.Duration
	sleep  func(context.Context, time.Duration) error
}

// hoursAtOnce bounds the rows of one statement.
const hoursAtOnce = 12

// pass computes the hours that have new rows, newest first, and returns how many.
func (p roller) pass(ctx context.Context, r computed) (done int, err error) {
	h := r.base()
	var clock int64 // of the server, in microseconds
	if err := p.c.db.QueryRow(ctx, "SELECT toUnixTimestamp64Micro(now64(6))").Scan(&clock); err != nil {
		return 0, fmt.Errorf("clickhouse: %s: %w", h.table, err)
	}
	now := time.UnixMicro(clock)
	hours, err := p.touched(ctx, h)
	if err != nil {
		return 0, err
	}
	// An hour is computed when no more of it arrives, of a backlog as of the present: until then readers
	// take its rows in any case (pending).
	until := now.Add(-p.settle)
	var todo []touchedHour
	present, old := now.Add(-2*time.Hour), false
	for _, t := range hours {
		if t.last.Before(until) && !t.last.Before(t.until) {
			todo = append(todo, t)
		}
		old = old || t.hour.Before(present)
	}
	if len(todo) == 0 && !old {
		return 0, nil // the floor moves when one of them is computed
	}
	todo = following(todo, h.reach)
	kept := p.s.TTL.kept(h.of)
	for part := range slices.Chunk(todo, hoursAtOnce) {
		var all, some []string
		for _, t := range part {
			at := fmt.Sprintf("toDateTime(%d, 'UTC')", t.hour.Unix())
			all = append(all, at)
			if !h.outlives || kept <= 0 || t.at.Unix() <= 0 || t.oldest.Add(kept).After(now) { // no row of it has expired
				some = append(some, at)
			}
		}
		began := time.Now()
		if len(some) > 0 {
			sql, err := p.statement(ctx, r, strings.Join(some, ", "), uint64(clock))
			if err == nil {
				err = p.c.derive(ctx, sql)
			}
			if err != nil {
				return done, fmt.Errorf("%s: %w", h.table, err)
			}
		}
		if err := p.c.Exec(ctx, h.note(p.s, strings.Join(all, ", "), until, now)); err != nil {
			return done, fmt.Errorf("%s: %w", h.table, err)
		}
		done += len(part)
		if err := p.sleep(ctx, 4*time.Since(began)); err != nil {
			return done, err
		}
	}
	// Every row that was stored before then is in the rollup: a later one has its hour computed again.
	return done, p.c.Exec(ctx, h.noteAll(p.s, until, now))
}

// statement computes hours.
func (p roller) statement(ctx context.Context, r computed, hours string, version uint64) (string, error) {
	f, ok := r.(facts)
	if !ok {
		return r.compute(p.s, hours, version), nil
	}
	var there uint64
	if err := p.c.db.QueryRow(ctx, "SELECT count() FROM "+p.s.name(f.table)+" WHERE toStartOfHour(ts) IN ("+hours+")").Scan(&there); err != nil {
		return "", fmt.Errorf("clickhouse: %w", err)
	}
	if there == 0 {
		return f.first(p.s, hours, version), nil
	}
	return f.compute(p.s, hours, version), nil
}

// following adds so many hours after each of them.
func following(hours []touchedHour, reach int) []touchedHour {
	if reach == 0 {
		return hours
	}
	there := make(map[time.Time]bool, len(hours))
	for _, t := range hours {
		there[t.hour] = true
	}
	for _, t := range slices.Clone(hours) {
		for i := range reach {
			if next := t.hour.Add(time.Duration(i+1) * time.Hour); !there[next] {
				there[next] = true
				hours = append(hours, touchedHour{hour: next})
			}
		}
	}
	return hours
}

// touchedHour is an hour that has rows since the floor.
type touchedHour struct{ hour, last, until, at, oldest time.Time }

func (p roller) touched(ctx context.Context, h hourly) (out []touchedHour, err error) {
	rows, err := p.c.db.Query(ctx, h.touched(p.s)+"\nORDER BY hour DESC")
	if err != nil {
		return nil, fmt.Errorf("clickhouse: %s: %w", h.table, err)
	}
	defer rows.Close()
	for rows.Next() {
		var t touchedHour
		if err := rows.Scan(&t.hour, &t.last, &t.until, &t.at, &t.oldest); err != nil {
			return nil, fmt.Errorf("clickhouse: %s: %w", h.table, err)
		}
		out = append(out, t)
	}
	return out, rows.Err()
}
