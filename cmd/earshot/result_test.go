package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestQueryForms has one result in every form, on standard output and in a file.
func TestQueryForms(t *testing.T) {
	h := newHome(t)
	const sql = "SELECT number AS n, '=1+1' AS formula FROM numbers(3)"
	for form, check := range map[string]func(string) bool{
		"table": func(s string) bool { return strings.Contains(s, "formula") && strings.Contains(s, "│ 2 │") },
		"csv": func(s string) bool {
			r, err := csv.NewReader(strings.NewReader(s)).ReadAll()
			return err == nil && len(r) == 4 && r[3][1] == "'=1+1"
		},
		"tsv":     func(s string) bool { return s == "n\tformula\n0\t=1+1\n1\t=1+1\n2\t=1+1\n" },
		"jsonl":   func(s string) bool { return strings.Count(s, "\n") == 3 && strings.HasPrefix(s, `{"n":`) },
		"parquet": func(s string) bool { return strings.HasPrefix(s, "PAR1") && strings.HasSuffix(s, "PAR1") },
		"json": func(s string) bool {
			var rows []map[string]any
			return json.Unmarshal([]byte(s), &rows) == nil && len(rows) == 3 && rows[2]["formula"] == "=1+1"
		},
	} {
		out, _ := h.run("query", sql, "-o", form)
		if !check(out) {
			t.Errorf("%s: %q", form, out)
		}
		path := filepath.Join(t.TempDir(), "result")
		if printed, _ := h.run("query", sql, "-o", form, "--output", path); printed != "" {
			t.Errorf("%s: printed %q", form, printed)
		}
		b, err := os.ReadFile(path)
		if err != nil || form != "parquet" && !bytes.Equal(b, []byte(out)) || !check(string(b)) {
			t.Errorf("%s: the file has %q, error %v", form, b, err)
		}
	}
	if out, _ := h.run("query", "SELECT 1 WHERE 0", "-o", "json"); out != "[]\n" {
		t.Errorf("no rows: %q", out)
	}
}

// TestQueryHasNoBound streams more than the store holds, and leaves no file behind when it fails.
func TestQueryHasNoBound(t *testing.T) {
	h := newHome(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "large")
	for _, form := range []string{"json", "csv", "parquet", "table"} {
		h.run("query", "SELECT number, repeat(hex(sipHash128(number)), 32) AS text FROM numbers(80000)", "-o", form, "--output", path)
		s, err := os.Stat(path)
		if err != nil || s.Size() < 80e6 && form != "parquet" || s.Size() < 1e6 {
			t.Fatalf("%s: %v, error %v", form, s, err)
		}
	}
	if _, _, err := h.try("query", "SELECT throwIf(number = 70000), repeat('x', 1000) FROM numbers(80000)", "-o", "csv", "--output", filepath.Join(dir, "broken")); err == nil {
		t.Error("a query that fails succeeds")
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, error %v", left, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestGrid: the sample decides the widths, numbers are on the right, and a wider value of later rows is whole.
func TestGrid(t *testing.T) {
	var b bytes.Buffer
	g := newGrid(&b, []string{"n", "text"}, []string{"UInt64", "Nullable(String)"})
	rows := strings.Repeat("1\ta\\'b\n", gridSample-1) + "23\t\\N\n4\twider than all\n"
	for _, part := range []string{rows[:7], rows[7:]} {
		if _, err := g.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	want := []string{"┌─n──┬─text─┐", "│  1 │ a'b  │", "│ 23 │ NULL │", "│  4 │ wider than all │", "└────┴──────┘"}
	got := []string{lines[0], lines[1], lines[gridSample], lines[gridSample+1], lines[gridSample+2]}
	if len(lines) != gridSample+3 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d lines\n%s", len(lines), strings.Join(got, "\n"))
	}
}
