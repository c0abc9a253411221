// Command chaos runs bench/chaos and exits with status 1 when a row was lost or duplicated, or
// a fault never fired.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/earshot-dev/earshot/bench/chaos"
)

func main() {
	o := chaos.Options{Log: io.Discard}
	flag.StringVar(&o.Bin, "bin", "bin", "directory of earshot and earshot-store")
	flag.Uint64Var(&o.Seed, "seed", 1, "seed of the faults and their order")
	flag.DurationVar(&o.Duration, "duration", 90*time.Second, "of each of the two runs: with the store, and with the store away for the first half")
	every := flag.Int("every", 1, "of the sweep, try every n-th hit of a point; 0 leaves it out")
	verbose := flag.Bool("v", false, "log each fault")
	keep := flag.Bool("keep", false, "keep the data of a run that fails")
	flag.Parse()
	if *verbose {
		o.Log = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	failed := false
	for _, away := range []bool{false, true} {
		o.Away = away
		if err := one(ctx, o, *keep); err != nil {
			fmt.Fprintln(os.Stderr, "chaos:", err)
			failed = true
		}
		o.Seed++
	}
	if *every > 0 {
		if err := sweep(ctx, o, *every); err != nil {
			fmt.Fprintln(os.Stderr, "chaos:", err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

func one(ctx context.Context, o chaos.Options, keep bool) error {
	dir, err := os.MkdirTemp("", "earshot-chaos-")
	if err != nil {
		return err
	}
	o.Dir = dir
	r, err := chaos.Run(ctx, o)
	if err == nil {
		fmt.Println(r)
		err = r.Err()
	}
	if err != nil && keep {
		return fmt.Errorf("%w\nthe data is in %s", err, dir)
	}
	_ = os.RemoveAll(dir)
	return err
}

func sweep(ctx context.Context, o chaos.Options, every int) error {
	dir, err := os.MkdirTemp("", "earshot-sweep-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r, err := chaos.Sweep(ctx, chaos.SweepOptions{Bin: o.Bin, Dir: dir, Every: every, Log: o.Log})
	if err != nil {
		return err
	}
	fmt.Println(r)
	return r.Err()
}
