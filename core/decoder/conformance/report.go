package conformance

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// Test runs the suite against an executable, with the cases of a directory. It is
// `earshot plugin test --exec BIN --testdata DIR`. The error is for a suite that could
// not run; a broken rule is a result.
func Test(ctx context.Context, dir fs.FS, seed uint64, only []string, path string, args ...string) ([]Result, error) {
	for _, name := range only {
		if all := CheckNames(); !slices.Contains(all, name) {
			return nil, fmt.Errorf("check %q: not one of %s", name, strings.Join(all, " "))
		}
	}
	cases, err := Load(dir)
	if err != nil {
		return nil, err
	}
	leaves, err := LeavesOut(dir)
	if err != nil {
		return nil, err
	}
	e, err := NewExec(ctx, path, args...)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	var twins []Subject
	other, err := e.OverGRPC(ctx)
	if err != nil {
		return nil, err
	}
	if other != nil {
		defer other.Close()
		twins = append(twins, other)
	}
	var results []Result
	s := Suite{Subject: e, Twins: twins, Cases: cases, LeavesOut: leaves, Seed: seed, Checks: only}
	s.Run(ctx, func(r Result) { results = append(results, r) })
	return results, ctx.Err()
}

// Failed reports whether a rule is broken.
func Failed(results []Result) bool {
	return slices.ContainsFunc(results, func(r Result) bool { return r.Status == Fail })
}

// Report writes results for a person: a table of checks by case, then the failures, then
// the reasons of skipped checks.
//
//	case       C1    C2    C3    C4    C5
//	talk       ok    ok    FAIL  ok    -
func Report(w io.Writer, results []Result, seed uint64) error {
	var b strings.Builder
	writeTable(&b, results)
	for _, r := range results {
		if r.Status == Fail {
			fmt.Fprintf(&b, "\n%s %s, %s: %s is broken: %s\n", r.Check, r.Title, where(r), r.Rule, r.Reason)
			for l := range strings.Lines(r.Detail) {
				fmt.Fprintf(&b, "    %s\n", strings.TrimRight(l, "\n"))
			}
		}
	}
	writeSkips(&b, results)
	var counts = map[Status]int{}
	for _, r := range results {
		counts[r.Status]++
	}
	fmt.Fprintf(&b, "\n%d passed, %d failed, %d skipped (seed %d)\n", counts[Pass], counts[Fail], counts[Skip], seed)
	_, err := io.WriteString(w, b.String())
	return err
}

func where(r Result) string {
	if r.Case == "" {
		return "all cases"
	}
	return r.Case
}

func writeTable(b *strings.Builder, results []Result) {
	var rows, columns []string
	cells := make(map[[2]string]string)
	width := len("case")
	for _, r := range results {
		row := where(r)
		if !slices.Contains(rows, row) {
			rows = append(rows, row)
			width = max(width, len(row))
		}
		if !slices.Contains(columns, r.Check) {
			columns = append(columns, r.Check)
		}
		cells[[2]string{row, r.Check}] = map[Status]string{Pass: "ok", Fail: "FAIL", Skip: "-"}[r.Status]
	}
	slices.SortFunc(columns, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	line := func(first string, cell func(column string) string) {
		l := fmt.Sprintf("%-*s", width+2, first)
		for _, c := range columns {
			l += fmt.Sprintf("%-6s", cell(c))
		}
		b.WriteString(strings.TrimRight(l, " ") + "\n")
	}
	line("case", func(c string) string { return c })
	for _, row := range rows {
		line(row, func(c string) string { return cells[[2]string{row, c}] })
	}
}

// writeSkips writes each reason of a skipped check once, with the number of cases.
func writeSkips(b *strings.Builder, results []Result) {
	var order []string
	count := make(map[string]int)
	for _, r := range results {
		if r.Status == Skip {
			s := fmt.Sprintf("%s %s: %s", r.Check, r.Title, r.Reason)
			if count[s] == 0 {
				order = append(order, s)
			}
			count[s]++
		}
	}
	for i, s := range order {
		if i == 0 {
			b.WriteString("\nskipped:\n")
		}
		fmt.Fprintf(b, "    %s (%d)\n", s, count[s])
	}
}
