// Command measure fills an embedded store with a number of messages,
// and measures every query of the dashboards on it.
//
//	make bench-queries ROWS=50e6 RUNS=5
//
// The seed goes through the real pipeline: traffic of every bundled kind and of
// the generator, read by a sidecar. The engine then copies its rows, each copy
// with ids of its own and earlier by a share of 30 days, so that the tables have
// the shape, the order and the cardinalities of a month of such traffic. Every table
// is then counted, and a conversation compared with the one that it was copied from.
// Bodies repeat, which flatters their compression; no query but the search reads them.
//
// Beside the wall time it reports the CPU time of the store, which other work on the
// machine does not change.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

type settings struct {
	root, dir, report string
	rows              float64
	runs              int
	only              *regexp.Regexp
	checks, settled   bool
	days              int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var s settings
	flag.StringVar(&s.root, "root", ".", "the repository, with bin/ built")
	flag.StringVar(&s.dir, "dir", "bench/out/queries", "where the store is; one that is there is measured as it is")
	flag.StringVar(&s.report, "report", "", "also write the table to this file, as Markdown")
	flag.Float64Var(&s.rows, "rows", 1e6, "messages in the store")
	flag.IntVar(&s.runs, "runs", 5, "how often each query runs, and over a week a third of that")
	flag.BoolVar(&s.checks, "check", true, "hold the copies against what was copied, which reads every row")
	flag.BoolVar(&s.settled, "settle", true, "compute rollups and facts and merge the days that are over, as a sidecar does in the background")
	flag.IntVar(&s.days, "days", 30, "over how many days the messages are spread")
	only := flag.String("only", "", "panels that match this regular expression")
	windows := flag.String("ranges", "", "only these, by comma: 6h,30d")
	flag.Parse()
	var err error
	if *windows != "" {
		ranges = slices.DeleteFunc(ranges, func(w window) bool { return !slices.Contains(strings.Split(*windows, ","), w.name) })
	}
	if s.only, err = regexp.Compile(*only); err != nil {
		return err
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return err
	}
	if err := s.seed(ctx); err != nil {
		return fmt.Errorf("measure: seed: %w", err)
	}
	db, stop, err := s.start(ctx)
	if err != nil {
		return fmt.Errorf("measure: store: %w", err)
	}
	defer stop()
	n, err := s.fill(ctx, db)
	if err != nil {
		return fmt.Errorf("measure: fill: %w", err)
	}
	if s.settled {
		if err := s.settle(ctx, db); err != nil {
			return fmt.Errorf("measure: settle: %w", err)
		}
	}
	if s.checks {
		if err := s.check(ctx, db, n); err != nil {
			return fmt.Errorf("measure: check: %w", err)
		}
	}
	return s.measure(ctx, db)
}

// spread is the time that the messages are spread over.
func (s *settings) spread() time.Duration { return time.Duration(s.days) * 24 * time.Hour }

func (s *settings) config() string { return filepath.Join(s.dir, "earshot.yaml") }

const (
	copies     = 100 // of the seed
	perSession = 107 // messages, about, in 80 kB with texts of 1,000 bytes at most
)

// seed lets traffic through the sidecar, unless that was done before.
func (s *settings) seed(ctx context.Context) error {
	if _, err := os.Stat(s.config()); err == nil {
		return nil
	}
	if err := s.command(ctx, filepath.Join(s.root, "bin", "earshot"), "demo", "--dir", s.dir); err != nil {
		return err
	}
	// As many sessions, one after the other, as fill up the time between two copies.
	sessions := max(int(s.rows/copies/perSession), 1)
	apart := s.spread() / copies
	begin := time.Now().UTC().Add(-apart).Format(time.RFC3339)
	if err := s.command(ctx, "go", "run", "./bench/cmd/gen", "-dir", filepath.Join(s.dir, "traffic", "legion"), "-start", begin, "-every", (apart / time.Duration(sessions)).String(),
		"-sessions", fmt.Sprint(sessions), "-bytes", fmt.Sprint(sessions*80_000), "-max-content", "1000"); err != nil {
		return err
	}
	return s.command(ctx, filepath.Join(s.root, "bin", "earshot"), "run", "-c", s.config(), "--until-idle", "3s")
}

// settle has the schema of this program, computes the slots and merges the days that are over.
func (s *settings) settle(ctx context.Context, db *database) error {
	began := time.Now()
	if err := s.command(ctx, filepath.Join(s.root, "bin", "earshot"), "schema", "apply", "-c", s.config()); err != nil {
		return err
	}
	for _, sql := range []string{"TRUNCATE TABLE rollup_hours", "SYSTEM START MERGES"} { // copies are stored before the seed
		if err := db.exec(ctx, sql); err != nil {
			return err
		}
	}
	if err := clickhouse.Settle(ctx, clickhouse.ConnSettings{DSN: "http+unix://default@" + url.PathEscape(db.socket) + "/earshot"}); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "settled in %s\n", time.Since(began).Round(time.Second))
	return db.exec(ctx, "SYSTEM STOP MERGES")
}

func (s *settings) command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = s.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), args[0], err, out)
	}
	return nil
}

// start starts the store.
func (s *settings) start(ctx context.Context) (*database, func(), error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.root, "bin", "earshot"), "store", "-c", s.config())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	stop := func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	socket, found := strings.CutPrefix(strings.TrimSpace(line), "unix:")
	if err != nil || !found {
		stop()
		return nil, nil, fmt.Errorf("unexpected output %q: %w", line, cmp.Or(err, errors.New("no address")))
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &database{socket: socket, client: http.Client{Transport: &http.Transport{DialContext: dial}}}, stop, nil
}
