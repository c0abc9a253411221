package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/release"
	"github.com/earshot-dev/earshot/core/pages"
	"go.uber.org/goleak"
)

// eng is the one engine that a process can have.
var eng *Engine

func TestMain(m *testing.M) {
	lib, err := release.Find("", os.Getenv, "")
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
	dir, err := os.MkdirTemp("", "earshot-engine-")
	if err != nil {
		panic(err)
	}
	if eng, err = Open(Config{Library: lib, Path: dir, Connections: 4, MaxMemory: 2 << 30}); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
	code := m.Run()
	eng.Close()
	os.RemoveAll(dir)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		code = 1
	}
	os.Exit(code)
}

func session(t *testing.T, o SessionOptions) *Session {
	t.Helper()
	s, err := eng.Session(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func exec(t *testing.T, s *Session, sql string, params ...Param) string {
	t.Helper()
	r, err := s.Exec(sql, "TSV", params)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer r.Close()
	return strings.TrimSuffix(string(r.Bytes()), "\n")
}

// code is the engine's number of err, 0 when it is not of the engine.
func codeOf(err error) int {
	var e *Exception
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func TestSessionsShareNothing(t *testing.T) {
	a := session(t, SessionOptions{Settings: []Setting{{"max_threads", "3"}}})
	exec(t, a, "CREATE DATABASE IF NOT EXISTS shared")
	exec(t, a, "USE shared")
	exec(t, a, "SET max_block_size = 77")
	b := session(t, SessionOptions{})
	if got := exec(t, a, "SELECT getSetting('max_threads'), getSetting('max_block_size'), currentDatabase()"); got != "3\t77\tshared" {
		t.Errorf("own session: %q", got)
	}
	if got := exec(t, b, "SELECT getSetting('max_block_size') = 77, currentDatabase()"); got != "0\tdefault" {
		t.Errorf("another session: %q", got)
	}
	c := session(t, SessionOptions{Database: "shared"})
	if got := exec(t, c, "SELECT currentDatabase()"); got != "shared" {
		t.Errorf("Database option: %q", got)
	}
}

func TestSessionRefusals(t *testing.T) {
	cases := []struct {
		o    SessionOptions
		code int
	}{
		{SessionOptions{Settings: []Setting{{"no_such_setting", "1"}}}, 115},
		{SessionOptions{Settings: []Setting{{"max_threads", "many"}}}, 27},
		{SessionOptions{Settings: []Setting{{"max_threads", "a\x00b"}}}, 36},
		{SessionOptions{Database: "no_such_database"}, 81},
	}
	for _, c := range cases {
		s, err := eng.Session(t.Context(), c.o)
		if err == nil {
			s.Close()
		}
		if codeOf(err) != c.code {
			t.Errorf("%+v: %v, want code %d", c.o, err, c.code)
		}
	}
	// None of them kept its slot.
	for range 2 * cap(eng.slots) {
		s, err := eng.Session(t.Context(), SessionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
}

func TestSessionWaitsNoLongerThanItsContext(t *testing.T) {
	for range cap(eng.slots) {
		session(t, SessionOptions{})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("client went away")
	cancel(why)
	if _, err := eng.Session(ctx, SessionOptions{}); !errors.Is(err, why) {
		t.Errorf("got %v, want the context's cause", err)
	}
}

func TestExceptions(t *testing.T) {
	s := session(t, SessionOptions{})
	cases := []struct {
		sql, name string
		code      int
	}{
		{"SELECT * FROM nowhere", "UNKNOWN_TABLE", 60},
		{"SELEC 1", "SYNTAX_ERROR", 62},
		{"SELECT nope(1)", "UNKNOWN_FUNCTION", 46},
		{"SELECT throwIf(1)", "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO", 395},
		{"SELECT 1 SETTINGS max_threads = 'x'", "CANNOT_PARSE_INPUT_ASSERTION_FAILED", 27},
	}
	for _, c := range cases {
		_, err := s.Exec(c.sql, "TSV", nil)
		var e *Exception
		if !errors.As(err, &e) || e.Code != c.code || e.Name != c.name {
			t.Errorf("%s: %v", c.sql, err)
			continue
		}
		if strings.Contains(e.Message, "Code: ") || strings.Contains(e.Message, "(version") {
			t.Errorf("%s: the message still carries its wrapping: %q", c.sql, e.Message)
		}
	}
}

func TestParseException(t *testing.T) {
	cases := []struct {
		in   string
		want Exception
	}{
		{"Code: 60. DB::Exception: No t. (UNKNOWN_TABLE)", Exception{60, "UNKNOWN_TABLE", "No t."}},
		{"Code: 164. DB::Exception: Code: 164. DB::Exception: Cannot. (READONLY) (version 26.7.2.1). (READONLY)", Exception{164, "READONLY", "Cannot."}},
		{"Code: 27. DB::Exception: Bad row: (FOO) (CANNOT_PARSE) (version 1.2)", Exception{27, "CANNOT_PARSE", "Bad row: (FOO)"}},
		{"Code: 210. DB::NetException: Refused (NETWORK_ERROR)", Exception{210, "NETWORK_ERROR", "Refused"}},
		{"Failed to parse INSERT query", Exception{36, "BAD_ARGUMENTS", "Failed to parse INSERT query"}},
	}
	for _, c := range cases {
		if got := parseException(c.in); *got != c.want {
			t.Errorf("%q:\n got %+v\nwant %+v", c.in, *got, c.want)
		}
	}
}

func TestFileOverlayIsGone(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.csv")
	if err := os.WriteFile(secret, []byte("a,b\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := session(t, SessionOptions{})
	for _, sql := range []string{
		"SELECT * FROM `" + secret + "`",
		"SELECT * FROM '" + secret + "'",
		"SELECT * FROM default.`" + secret + "`",
		"SELECT * FROM " + overlay + ".`" + secret + "`",
		"DESCRIBE TABLE `" + secret + "`",
	} {
		if _, err := s.Exec(sql, "TSV", nil); codeOf(err) != 60 && codeOf(err) != 81 {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if got := exec(t, s, "SELECT engine FROM system.databases WHERE name = 'default'"); got != "Atomic" {
		t.Errorf("default is %s", got)
	}
}

func TestStreamGivesWhatExecGives(t *testing.T) {
	s := session(t, SessionOptions{})
	const sql = "SELECT number, toString(number) FROM numbers(200000)"
	rows, err := s.Stream(sql, "TSV", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	chunks := 0
	for {
		chunk, err := rows.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got.Write(chunk)
		chunks++
	}
	rows.Close()
	if chunks < 2 {
		t.Errorf("%d chunks: it did not stream", chunks)
	}
	if want := exec(t, s, sql) + "\n"; got.String() != want {
		t.Errorf("streamed %d bytes, executed %d", got.Len(), len(want))
	}
	if _, err := rows.Next(); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}

func TestStreamRefusesAllButSelect(t *testing.T) {
	s := session(t, SessionOptions{})
	exec(t, s, "CREATE OR REPLACE TABLE refuses (a UInt64) ENGINE = Memory")
	for _, sql := range []string{"SHOW TABLES", "INSERT INTO refuses VALUES (1)", "WITH x AS (SELECT 1 AS a) INSERT INTO refuses SELECT a FROM x"} {
		if _, err := s.Stream(sql, "TSV", nil); !errors.Is(err, ErrNotStreamable) {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if _, err := s.Stream("SELECT 1; SELECT 2", "TSV", nil); codeOf(err) != 62 {
		t.Errorf("two statements: %v", err)
	}
	if got := exec(t, s, "SELECT count() FROM refuses"); got != "0" {
		t.Errorf("a refused statement ran: %s rows", got)
	}
}

func TestStreamFailsInTheMiddle(t *testing.T) {
	s := session(t, SessionOptions{})
	rows, err := s.Stream("SELECT throwIf(number = 300000) FROM numbers(1000000)", "TSV", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ; err == nil; n++ {
		_, err = rows.Next()
	}
	if n < 2 || codeOf(err) != 395 {
		t.Errorf("%d pieces, then %v", n, err)
	}
	if _, err := rows.Next(); err != io.EOF {
		t.Errorf("after the error: %v", err)
	}
}

// A session's statement ends with its context, wherever it is just then.
func TestCancel(t *testing.T) {
	setup := session(t, SessionOptions{})
	exec(t, setup, "CREATE OR REPLACE TABLE cancels (a UInt64) ENGINE = MergeTree ORDER BY a")
	why := errors.New("client went away")
	cases := map[string]func(*Session) error{
		"aggregation before its first row": func(s *Session) error {
			rows, err := s.Stream("SELECT sum(sipHash64(number)) FROM numbers(1000000000000)", "TSV", nil)
			if err == nil {
				_, err = rows.Next()
				rows.Close()
			}
			return err
		},
		"endless rows": func(s *Session) error {
			rows, err := s.Stream("SELECT number FROM numbers(1000000000000)", "TSV", nil)
			for err == nil {
				_, err = rows.Next()
			}
			rows.Close()
			return err
		},
		"insert select": func(s *Session) error {
			_, err := s.Exec("INSERT INTO cancels SELECT number FROM numbers(1000000000000)", "TSV", nil)
			return err
		},
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			s, err := eng.Session(ctx, SessionOptions{ID: "cancel-me"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			done := make(chan error, 1)
			go func() { done <- run(s) }()
			waitFor(t, "the statement to run", func() bool {
				return exec(t, setup, "SELECT count() FROM system.processes WHERE Settings['query_cache_tag'] LIKE 'cancel-me#%'") == "1"
			})
			cancel(why)
			select {
			case err := <-done:
				if !errors.Is(err, why) {
					t.Errorf("got %v", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("still running")
			}
		})
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestInsert(t *testing.T) {
	s := session(t, SessionOptions{})
	exec(t, s, "CREATE OR REPLACE TABLE inserts (a UInt64, b String) ENGINE = MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 10")
	insert := func(sql, format string, chunks ...string) (Stats, error) {
		i, err := s.Insert(sql, format, nil)
		if err != nil {
			return Stats{}, err
		}
		defer i.Close()
		for _, c := range chunks {
			if _, err := i.Write([]byte(c)); err != nil {
				return Stats{}, err
			}
		}
		return i.Commit()
	}
	if st, err := insert("INSERT INTO inserts", "CSV", "1,a\n2,", "b\n"); err != nil || st.RowsWritten != 2 {
		t.Errorf("cut in the middle of a row: %+v, %v", st, err)
	}
	if _, err := insert("INSERT INTO inserts (a)", "Values", "(1 + 2), ", "(4)"); err != nil {
		t.Errorf("values: %v", err)
	}
	if _, err := insert("INSERT INTO inserts", "CSV", "5,a\n", "x,b\n"); codeOf(err) != 27 {
		t.Errorf("bad row: %v", err)
	}
	if _, err := insert("INSERT INTO nowhere", "CSV", "1"); codeOf(err) != 60 {
		t.Errorf("unknown table: %v", err)
	}
	if _, err := insert("INSERT INTO inserts", "NoSuchFormat", "1"); codeOf(err) != 73 {
		t.Errorf("unknown format: %v", err)
	}
	i, err := s.Insert("INSERT INTO inserts", "CSV", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Write([]byte("99,given up\n")); err != nil {
		t.Fatal(err)
	}
	i.Close()
	i.Close()
	if got := exec(t, s, "SELECT groupArray(a) FROM (SELECT a FROM inserts ORDER BY a)"); got != "[1,2,3,4]" {
		t.Errorf("table holds %s", got)
	}

	big := strings.Repeat("7,"+strings.Repeat("x", 98)+"\n", 20_000) // 2 MB, well past 256 KiB
	if st, err := insert("INSERT INTO inserts", "CSV", big); err != nil || st.RowsWritten != 20_000 {
		t.Errorf("big body: %+v, %v", st, err)
	}
}

func TestParams(t *testing.T) {
	s := session(t, SessionOptions{})
	got := exec(t, s, "SELECT {s:String}, {n:Int32}, {a:Array(UInt8)}", Param{"s", `a\tb'`}, Param{"n", "-4"}, Param{"a", "[1,2]"})
	if got != `a\tb\'`+"\t-4\t[1,2]" {
		t.Errorf("got %q", got)
	}
	if _, err := s.Exec("SELECT {s:String}", "TSV", nil); codeOf(err) != 456 {
		t.Errorf("missing parameter: %v", err)
	}
}

func TestClassifyAndCanonical(t *testing.T) {
	s := session(t, SessionOptions{Settings: []Setting{{"readonly", "1"}}})
	classes := []struct {
		sql  string
		want Class
	}{
		{"SELECT 1", Class{1, true}},
		{"SELECT 1;", Class{1, true}},
		{"SELECT 1; SELECT 2", Class{2, true}},
		{"SELECT 1 INTO OUTFILE 'x'", Class{1, false}},
		{"INSERT INTO t VALUES (1)", Class{1, false}},
		{"SET a = 1", Class{1, false}},
		{"SELEC 1", Class{0, false}},
		{"", Class{0, false}},
	}
	for _, c := range classes {
		if got := s.Classify(c.sql); got != c.want {
			t.Errorf("classify %q: %+v, want %+v", c.sql, got, c.want)
		}
	}
	for in, want := range map[string]string{
		"select /* x */ `file`($h$it's\t$h$) -- y\n": `SELECT file('it\'s\t')`,
		"select 1 settings a=1":                      "SELECT 1 SETTINGS a = 1",
		"describe table url('x')":                    "DESCRIBE TABLE url('x')",
	} {
		if got, err := s.Canonical(in); err != nil || got != want {
			t.Errorf("canonical %q: %q, %v; want %q", in, got, err, want)
		}
	}
	if _, err := s.Canonical("SELECT 1; SELECT 2"); codeOf(err) != 62 {
		t.Errorf("two statements: %v", err)
	}
}

func TestSessionsRunInParallel(t *testing.T) {
	var wg sync.WaitGroup
	sessions := make([]*Session, cap(eng.slots))
	for i := range sessions {
		s, err := eng.Session(t.Context(), SessionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		sessions[i] = s
	}
	start := time.Now()
	for _, s := range sessions {
		wg.Go(func() { exec(t, s, "SELECT sleep(1.5)") })
	}
	wg.Wait()
	if took, serial := time.Since(start), time.Duration(cap(eng.slots))*1500*time.Millisecond; took >= serial {
		t.Errorf("took %v, as long as one after the other (%v)", took, serial)
	}
}

// The library must leave Go's handling of faults alone: a nil pointer stays a
// panic that can be recovered, before and after sessions come and go.
// TestReadsHaveThreads: a read has more than one thread under the limit of memory that the embedded store has.
func TestReadsHaveThreads(t *testing.T) {
	s := session(t, SessionOptions{})
	exec(t, s, "CREATE TABLE halves (n UInt64) ENGINE = MergeTree ORDER BY n PARTITION BY n % 2")
	exec(t, s, "INSERT INTO halves SELECT number FROM numbers(100000)")
	plan := exec(t, s, "EXPLAIN PIPELINE SELECT sum(n) FROM halves SETTINGS max_threads = 2, merge_tree_min_rows_for_concurrent_read = 1, merge_tree_min_bytes_for_concurrent_read = 1")
	if !strings.Contains(plan, "AggregatingTransform × 2") {
		t.Errorf("the plan is\n%s", plan)
	}
}

func TestGoStillOwnsItsSignals(t *testing.T) {
	session(t, SessionOptions{}).Close()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	var p *Stats
	t.Log(p.RowsRead)
}

// TestTrim: memory is returned between statements and while they run, and changes no result.
func TestTrim(t *testing.T) {
	const sql = "SELECT count(), sum(cityHash64(number)) FROM numbers(3000000) GROUP BY number % 7 ORDER BY 1, 2"
	want := exec(t, session(t, SessionOptions{}), sql)
	var running sync.WaitGroup
	for range 3 {
		s := session(t, SessionOptions{})
		running.Go(func() {
			for range 5 {
				r, err := s.Exec(sql, "TSV", nil)
				if err != nil {
					t.Error(err)
					return
				}
				if got := strings.TrimSuffix(string(r.Bytes()), "\n"); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
				r.Close()
			}
		})
	}
	for range 20 {
		if _, err := eng.Trim(); err != nil {
			t.Fatal(err)
		}
	}
	running.Wait()
	if done, err := eng.Trim(); err != nil || !done {
		t.Error(done, err)
	}
	if n, err := pages.Release(eng.file); runtime.GOOS == "linux" && (err != nil || n > 64<<20) {
		t.Errorf("%d MiB of the library are resident, %v", n>>20, err)
	}
}
