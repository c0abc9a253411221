package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// copied are the tables that grow with the traffic, each with what makes a copy a
// row of its own: {k} is the number of the copy, {s} by how many seconds it is
// earlier.
var copied = []struct{ table, replace string }{
	{"messages", `ts - toIntervalSecond({s}) AS ts, concat(session_id, '-', toString({k})) AS session_id, if(run_id = '', '', concat(run_id, '-', toString({k}))) AS run_id,
		if(parent_run_id = '', '', concat(parent_run_id, '-', toString({k}))) AS parent_run_id, if(child_run_id = '', '', concat(child_run_id, '-', toString({k}))) AS child_run_id,
		toFixedString(lower(hex(sipHash128(message_id, {k}))), 32) AS message_id, ` + ids("trace_id", 32) + `, ` + ids("span_id", 16) + `,
		ingest_ts - toIntervalSecond({s}) AS ingest_ts`},
	{"otel_traces", `Timestamp - toIntervalSecond({s}) AS Timestamp, ` + ids("TraceId", 32) + `, ` + ids("SpanId", 16) + `, ` + ids("ParentSpanId", 16) + `,
		mapUpdate(SpanAttributes, map('gen_ai.conversation.id', concat(SpanAttributes['gen_ai.conversation.id'], '-', toString({k})))) AS SpanAttributes,
		IngestTs - toIntervalSecond({s}) AS IngestTs`},
	{"tool_calls", `ts - toIntervalSecond({s}) AS ts, concat(session_id, '-', toString({k})) AS session_id, ` + ids("trace_id", 32) + `,
		toFixedString(lower(hex(sipHash64(span_id, {k}))), 16) AS span_id, ingest_ts - toIntervalSecond({s}) AS ingest_ts`},
	{"delegations", `ts - toIntervalSecond({s}) AS ts, concat(session_id, '-', toString({k})) AS session_id, ` + ids("trace_id", 32) + `,
		toFixedString(lower(hex(sipHash64(span_id, {k}))), 16) AS span_id, ingest_ts - toIntervalSecond({s}) AS ingest_ts`},
}

func ids(column string, length int) string {
	return fmt.Sprintf("if(%[1]s = '', '', lower(hex(sipHash%[2]d(%[1]s, {k})))) AS %[1]s", column, 4*length)
}

const (
	month = 30 * 24 * time.Hour
	step  = 1_000_000 // messages of one insert, about
)

// fill copies the seed until there are as many messages as were asked for.
func (s *settings) fill(ctx context.Context, db *database) error {
	var have, seed uint64
	if err := db.scan(ctx, "SELECT count() FROM messages", &have); err != nil {
		return err
	}
	if err := db.exec(ctx, "CREATE DATABASE IF NOT EXISTS seed"); err != nil {
		return err
	}
	for _, c := range copied {
		if err := db.exec(ctx, "CREATE TABLE IF NOT EXISTS seed."+c.table+" ENGINE = MergeTree ORDER BY tuple() AS SELECT * FROM "+c.table+" FINAL"); err != nil {
			return err
		}
	}
	if err := db.scan(ctx, "SELECT count() FROM seed.messages", &seed); err != nil {
		return err
	}
	copies := uint64(s.rows) / seed
	done := have / seed
	began := time.Now()
	for next := max(done, 1); next < copies; {
		n := min(max(step/seed, 1), copies-next)
		for _, c := range copied {
			shift := fmt.Sprintf("toUInt32(k * %d)", uint64(month/time.Second)/copies)
			replace := strings.NewReplacer("{k}", "k", "{s}", shift).Replace(c.replace)
			sql := fmt.Sprintf("INSERT INTO %[1]s SELECT * EXCEPT k REPLACE (%[2]s) FROM seed.%[1]s CROSS JOIN (SELECT number AS k FROM numbers(%[3]d, %[4]d)) AS n SETTINGS exclude_materialize_skip_indexes_on_insert = 'idx_fts'", c.table, replace, next, n)
			if err := db.exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", c.table, err)
			}
		}
		next += n
		fmt.Fprintf(os.Stderr, "\r%.1f M messages, %s ", float64(next*seed)/1e6, time.Since(began).Round(time.Second))
	}
	fmt.Fprintln(os.Stderr)
	return nil
}
