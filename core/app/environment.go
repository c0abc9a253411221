package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/internal/store"
)

// Environment reports why a run with this configuration could not start here, a sentence
// each: a data directory that cannot be written, an engine that is absent, addresses that
// are taken. A sidecar that runs on the data directory has taken its own.
func Environment(ctx context.Context, c *config.Config) (problems []string) {
	dir, err := filepath.Abs(c.DataDir)
	for err == nil {
		info, e := os.Stat(dir)
		if errors.Is(e, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
			continue
		}
		switch {
		case e != nil:
			err = e
		case !info.IsDir():
			err = fmt.Errorf("%s is not a directory", dir)
		default:
			if e := mayWrite(dir); e != nil {
				err = fmt.Errorf("%s cannot be written: %w", dir, e)
			}
		}
		break
	}
	if err != nil {
		problems = append(problems, fmt.Sprintf("data_dir: %v", err))
	}
	if c.Embedded() {
		if err := store.Check(ctx, StoreSettings(c, nil)); err != nil {
			problems = append(problems, fmt.Sprintf("store: %v", err))
		}
	}
	if state, err := ReadState(c); err == nil && state.Running {
		return problems
	}
	for _, a := range c.Listeners() {
		if a.Address == "" || a.Key == "telemetry.listen" && !c.IsSet(a.Key) { // that default has a substitute where it is taken
			continue
		}
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", a.Address)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", a.Key, err))
			continue
		}
		_ = l.Close()
	}
	return problems
}
