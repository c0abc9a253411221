package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/httpd"
)

const usage = `earshot-store serves an embedded ClickHouse over HTTP, on loopback only.

Usage:
  earshot-store --path DIR [flags]

Example:
  earshot-store --path ./earshot-data/store --listen 127.0.0.1:8123
  curl http://127.0.0.1:8123/ -d 'SELECT version()'

Users: default (everything) and reader (reading only), with any password.

Flags:
`

type options struct {
	path, listen, readyFile, lib string
	parentPID, connections       int
	maxMemory                    size
	shutdownTimeout              time.Duration
	watchStdin, version, check   bool
}

func parseFlags(args []string, help io.Writer) (options, error) {
	o := options{}
	fs := flag.NewFlagSet("earshot-store", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.path, "path", "", "data `DIR`; made when it is not there (required)")
	fs.StringVar(&o.listen, "listen", "127.0.0.1:0", "loopback `ADDRESS`; port 0 takes a free one")
	fs.StringVar(&o.readyFile, "ready-file", "", "`FILE` that gets {\"addr\",\"pid\",\"version\"} once requests are answered")
	fs.StringVar(&o.lib, "lib", "", "engine library, `FILE` or folder (default: $EARSHOT_ENGINE_DIR, the cache, beside this program)")
	fs.IntVar(&o.parentPID, "parent-pid", 0, "stop when the process `N`, which must have started this one, ends")
	fs.BoolVar(&o.watchStdin, "watch-stdin", false, "stop when standard input ends")
	fs.IntVar(&o.connections, "connections", 8, "statements at one time; more wait")
	fs.Var(&o.maxMemory, "max-memory", "`SIZE` at which statements are refused, such as 1GiB (default: 90 % of the machine's)")
	fs.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 10*time.Second, "how long running statements may take to end")
	fs.BoolVar(&o.check, "check", false, "find the engine library, and exit")
	fs.BoolVar(&o.version, "version", false, "print the version and exit")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(help, usage)
			fs.SetOutput(help)
			fs.PrintDefaults()
		}
		return o, err
	}
	if o.version || o.check {
		return o, nil
	}
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.path == "":
		return o, errors.New("--path DIR is required (see --help)")
	case !httpd.Loopback(o.listen):
		return o, fmt.Errorf("--listen %s: only loopback addresses are served, because there are no passwords", o.listen)
	case o.connections < 1:
		return o, errors.New("--connections must be at least 1")
	case o.shutdownTimeout < 0:
		return o, errors.New("--shutdown-timeout must not be negative")
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
