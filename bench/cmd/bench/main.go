// Command bench runs Earshot and an OpenTelemetry Collector side by side: the same generated
// traffic, a new and empty engine of the same kind for each, in turn and several times. It
// reports ratios within a run, with their spread; seconds depend on the machine.
//
//	go run ./bench/cmd/bench                      500 MB, three runs, all subjects
//	go run ./bench/cmd/bench -bytes 50e6 -runs 1  a short look
//	go run ./bench/cmd/bench -scale               Earshot alone, as its input grows, and its latency
//	go run ./bench/cmd/bench -backlog 10e9        a hundredth, a tenth and all of 10 GB, one after the other; takes 15 GB of disk
//	go run ./bench/cmd/bench -stages              the Go benchmarks of the parts, as one table
//	go run ./bench/cmd/bench -idle                the cost of Earshot that is left on, beside another build with -vs
//	go run ./bench/cmd/bench -held 50000          the memory of that many silent sessions; takes six minutes
//	go run ./bench/cmd/bench discard CONFIG       a sidecar of that configuration that stores nothing, to be profiled
//	go run ./bench/cmd/bench -goals               the goals beside the last figures of the other modes
//
// The collector is built from bench/peer, once, which takes minutes. The rows are counted, and
// their contents summed, and compared with the generator's account.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/earshot-dev/earshot/bench/gen"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

type options struct {
	size     float64
	sessions int
	runs     int
	seed     uint64
	bin      string
	work     string
	report   string
	only     string
	config   string
	scale    bool
	backlog  float64
	stages   bool
	goals    bool
	idle     bool
	held     int
	judged   int
	profile  string
	vs       string
	limit    time.Duration
}

func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "discard" {
		return discard(ctx, args[1])
	}
	if len(args) == 2 && args[0] == "decoder" {
		decode(args[1])
		return nil
	}
	var o options
	fs := flag.NewFlagSet("bench", flag.ExitOnError)
	fs.Float64Var(&o.size, "bytes", 500e6, "size of the traffic, about")
	fs.IntVar(&o.sessions, "sessions", 100, "sessions, each a file")
	fs.IntVar(&o.runs, "runs", 3, "how often each is run")
	fs.Uint64Var(&o.seed, "seed", 1, "the same seed generates the same traffic")
	fs.StringVar(&o.bin, "bin", "bin", "where earshot and earshot-store are")
	fs.StringVar(&o.work, "work", "bench/out", "where traffic and the peer are kept")
	fs.StringVar(&o.report, "report", "", "write the report there too; with -scale a picture beside it")
	fs.StringVar(&o.only, "only", "", "subjects to run, with commas between; with -scale of growth, files, latency and streams, for a look without a report; empty: all")
	fs.StringVar(&o.config, "config", "", "lines to add to Earshot's configuration, for experiments; the report lists them")
	fs.BoolVar(&o.scale, "scale", false, "measure Earshot alone: with more input, in more files, and from append to queryable")
	fs.Float64Var(&o.backlog, "backlog", 0, "measure Earshot alone with so many bytes, and a tenth and a hundredth of them")
	fs.BoolVar(&o.stages, "stages", false, "run the benchmarks of the parts")
	fs.BoolVar(&o.goals, "goals", false, "write the measured figures beside the goals")
	fs.BoolVar(&o.idle, "idle", false, "measure Earshot and its store without a reader: idle, and at a line a second; takes eighteen minutes a build")
	fs.IntVar(&o.held, "held", 0, "measure the memory that Earshot holds of so many silent sessions")
	fs.IntVar(&o.judged, "judged", 0, "measure the share of verdicts in the CPU of the sidecar, with so many sessions at work; needs the go command")
	fs.StringVar(&o.profile, "profile", "", "with -held: leave profiles of the sidecar's heap in that directory")
	fs.StringVar(&o.vs, "vs", "", "with -idle: where earshot and earshot-store of another build are, to be measured as well")
	fs.DurationVar(&o.limit, "limit", 7*time.Minute, "begin no further round of runs when it would end later; there is always one")
	_ = fs.Parse(args)
	if fs.NArg() > 0 || o.runs < 1 || o.size < 1 || o.sessions < 1 {
		return errors.New("see -help")
	}
	e, err := newEnv(o)
	if err != nil {
		return err
	}
	switch {
	case o.scale:
		return scale(ctx, o, e)
	case o.backlog > 0:
		return backlog(ctx, o, e)
	case o.stages:
		return stages(ctx, o, e)
	case o.held > 0:
		return held(ctx, o.held, o.profile, e)
	case o.judged > 0:
		return judged(ctx, o.judged, e)
	case o.idle:
		return leaveOn(ctx, o, e)
	case o.goals:
		return goals(o, e)
	}
	return compare(ctx, o, e)
}

func newEnv(o options) (*env, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"earshot", "earshot-store"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return nil, fmt.Errorf("%w: type make build first", err)
		}
	}
	work, err := filepath.Abs(o.work)
	if err != nil {
		return nil, err
	}
	return &env{bin: bin, self: self, peer: filepath.Join(work, "peer"), work: work, config: configLines(o.config)}, os.MkdirAll(work, 0o755)
}

func configLines(s string) string {
	if s == "" {
		return ""
	}
	return s + "\n"
}

// compare runs the subjects in turn.
func compare(ctx context.Context, o options, e *env) error {
	chosen := slices.DeleteFunc(subjects(), func(s subject) bool {
		return o.only != "" && !slices.Contains(strings.Split(o.only, ","), s.name)
	})
	if len(chosen) == 0 {
		return fmt.Errorf("-only %s: no such subject", o.only)
	}
	if slices.ContainsFunc(chosen, func(s subject) bool { return strings.HasPrefix(s.name, "collector") }) {
		if err := e.buildPeer(ctx); err != nil {
			return err
		}
	}
	var err error
	e.corpus, err = makeCorpus(e.work, gen.Options{Bytes: int64(o.size), Sessions: o.sessions, Seed: o.seed})
	if err != nil {
		return err
	}
	all := make([]series, len(chosen))
	for i, s := range chosen {
		all[i].subject = s
	}
	began := time.Now()
	for n := range o.runs {
		if spent := time.Since(began); n > 0 && spent+spent/time.Duration(n) > o.limit {
			o.runs = n
			break
		}
		for i := range all {
			f, err := measure(ctx, e, all[i].subject)
			if err != nil {
				return err
			}
			all[i].runs = append(all[i].runs, f)
			fmt.Fprintf(os.Stderr, "run %d %-18s cpu %6.2fs wall %6.2fs peak %5d MiB   engine %6.2fs %5d MiB   others %2.0f %%\n",
				n+1, all[i].name, f.CPU.Seconds(), f.Wall.Seconds(), f.Peak>>20, f.Engine.CPU.Seconds(), f.Engine.Peak>>20, 100*f.Others)
		}
	}
	return e.publish(o, report(e, o, all), compared(e, all))
}

// buildPeer builds the collector unless it was built before.
func (e *env) buildPeer(ctx context.Context) error {
	if _, err := os.Stat(e.peer); err == nil {
		return nil
	}
	fmt.Fprintln(os.Stderr, "building the peer, once; this takes minutes")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", e.peer, ".")
	cmd.Dir = "bench/peer"
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build peer: %w\n%s", err, out)
	}
	return nil
}
