package clickhouse

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// hourly is a table that is computed from the rows of messages or spans, an hour as a whole:
// again whenever a row of the hour was stored since. The hour is part of the sort key of the rows:
// a row that leaves it has a tombstone there, which is a new row of the hour.
type hourly struct {
	table, of string
	// mark is the name of its hours in rollup_hours.
	mark string
	// former is the mark of an earlier build, whose tables have all but the latest columns: the views go by it, so that they do not
	// read the rows of all hours while these are computed again. It follows mark.
	former string
	// outlives is whether its rows are kept longer than those that they are computed from: an hour
	// of which some are gone stays as it is.
	outlives bool
	// reach is how many hours after it depend on the rows of an hour.
	reach int
}

// computed is a rollup, or facts.
type computed interface {
	base() hourly
	// compute inserts the rows of hours, a list of literals, in that version or the next: a clock
	// may go back.
	compute(s Schema, hours string, version uint64) string
}

func (h hourly) base() hourly { return h }

// everyComputed are the tables that are computed.
func everyComputed() (out []computed) {
	for _, r := range rollups() {
		out = append(out, r)
	}
	for _, f := range everyFacts() {
		out = append(out, f)
	}
	return out
}

// pending selects the hours that have rows which the table may not have: those with rows since the
// time up to which all of them are computed. It is part of every query, so it is short; a reader's
// final = 1 would hide tombstones here.
func (h hourly) pending(s Schema) string {
	hour := "toStartOfHour(ts)"
	if h.reach > 0 {
		hour = fmt.Sprintf("arrayJoin(arrayMap(i -> toStartOfHour(ts) + toIntervalHour(i), range(%d)))", h.reach+1)
	}
	return fmt.Sprintf("SELECT "+hour+" FROM %s WHERE ingest_ts >= (SELECT max(until) FROM %s WHERE name = 'all %s') SETTINGS final = 0", s.name(h.of), s.name("rollup_hours"), cmp.Or(h.former, h.mark))
}

// touched selects the hours that have rows since the time up to which all of them are computed,
// and when the last of these was stored.
func (h hourly) touched(s Schema) string {
	return fmt.Sprintf(`SELECT t.hour AS hour, t.last AS last, d.until AS until, d.at AS at, d.oldest AS oldest
FROM (SELECT toStartOfHour(ts) AS hour, max(ingest_ts) AS last FROM %[1]s WHERE ingest_ts >= (SELECT max(until) FROM %[2]s WHERE name = 'all %[3]s') GROUP BY hour) AS t
LEFT JOIN (SELECT hour, max(until) AS until, max(at) AS at, min(oldest) AS oldest FROM %[2]s WHERE name = '%[3]s' GROUP BY hour) AS d ON d.hour = t.hour`,
		s.name(h.of), s.name("rollup_hours"), h.mark)
}

// noteAll inserts that all hours are computed with the rows that were stored before then.
func (h hourly) noteAll(s Schema, until, at time.Time) string {
	times := fmt.Sprintf("', %s, %s)", millis(until), millis(at))
	sql := "INSERT INTO " + s.name("rollup_hours") + " (name, until, at) VALUES ('all " + h.mark + times
	if h.former != "" {
		sql += ", ('all " + h.former + times
	}
	return sql
}

// note inserts that hours are computed.
func (h hourly) note(s Schema, hours string, until, at time.Time) string {
	return fmt.Sprintf(`INSERT INTO %[1]s (name, hour, until, at, oldest)
SELECT '%[2]s', m.hour, %[3]s, %[4]s, if(d.at > toDateTime64(0, 3, 'UTC'), least(m.oldest, d.oldest), m.oldest)
FROM (SELECT toStartOfHour(ts) AS hour, min(ingest_ts) AS oldest FROM %[5]s WHERE toStartOfHour(ts) IN (%[6]s) GROUP BY hour) AS m
LEFT JOIN (SELECT hour, max(at) AS at, min(oldest) AS oldest FROM %[1]s WHERE name = '%[2]s' GROUP BY hour) AS d ON d.hour = m.hour
SETTINGS insert_deduplicate = 0`, s.name("rollup_hours"), h.mark, millis(until), millis(at), s.name(h.of), hours)
}

// millis is a literal.
func millis(t time.Time) string {
	return fmt.Sprintf("fromUnixTimestamp64Milli(toInt64(%d), 'UTC')", t.UnixMilli())
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
