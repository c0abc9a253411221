package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

// copied are the tables that grow with the traffic, each with the replacements that make
// the rows of copy k distinct, earlier by a whole number of seconds. Messages are the
// last: a copy that has them has everything. The tables of conversations are derived
// from all of them at the end.
var copied = []struct{ table, replace string }{
	{"spans", join(earlier("ts", "last_seen", "alive_at", "ingest_ts"), numbered("session_id", "run_id", "parent_run_id", "child_run_id", "tool_call_id", "response_id"),
		binary(32, "trace_id"), binary(16, "span_id", "parent_span_id"),
		"arrayMap(t -> "+hash(32, "t")+", `links.trace_id`) AS `links.trace_id`", "arrayMap(s -> "+hash(16, "s")+", `links.span_id`) AS `links.span_id`",
		"arrayMap(t -> t - toIntervalSecond(back), `events.time`) AS `events.time`")},
	{"findings", join(earlier("ts", "ingest_ts"), numbered("session_id", "run_id"), hashed(32, "trace_id"), hashed(16, "span_id"))},
	{"streams", join(earlier("started_at", "ingest_ts"), numbered("session_id", "run_id", "stream"))},
	{"messages", join(earlier("ts", "ingest_ts"), numbered("session_id", "run_id", "parent_run_id", "child_run_id", "tool_call_id"),
		hashed(32, "message_id", "parent_message_id", "trace_id"), hashed(16, "span_id"),
		mapped("attributes", "parent_call_id", "response_id", "request_id", "task_id"))},
}

func join(parts ...string) string { return strings.Join(parts, ", ") }

// each replaces columns by an expression of them.
func each(columns []string, expression func(string) string) string {
	var out []string
	for _, c := range columns {
		out = append(out, expression(c)+" AS "+c)
	}
	return join(out...)
}

func earlier(columns ...string) string {
	return each(columns, func(c string) string { return c + " - toIntervalSecond(back)" })
}

// numbered are ids of the protocol: they keep their form, with the number of the copy.
func numbered(columns ...string) string {
	return each(columns, func(c string) string { return "if(" + c + " = '', '', concat(" + c + ", '-', toString(k)))" })
}

// hashed are ids that are hashes, of that many hex digits.
func hashed(digits int, columns ...string) string {
	return each(columns, func(c string) string { return hash(digits, c) })
}

// binary are the same ids as their bytes.
func binary(digits int, columns ...string) string {
	return each(columns, func(c string) string {
		return fmt.Sprintf("if(empty(%[1]s), %[1]s, toFixedString(unhex(%[2]s), %[3]d))", c, hash(digits, "lower(hex("+c+"))"), digits/2)
	})
}

func hash(digits int, id string) string {
	return fmt.Sprintf("if(empty(%[1]s), '', leftPad(lower(hex(sipHash%[2]d(toString(%[1]s), k))), %[3]d, '0'))", id, 4*digits, digits)
}

// mapped is an attribute map, in which these keys have ids of the protocol.
func mapped(column string, keys ...string) string {
	return fmt.Sprintf("mapApply((name, v) -> (name, if(name IN ('%s'), concat(v, '-', toString(k)), v)), %s) AS %[2]s", strings.Join(keys, "', '"), column)
}

const month = 30 * 24 * time.Hour

// fill copies the seed until there are as many messages as were asked for. It
// returns how many copies there are, the seed among them. Each is a part or two of
// a table, which follow each other in time as they would after the first merges of
// a server with live traffic; there are no other merges, so that none is measured
// with the queries.
func (s *settings) fill(ctx context.Context, db *database) (n uint64, err error) {
	if err := db.exec(ctx, "CREATE DATABASE IF NOT EXISTS seed"); err != nil {
		return 0, err
	}
	for _, c := range copied {
		if err := db.exec(ctx, "CREATE TABLE IF NOT EXISTS seed."+c.table+" ENGINE = MergeTree ORDER BY tuple() AS SELECT * FROM "+c.table+" FINAL"); err != nil {
			return 0, err
		}
	}
	var have, seed uint64
	if err := db.scan(ctx, "SELECT (SELECT count() FROM messages), (SELECT count() FROM seed.messages)", &have, &seed); err != nil {
		return 0, err
	}
	n = max((uint64(s.rows)+seed/2)/seed, 1)
	if err := db.exec(ctx, "SYSTEM STOP MERGES"); err != nil {
		return 0, err
	}
	apart := uint64(s.spread()/time.Second) / n
	began := time.Now()
	for k := max(have/seed, 1); k < n; k++ {
		for _, c := range copied {
			sql := fmt.Sprintf("INSERT INTO %[1]s WITH toUInt32(%[2]d) AS k, toUInt32(%[3]d) AS back SELECT * REPLACE (%[4]s) FROM seed.%[1]s SETTINGS insert_deduplicate = 0, min_insert_block_size_rows = 10000000, min_insert_block_size_bytes = 250000000",
				c.table, k, k*apart, c.replace)
			if time.Duration(k*apart)*time.Second > 8*24*time.Hour { // a search widens to there only when it finds too little: save the time
				sql += ", exclude_materialize_skip_indexes_on_insert = 'idx_fts'"
			}
			if err := db.exec(ctx, sql); err != nil {
				return 0, fmt.Errorf("%s: %w", c.table, err)
			}
		}
		fmt.Fprintf(os.Stderr, "\r%.1f M messages, %s ", float64((k+1)*seed)/1e6, time.Since(began).Round(time.Second))
	}
	fmt.Fprintln(os.Stderr)
	return n, clickhouse.DeriveConversations(ctx, clickhouse.ConnSettings{DSN: "http+unix://default@" + url.PathEscape(db.socket) + "/earshot"})
}
