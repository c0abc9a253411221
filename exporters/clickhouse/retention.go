package clickhouse

import (
	"fmt"
	"strings"
	"time"
)

// retention is the TTL that applies to a table, or to a column of it, and the column that it
// counts from.
type retention struct {
	table, column string // column is empty for rows
	from          string
	of            func(TTL) time.Duration
}

func retentions() []retention {
	bodies := func(t TTL) time.Duration { return t.Bodies }
	messages := func(t TTL) time.Duration { return t.Messages }
	spans := func(t TTL) time.Duration { return t.Spans }
	longer := func(t TTL) time.Duration {
		if t.Messages <= 0 || t.Spans <= 0 {
			return 0
		}
		return max(t.Messages, t.Spans)
	}
	return []retention{
		{"messages", "", "ingest_ts", messages},
		{"messages", "content", "ingest_ts", bodies},
		{"messages", "tool_arguments", "ingest_ts", bodies},
		{"messages", "delegate_task", "ingest_ts", bodies},
		{"spans", "", "ingest_ts", longer},
		{"agent_spans", "", "IngestTs", spans},
		{"pauses_rollup", "", "seen", messages},
		{"usage_facts", "", "ingest_ts", messages},
		{"span_facts_by_day", "", "ingest_ts", longer},
		{"unknown_facts", "", "ingest_ts", messages},
		{"sessions", "", "seen", messages},
		{"session_facts", "", "seen", func(t TTL) time.Duration { return t.Rollups }}, // attribution derives from them
		{"run_setups", "", "seen", messages},
		{"changes", "", "ingest_ts", messages},
		{"budget_alerts", "", "ingest_ts", func(t TTL) time.Duration { return t.Rollups }},
		{"findings", "", "ingest_ts", messages},
		{"verdicts", "", "ingest_ts", messages},
		{"streams", "", "ingest_ts", messages},
		{"dead_letters", "", "seen_at", spans},
		{"messages_rollup", "", "seen", func(t TTL) time.Duration { return t.Rollups }},
		{"tool_calls_rollup", "", "seen", func(t TTL) time.Duration { return t.Rollups }},
		{"usage_rollup", "", "seen", func(t TTL) time.Duration { return t.Rollups }},
		{"turn_facts", "", "seen", func(t TTL) time.Duration { return t.Rollups }},
		{"session_attributes", "", "seen", func(t TTL) time.Duration { return t.Rollups }},
		{"attribution", "", "seen", func(t TTL) time.Duration { return t.Rollups }},
	}
}

// kept is how long the rows of a table are kept; 0: for ever.
func (t TTL) kept(table string) time.Duration {
	for _, r := range retentions() {
		if r.table == table && r.column == "" {
			return r.of(t)
		}
	}
	return 0
}

// expression is the TTL expression in the form that the server returns it;
// empty when rows are kept for ever.
func (r retention) expression(t TTL) string {
	var out []string
	if d := r.of(t); d > 0 {
		out = append(out, r.after(d))
	}
	if r.column == "" && t.Volume != "" && t.MoveAfter > 0 {
		out = append(out, r.after(t.MoveAfter)+" TO VOLUME "+quoteText(t.Volume))
	}
	return strings.Join(out, ", ")
}

// after is the time at which a row has that age.
func (r retention) after(d time.Duration) string {
	interval := fmt.Sprintf("toIntervalSecond(%d)", int64(d/time.Second))
	if day := 24 * time.Hour; d%day == 0 {
		interval = fmt.Sprintf("toIntervalDay(%d)", int64(d/day))
	}
	from := r.from
	if !strings.EqualFold(from, "seen") { // the others are DateTime64, which a TTL does not take
		from = "toDateTime(" + from + ")"
	}
	return from + " + " + interval
}

// ttlClause is the clause of a migration for "table" or "table.column".
func (s Schema) ttlClause(what string) (string, error) {
	table, column, _ := strings.Cut(what, ".")
	for _, r := range retentions() {
		if r.table != table || r.column != column {
			continue
		}
		expr := r.expression(s.TTL)
		switch {
		case expr == "":
			return "", nil
		case column != "":
			return " TTL " + expr, nil
		}
		return "\nTTL " + expr, nil
	}
	return "", fmt.Errorf("no retention for %q", what)
}

// modify is the statement that brings the server's expression to the wanted one.
func (s Schema) modify(r retention, want string) string {
	alter := "ALTER TABLE " + s.local(r.table) + s.onCluster()
	switch {
	case r.column == "" && want == "":
		return alter + " REMOVE TTL"
	case r.column == "":
		return alter + " MODIFY TTL " + want
	case want == "":
		return alter + " MODIFY COLUMN " + quoteName(r.column) + " REMOVE TTL"
	}
	return alter + " MODIFY COLUMN " + quoteName(r.column) + " TTL " + want
}
