// Command gen writes a corpus of Legion traffic and its oracle; see package
// bench/gen.
//
//	go run ./bench/cmd/gen -dir bench/out/legion -bytes 500e6 -sessions 100
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/earshot-dev/earshot/bench/gen"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var o gen.Options
	dir := flag.String("dir", "bench/out/legion", "where to write sessions/<id>/messages.jsonl and oracle.json")
	size := flag.Float64("bytes", 500e6, "size of all sessions together, about")
	start := flag.String("start", "", "when the first session begins, RFC 3339 (default 2026-11-01T08:00:00Z)")
	flag.IntVar(&o.Sessions, "sessions", 100, "number of sessions")
	flag.DurationVar(&o.Every, "every", 7*time.Minute, "from the start of one session to that of the next")
	flag.Uint64Var(&o.Seed, "seed", 1, "the same seed generates the same bytes")
	flag.IntVar(&o.MaxContent, "max-content", 50_000, "bytes of the longest text")
	flag.Float64Var(&o.Broken, "broken", 0, "share of lines that are followed by a torn one")
	flag.Float64Var(&o.Repeated, "repeated", 0, "share of lines that are written twice")
	flag.Parse()
	o.Bytes = int64(*size)
	if *start != "" {
		t, err := time.Parse(time.RFC3339, *start)
		if err != nil {
			return fmt.Errorf("gen: start: %w", err)
		}
		o.Start = t.UTC()
	}
	oracle, err := gen.Legion(o).Write(*dir)
	if err != nil {
		return err
	}
	fmt.Println(oracle.Total)
	return nil
}
