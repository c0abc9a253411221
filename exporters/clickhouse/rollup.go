package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// rollup is a table of counts by slots of five minutes and of an hour. A slot is never added
// to: the hours that have new rows are computed again as a whole, in a higher version, with
// tombstones for the combinations that are gone, so it equals the rows after late, renamed,
// moved and taken-back ones, and after replays. The hour is part of the sort key of the rows: a row that
// leaves it has a tombstone there, which is a new row of the hour.
type rollup struct {
	table, of string
	keys      []string // beside tenant and the slot
	counts    []string // that are added up; the first is 0 for a combination that is gone
	maxima    []string
	where     string // rows that count
	values    string // of the counts and maxima, of rows
}

var messageRollup = rollup{
	table: "messages_rollup", of: "messages", where: "1",
	keys:   []string{"source", "format", "agent_name", "kind", "model"},
	counts: []string{"messages", "failed", "hidden", "content_bytes", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens"},
	values: `count() AS messages, countIf(r.failed) AS failed, countIf(r.hidden) AS hidden, sum(toUInt64(r.content_bytes)) AS content_bytes,
        sum(r.input_tokens) AS input_tokens, sum(r.output_tokens) AS output_tokens, sum(r.cache_read_tokens) AS cache_read_tokens,
        sum(r.cache_write_tokens) AS cache_write_tokens, sum(r.reasoning_tokens) AS reasoning_tokens`,
}

var callRollup = rollup{
	table: "tool_calls_rollup", of: "spans", where: "kind IN ('tool', 'delegation') AND state != 'open'",
	keys:   []string{"source", "format", "tool_name", "mcp_server", "agent_name", "model", "is_delegation", "internal"},
	counts: []string{"calls", "errors", "cancelled", "retries", "over_1s", "over_10s", "over_1m", "duration_ns", "waited_ns", "args_bytes", "result_bytes"},
	maxima: []string{"longest_ns"},
	values: `count() AS calls, countIf(r.outcome = 'error') AS errors, countIf(r.outcome = 'cancelled') AS cancelled, countIf(r.attempt > 1) AS retries,
        countIf(r.duration_ns >= 1000000000) AS over_1s, countIf(r.duration_ns >= 10000000000) AS over_10s, countIf(r.duration_ns >= 60000000000) AS over_1m,
        sum(r.duration_ns) AS duration_ns, sum(r.waited_ns) AS waited_ns, sum(toUInt64(r.args_bytes)) AS args_bytes, sum(toUInt64(r.result_bytes)) AS result_bytes,
        max(r.duration_ns) AS longest_ns`,
}

func rollups() []rollup { return []rollup{messageRollup, callRollup} }

// rollupOf returns the rollup of that table.
func rollupOf(table string) (rollup, error) {
	for _, r := range rollups() {
		if r.table == table {
			return r, nil
		}
	}
	return rollup{}, fmt.Errorf("no rollup %q", table)
}

// list is the names, each followed by a comma, in a form with the name in place of %s.
func list(form string, names ...string) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteString(strings.ReplaceAll(form, "%s", n))
		b.WriteString(", ")
	}
	return b.String()
}

// slots selects the slots of the hours that rows of the condition are in.
func (r rollup) slots(s Schema, seconds int, where string) string {
	keys := list("r.%s AS %s", r.keys...)
	keys = strings.Replace(keys, "r.is_delegation", "if(r.kind = 'delegation', true, false)", 1)
	from := "SELECT *"
	if r.of == "messages" {
		from += ", failed" // which is MATERIALIZED
	}
	return fmt.Sprintf(`SELECT r.tenant AS tenant, toStartOfInterval(toDateTime(r.ts, 'UTC'), toIntervalSecond(%d)) AS slot, %s
        %s, uniqState(r.session_id) AS sessions, toDateTime(max(r.ingest_ts), 'UTC') AS seen
    FROM (%s FROM %s FINAL WHERE %s AND %s) AS r
    GROUP BY tenant, slot, %s`, seconds, keys, r.values, from, s.name(r.of), r.where, where, strings.TrimSuffix(list("%s", r.keys...), ", "))
}

// view selects the rows of a view of the rollup: the slots of the hours that are computed, and
// those of the others from the rows.
func (r rollup) view(s Schema, seconds int) string {
	columns := list("%s", slices.Concat(r.keys, r.counts, r.maxima)...) + "finalizeAggregation(sessions) AS sessions"
	return fmt.Sprintf(`SELECT tenant, ts, %[1]s
FROM %[2]s FINAL
WHERE step = %[3]d AND toStartOfHour(ts) GLOBAL NOT IN (%[4]s)
UNION ALL
SELECT tenant, slot AS ts, %[1]s
FROM
(
    %[5]s
)`, columns, s.name(r.table), seconds, r.pending(s), r.slots(s, seconds, "toStartOfHour(ts) GLOBAL IN ("+r.pending(s)+")"))
}

// pending selects the hours that have rows which the rollup may not have.
func (r rollup) pending(s Schema) string {
	return fmt.Sprintf("SELECT hour FROM (%s) WHERE last >= until", r.touched(s))
}

// touched selects the hours that have rows since the time up to which all of them are computed,
// and when the last of these was stored.
func (r rollup) touched(s Schema) string {
	return fmt.Sprintf(`SELECT t.hour AS hour, t.last AS last, d.until AS until, d.at AS at, d.oldest AS oldest
FROM (SELECT toStartOfHour(ts) AS hour, max(ingest_ts) AS last FROM %[1]s WHERE ingest_ts >= (SELECT max(until) FROM %[2]s WHERE name = 'all %[3]s') GROUP BY hour) AS t
LEFT JOIN (SELECT hour, max(until) AS until, max(at) AS at, min(oldest) AS oldest FROM %[2]s WHERE name = '%[3]s' GROUP BY hour) AS d ON d.hour = t.hour`,
		s.name(r.of), s.name("rollup_hours"), r.of)
}

// compute inserts the slots of hours, a list of literals, in that version or the next: a clock
// may go back.
func (r rollup) compute(s Schema, hours string, version uint64) string {
	keys := strings.TrimSuffix(list("%s", r.keys...), ", ")
	in := "toStartOfHour(ts) IN (" + hours + ")"
	return fmt.Sprintf(`INSERT INTO %[1]s (tenant, step, ts, %[2]s, %[3]s%[4]ssessions, seen, ver, is_deleted)
SELECT tenant, step, start, %[2]s, %[5]s%[6]suniqMergeState(sessions), max(seen),
    greatest(toUInt64(%[7]d), (SELECT max(ver) + 1 FROM %[1]s WHERE %[11]s)), sum(%[8]s) = 0
FROM
(
    SELECT tenant, arrayJoin([300, 3600]) AS step, toDateTime(intDiv(toUInt32(slot), step) * step, 'UTC') AS start, %[2]s, %[3]s%[4]ssessions, seen
    FROM (%[9]s)
    UNION ALL
    SELECT tenant, step, ts AS start, %[2]s, %[10]sarrayReduce('uniqState', emptyArrayString()) AS sessions, seen
    FROM %[1]s FINAL
    WHERE %[11]s
)
GROUP BY tenant, step, start, %[2]s
SETTINGS insert_deduplicate = 0, max_threads = 1, max_insert_threads = 1, optimize_on_insert = 0`,
		s.name(r.table), keys, list("%s", r.counts...), list("%s", r.maxima...), list("sum(%s)", r.counts...), list("max(%s)", r.maxima...),
		version, r.counts[0], r.slots(s, 300, in), list("toUInt64(0) AS %s", slices.Concat(r.counts, r.maxima)...), in)
}

// roller keeps the rollups.
type roller struct {
	c *Conn
	s Schema
	// settle is how long after the time of its ingest_ts a row may come to be visible: longer than
	// an insert may take. Hours are computed again until their rows are older.
	settle time.Duration
	sleep  func(context.Context, time.Duration) error
}

// hoursAtOnce bounds the rows of one statement.
const hoursAtOnce = 12

// pass computes the hours that have new rows, newest first, and returns how many.
func (p roller) pass(ctx context.Context, r rollup) (done int, err error) {
	var clock int64 // of the server, in microseconds
	if err := p.c.db.QueryRow(ctx, "SELECT toUnixTimestamp64Micro(now64(6))").Scan(&clock); err != nil {
		return 0, fmt.Errorf("clickhouse: %s: %w", r.table, err)
	}
	now := time.UnixMicro(clock)
	hours, err := p.touched(ctx, r)
	if err != nil || len(hours) == 0 {
		return 0, err
	}
	until := now.Add(-p.settle)
	var todo []touchedHour
	for _, h := range hours {
		if !h.last.Before(h.until) && (!h.last.Before(h.at.Add(-time.Second)) || h.last.Before(until)) {
			todo = append(todo, h)
		}
	}
	kept := p.s.TTL.kept(r.of)
	for part := range slices.Chunk(todo, hoursAtOnce) {
		var all, some []string
		for _, h := range part {
			at := fmt.Sprintf("toDateTime(%d, 'UTC')", h.hour.Unix())
			all = append(all, at)
			if kept <= 0 || h.at.Unix() <= 0 || h.oldest.Add(kept).After(now) { // no row of it has expired
				some = append(some, at)
			}
		}
		began := time.Now()
		if len(some) > 0 {
			if err := p.c.Exec(ctx, r.compute(p.s, strings.Join(some, ", "), uint64(clock))); err != nil {
				return done, fmt.Errorf("%s: %w", r.table, err)
			}
		}
		if err := p.c.Exec(ctx, r.note(p.s, strings.Join(all, ", "), until, now)); err != nil {
			return done, fmt.Errorf("%s: %w", r.table, err)
		}
		done += len(part)
		if err := p.sleep(ctx, 4*time.Since(began)); err != nil {
			return done, err
		}
	}
	// Every row that was stored before then is in the rollup: a later one has its hour computed again.
	return done, p.c.Exec(ctx, fmt.Sprintf("INSERT INTO %s (name, until, at) VALUES ('all %s', %s, %s)", p.s.name("rollup_hours"), r.of, millis(until), millis(now)))
}

// touchedHour is an hour that has rows since the floor.
type touchedHour struct{ hour, last, until, at, oldest time.Time }

func (p roller) touched(ctx context.Context, r rollup) (out []touchedHour, err error) {
	rows, err := p.c.db.Query(ctx, r.touched(p.s)+"\nORDER BY hour DESC")
	if err != nil {
		return nil, fmt.Errorf("clickhouse: %s: %w", r.table, err)
	}
	defer rows.Close()
	for rows.Next() {
		var h touchedHour
		if err := rows.Scan(&h.hour, &h.last, &h.until, &h.at, &h.oldest); err != nil {
			return nil, fmt.Errorf("clickhouse: %s: %w", r.table, err)
		}
		out = append(out, h)
	}
	return out, rows.Err()
}

// note inserts that hours are computed.
func (r rollup) note(s Schema, hours string, until, at time.Time) string {
	return fmt.Sprintf(`INSERT INTO %[1]s (name, hour, until, at, oldest)
SELECT '%[2]s', m.hour, %[3]s, %[4]s, if(d.at > toDateTime64(0, 3, 'UTC'), least(m.oldest, d.oldest), m.oldest)
FROM (SELECT toStartOfHour(ts) AS hour, min(ingest_ts) AS oldest FROM %[5]s WHERE toStartOfHour(ts) IN (%[6]s) GROUP BY hour) AS m
LEFT JOIN (SELECT hour, max(at) AS at, min(oldest) AS oldest FROM %[1]s WHERE name = '%[2]s' GROUP BY hour) AS d ON d.hour = m.hour
SETTINGS insert_deduplicate = 0`, s.name("rollup_hours"), r.of, millis(until), millis(at), s.name(r.of), hours)
}

// millis is a literal.
func millis(t time.Time) string {
	return fmt.Sprintf("fromUnixTimestamp64Milli(toInt64(%d), 'UTC')", t.UnixMilli())
}
