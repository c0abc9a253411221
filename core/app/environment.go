package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

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
			if e := unix.Access(dir, unix.W_OK|unix.X_OK); e != nil {
				err = fmt.Errorf("%s cannot be written: %w", dir, e)
			}
		}
		break
	}
	if err != nil {
		problems = append(problems, fmt.Sprintf("data_dir: %v", err))
	}
	if c.Exporters.ClickHouse == nil {
		if err := store.Check(ctx, c.Store.Binary); err != nil {
			problems = append(problems, fmt.Sprintf("store: %v", err))
		}
	}
	if state, err := ReadState(c); err == nil && state.Running {
		return problems
	}
	for _, a := range addresses(c) {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", a.address)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", a.key, err))
			continue
		}
		_ = l.Close()
	}
	return problems
}

type address struct{ key, address string }

// addresses are those that a run listens on and that the file names.
func addresses(c *config.Config) (list []address) {
	for i := range c.Sources {
		key := "sources[" + strconv.Itoa(i) + "].listen"
		switch s := &c.Sources[i]; {
		case s.Tap != nil:
			list = append(list, address{key, s.Tap.Listen})
		case s.HTTP != nil:
			list = append(list, address{key, s.HTTP.Listen})
		}
	}
	if c.Telemetry.Listen != "" && c.Given("telemetry.listen") {
		list = append(list, address{"telemetry.listen", c.Telemetry.Listen})
	}
	if c.Exporters.ClickHouse == nil && c.Given("store.listen") {
		list = append(list, address{"store.listen", c.Store.Listen})
	}
	return list
}
