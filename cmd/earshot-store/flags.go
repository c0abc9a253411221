package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const usage = `earshot-store serves an embedded ClickHouse over HTTP, on a Unix socket only.

Usage:
  earshot-store --path DIR [flags]

Example:
  earshot-store --path ./earshot-data/store
  curl --unix-socket ./earshot-data/store/http.sock http://store/ -d 'SELECT version()'

Users: default (reads and writes) and reader (reads), with any password: the socket is
its owner's alone. No statement of either reaches a file, a network or a program.

Flags:
`

type options struct {
	path, socket, readyFile, engine string
	parentPID, connections          int
	maxMemory                       size
	shutdownTimeout, wait, standby  time.Duration
	watchStdin, version             bool
	check, fetch                    bool
}

func parseFlags(args []string, help io.Writer) (options, error) {
	o := options{}
	fs := flag.NewFlagSet("earshot-store", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.path, "path", "", "data `DIR`; made when it is not there (required)")
	fs.StringVar(&o.socket, "socket", "", "Unix socket `FILE` (default: http.sock in the data directory)")
	fs.StringVar(&o.readyFile, "ready-file", "", "`FILE` that gets {\"socket\",\"pid\",\"version\"} once requests are answered")
	fs.StringVar(&o.engine, "engine", "", "engine library, `FILE` or its folder, or a clickhouse executable (default: the library in $EARSHOT_ENGINE_DIR, the cache, beside this program)")
	fs.IntVar(&o.parentPID, "parent-pid", 0, "stop when the process `N`, which must have started this one, ends")
	fs.BoolVar(&o.watchStdin, "watch-stdin", false, "stop when standard input ends")
	fs.IntVar(&o.connections, "connections", 8, "statements at one time; more wait")
	fs.Var(&o.maxMemory, "max-memory", "`SIZE` at which statements are refused, such as 1GiB (default: 90 % of the machine's)")
	fs.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 10*time.Second, "how long running statements may take to end")
	fs.DurationVar(&o.wait, "wait", 0, "how long to wait for another store to leave the data folder")
	fs.DurationVar(&o.standby, "standby", 0, "close the engine after so long without a statement, or 75 seconds behind rows, until the next one (default: never)")
	fs.BoolVar(&o.check, "check", false, "find the engine library, and exit")
	fs.BoolVar(&o.fetch, "fetch", false, "fetch the engine library where there is none, and exit")
	fs.BoolVar(&o.version, "version", false, "print the version and exit")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(help, usage)
			fs.SetOutput(help)
			fs.PrintDefaults()
		}
		return o, err
	}
	if o.version || o.check || o.fetch {
		return o, nil
	}
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.path == "":
		return o, errors.New("--path DIR is required (see --help)")
	case o.connections < 1:
		return o, errors.New("--connections must be at least 1")
	case o.wait < 0:
		return o, errors.New("--wait must not be negative")
	case o.standby < 0:
		return o, errors.New("--standby must not be negative")
	case o.shutdownTimeout < 0:
		return o, errors.New("--shutdown-timeout must not be negative")
	}
	if o.socket == "" {
		o.socket = filepath.Join(o.path, "http.sock")
	}
	return o, nil
}

// size is a number of bytes, written with its unit: 512MiB, 1GB, 4096.
type size uint64

var units = []struct {
	suffix string
	factor float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

func (s *size) String() string {
	if s == nil || *s == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(*s), 10)
}

func (s *size) Set(text string) error {
	number, factor := strings.TrimSpace(text), 1.0
	for _, u := range units {
		if n, ok := strings.CutSuffix(number, u.suffix); ok {
			number, factor = strings.TrimSpace(n), u.factor
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v*factor >= 1 && v*factor < math.MaxInt64) { // this way round NaN fails too
		return fmt.Errorf("%q is not a size such as 512MiB", text)
	}
	*s = size(v * factor)
	return nil
}
