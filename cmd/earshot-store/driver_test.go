package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

var compressions = map[string]*clickhouse.Compression{
	"none":    nil,
	"lz4":     {Method: clickhouse.CompressionLZ4},
	"zstd":    {Method: clickhouse.CompressionZSTD},
	"gzip":    {Method: clickhouse.CompressionGZIP, Level: 1},
	"deflate": {Method: clickhouse.CompressionDeflate, Level: 1},
	"br":      {Method: clickhouse.CompressionBrotli, Level: 1},
}

func compressed(c *clickhouse.Compression) func(*clickhouse.Options) {
	return func(o *clickhouse.Options) {
		o.Compression = c
		o.Settings = clickhouse.Settings{"enable_http_compression": 1}
	}
}

const everyType = `CREATE TABLE every_type (
	id UInt64, str String, fixed FixedString(8), lc LowCardinality(String), lcn LowCardinality(Nullable(String)),
	t9 DateTime64(9, 'UTC'), t3 DateTime64(3, 'UTC'), t0 DateTime('UTC'), day Date,
	u8 UInt8, u16 UInt16, u32 UInt32, i8 Int8, i16 Int16, i32 Int32, i64 Int64, f64 Float64, f32 Float32, flag Bool,
	attrs Map(LowCardinality(String), String), counts Map(String, UInt64),
	events Nested(ts DateTime64(9, 'UTC'), name LowCardinality(String), attrs Map(LowCardinality(String), String)),
	maps Array(Map(LowCardinality(String), String)), lists Array(Array(String)), words Array(LowCardinality(String)),
	pair Tuple(a UInt8, b String), maybe Nullable(String), maybeInt Nullable(Int64),
	kind Enum8('user' = 1, 'tool' = 2), cost Decimal(18, 6), uid UUID, ip IPv6, latest SimpleAggregateFunction(max, DateTime('UTC'))
) ENGINE = MergeTree ORDER BY id`

// wide is a row of every_type.
type wide struct {
	ID         uint64              `ch:"id"`
	Str        string              `ch:"str"`
	Fixed      string              `ch:"fixed"`
	LC         string              `ch:"lc"`
	LCN        *string             `ch:"lcn"`
	T9         time.Time           `ch:"t9"`
	T3         time.Time           `ch:"t3"`
	T0         time.Time           `ch:"t0"`
	Day        time.Time           `ch:"day"`
	U8         uint8               `ch:"u8"`
	U16        uint16              `ch:"u16"`
	U32        uint32              `ch:"u32"`
	I8         int8                `ch:"i8"`
	I16        int16               `ch:"i16"`
	I32        int32               `ch:"i32"`
	I64        int64               `ch:"i64"`
	F64        float64             `ch:"f64"`
	F32        float32             `ch:"f32"`
	Flag       bool                `ch:"flag"`
	Attrs      map[string]string   `ch:"attrs"`
	Counts     map[string]uint64   `ch:"counts"`
	EventTS    []time.Time         `ch:"events.ts"`
	EventNames []string            `ch:"events.name"`
	EventAttrs []map[string]string `ch:"events.attrs"`
	Maps       []map[string]string `ch:"maps"`
	Lists      [][]string          `ch:"lists"`
	Words      []string            `ch:"words"`
	Pair       []any               `ch:"pair"`
	Maybe      *string             `ch:"maybe"`
	MaybeInt   *int64              `ch:"maybeInt"`
	Kind       string              `ch:"kind"`
	Cost       string              `ch:"cost"`
	UID        string              `ch:"uid"`
	IP         string              `ch:"ip"`
	Latest     time.Time           `ch:"latest"`
}

func wideRow(i int) wide {
	at := time.Date(2026, 11, 21, 9, 30, 0, 123456789+i, time.UTC)
	w := wide{
		ID: uint64(i), Str: strings.Repeat("é\x00\n", i%40), Fixed: fmt.Sprintf("%08d", i), LC: fmt.Sprint("lc", i%300),
		T9: at, T3: at.Truncate(time.Millisecond), T0: at.Truncate(time.Second), Day: at.Truncate(24 * time.Hour),
		U8: uint8(i), U16: uint16(i), U32: uint32(i) << 8, I8: int8(-i), I16: int16(-i), I32: int32(-i), I64: -int64(i) << 32,
		F64: float64(i) / 3, F32: float32(i) / 4, Flag: i%2 == 0,
		Attrs: map[string]string{}, Counts: map[string]uint64{"n": uint64(i)},
		EventTS: []time.Time{}, EventNames: []string{}, EventAttrs: []map[string]string{},
		Maps: []map[string]string{}, Lists: [][]string{}, Words: []string{},
		Pair: []any{uint8(i), "p"}, Kind: []string{"user", "tool"}[i%2], Cost: fmt.Sprintf("%d.5", i),
		UID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), IP: fmt.Sprintf("fe80::%x", i%0xffff+1), Latest: at.Truncate(time.Second),
	}
	for k := range i % 4 {
		w.Attrs[fmt.Sprint("k", k)] = fmt.Sprint("v", i)
		w.EventTS = append(w.EventTS, at)
		w.EventNames = append(w.EventNames, fmt.Sprint("event", k))
		w.EventAttrs = append(w.EventAttrs, map[string]string{"k": "v"})
		w.Maps = append(w.Maps, map[string]string{"a": fmt.Sprint(i)})
		w.Lists = append(w.Lists, []string{"x", "y"}[:k%2])
		w.Words = append(w.Words, fmt.Sprint("w", i%7))
	}
	if i%3 == 0 {
		s, n := fmt.Sprint("some", i), int64(i)
		w.Maybe, w.MaybeInt, w.LCN = &s, &n, &s
	}
	return w
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// clickhouse-go inserts rows and reads them back, with every compression that it has.
func TestDriverEveryType(t *testing.T) {
	for name, c := range compressions {
		t.Run(name, func(t *testing.T) {
			db := database(t)
			conn := shared.open(t, compressed(c), func(o *clickhouse.Options) { o.Auth.Database = db })
			if err := conn.Exec(t.Context(), everyType); err != nil {
				t.Fatal(err)
			}
			const n = 400
			batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO every_type")
			if err != nil {
				t.Fatal(err)
			}
			defer batch.Close()
			for i := range n {
				w := wideRow(i)
				if err := batch.AppendStruct(&w); err != nil {
					t.Fatal(err)
				}
			}
			if err := batch.Send(); err != nil {
				t.Fatal(err)
			}
			// In blocks small enough that there are several.
			rows, err := conn.Query(t.Context(), "SELECT * REPLACE (toString(cost) AS cost, toString(uid) AS uid, toString(ip) AS ip) FROM every_type ORDER BY id SETTINGS max_block_size = 100")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			i := 0
			for ; rows.Next(); i++ {
				var got wide
				if err := rows.ScanStruct(&got); err != nil {
					t.Fatal(err)
				}
				if got, want := asJSON(t, got), asJSON(t, wideRow(i)); got != want {
					t.Fatalf("row %d:\n got %s\nwant %s", i, got, want)
				}
			}
			if err := rows.Err(); err != nil || i != n {
				t.Errorf("%d rows, %v", i, err)
			}
			// The types that were read as text above, read as themselves.
			if err := conn.QueryRow(t.Context(), "SELECT count() FROM (SELECT cost, uid, ip FROM every_type)").Scan(new(uint64)); err != nil {
				t.Error(err)
			}
			typed, err := conn.Query(t.Context(), "SELECT cost, uid, ip FROM every_type")
			if err != nil {
				t.Fatal(err)
			}
			for i = 0; typed.Next(); i++ {
			}
			if err := typed.Err(); err != nil || i != n {
				t.Errorf("%d typed rows, %v", i, err)
			}
		})
	}
}

func TestDriverErrors(t *testing.T) {
	for name, c := range compressions {
		t.Run(name, func(t *testing.T) {
			conn := shared.open(t, compressed(c))
			if _, err := conn.Query(t.Context(), "SELECT * FROM nowhere"); codeOf(err) != 60 {
				t.Errorf("unknown table: %v", err)
			}
			rows, err := conn.Query(t.Context(), "SELECT throwIf(number = 400000) FROM numbers(1000000)")
			if err == nil {
				for rows.Next() {
				}
				err = rows.Err()
				rows.Close()
			}
			if codeOf(err) != 395 {
				t.Errorf("error in the middle of a result: %v", err)
			}
			if err := conn.Exec(t.Context(), "SELEC 1"); codeOf(err) != 62 {
				t.Errorf("syntax: %v", err)
			}
			if _, err := conn.PrepareBatch(t.Context(), "INSERT INTO nowhere"); codeOf(err) != 60 {
				t.Errorf("insert: %v", err)
			}
		})
	}
}

func TestDriverHelloAndParameters(t *testing.T) {
	conn := shared.open(t)
	v, err := conn.ServerVersion()
	if err != nil || v.Version.Major != 26 {
		t.Errorf("%v, %v", v, err)
	}
	if err := conn.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	ctx := clickhouse.Context(t.Context(), clickhouse.WithParameters(clickhouse.Parameters{"s": "it's", "n": "5"}))
	var s string
	var n uint8
	if err := conn.QueryRow(ctx, "SELECT {s:String}, {n:UInt8}").Scan(&s, &n); err != nil || s != "it's" || n != 5 {
		t.Errorf("%q %d %v", s, n, err)
	}
	rows, err := conn.Query(t.Context(), "SHOW DATABASES") // not streamed, and still of the driver's revision
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := false
	for rows.Next() {
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		found = found || s == "default"
	}
	if rows.Err() != nil || !found {
		t.Errorf("SHOW DATABASES: %v", rows.Err())
	}
	if rows, err := conn.Query(t.Context(), "SELECT 1 WHERE 0"); err != nil || rows.Next() {
		t.Errorf("no rows: %v", err)
	}
}

// Grafana's data source is database/sql over the driver, as a user that reads.
func TestDatabaseSQLAsReader(t *testing.T) {
	db := clickhouse.OpenDB(&clickhouse.Options{
		Addr: []string{"localhost"}, DialContext: shared.dial, Protocol: clickhouse.HTTP,
		Auth:     clickhouse.Auth{Username: "reader", Password: "x", Database: "system"},
		Settings: clickhouse.Settings{"max_execution_time": 30, "final": 1},
	})
	defer db.Close()
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT count() FROM numbers(10) SETTINGS max_threads = 2, additional_table_filters = {'system.one': 'dummy = 0'}").Scan(&n); err != nil || n != 10 {
		t.Errorf("%d, %v", n, err)
	}
	var name sql.NullString
	if err := db.QueryRowContext(t.Context(), "SELECT name FROM system.databases WHERE name = ?", "default").Scan(&name); err != nil || name.String != "default" {
		t.Errorf("%v, %v", name, err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE by_reader"); codeOf(err) != 497 {
		t.Errorf("a reader created something: %v", err)
	}
}

// A retry with the same token stores its rows once; without the token, twice.
func TestRetryInsertsOnce(t *testing.T) {
	db := database(t)
	conn := shared.open(t, func(o *clickhouse.Options) { o.Auth.Database = db })
	if err := conn.Exec(t.Context(), "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 100"); err != nil {
		t.Fatal(err)
	}
	send := func(token string, from uint64) {
		t.Helper()
		ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"insert_deduplication_token": token, "async_insert": 0}))
		batch, err := conn.PrepareBatch(ctx, "INSERT INTO t")
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint64(100) {
			if err := batch.Append(from + i); err != nil {
				t.Fatal(err)
			}
		}
		if err := batch.Send(); err != nil {
			t.Fatal(err)
		}
	}
	send("one", 0)
	send("one", 0)
	send("one", 5000) // other rows, same token: the token decides
	send("two", 0)
	var rows uint64
	if err := conn.QueryRow(t.Context(), "SELECT count() FROM t").Scan(&rows); err != nil || rows != 200 {
		t.Errorf("%d rows, %v", rows, err)
	}
}
