package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestReaderCannotEscape runs a reader's attacks against the running store: none shows the
// secret, reaches the network or leaves anything behind.
func TestReaderCannotEscape(t *testing.T) {
	db := database(t)
	shared.query(t, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a", "database", db)
	shared.query(t, "INSERT INTO t VALUES (1)", "database", db)

	const secret = "TOPSECRET"
	dir := t.TempDir()
	file := filepath.Join(dir, "secret.csv")
	if err := os.WriteFile(file, []byte("a,b\n"+secret+",2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var reached atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		fmt.Fprintln(w, secret)
	}))
	defer web.Close()

	tries := []string{
		"SELECT * FROM file('FILE')", "SELECT * FROM `file`('FILE')", `SELECT * FROM "file"('FILE')`, "SELECT * FROM FiLe /* x */ ('FILE')",
		"SELECT * FROM file -- (\n ('FILE')", "SELECT * FROM file#!\n('FILE')", "SELECT * FROM file\u00a0('FILE')",
		"SELECT file('FILE')", "SELECT FILE('FILE')", "SELECT `file`('FILE')", "SELECT file($x$FILE$x$)", "SELECT file(‘FILE’)",
		"SELECT arrayMap(file, ['FILE'])", "SELECT arrayMap(x -> file(x), ['FILE'])", "SELECT arrayMap(`fi\\x6ce`, ['FILE'])",
		"SELECT * APPLY file FROM (SELECT 'FILE')", "SELECT * APPLY(file) FROM (SELECT 'FILE')", "SELECT COLUMNS('x') APPLY(file) FROM (SELECT 'FILE' AS x)",
		"WITH (x -> file(x)) AS f SELECT f('FILE')", "WITH q AS (SELECT * FROM file('FILE')) SELECT * FROM q",
		"SELECT (SELECT file('FILE'))", "SELECT 1 WHERE throwIf(file('FILE') != '') ", "SELECT {f:Identifier}('FILE')", "SELECT arrayMap({f:Identifier}, ['FILE'])",
		"SELECT * FROM {t:Identifier}",
		"SELECT * FROM `FILE`", "SELECT * FROM 'FILE'", "SELECT * FROM default.`FILE`", "SELECT a IN `FILE` FROM t", "DESCRIBE TABLE `FILE`", "SHOW CREATE TABLE `FILE`",
		"DESCRIBE TABLE file('FILE')", "DESCRIBE file('FILE')", "EXPLAIN SELECT * FROM file('FILE')", "EXPLAIN QUERY TREE SELECT file('FILE')",
		"SELECT * FROM url('URL', CSV)", "SELECT * FROM url('URL', 'CSV', 'a String')", "DESCRIBE TABLE url('URL')", "DESCRIBE TABLE url('URL', CSV)",
		"SELECT * FROM s3('URLb/k', 'CSV')", "SELECT * FROM remote('127.0.0.1', 'system', 'one')", "SELECT * FROM merge(remote('127.0.0.1', system, one))",
		"SELECT * FROM executable('cat', 'TSV', 'a String')", "SELECT * FROM sqlite('FILE', 'x')", "SELECT * FROM filesystem('DIR')", "SELECT * FROM eval('SELECT file(\\'FILE\\')') SETTINGS allow_experimental_eval_table_function = 1",
		"SELECT * FROM icebergLocal('DIR')", "SELECT * FROM loop(file('FILE'))", "SELECT * FROM viewExplain('', '', (SELECT file('FILE')))",
		"SELECT * FROM t SETTINGS additional_table_filters = {'t': 'throwIf(file(\\'FILE\\') != \\'\\')'}",
		"SELECT * FROM t SETTINGS additional_table_filters = {'t': 'a IN (SELECT length(`fi\\\\x6ce`(\\'FILE\\')))'}",
		"SELECT 1 INTO OUTFILE 'DIR/out'", "SELECT 1 INTO/**/OUTFILE 'DIR/out' FORMAT CSV", "SELECT 1 FORMAT Protobuf SETTINGS output_format_schema = 'DIR/out', format_schema_source = 'x'",
		"SELECT 1; INSERT INTO t VALUES (2)", "INSERT INTO t VALUES (2)", "INSERT INTO t SELECT 2", "WITH x AS (SELECT 2 AS a) INSERT INTO t SELECT a FROM x",
		"INSERT INTO FUNCTION file('DIR/out', 'CSV', 'a UInt8') VALUES (1)", "/* SELECT */ INSERT INTO t VALUES (2)",
		"SELECT 1 SETTINGS readonly = 0", "SELECT 1 SETTINGS readonly = 0; INSERT INTO t VALUES (2)", "SELECT 1 FROM (SELECT 1 SETTINGS readonly = 0)", "SET readonly = 0",
		"CREATE TABLE u (a UInt8) ENGINE = Memory", "CREATE TEMPORARY TABLE u (a UInt8)", "DROP TABLE t", "TRUNCATE TABLE t", "ALTER TABLE t DELETE WHERE 1", "OPTIMIZE TABLE t", "DELETE FROM t WHERE 1",
		"SYSTEM FLUSH LOGS", "SYSTEM STOP MERGES", "KILL QUERY WHERE 1 ASYNC", "ATTACH TABLE x FROM 'DIR' (a UInt8) ENGINE = Log", "BACKUP TABLE t TO File('DIR/out')",
		"EXPLAIN AST SELECT 1 INTO OUTFILE 'DIR/out'", "EXECUTE AS default SELECT 1", "USE system; INSERT INTO t VALUES (2)", "GRANT ALL ON *.* TO default",
	}
	fill := strings.NewReplacer("FILE", file, "DIR", dir, "URL", web.URL+"/")
	refused := 0
	for _, sql := range tries {
		sql = fill.Replace(sql)
		a := shared.do(t, call{user: "reader", body: strings.NewReader(sql), params: values("database", db, "param_f", "file", "param_t", file)})
		if strings.Contains(a.body, secret) {
			t.Errorf("%s: gave the secret: %s", sql, a.body)
		}
		if a.status == 200 {
			t.Errorf("%s: was run: %q", sql, a.body)
		} else {
			refused++
		}
	}
	t.Logf("%d tries refused", refused)
	for _, params := range [][]string{
		{"readonly", "0"}, {"max_query_size", "1"}, {"allow_ddl", "1"}, {"format_schema", "x"}, {"dialect", "kusto"}, {"implicit_select", "1"},
		{"additional_table_filters", "{'t':'throwIf(file(\\'" + file + "\\') != \\'\\')'}"},
		{"additional_table_filters", `{'t':'fi\x6ce(1)'}`},
	} {
		a := shared.do(t, call{user: "reader", body: strings.NewReader("SELECT * FROM t"), params: values(append(params, "database", db)...)})
		if a.code() != 497 {
			t.Errorf("%v: %d %s", params, a.status, a.body)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("the web server was asked %d times", n)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "out*")); left != nil {
		t.Errorf("files were written: %v", left)
	}
	if got := shared.query(t, "SELECT groupArray(a), (SELECT count() FROM system.tables WHERE database = '"+db+"') FROM t", "database", db); got != "[1]\t1" {
		t.Errorf("the database changed: %s", got)
	}
}

// TestWriterCannotEscape runs statements of the user who writes that would reach a file, a network
// or a program: none does.
func TestWriterCannotEscape(t *testing.T) {
	db := database(t)
	const secret = "TOPSECRET"
	dir := t.TempDir()
	file := filepath.Join(dir, "secret.csv")
	if err := os.WriteFile(file, []byte("a,b\n"+secret+",2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var reached atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		fmt.Fprintln(w, secret)
	}))
	defer web.Close()
	fill := strings.NewReplacer("FILE", file, "DIR", dir, "URL", web.URL+"/")
	for _, sql := range []string{
		"SELECT * FROM file('FILE')", "SELECT file('FILE')", "SELECT arrayMap(file, ['FILE'])", "SELECT * FROM `FILE`",
		"INSERT INTO FUNCTION file('DIR/out', 'CSV', 'a UInt8') SELECT 1", "INSERT INTO FUNCTION file('DIR/out', 'CSV', 'a UInt8') FORMAT CSV 1",
		"INSERT INTO FUNCTION url('URL', 'CSV', 'a UInt8') SELECT 1", "SELECT * FROM url('URL', CSV)", "DESCRIBE TABLE url('URL')",
		"SELECT * FROM remote('127.0.0.1', 'system', 'one')", "SELECT * FROM s3('URLb/k', 'CSV')", "SELECT * FROM executable('cat', 'TSV', 'a String')",
		"CREATE TABLE u (a UInt8) ENGINE = File(CSV, 'FILE')", "CREATE TABLE u (a UInt8) ENGINE = URL('URL', CSV)", "CREATE TABLE u (a UInt8) ENGINE = Executable('x', 'TSV')",
		"CREATE TABLE u (a UInt8) ENGINE = ExecutablePool('x', 'TSV')", "CREATE TABLE u (a UInt8) ENGINE = Kafka", "CREATE TABLE u (a UInt8) ENGINE = Distributed('default', 'system', 'one')",
		"CREATE TABLE u AS file('FILE')", "CREATE VIEW u AS SELECT * FROM url('URL', CSV)", "CREATE DATABASE u ENGINE = Filesystem('DIR')", "CREATE DATABASE u ENGINE = Overlay",
		"CREATE DICTIONARY u (a UInt64) PRIMARY KEY a SOURCE(HTTP(url 'URL' format 'CSV')) LAYOUT(FLAT()) LIFETIME(1)",
		"CREATE FUNCTION u AS (x) -> x", "CREATE NAMED COLLECTION u AS url = 'URL'", "CREATE USER u IDENTIFIED WITH no_password", "GRANT ALL ON *.* TO default",
		"ATTACH TABLE u FROM 'DIR' (a UInt8) ENGINE = Log", "BACKUP DATABASE default TO File('DIR/out')", "SELECT 1 INTO OUTFILE 'DIR/out'",
		"ALTER TABLE system.one EXPORT PART 'x' TO TABLE FUNCTION file('DIR/out')", "SYSTEM SHUTDOWN", "SYSTEM RELOAD CONFIG",
		"SELECT 1 FORMAT Protobuf SETTINGS output_format_schema = 'DIR/out', format_schema_source = 'x'",
	} {
		sql = fill.Replace(sql)
		a := shared.do(t, call{body: strings.NewReader(sql), params: values("database", db)})
		if strings.Contains(a.body, secret) || a.status == 200 {
			t.Errorf("%s: %d %q", sql, a.status, a.body)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("the web server was asked %d times", n)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "out*")); left != nil {
		t.Errorf("files were written: %v", left)
	}
}

// TestSocketIsTheOwners looks at modes and ports that other users could reach.
func TestSocketIsTheOwners(t *testing.T) {
	info, err := os.Stat(shared.socket)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		t.Errorf("the socket has mode %o", mode)
	}
	ports, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", shared.cmd.Process.Pid))
	if err != nil {
		t.Skip(err) // no /proc
	}
	tcp := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, _ := os.ReadFile(table)
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 9 {
				tcp["socket:["+f[9]+"]"] = true
			}
		}
	}
	for _, fd := range ports {
		if to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", shared.cmd.Process.Pid, fd.Name())); err == nil && tcp[to] {
			t.Errorf("the store has a TCP socket: %s", to)
		}
	}
}

func TestReaderCanRead(t *testing.T) {
	db := database(t)
	shared.query(t, "CREATE TABLE t (url String, content String) ENGINE = ReplacingMergeTree ORDER BY url", "database", db)
	shared.query(t, "INSERT INTO t VALUES ('u', 'calls file(x) and url(y)')", "database", db)
	for sql, want := range map[string]string{
		"SELECT url FROM t WHERE content LIKE '%file(%'":                       "u",
		"SELECT count() FROM t FINAL SETTINGS max_threads = 1":                 "1",
		"WITH x AS (SELECT url FROM t) SELECT count() FROM x":                  "1",
		"SELECT count() FROM t SETTINGS additional_table_filters = {'t': '0'}": "0",
		"SELECT number FROM numbers(1)":                                        "0",
		"EXISTS TABLE t":                                                       "1",
		"SELECT 'INTO OUTFILE', 1 -- INSERT INTO t":                            "INTO OUTFILE\t1",
		"SHOW TABLES":                   "t",
		"SELECT getSetting('readonly')": "1",
		"SELECT getSetting('max_result_rows') SETTINGS max_result_rows = 17": "17",
		"SELECT {x:UInt8} + 1": "8",
	} {
		a := shared.do(t, call{user: "reader", body: strings.NewReader(sql), params: values("database", db, "param_x", "7", "max_execution_time", "10", "readonly", "1")})
		if got := strings.TrimSpace(a.body); got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
	a := shared.do(t, call{user: "reader", body: strings.NewReader("SELEC 1")})
	if a.code() != 62 || strings.Contains(a.body, "formatQuery") {
		t.Errorf("syntax error: %s", a.body)
	}
}
