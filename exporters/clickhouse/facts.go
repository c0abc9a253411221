package clickhouse

import (
	"fmt"
	"strings"

	"github.com/earshot-dev/earshot/core/msg/schema"
)

// facts is a table of the few rows of another one that many questions are about, with few columns:
// those of a month are read in the time of a day. An hour has its rows that are not
// there in their version, and tombstones for those that are no longer.
type facts struct {
	hourly
	key   []string // distinguishes the rows of an hour
	where string   // rows that are facts
}

var usageFacts = facts{
	hourly: hourly{table: "usage_facts", of: "messages", mark: "usage_facts"},
	key:    []string{"tenant", "toStartOfHour(ts)", "session_id", "message_id", "part_index"},
	where:  "input_tokens + output_tokens + cache_read_tokens + cache_write_tokens + reasoning_tokens > 0",
}

// A delegation, a root, a step of a workflow, or a response whose first token is known. The
// kind is part of the key, so that one of them is read alone.
var spanFacts = facts{
	hourly: hourly{table: "span_facts", of: "spans", mark: "span_facts"},
	key:    []string{"tenant", "kind", "toStartOfHour(ts)", "session_id", "span_id"},
	where:  "(kind = 'delegation' OR state != 'open' AND name != '' AND (empty(parent_span_id) OR kind = 'workflow' OR first_token_ns > 0))",
}

// factsOf returns the facts of that table.
func factsOf(table string) (facts, error) {
	for _, f := range []facts{usageFacts, spanFacts} {
		if f.table == table {
			return f, nil
		}
	}
	return facts{}, fmt.Errorf("no facts %q", table)
}

// columns are those that the row has too.
func (f facts) columns() string {
	t, _ := schema.Of(f.table)
	var names []string
	for _, c := range t.Columns {
		if c.Name != "row_ver" && c.Name != "ver" && c.Name != "is_deleted" {
			names = append(names, quoteName(c.Name))
		}
	}
	return strings.Join(names, ", ")
}

// rows selects the facts at any time: those of the hours that are computed, and the rows of the others.
func (f facts) rows(s Schema) string {
	return fmt.Sprintf(`SELECT %[1]s FROM %[2]s FINAL WHERE toStartOfHour(ts) GLOBAL NOT IN (%[5]s)
UNION ALL
SELECT %[1]s FROM %[3]s FINAL WHERE %[4]s AND toStartOfHour(ts) GLOBAL IN (%[5]s)`, f.columns(), s.name(f.table), s.name(f.of), f.where, f.pending(s))
}

const computing = "\nSETTINGS insert_deduplicate = 0, max_threads = 1, max_insert_threads = 1, optimize_on_insert = 0"

// first is compute where there are no facts of the hours yet: it reads the rows once.
func (f facts) first(s Schema, hours string, version uint64) string {
	return fmt.Sprintf("INSERT INTO %s (%s, row_ver, ver, is_deleted)\nSELECT %[2]s, ver, %[3]d, 0 FROM %[4]s FINAL WHERE %[5]s AND toStartOfHour(ts) IN (%[6]s)",
		s.name(f.table), f.columns(), version, s.name(f.of), f.where, hours) + computing
}

func (f facts) compute(s Schema, hours string, version uint64) string {
	key := strings.Join(f.key, ", ")
	in := "toStartOfHour(ts) IN (" + hours + ")"
	return fmt.Sprintf(`INSERT INTO %[1]s (%[2]s, row_ver, ver, is_deleted)
WITH greatest(toUInt64(%[7]d), (SELECT max(ver) + 1 FROM %[1]s WHERE %[5]s)) AS newest
SELECT %[2]s, ver, newest, 0 FROM %[3]s FINAL WHERE %[4]s AND %[5]s AND (%[6]s, ver, ingest_ts) GLOBAL NOT IN (SELECT %[6]s, row_ver, ingest_ts FROM %[1]s FINAL WHERE %[5]s)
UNION ALL
SELECT %[2]s, row_ver, newest, 1 FROM %[1]s FINAL WHERE %[5]s AND (%[6]s) GLOBAL NOT IN (SELECT %[6]s FROM %[3]s FINAL WHERE %[4]s AND %[5]s)`,
		s.name(f.table), f.columns(), s.name(f.of), f.where, in, key, version) + computing
}
