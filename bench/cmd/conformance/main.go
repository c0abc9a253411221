// Command conformance runs every bundled decoder, as a process, through the conformance suite
// and prints a table, decoder by check: how many cases passed, failed, and were skipped because
// the check does not apply to them. Then it measures each decoder, in a process of this executable, and compares
// its speed with the committed figure.
//
//	go run ./bench/cmd/conformance [-speed] [-update] bin/earshot plugins bench/decoders.json
//
// -speed leaves out the suite, and -update writes the figures that are beyond their tolerance, or
// of other cases than those in testdata, instead of failing. Another version of Go may have
// another encoding/json, and so needs new figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"

	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/plugins"
)

// measureCommand is the first argument of a process that measures one decoder.
const measureCommand = "measure"

func main() {
	if len(os.Args) == 4 && os.Args[1] == measureCommand {
		if err := measureAndPrint(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	speedOnly := flag.Bool("speed", false, "measure the decoders and leave out the suite")
	update := flag.Bool("update", false, "write the figures that are beyond their tolerance, or of other cases, instead of failing")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: conformance [-speed] [-update] EARSHOT PLUGINS FIGURES")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 3 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if !*speedOnly {
		err = suite(ctx, flag.Arg(0), flag.Arg(1))
	}
	if err = errors.Join(err, speed(ctx, flag.Arg(1), flag.Arg(2), *update)); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// seed is the seed of the suite's random choices.
const seed = 1

func suite(ctx context.Context, earshot, folder string) error {
	checks := conformance.CheckNames()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DECODER\t"+strings.Join(checks, "\t"))
	var broken []conformance.Result
	names := slices.Sorted(maps.Keys(plugins.Bundled()))
	all := make([][]conformance.Result, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		group.Go(func() (err error) {
			all[i], err = conformance.Test(ctx, os.DirFS(filepath.Join(folder, name, "testdata")), seed, nil, earshot, "decoder", name)
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, name := range names {
		count := make(map[string]map[conformance.Status]int)
		for _, r := range all[i] {
			if count[r.Check] == nil {
				count[r.Check] = make(map[conformance.Status]int)
			}
			count[r.Check][r.Status]++
			if r.Status == conformance.Fail {
				broken = append(broken, r)
			}
		}
		row := []string{name}
		for _, check := range checks {
			row = append(row, cell(count[check]))
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println("\nN passed, -N skipped because the check does not apply to so many cases, !N failed")
	if len(broken) > 0 {
		return errors.Join(conformance.Report(os.Stdout, broken, seed), errors.New("a decoder does not conform"))
	}
	return nil
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
