package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The benchmarks of the page of stages, and the one that is a subject, exist.
func TestBenchmarksAreThere(t *testing.T) {
	root := "../../.."
	name := regexp.MustCompile(`Benchmark\w+`)
	for _, b := range stageBenchmarks() {
		files, err := filepath.Glob(filepath.Join(root, b.pkg, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(b.pkg, err)
		}
		var all strings.Builder
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		for _, f := range name.FindAllString(b.match, -1) {
			if !strings.Contains(all.String(), "func "+f+"(b *testing.B)") {
				t.Errorf("%s has no %s", b.pkg, f)
			}
		}
	}
}

func TestResultsOfGoTest(t *testing.T) {
	r := make(results)
	if r.parse("goos: linux\nPASS\nok  \tx\t0.1s\n") {
		t.Error("results of nothing")
	}
	r.parse("BenchmarkTail/process \t 3\t 31 ns/op\t 1.5 MB/s\t 7 allocs/op\nBenchmarkTail/process \t 3\t 33 ns/op\t 2.5 MB/s\t 9 allocs/op\n")
	want := results{"Tail/process": {"ns/op": {31, 33}, "MB/s": {1.5, 2.5}, "allocs/op": {7, 9}}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}

// The page of goals reads the page of queries, which another command writes.
func TestQueriesAreRead(t *testing.T) {
	page, err := os.ReadFile("../../queries.md")
	if err != nil {
		t.Fatal(err)
	}
	times := queryTimes(string(page))
	if len(times) == 0 {
		t.Error("bench/queries.md has no window")
	}
	for _, q := range times {
		if q.window == "" || q.wall <= 0 || q.cpu <= 0 {
			t.Errorf("%+v", q)
		}
	}
	want := []queryTime{{"24h", 2014, 480}, {"30d", 2563, 640}}
	table := "| window | queries | wall, p50 of all |\n|---|---|---|\n| 24h | 123 | 503 ms | 2014 ms | 38 | 130 ms | 480 ms | 2 |\n| 30d | 123 | 464 ms | 2563 ms | 31 | 140 ms | 640 ms | 3 |\n" +
		"| the last 6h | 50 ms | 170 ms | 560 ms | 7.6 s | 168 ms |\n"
	if diff := cmp.Diff(want, queryTimes(table), cmp.AllowUnexported(queryTime{})); diff != "" {
		t.Error(diff)
	}
}

// A figure that no mode has saved is reported as missing, and is not met.
func TestGoalsWithoutFigures(t *testing.T) {
	for _, g := range allGoals() {
		if text, met := g.is(map[string]savedFigure{}); text != "" || met {
			t.Errorf("%s: %q, %t", g.name, text, met)
		}
	}
	k := map[string]savedFigure{"tail": {Value: 2, Least: 1, Most: 4}}
	if text, met := allGoals()[0].is(k); met || text != "**2.00** (1.00 to 4.00)" {
		t.Error(text, met)
	}
}
