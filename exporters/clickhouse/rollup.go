package clickhouse

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// rollup is a table of counts by slots of five minutes and of an hour. A slot is never added
// to: the hours that have new rows are computed again as a whole, in a higher version, with
// tombstones for the combinations that are gone, so it equals the rows after late, renamed,
// moved and taken-back ones, and after replays.
type rollup struct {
	hourly
	keys []string // beside tenant and the slot
	// derived are the keys that are no columns of the rows: their values.
	derived map[string]string
	counts  []string // that are added up; the first is 0 for a combination that is gone
	maxima  []string
	lists   []string // that are joined, in slots of five minutes
	sums    []string // lists whose elements are added up
	tops    []top    // lists of the greatest, in slots of an hour
	where   string   // rows that count
	values  string   // of the counts, maxima and lists, of rows
	// from selects the rows of hours, which are an IN; SELECT * of the table where it is nil.
	from func(s Schema, hours string) string
}

// top is a list of tuples of a kind, the first topRows in an order of x, one of them. An hour that an earlier build has computed has none.
type top struct{ name, kind, order string }

// topRows is how many rows a board lists at most of such a table.
const topRows = 50

var messageRollup = rollup{
	hourly: hourly{table: "messages_rollup", of: "messages", mark: "messages", outlives: true}, where: "1",
	keys:   []string{"source", "format", "agent_name", "kind", "model"},
	counts: []string{"messages", "failed", "hidden", "content_bytes", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens"},
	values: `count() AS messages, countIf(r.failed) AS failed, countIf(r.hidden) AS hidden, sum(toUInt64(r.content_bytes)) AS content_bytes,
        sum(r.input_tokens) AS input_tokens, sum(r.output_tokens) AS output_tokens, sum(r.cache_read_tokens) AS cache_read_tokens,
        sum(r.cache_write_tokens) AS cache_write_tokens, sum(r.reasoning_tokens) AS reasoning_tokens`,
}

var callRollup = rollup{
	hourly: hourly{table: "tool_calls_rollup", of: "spans", mark: "calls", outlives: true}, where: "kind IN ('tool', 'delegation') AND state != 'open'",
	keys:    []string{"source", "format", "tool_name", "mcp_server", "agent_name", "model", "is_delegation", "internal"},
	derived: map[string]string{"is_delegation": "if(r.kind = 'delegation', true, false)"},
	counts:  []string{"calls", "errors", "cancelled", "retries", "over_1s", "over_10s", "over_1m", "duration_ns", "waited_ns", "args_bytes", "result_bytes", "only_waited"},
	maxima:  []string{"longest_ns", "largest_result"},
	lists:   []string{"active_ns"},
	values: `count() AS calls, countIf(r.outcome = 'error') AS errors, countIf(r.outcome = 'cancelled') AS cancelled, countIf(r.attempt > 1) AS retries,
        countIf(r.duration_ns >= 1000000000) AS over_1s, countIf(r.duration_ns >= 10000000000) AS over_10s, countIf(r.duration_ns >= 60000000000) AS over_1m,
        sum(r.duration_ns) AS duration_ns, sum(r.waited_ns) AS waited_ns, sum(toUInt64(r.args_bytes)) AS args_bytes, sum(toUInt64(r.result_bytes)) AS result_bytes,
        max(r.duration_ns) AS longest_ns, max(toUInt64(r.result_bytes)) AS largest_result, countIf(r.waits_for != '' AND r.waited_ns >= r.duration_ns) AS only_waited,
        arraySort(groupArrayIf(toUInt64(r.duration_ns - r.waited_ns), r.waits_for = '' OR r.waited_ns < r.duration_ns)) AS active_ns`,
}

// pauseRollup has the pauses before messages of models: the time since the message before in the
// run. That may be of an earlier hour, so each hour that follows one with new rows is computed too.
var pauseRollup = rollup{
	hourly: hourly{table: "pauses_rollup", of: "messages", mark: "longest pauses", former: "pauses", reach: 24},
	keys:   []string{"source", "format", "agent_name", "model"},
	counts: []string{"messages"},
	maxima: []string{"longest_us"},
	sums:   []string{"pauses"},
	tops:   []top{{"longest", longestPause, "-toInt64(x.us), x.ts, x.seq, x.session_id"}},
	values: `count() AS messages, max(r.pause_us) AS longest_us, [` + pauseCounts() + `] AS pauses,
        CAST(arrayMap(x -> (-x.1, x.2, x.3, x.4), groupArraySorted(` + strconv.Itoa(topRows) + `)((-toInt64(r.pause_us), r.ts, r.seq, r.session_id))), ` + quoteText("Array("+longestPause+")") + `) AS longest`,
	from: pausesOf,
}

const longestPause = "Tuple(us UInt64, ts DateTime64(9, 'UTC'), seq UInt64, session_id String)"

// pauseBounds are the milliseconds up to which pauses are counted together; the last count is of those
// that are longer. Boards have the same.
var pauseBounds = []int{100, 300, 1000, 3000, 10000, 30000, 60000, 180000, 600000, 1800000}

func pauseCounts() string {
	var out []string
	least := -1
	for _, ms := range pauseBounds {
		out = append(out, fmt.Sprintf("countIf(r.pause_us > %d AND r.pause_us <= %d)", max(least*1000, -1), ms*1000))
		least = ms
	}
	return strings.Join(append(out, fmt.Sprintf("countIf(r.pause_us > %d)", least*1000)), ", ")
}

// pausesOf selects messages of models with the pause before each: 0 for the first of a run, and after a day.
// The message before is looked for in the hours in which the session has messages.
func pausesOf(s Schema, hours string) string {
	messages := s.name("messages")
	return fmt.Sprintf(`SELECT tenant, ts, seq, source, format, agent_name, model, session_id, ingest_ts, pause_us
    FROM
    (
        SELECT *, dateDiff('microsecond', lagInFrame(ts, 1, ts) OVER (PARTITION BY tenant, session_id, run_id ORDER BY ts, seq), ts) AS since, toUInt64(if(since > 86400000000, 0, since)) AS pause_us
        FROM
        (
            SELECT tenant, ts, source, format, agent_name, model, session_id, run_id, seq, kind, ingest_ts
            FROM %[1]s FINAL
            WHERE run_id != '' AND kind NOT IN ('usage', 'stop', 'status') AND (toStartOfHour(ts) %[2]s
                OR (toStartOfHour(ts), session_id) GLOBAL IN (
                    SELECT arrayJoin(arrayFilter(h -> h >= toStartOfHour(s.began) AND h <= s.latest, (
                        SELECT groupUniqArrayArray(arrayMap(i -> hour - toIntervalHour(i), range(1, 26))) FROM (SELECT DISTINCT toStartOfHour(ts) AS hour FROM %[1]s WHERE toStartOfHour(ts) %[2]s)))), session_id
                    FROM %[3]s AS s WHERE session_id GLOBAL IN (SELECT session_id FROM %[1]s WHERE toStartOfHour(ts) %[2]s)))
        )
    )
    WHERE kind IN ('assistant', 'reasoning', 'tool_call', 'delegation') AND toStartOfHour(ts) %[2]s`, messages, hours, s.name("sessions"))
}

// usageRollup counts the tokens of each turn, from which costs are attributed.
var usageRollup = rollup{
	hourly: hourly{table: "usage_rollup", of: "messages", mark: "turn costs", former: "turn tokens", outlives: true},
	where:  "input_tokens + output_tokens + cache_read_tokens + cache_write_tokens + reasoning_tokens > 0",
	keys:   []string{"source", "format", "agent_name", "model", "session_id", "trace_id", "tier", "prompt_over", "stated"},
	derived: map[string]string{
		"tier": "toLowCardinality(r.attributes['tier'])", "prompt_over": promptOver("r."), "stated": "if(toUInt64OrZero(r.attributes['stated_picodollars']) > 0, true, false)",
	},
	counts: []string{"responses", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "cache_write_1h_tokens", "stated_picodollars"},
	values: `count() AS responses, sum(r.input_tokens) AS input_tokens, sum(r.output_tokens) AS output_tokens, sum(r.cache_read_tokens) AS cache_read_tokens,
        sum(r.cache_write_tokens) AS cache_write_tokens, sum(r.reasoning_tokens) AS reasoning_tokens,
        sum(toUInt64OrZero(r.attributes['cache_write_1h_tokens'])) AS cache_write_1h_tokens, sum(toUInt64OrZero(r.attributes['stated_picodollars'])) AS stated_picodollars`,
}

func rollups() []rollup { return []rollup{messageRollup, callRollup, pauseRollup, usageRollup} }

// rollupOf returns the rollup of that table.
func rollupOf(table string) (rollup, error) {
	for _, r := range rollups() {
		if r.table == table {
			return r, nil
		}
	}
	return rollup{}, fmt.Errorf("no rollup %q", table)
}

// slots selects the slots of the hours, which are an IN.
func (r rollup) slots(s Schema, seconds int, hours string) string {
	keys := ""
	for _, key := range r.keys {
		keys += cmp.Or(r.derived[key], "r."+key) + " AS " + key + ", "
	}
	from := fmt.Sprintf("SELECT * FROM %s FINAL WHERE %s AND toStartOfHour(ts) %s", s.name(r.of), r.where, hours)
	if r.of == "messages" {
		from = strings.Replace(from, "*", "*, failed", 1) // which is MATERIALIZED
	}
	if r.from != nil {
		from = r.from(s, hours)
	}
	return fmt.Sprintf(`SELECT r.tenant AS tenant, toStartOfInterval(toDateTime(r.ts, 'UTC'), toIntervalSecond(%d)) AS slot, %s
        %s, uniqState(r.session_id) AS sessions, toDateTime(max(r.ingest_ts), 'UTC') AS seen
    FROM (%s) AS r
    GROUP BY tenant, slot, %s`, seconds, keys, r.values, from, strings.TrimSuffix(list("%s", r.keys...), ", "))
}

// view selects the rows of a view of the rollup, with columns of slots: those of the hours that are
// computed, and those of the others from the rows.
func (r rollup) view(s Schema, seconds int, columns string) string {
	return fmt.Sprintf(`SELECT tenant, ts, %[1]s
FROM %[2]s FINAL
WHERE step = %[3]d AND toStartOfHour(ts) GLOBAL NOT IN (%[4]s)
UNION ALL
SELECT tenant, slot AS ts, %[1]s
FROM
(
    %[5]s
)`, columns, s.name(r.table), seconds, r.pending(s), r.slots(s, seconds, "GLOBAL IN ("+r.pending(s)+")"))
}

// every are all columns, with the state of sessions, which can be merged.
func (r rollup) every() string {
	return list("%s", slices.Concat(r.keys, r.counts, r.maxima, r.lists, r.sums)...) + "sessions"
}

// greatest are the keys of hours and their lists of the greatest.
func (r rollup) greatest() string {
	columns := slices.Concat(r.keys, r.counts, r.maxima)
	for _, t := range r.tops {
		columns = append(columns, t.name)
	}
	return strings.Join(columns, ", ")
}

func (r rollup) compute(s Schema, hours string, version uint64) string {
	keys := strings.TrimSuffix(list("%s", r.keys...), ", ")
	in := "toStartOfHour(ts) IN (" + hours + ")"
	lists, joined, none := slices.Concat(r.lists, r.sums), list("if(step = 300, arraySort(groupArrayArray(%s)), [])", r.lists...)+list("sumForEach(%s)", r.sums...),
		list("emptyArrayUInt64() AS %s", slices.Concat(r.lists, r.sums)...)
	for _, t := range r.tops {
		lists = append(lists, t.name)
		joined += fmt.Sprintf("if(step = 3600, arraySlice(arraySort(x -> (%s), groupArrayArray(%s)), 1, %d), []), ", t.order, t.name, topRows)
		none += fmt.Sprintf("CAST([], %s) AS %s, ", quoteText("Array("+t.kind+")"), t.name)
	}
	return fmt.Sprintf(`INSERT INTO %[1]s (tenant, step, ts, %[2]s, %[3]s%[4]s%[12]ssessions, seen, ver, is_deleted)
SELECT tenant, step, start, %[2]s, %[5]s%[6]s%[13]suniqMergeState(sessions), max(seen),
    greatest(toUInt64(%[7]d), (SELECT max(ver) + 1 FROM %[1]s WHERE %[11]s)), sum(%[8]s) = 0
FROM
(
    SELECT tenant, arrayJoin([300, 3600]) AS step, toDateTime(intDiv(toUInt32(slot), step) * step, 'UTC') AS start, %[2]s, %[3]s%[4]s%[12]ssessions, seen
    FROM (%[9]s)
    UNION ALL
    SELECT tenant, step, ts AS start, %[2]s, %[10]s%[14]sarrayReduce('uniqState', emptyArrayString()) AS sessions, seen
    FROM %[1]s FINAL
    WHERE %[11]s
)
GROUP BY tenant, step, start, %[2]s
SETTINGS insert_deduplicate = 0, max_threads = 1, max_insert_threads = 1, optimize_on_insert = 0`,
		s.name(r.table), keys, list("%s", r.counts...), list("%s", r.maxima...), list("sum(%s)", r.counts...), list("max(%s)", r.maxima...),
		version, r.counts[0], r.slots(s, 300, "IN ("+hours+")"), list("toUInt64(0) AS %s", slices.Concat(r.counts, r.maxima)...), in,
		list("%s", lists...), joined, none)
}
