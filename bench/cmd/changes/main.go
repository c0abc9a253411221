// Command changes measures how often core/change raises a false alarm and how soon it finds a shift; see package
// bench/changes. With -write it renews bench/changes.md.
//
//	go run ./bench/cmd/changes -write bench/changes.md
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/earshot-dev/earshot/bench/changes"
)

func main() {
	o := changes.Options{}
	flag.IntVar(&o.Pairs, "pairs", 50, "pairs of an agent and a tool")
	flag.IntVar(&o.Days, "days", 360, "days in which nothing changes")
	flag.IntVar(&o.Trials, "trials", 200, "trials of each shift")
	flag.Uint64Var(&o.Seed, "seed", 1, "the same seed measures the same")
	write := flag.String("write", "", "the file of the report, besides the standard output")
	flag.Parse()
	text := changes.Report(o)
	fmt.Print(text)
	if *write != "" {
		if err := os.WriteFile(*write, []byte(text), 0o644); err != nil { //nolint:gosec // a page for everybody
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
