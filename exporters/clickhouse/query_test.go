package clickhouse

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// eachWay runs f with a connection over HTTP and one over the native protocol.
func eachWay(t *testing.T, f func(t *testing.T, c *Conn)) {
	for way, dsn := range map[string]string{"http": storeDSN(t), "native": ""} {
		t.Run(way, func(t *testing.T) {
			if dsn == "" {
				dsn = nativeDSN(t)
			}
			c, err := Open(ConnSettings{DSN: dsn, Database: "default"})
			if err != nil {
				t.Fatal(err)
			}
			f(t, c)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// every has a value of each type that our tables have, and some more.
const every = `SELECT number AS n, 'it''s\t\\a"b' AS s, toLowCardinality('lc') AS l, toFixedString('ab', 2) AS f, true AS b, -5 AS i, 1.5 AS d,
	toDateTime64('2026-03-01 10:20:30.123456789', 9, 'UTC') AS t9, toDateTime('2026-03-01 10:20:30', 'UTC') AS t, toDate('2026-03-01') AS day,
	map('k', 'v') AS m, [1, 2] AS a, NULL::Nullable(String) AS nil, 'x'::Nullable(String) AS some FROM numbers(2)`

func TestQueryGivesTypedValues(t *testing.T) {
	eachWay(t, func(t *testing.T, c *Conn) {
		rows, err := c.Query(t.Context(), every, nil)
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]string{}
		for _, col := range rows.Columns {
			kinds[col.Name] = col.Type
		}
		if kinds["t9"] != "DateTime64(9, 'UTC')" || kinds["m"] != "Map(String, String)" || kinds["nil"] != "Nullable(String)" {
			t.Errorf("columns %v", rows.Columns)
		}
		n := 0
		for ; rows.Next(); n++ {
			x := "x"
			want := []any{
				uint64(n), "it's\t\\a\"b", "lc", "ab", true, int16(-5), 1.5,
				time.Date(2026, 3, 1, 10, 20, 30, 123456789, time.UTC), time.Date(2026, 3, 1, 10, 20, 30, 0, time.UTC), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
				map[string]string{"k": "v"}, []uint8{1, 2}, (*string)(nil), &x,
			}
			want[5] = rows.Values()[5] // the width of a literal is the server's business
			if d := cmp.Diff(want, rows.Values()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil || n != 2 {
			t.Errorf("%d rows, error %v", n, err)
		}
	})
}

func TestParametersAreNotSQL(t *testing.T) {
	eachWay(t, func(t *testing.T, c *Conn) {
		for _, v := range []string{"plain", "x' OR 1=1 --", ""} {
			rows, err := c.Query(t.Context(), "SELECT {v:String}, {n:UInt64} + 1", Params{"v": v, "n": "41"})
			if err != nil {
				t.Fatal(err)
			}
			if !rows.Next() || rows.Values()[0] != v || rows.Values()[1] != uint64(42) {
				t.Errorf("%q gives %v", v, rows.Values())
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestFormats wants the same from the server and from the native way's own
// writers, for every format that they have.
func TestFormats(t *testing.T) {
	const table = `SELECT number AS n, 'a\tb' AS s, toDateTime64('2026-03-01 10:20:30.5', 3, 'UTC') AS t, NULL::Nullable(String) AS nil, true AS b FROM numbers(2)`
	for _, f := range []struct{ format, want string }{
		{"TabSeparated", "0\ta\\tb\t2026-03-01 10:20:30.500\t\\N\ttrue\n1\ta\\tb\t2026-03-01 10:20:30.500\t\\N\ttrue\n"},
		{"TSVWithNames", "n\ts\tt\tnil\tb\n0\ta\\tb\t2026-03-01 10:20:30.500\t\\N\ttrue\n1\ta\\tb\t2026-03-01 10:20:30.500\t\\N\ttrue\n"},
		{"JSONEachRow", `{"n":0,"s":"a\tb","t":"2026-03-01 10:20:30.500","nil":null,"b":true}` + "\n" + `{"n":1,"s":"a\tb","t":"2026-03-01 10:20:30.500","nil":null,"b":true}` + "\n"},
	} {
		eachWay(t, func(t *testing.T, c *Conn) {
			var b strings.Builder
			if err := c.Format(t.Context(), &b, f.format, table, nil); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(f.want, b.String()); d != "" {
				t.Errorf("%s (-want +got):\n%s", f.format, d)
			}
			b.Reset()
			if err := c.Format(t.Context(), &b, "Pretty", table+"\nformat "+f.format+" ;\n", nil); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(f.want, b.String()); d != "" {
				t.Errorf("%s in the statement (-want +got):\n%s", f.format, d)
			}
		})
	}
	eachWay(t, func(t *testing.T, c *Conn) {
		for _, format := range []string{"", "Pretty", "Vertical", "CSV", "CSVWithNames"} {
			var b strings.Builder
			if err := c.Format(t.Context(), &b, format, "SELECT 'wide — value' AS name, 12345 AS n ORDER BY name DESC", nil); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(b.String(), "wide — value") || !strings.Contains(b.String(), "12345") {
				t.Errorf("%s:\n%s", format, &b)
			}
			b.Reset()
			if err := c.Format(t.Context(), &b, format, "SELECT 1 AS only_name WHERE 0", nil); err != nil {
				t.Errorf("%s of nothing: %v", format, err)
			}
		}
	})
}

func TestQueryErrors(t *testing.T) {
	eachWay(t, func(t *testing.T, c *Conn) {
		var b strings.Builder
		for _, sql := range []string{"SELECT nonsense", "SELECT throwIf(number = 3, 'enough') FROM numbers(10)", "SELECT * FROM no_such_table"} {
			if err := c.Format(t.Context(), &b, "TabSeparated", sql, nil); err == nil || !strings.HasPrefix(err.Error(), "clickhouse: ") {
				t.Errorf("%s: error %v", sql, err)
			}
			rows, err := c.Query(t.Context(), sql, nil)
			if err == nil {
				for rows.Next() {
				}
				err = errors.Join(rows.Err(), rows.Close())
			}
			if err == nil {
				t.Errorf("%s: no error", sql)
			}
			if want := !strings.Contains(sql, "throwIf"); SchemaDiffers(err) != want {
				t.Errorf("%s: the schema differs: %v, want %v", sql, !want, want)
			}
		}
		if err := c.Ping(t.Context()); err != nil {
			t.Errorf("after the errors: %v", err)
		}
		if err := c.Format(t.Context(), &b, "Parquet'; DROP", "SELECT 1", nil); err == nil {
			t.Error("a format that is none")
		}
	})
}

func TestNativeFormatsAreNamed(t *testing.T) {
	c, err := Open(ConnSettings{DSN: "clickhouse://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Format(t.Context(), nil, "Parquet", "SELECT 1", nil)
	if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "JSONEachRow") {
		t.Errorf("error %v", err)
	}
}

// TestText: values over the native protocol are written as the server writes them over HTTP, nested ones as JSON.
func TestText(t *testing.T) {
	at := time.Date(2026, 3, 1, 10, 20, 30, 5e6, time.UTC)
	some := "x"
	for _, c := range []struct {
		kind  string
		value any
		want  string
	}{
		{"Nullable(String)", nil, "NULL"}, {"Nullable(String)", (*string)(nil), "NULL"}, {"Nullable(String)", &some, "x"}, {"Nullable(DateTime64(3))", (*time.Time)(nil), "NULL"}, {"Nullable(DateTime64(3))", &at, "2026-03-01 10:20:30.005"},
		{"String", `it's "so"`, `it's "so"`}, {"Bool", true, "true"}, {"UInt64", uint64(1) << 63, "9223372036854775808"}, {"Float64", 1.5, "1.5"}, {"Float64", math.NaN(), "NaN"},
		{"DateTime64(3)", at, "2026-03-01 10:20:30.005"}, {"DateTime", at, "2026-03-01 10:20:30"}, {"Date", at, "2026-03-01"},
		{"Map(String, String)", map[string]string{"k": `"v"`}, `{"k":"\"v\""}`}, {"Array(String)", []string{"a", "b"}, `["a","b"]`},
	} {
		if got := text(Column{Type: c.kind}, c.value, "NULL"); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.kind, c.value, got, c.want)
		}
	}
}
