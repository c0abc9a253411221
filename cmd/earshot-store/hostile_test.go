package main

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The store answers every statement and body, and keeps running.
func TestHostileInput(t *testing.T) {
	db := database(t)
	shared.query(t, "CREATE TABLE t (a UInt64, b String, c LowCardinality(String), d Map(LowCardinality(String), String)) ENGINE = MergeTree ORDER BY a", "database", db)
	deep := func(open, middle, closing string, n int) string {
		return "SELECT " + strings.Repeat(open, n) + middle + strings.Repeat(closing, n)
	}
	everything := []string{"max_query_size", "100000000", "max_parser_depth", "10000", "max_ast_depth", "100000000", "max_ast_elements", "100000000", "max_expanded_ast_elements", "100000000"}
	statements := map[string]string{
		"parentheses":       deep("(", "1", ")", 20_000),
		"calls":             deep("abs(", "1", ")", 10_000),
		"negations":         deep("NOT ", "1", "", 20_000),
		"subqueries":        "SELECT * FROM " + strings.Repeat("(SELECT * FROM ", 4_000) + "system.one" + strings.Repeat(")", 4_000),
		"type":              "SELECT CAST(1, '" + strings.Repeat("Array(", 10_000) + "UInt8" + strings.Repeat(")", 10_000) + "')",
		"NUL":               "SELECT 1\x00; SELECT 2",
		"every byte":        string(rawBytes(5000)),
		"open string":       "SELECT '",
		"open comment":      "SELECT /*",
		"huge Native rows":  "INSERT INTO t FORMAT Native\n\x01\xff\xff\xff\xff\xff\xff\xff\x7f\x01a\x06UInt64",
		"huge Native text":  "INSERT INTO t FORMAT Native\n\x01\x01\x01b\x06String\xff\xff\xff\xff\xff\xff\xff\x7f",
		"Native of nothing": "INSERT INTO t FORMAT Native\n\x01",
	}
	for name, sql := range statements {
		for _, user := range []string{"default", "reader"} {
			a := shared.do(t, call{user: user, body: strings.NewReader(sql), params: values("database", db), timeout: time.Minute})
			if a.status == http.StatusOK {
				t.Errorf("%s as %s: was run: %.100q", name, user, a.body)
			}
		}
	}
	if a := shared.do(t, call{body: strings.NewReader("SELECT 1" + strings.Repeat("+1", 40_000)), params: values(everything...), timeout: time.Minute}); a.status == http.StatusOK {
		t.Error("40,000 additions were run")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		junk := rawBytes(rng.IntN(3000))
		rng.Shuffle(len(junk), func(i, j int) { junk[i], junk[j] = junk[j], junk[i] })
		for _, params := range [][]string{{"decompress", "1"}, {"decompress", "0"}} {
			a := shared.do(t, call{body: strings.NewReader(string(junk)), params: values(append(params, "query", "INSERT INTO t FORMAT Native", "database", db)...)})
			if a.status == http.StatusOK && len(junk) > 0 {
				t.Errorf("junk was inserted: %q", junk[:min(50, len(junk))])
			}
		}
	}
	if got := shared.query(t, "SELECT count() FROM t", "database", db); got != "0" {
		t.Errorf("%s rows of junk", got)
	}
}

// The library's classifier recurses without looking at its stack: at some
// 200,000 levels the process would be gone.
func TestParserDepthIsBounded(t *testing.T) {
	for _, depth := range []string{"0", "10001", "100000000", "-1", "x", "1e9"} {
		a := shared.do(t, call{body: strings.NewReader("SELECT 1" + strings.Repeat("+1", 300_000)),
			params: values("max_parser_depth", depth, "max_query_size", "100000000"), timeout: time.Minute})
		if a.code() != 36 {
			t.Errorf("max_parser_depth = %s: %d %.200s", depth, a.code(), a.body)
		}
	}
}

func rawBytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}
