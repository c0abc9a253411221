// Command fetch puts the engine library of this platform into the cache and
// prints its path. `make engine` runs it.
//
// It asks npm for the pinned package, checks the archive against the pinned
// integrity, and unpacks the one file that is needed. Everything happens in a
// folder beside the final one and is renamed into place, so the cache holds a
// whole library or none. A lock file makes concurrent runs wait for the first;
// a run that finds the library touches neither the lock nor the network.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	rel, err := release.Current()
	if err != nil {
		return err
	}
	if err := refuseMusl(os.Stat); err != nil {
		return err
	}
	dir, err := rel.Dir(os.Getenv)
	if err != nil {
		return err
	}
	path, err := fetch(ctx, npmPack, rel, dir)
	if err != nil {
		return err
	}
	fmt.Println(path)
	return nil
}
