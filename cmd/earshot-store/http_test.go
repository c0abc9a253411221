package main

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

func TestPing(t *testing.T) {
	for _, path := range []string{"/ping", "/"} {
		resp, err := shared.client.Get(shared.url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 || string(body) != "Ok.\n" {
			t.Errorf("%s: %d %q", path, resp.StatusCode, body)
		}
	}
	resp, err := shared.client.Get(shared.url + "/play")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 404 {
		t.Errorf("/play: %d", resp.StatusCode)
	}
}

func TestWhereTheQueryStands(t *testing.T) {
	get := func(params ...string) answer {
		return shared.do(t, call{method: http.MethodGet, params: values(params...)})
	}
	cases := map[string]answer{
		"GET":                   get("query", "SELECT 42"),
		"GET with a semicolon":  get("query", "SELECT 42;"),
		"body":                  shared.post(t, "SELECT 42"),
		"URL and body":          shared.post(t, "42", "query", "SELECT"),
		"comment ends with URL": shared.post(t, "42", "query", "SELECT -- the rest"),
	}
	for name, a := range cases {
		if a.status != 200 || a.body != "42\n" {
			t.Errorf("%s: %d %q", name, a.status, a.body)
		}
	}
	resp, err := shared.client.Get(shared.url + "/?query=SELECT%2042;") // as curl sends it
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "42\n" {
		t.Errorf("bare semicolon in the URL: %q", body)
	}
}

func TestGetChangesNothing(t *testing.T) {
	db := database(t)
	shared.query(t, "CREATE TABLE t (a Int8) ENGINE = Memory", "database", db)
	for _, sql := range []string{"INSERT INTO t VALUES (1)", "DROP TABLE t", "INSERT INTO t SELECT 1"} {
		a := shared.do(t, call{method: http.MethodGet, params: values("query", sql, "database", db)})
		if a.code() != 164 {
			t.Errorf("%s: %d %s", sql, a.status, a.body)
		}
		a = shared.do(t, call{method: http.MethodGet, params: values("query", sql, "database", db, "readonly", "0")})
		if a.code() != 164 {
			t.Errorf("%s with readonly=0: %d %s", sql, a.status, a.body)
		}
	}
	if got := shared.query(t, "SELECT count() FROM t", "database", db); got != "0" {
		t.Errorf("the table has %s rows", got)
	}
}

func TestParametersAndSettings(t *testing.T) {
	got := shared.query(t, "SELECT {s:String}, {n:UInt8}, {d:Identifier}, getSetting('max_threads'), currentDatabase() FROM (SELECT 7 AS seven)",
		"param_s", "it's", "param_n", "5", "param_d", "seven", "max_threads", "3", "database", "system")
	if got != `it\'s`+"\t5\t7\t3\tsystem" {
		t.Errorf("got %q", got)
	}
	if got := shared.query(t, "SELECT getSetting('max_threads') = 3"); got != "0" {
		t.Error("a setting outlived its request")
	}
	if got := shared.query(t, "SELECT getSetting('min_insert_block_size_bytes'), getSetting('max_insert_block_size_bytes')", "min_insert_block_size_bytes", "5"); got != "5\t67108864" {
		t.Errorf("a default of ours against a setting of the request: %s", got)
	}
	a := shared.post(t, "SELECT 1 AS a", "default_format", "JSONEachRow", "query_id", "my-id")
	if a.body != `{"a":1}`+"\n" || a.header.Get("X-ClickHouse-Query-Id") != "my-id" || a.header.Get("X-ClickHouse-Format") != "JSONEachRow" {
		t.Errorf("%q %v", a.body, a.header)
	}
	a = shared.do(t, call{body: strings.NewReader("SELECT currentDatabase() AS d"),
		header: map[string]string{"X-ClickHouse-Format": "CSVWithNames", "X-ClickHouse-Database": "system", "X-ClickHouse-User": "default", "X-ClickHouse-Key": "x"}})
	if a.body != "\"d\"\n\"system\"\n" {
		t.Errorf("headers: %q", a.body)
	}
	if a := shared.post(t, "SELECT sum(number) FROM numbers(1e9) GROUP BY number", "max_memory_usage", "1000000"); a.code() != 241 {
		t.Errorf("max_memory_usage: %s", a.body)
	}
	if a := shared.post(t, "SELECT sum(sipHash64(number)) FROM numbers(1e12)", "max_execution_time", "0.2"); a.code() != 159 {
		t.Errorf("max_execution_time: %s", a.body)
	}
}

func TestRefusals(t *testing.T) {
	cases := []struct {
		name         string
		answer       answer
		code, status int
	}{
		{"unknown table", shared.post(t, "SELECT * FROM nowhere"), 60, 404},
		{"unknown database", shared.post(t, "SELECT 1", "database", "nowhere"), 81, 404},
		{"unknown setting", shared.post(t, "SELECT 1", "max_thread", "1"), 115, 404},
		{"bad setting", shared.post(t, "SELECT 1", "max_threads", "many"), 27, 400},
		{"syntax", shared.post(t, "SELEC 1"), 62, 400},
		{"nothing", shared.post(t, ""), 62, 400},
		{"two statements", shared.post(t, "SELECT 1; SELECT 2"), 62, 400},
		{"two statements, the second broken", shared.post(t, "CREATE TABLE two (a Int8) ENGINE = Memory; SELEC"), 62, 400},
		{"session", shared.post(t, "SELECT 1", "session_id", "x"), 48, 501},
		{"role", shared.post(t, "SELECT 1", "role", "x"), 48, 501},
		{"external table", shared.do(t, call{body: strings.NewReader("x"), header: map[string]string{"Content-Type": "multipart/form-data; boundary=x"}}), 48, 501},
		{"outfile", shared.post(t, "SELECT 1 INTO OUTFILE '/tmp/earshot-outfile'"), 358, 500},
		{"infile", shared.post(t, "INSERT INTO x FROM INFILE '/etc/passwd' FORMAT CSV"), 358, 500},
		{"kill sync", shared.post(t, "KILL QUERY WHERE 1 SYNC"), 48, 501},
		{"shutdown", shared.post(t, "SYSTEM SHUTDOWN"), 48, 501},
		{"stranger", shared.do(t, call{body: strings.NewReader("SELECT 1"), user: "mallory"}), 516, 403},
		{"encoding", shared.do(t, call{body: strings.NewReader("x"), header: map[string]string{"Content-Encoding": "snappy"}}), 48, 501},
		{"not gzip", shared.do(t, call{body: strings.NewReader("SELECT 1"), header: map[string]string{"Content-Encoding": "gzip"}}), 271, 500},
		{"not blocks", shared.post(t, "SELECT 1, 2, 3, 4, 5, 6, 7, 8, 9", "decompress", "1"), 33, 500},
		{"insert without rows", shared.post(t, "INSERT INTO t"), 62, 400},
		{"revision", shared.post(t, "SELECT 1", "client_protocol_version", "x"), 36, 400},
	}
	for _, c := range cases {
		if c.answer.code() != c.code || c.answer.status != c.status {
			t.Errorf("%s: code %d status %d, want %d and %d: %s", c.name, c.answer.code(), c.answer.status, c.code, c.status, c.answer.body)
		}
		if !strings.HasPrefix(c.answer.body, fmt.Sprintf("Code: %d. DB::Exception: ", c.code)) {
			t.Errorf("%s: body %q", c.name, c.answer.body)
		}
	}
	if a := shared.do(t, call{method: http.MethodPut}); a.status != 405 {
		t.Errorf("PUT: %d", a.status)
	}
	if got := shared.query(t, "EXISTS TABLE two"); got != "0" {
		t.Error("the first of two statements ran")
	}
}

// Every output format must come out whole, whether it can be streamed or not.
func TestFormats(t *testing.T) {
	const sql = "SELECT number AS n, toString(number) AS s FROM numbers(80000)" // more than a block
	for _, f := range []string{"TSV", "CSV", "JSONEachRow", "JSONCompactEachRow", "TSVRaw", "RowBinary", "Native", "MsgPack", "LineAsString"} {
		a := shared.post(t, sql+" FORMAT "+f)
		if want := shared.post(t, sql+" FORMAT "+f, "max_block_size", "80000"); a.err != nil || f != "Native" && a.body != want.body {
			t.Errorf("%s: %d bytes, one block gives %d (%v)", f, len(a.body), len(want.body), a.err)
		}
	}
	var doc struct{ Rows int }
	if err := json.Unmarshal([]byte(shared.query(t, sql+" FORMAT JSON")), &doc); err != nil || doc.Rows != 80000 {
		t.Errorf("JSON: %d rows, %v", doc.Rows, err)
	}
	if got := strings.Count(shared.query(t, sql+" FORMAT CSVWithNames"), `"n"`); got != 1 {
		t.Errorf("CSVWithNames has %d heads", got)
	}
	var rows []any
	if err := json.Unmarshal([]byte(shared.query(t, sql, "default_format", "JSONEachRow", "output_format_json_array_of_rows", "1")), &rows); err != nil || len(rows) != 80000 {
		t.Errorf("array of rows: %d, %v", len(rows), err)
	}
	if got := shared.query(t, "SELECT '' FROM numbers(200000) FORMAT RawBLOB"); got != "" {
		t.Errorf("RawBLOB: %q", got)
	}
	if a := shared.post(t, "SELECT 1 WHERE 0"); a.status != 200 || a.body != "" || a.header.Get("Content-Length") != "0" {
		t.Errorf("no rows: %+v", a)
	}
	if got := shared.query(t, "SELECT number % 2 AS n, count() FROM numbers(4) GROUP BY n WITH TOTALS ORDER BY n"); got != "0\t2\n1\t2\n\n0\t4" {
		t.Errorf("totals: %q", got)
	}
}

func TestAcceptEncoding(t *testing.T) {
	const sql = "SELECT number FROM numbers(200000)"
	want := shared.post(t, sql).body
	for name, reader := range map[string]func(io.Reader) (io.Reader, error){
		"gzip":    func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"deflate": func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) },
		"br":      func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
		"zstd": func(r io.Reader) (io.Reader, error) {
			z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
			if err != nil {
				return nil, err
			}
			return z.IOReadCloser(), nil
		},
	} {
		a := shared.do(t, call{body: strings.NewReader(sql), params: values("enable_http_compression", "1"),
			header: map[string]string{"Accept-Encoding": "x-unknown, " + name + ";q=0.5, identity"}})
		if a.header.Get("Content-Encoding") != name {
			t.Errorf("%s: encoded as %q", name, a.header.Get("Content-Encoding"))
			continue
		}
		r, err := reader(strings.NewReader(a.body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if len(a.body) >= len(want) {
			t.Errorf("%s: %d bytes out of %d", name, len(a.body), len(want))
		}
		// Nothing to send needs no encoding.
		if a := shared.do(t, call{body: strings.NewReader("SELECT 1 WHERE 0"), params: values("enable_http_compression", "1"),
			header: map[string]string{"Accept-Encoding": name}}); a.body != "" || a.header.Get("Content-Encoding") != "" {
			t.Errorf("%s: an empty answer is %q in %q", name, a.body, a.header.Get("Content-Encoding"))
		}
	}
	if a := shared.do(t, call{body: strings.NewReader("SELECT 1"), header: map[string]string{"Accept-Encoding": "gzip"}}); a.body != "1\n" {
		t.Errorf("encoded although enable_http_compression is off: %q", a.body)
	}
}

func TestContentEncoding(t *testing.T) {
	db := database(t)
	shared.query(t, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a", "database", db)
	var csv strings.Builder
	for i := range 50_000 {
		fmt.Fprintln(&csv, i)
	}
	writers := map[string]func(io.Writer) io.WriteCloser{
		"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
		"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
		"zstd": func(w io.Writer) io.WriteCloser {
			z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
			if err != nil {
				t.Fatal(err)
			}
			return z
		},
	}
	for name, writer := range writers {
		var body bytes.Buffer
		w := writer(&body)
		io.WriteString(w, csv.String())
		w.Close()
		whole := body.Bytes()
		insert := func(b []byte) answer {
			return shared.do(t, call{body: bytes.NewReader(b), header: map[string]string{"Content-Encoding": name},
				params: values("query", "INSERT INTO t FORMAT CSV", "database", db)})
		}
		shared.query(t, "TRUNCATE TABLE t", "database", db)
		if a := insert(whole); a.status != 200 {
			t.Errorf("%s: %s", name, a.body)
		}
		if got := shared.query(t, "SELECT count(), max(a) FROM t", "database", db); got != "50000\t49999" {
			t.Errorf("%s: table has %s", name, got)
		}
		// A body that breaks off must not become rows.
		shared.query(t, "TRUNCATE TABLE t", "database", db)
		if a := insert(whole[:len(whole)/2]); a.status == 200 {
			t.Errorf("%s: half a body was accepted", name)
		}
		if got := shared.query(t, "SELECT count() FROM t", "database", db); got != "0" {
			t.Errorf("%s: half a body left %s rows", name, got)
		}
	}
}

func TestBlockCompression(t *testing.T) {
	const sql = "SELECT number FROM numbers(300000)"
	want := shared.post(t, sql).body
	for _, method := range []string{"", "LZ4", "ZSTD", "NONE", "LZ4HC"} {
		params := []string{"compress", "1"}
		if method != "" {
			params = append(params, "network_compression_method", method)
		}
		a := shared.post(t, sql, params...)
		if a.status != 200 {
			t.Errorf("%s: %s", method, a.body)
			continue
		}
		got, err := io.ReadAll(compress.NewReader(strings.NewReader(a.body)))
		if string(got) != want {
			t.Errorf("%s: %d bytes of %d, %v", method, len(got), len(want), err)
		}
	}
	w := compress.NewWriter(compress.LevelZero, compress.LZ4)
	if err := w.Compress([]byte("SELECT 40 + 2")); err != nil {
		t.Fatal(err)
	}
	if got := shared.query(t, string(w.Data), "decompress", "1"); got != "42" {
		t.Errorf("compressed query: %q", got)
	}
}

func TestInsertForms(t *testing.T) {
	db := database(t)
	shared.query(t, "CREATE TABLE t (a UInt64, b String) ENGINE = MergeTree ORDER BY a", "database", db)
	big := strings.Repeat(`{"a":7,"b":"`+strings.Repeat("x", 500)+`"}`+"\n", 2000) // a million bytes, four times 256 KiB
	cases := []struct {
		name, url, body string
		rows            string
	}{
		{"all in the body", "", "INSERT INTO t VALUES (1, 'a;b'), (2, 'it''s');", "2"},
		{"expressions", "", "INSERT INTO t (a) VALUES (1 + 1), (length('abc'))", "2"},
		{"rows in the body", "INSERT INTO t FORMAT CSV", "1,a\n2,b\n", "2"},
		{"rows begin with a line break", "INSERT INTO t (b) FORMAT LineAsString", "\nx\n", "2"},
		{"line break in the URL too", "INSERT INTO t FORMAT CSV\n", "1,a\n", "1"},
		{"text cut between URL and body", "INSERT INTO t", "FORMAT TSV\n1\tx\n", "1"},
		{"rows begin in the URL", "INSERT INTO t FORMAT CSV\n1,a", "2,b\n", "2"},
		{"values in the body", "INSERT INTO t VALUES", "(1, 'a')", "1"},
		{"larger than the engine's query buffer", "", "INSERT INTO t FORMAT JSONEachRow\n" + big, "2000"},
		{"a head longer than what is looked at first", "", "INSERT /* " + strings.Repeat("x", 300<<10) + " */ INTO t SETTINGS max_query_size = 1000000 FORMAT CSV\n1,a\n2,b\n", "2"},
		{"settings in the text", "", "INSERT INTO t SETTINGS format_csv_delimiter = ';' FORMAT CSV\n1;a\n", "1"},
		{"no rows", "INSERT INTO t FORMAT CSV", "", "0"},
		{"async", "INSERT INTO t SETTINGS async_insert = 1, wait_for_async_insert = 0 FORMAT CSV", "1,a\n", "1"},
		{"select", "", "INSERT INTO t SELECT number, 'x' FROM numbers(5)", "5"},
	}
	for _, c := range cases {
		shared.query(t, "TRUNCATE TABLE t", "database", db)
		params := []string{"database", db, "max_query_size", "1000000"}
		if c.url != "" {
			params = append(params, "query", c.url)
		}
		a := shared.post(t, c.body, params...)
		if a.status != 200 {
			t.Errorf("%s: %s", c.name, a.body)
			continue
		}
		if got := shared.query(t, "SELECT count() FROM t", "database", db); got != c.rows {
			t.Errorf("%s: %s rows, want %s", c.name, got, c.rows)
		}
		if !strings.Contains(a.header.Get("X-ClickHouse-Summary"), `"written_rows":"`+c.rows+`"`) {
			t.Errorf("%s: summary %s", c.name, a.header.Get("X-ClickHouse-Summary"))
		}
	}
	shared.query(t, "TRUNCATE TABLE t", "database", db)
	if a := shared.post(t, strings.Repeat("1,a\n", 500_000)+"x,y\n", "database", db, "query", "INSERT INTO t FORMAT CSV"); a.code() != 27 {
		t.Errorf("a bad row behind half a million good ones: %d %s", a.status, a.body)
	}
}

// A statement may be longer than the engine's default of 256 KiB if it sets max_query_size.
func TestLongStatement(t *testing.T) {
	sql := "SELECT length('" + strings.Repeat("x", 1<<20) + "')"
	if a := shared.post(t, sql); a.code() != 62 {
		t.Errorf("without max_query_size: %d %.200s", a.status, a.body)
	}
	if got := shared.query(t, sql, "max_query_size", "2000000"); got != "1048576" {
		t.Errorf("with max_query_size: %.100s", got)
	}
	if a := shared.post(t, "SELECT '"+strings.Repeat("x", 17<<20)+"'"); a.code() != 229 || a.status != 413 {
		t.Errorf("17 MiB: %d %.200s", a.status, a.body)
	}
}

func TestErrorBehindTheFirstByte(t *testing.T) {
	const sql = "SELECT throwIf(number = 400000) FROM numbers(1000000)"
	a := shared.post(t, sql)
	tag := a.header.Get("X-ClickHouse-Exception-Tag")
	if a.status != 200 || len(tag) != 16 {
		t.Fatalf("status %d, tag %q", a.status, tag)
	}
	if a.err == nil {
		t.Error("the body ended like a whole one")
	}
	at := strings.Index(a.body, "\r\n__exception__\r\n"+tag+"\r\nCode: 395. DB::Exception: ")
	if at < 0 || !strings.HasSuffix(a.body, tag+"\r\n__exception__\r\n") {
		t.Errorf("no framed exception at the end: %q", a.body[max(0, len(a.body)-400):])
	}
	a = shared.post(t, sql, "wait_end_of_query", "1")
	if a.status != 500 || a.code() != 395 || a.err != nil {
		t.Errorf("held back: %d %s", a.status, a.body)
	}
	if got := shared.post(t, "SELECT number FROM numbers(3000000)", "wait_end_of_query", "1"); len(got.body) != 22888890 {
		t.Errorf("held back result of %d bytes", len(got.body))
	}
}
