package clickhouse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg/schema"
	"github.com/earshot-dev/earshot/core/price"
)

// facts is a table of the few rows of another one that many questions are about, with few columns:
// those of a month are read in the time of a day. An hour has its rows that are not
// there in their version, and tombstones for those that are no longer.
type facts struct {
	hourly
	key   []string // distinguishes the rows of an hour
	where string   // rows that are facts
	// derived are the columns that the row does not have.
	derived []derivedColumn
}

// derivedColumn is a column of facts and its value in a row.
type derivedColumn struct{ name, value string }

var usageFacts = facts{
	hourly: hourly{table: "usage_facts", of: "messages", mark: "cost facts", former: "token facts"},
	key:    []string{"tenant", "toStartOfHour(ts)", "session_id", "message_id", "part_index"},
	where:  "input_tokens + output_tokens + cache_read_tokens + cache_write_tokens + reasoning_tokens > 0",
	derived: []derivedColumn{
		{name: "cache_write_1h_tokens", value: "toUInt64OrZero(attributes['cache_write_1h_tokens'])"},
		{name: "tier", value: "toLowCardinality(attributes['tier'])"},
		{name: "prompt_over", value: promptOver("")},
		{name: "stated_picodollars", value: "toUInt64OrZero(attributes['stated_picodollars'])"},
	},
}

// promptOver is the greatest of price.Steps that the prompt of a response exceeds, in a row of messages. Tokens without the id of a
// response are of several.
func promptOver(row string) string {
	prompt := strings.ReplaceAll("(ROWinput_tokens + ROWcache_read_tokens + ROWcache_write_tokens)", "ROW", row)
	steps := ""
	for _, over := range slices.Backward(price.Steps) {
		steps += fmt.Sprintf(", %s > %d, %d", prompt, over, over)
	}
	return "toUInt32(multiIf(" + row + "attributes['response_id'] = ''" + ", 0" + steps + ", 0))"
}

// A delegation, a root, a step of a workflow, or a response whose first token is known. The
// kind is part of the key, so that one of them is read alone.
var spanFacts = facts{
	hourly: hourly{table: "span_facts_by_day", of: "spans", mark: "facts of spans"},
	key:    []string{"tenant", "kind", "toStartOfHour(ts)", "session_id", "span_id"},
	where:  "(kind = 'delegation' OR state != 'open' AND name != '' AND (empty(parent_span_id) OR kind = 'workflow' OR first_token_ns > 0))",
}

// The type is in the attributes, which are most of a message: to read those of a month for the few types that no decoder knows was
// to read all of them.
var unknownFacts = facts{
	hourly:  hourly{table: "unknown_facts", of: "messages", mark: "unknown_facts"},
	key:     []string{"tenant", "toStartOfHour(ts)", "session_id", "message_id", "part_index"},
	where:   "kind = 'unknown'",
	derived: []derivedColumn{{name: "type", value: "attributes['type']"}},
}

func everyFacts() []facts { return []facts{usageFacts, spanFacts, unknownFacts} }

// factsOf returns the facts of that table.
func factsOf(table string) (facts, error) {
	for _, f := range everyFacts() {
		if f.table == table {
			return f, nil
		}
	}
	return facts{}, fmt.Errorf("no facts %q", table)
}

// columns are their names, those that the row has too first, and their values in a row.
func (f facts) columns() (names, values string) {
	t, _ := schema.Of(f.table)
	var list []string
	for _, c := range t.Columns {
		own := c.Name == "row_ver" || c.Name == "ver" || c.Name == "is_deleted"
		if !own && !slices.ContainsFunc(f.derived, func(d derivedColumn) bool { return d.name == c.Name }) {
			list = append(list, quoteName(c.Name))
		}
	}
	names = strings.Join(list, ", ")
	values = names
	for _, d := range f.derived {
		names += ", " + quoteName(d.name)
		values += ", " + d.value + " AS " + quoteName(d.name)
	}
	return names, values
}

// rows selects the facts at any time: those of the hours that are computed, and the rows of the others.
func (f facts) rows(s Schema) string {
	names, values := f.columns()
	return fmt.Sprintf(`SELECT %[1]s FROM %[2]s FINAL WHERE toStartOfHour(ts) GLOBAL NOT IN (%[6]s)
UNION ALL
SELECT %[3]s FROM %[4]s FINAL WHERE %[5]s AND toStartOfHour(ts) GLOBAL IN (%[6]s)`, names, s.name(f.table), values, s.name(f.of), f.where, f.pending(s))
}

const computing = "\nSETTINGS insert_deduplicate = 0, max_threads = 1, max_insert_threads = 1, optimize_on_insert = 0"

// first is compute where there are no facts of the hours yet: it reads the rows once.
func (f facts) first(s Schema, hours string, version uint64) string {
	names, values := f.columns()
	return fmt.Sprintf("INSERT INTO %s (%s, row_ver, ver, is_deleted)\nSELECT %s, ver, %d, 0 FROM %s FINAL WHERE %s AND toStartOfHour(ts) IN (%s)",
		s.name(f.table), names, values, version, s.name(f.of), f.where, hours) + computing
}

func (f facts) compute(s Schema, hours string, version uint64) string {
	names, values := f.columns()
	key, was, is := strings.Join(f.key, ", "), "row_ver, ingest_ts", "ver, ingest_ts"
	for _, l := range f.derived { // which facts of an earlier build have as 0
		was, is = was+", "+l.name, is+", "+l.value
	}
	in := "toStartOfHour(ts) IN (" + hours + ")"
	return fmt.Sprintf(`INSERT INTO %[1]s (%[2]s, row_ver, ver, is_deleted)
WITH greatest(toUInt64(%[7]d), (SELECT max(ver) + 1 FROM %[1]s WHERE %[5]s)) AS newest
SELECT %[8]s, ver, newest, 0 FROM %[3]s FINAL WHERE %[4]s AND %[5]s AND (%[6]s, %[9]s) GLOBAL NOT IN (SELECT %[6]s, %[10]s FROM %[1]s FINAL WHERE %[5]s)
UNION ALL
SELECT %[2]s, row_ver, newest, 1 FROM %[1]s FINAL WHERE %[5]s AND (%[6]s) GLOBAL NOT IN (SELECT %[6]s FROM %[3]s FINAL WHERE %[4]s AND %[5]s)`,
		s.name(f.table), names, s.name(f.of), f.where, in, key, version, values, is, was) + computing
}
