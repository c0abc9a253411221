// Command conformance runs every bundled decoder, as a process, through the conformance suite
// and prints a table, decoder by check: how many cases passed, failed, and were skipped because
// the check does not apply to them.
//
//	go run ./bench/cmd/conformance bin/earshot plugins
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/earshot-dev/earshot/core/decoder/conformance"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: conformance EARSHOT PLUGINS")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// seed is the seed of the suite's random choices.
const seed = 1

func run(ctx context.Context, earshot, plugins string) (ok bool, err error) {
	folders, err := filepath.Glob(filepath.Join(plugins, "*", "testdata"))
	if err != nil {
		return false, err
	}
	checks := conformance.CheckNames()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DECODER\t"+strings.Join(checks, "\t"))
	ok = true
	var broken []conformance.Result
	for _, testdata := range folders {
		name := filepath.Base(filepath.Dir(testdata))
		results, err := conformance.Test(ctx, os.DirFS(testdata), seed, nil, earshot, "decoder", name)
		if err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		count := make(map[string]map[conformance.Status]int)
		for _, r := range results {
			if count[r.Check] == nil {
				count[r.Check] = make(map[conformance.Status]int)
			}
			count[r.Check][r.Status]++
			if r.Status == conformance.Fail {
				ok, broken = false, append(broken, r)
			}
		}
		row := []string{name}
		for _, check := range checks {
			row = append(row, cell(count[check]))
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return false, err
	}
	fmt.Println("\nN passed, -N skipped because the check does not apply to so many cases, !N failed")
	if len(broken) > 0 {
		return false, conformance.Report(os.Stdout, broken, seed)
	}
	return ok, nil
}

func cell(n map[conformance.Status]int) string {
	var parts []string
	for _, c := range []struct {
		mark   string
		status conformance.Status
	}{{"", conformance.Pass}, {"-", conformance.Skip}, {"!", conformance.Fail}} {
		if n[c.status] > 0 {
			parts = append(parts, fmt.Sprint(c.mark, n[c.status]))
		}
	}
	return strings.Join(parts, " ")
}
