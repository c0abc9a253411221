package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/bench/gen"
	"github.com/earshot-dev/earshot/bench/proc"
)

// The phases in which the cost of an idle sidecar is measured.
const (
	settleFor = 8 * time.Minute // after the start: the first look for changes is over, and the store's engine closed
	silentFor = 3 * time.Minute // after the backlog: its decoder ends after two minutes without a frame
	idleFor   = 60 * time.Second
	beginFor  = 125 * time.Second // of a line a second: the second minute's rows are stored, and the engine is open
	lineFor   = 120 * time.Second // and so on
	backlogOf = 200e6
)

// leftOn is the cost of one build that is left on.
type leftOn struct {
	name       string
	idle, line spending
	pss        map[string]int64 // after the backlog, by program
	arrived    arrivals         // with a reader present
}

// spending is the cost of all processes of a build in a phase.
type spending struct {
	took    time.Duration
	cpu     map[string]time.Duration // by program
	written int64                    // bytes that they made the kernel write
}

func (s spending) share(program string) float64 { return s.cpu[program].Seconds() / s.took.Seconds() }

func (s spending) all() (share float64) {
	for p := range s.cpu {
		share += s.share(p)
	}
	return share
}

func (s spending) perMinute() float64 { return mib(s.written) / s.took.Minutes() }

// leaveOn measures the builds in turn, phase by phase.
func leaveOn(ctx context.Context, o options, e *env) error {
	builds := []string{e.bin}
	if o.vs != "" {
		vs, err := filepath.Abs(o.vs)
		if err != nil {
			return err
		}
		builds = append(builds, vs)
	}
	corpus, err := makeCorpus(e.work, gen.Options{Bytes: backlogOf, Sessions: o.sessions, Seed: o.seed})
	if err != nil {
		return err
	}
	var all []leftOn
	for _, bin := range builds {
		own := *e
		own.bin, own.corpus = bin, corpus
		l, err := own.leftOn(ctx)
		if err != nil {
			return err
		}
		l.name = own.version()
		fmt.Fprintf(os.Stderr, "left on %s  idle %.2f %% %.2f MiB/min   a line a second %.2f %% %.2f MiB/min   PSS %d MiB   p99 %s\n", l.name, 100*l.idle.all(), l.idle.perMinute(),
			100*l.line.all(), l.line.perMinute(), sum(l.pss)>>20, ms(l.arrived.at(0.99)))
		all = append(all, l)
	}
	return e.publish(o, leftOnPage(e, all), map[string]savedFigure{
		"idle_cpu": spread([]float64{100 * all[0].idle.all()}), "line_cpu": spread([]float64{100 * all[0].line.all()}),
		"line_written": spread([]float64{all[0].line.perMinute()}), "pss": spread([]float64{mib(sum(all[0].pss))}),
		"reader_p99": spread([]float64{all[0].arrived.at(0.99).Seconds()}),
	})
}

// leftOn runs one build with its embedded store, from an empty data directory.
func (e *env) leftOn(ctx context.Context) (l leftOn, err error) {
	dir, err := os.MkdirTemp("", "earshot-bench-")
	if err != nil {
		return l, err
	}
	defer os.RemoveAll(dir)
	own := *e
	own.corpus = &corpus{dir: dir}
	w := writer{dir: dir, liveTraffic: liveTraffic{files: 1, rate: 1, lines: int((beginFor + lineFor) / time.Second)}}
	defer w.close()
	if err := w.begin(); err != nil {
		return l, err
	}
	config, err := own.earshotConfig(dir, "")
	if err != nil {
		return l, err
	}
	p, err := start([]string{filepath.Join(e.bin, "earshot"), "run", "-c", config})
	if err != nil {
		return l, err
	}
	defer p.kill()
	p.watch.end() // sampling would be a part of its cost to the machine
	p.watch = nil
	db := &engine{socket: filepath.Join(dir, "data", "store", "http.sock")}
	db.client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", db.socket)
	}}
	if err := until(ctx, p, db, "SELECT count() >= 1 FROM earshot.messages"); err != nil {
		return l, err
	}
	if err := rest(ctx, settleFor); err != nil {
		return l, err
	}
	if l.idle, err = spend(ctx, p, func() error { return rest(ctx, idleFor) }); err != nil {
		return l, err
	}
	written := make(chan struct{})
	go func() { defer close(written); w.run(ctx) }()
	if err := rest(ctx, beginFor); err != nil {
		return l, err
	}
	if l.line, err = spend(ctx, p, func() error { <-written; return ctx.Err() }); err != nil {
		return l, err
	}
	if l.arrived, err = own.watched(ctx, db, &w); err != nil {
		return l, err
	}
	for i, f := range corpusFiles(e.corpus) {
		if err := copyFile(filepath.Join(dir, "sessions", fmt.Sprintf("b%05d", i), "messages.jsonl"), f); err != nil {
			return l, err
		}
	}
	if err := until(ctx, p, db, fmt.Sprintf("SELECT sum(read_bytes) >= %d FROM earshot.source_ledger FINAL WHERE reason = ''", e.corpus.read)); err != nil {
		return l, err
	}
	if err := rest(ctx, silentFor); err != nil {
		return l, err
	}
	l.pss = make(map[string]int64)
	for _, pid := range descendants(p.cmd.Process.Pid) {
		l.pss[program(pid)] += proc.PSS(pid)
	}
	return l, nil
}

// watched is how long a line takes to be seen by a reader that asks about once a second.
func (e *env) watched(ctx context.Context, db *engine, w *writer) (arrivals, error) {
	const rate, lines = 20, 600
	last := writer{dir: w.dir, files: w.files, liveTraffic: liveTraffic{files: 1, rate: rate, lines: lines, prefix: "r"}}
	t := newTally(lines)
	sql := func() string {
		return fmt.Sprintf("SELECT arrayStringConcat(groupArray(substring(content, 2)), ' ') FROM earshot.messages WHERE startsWith(content, 'r') AND toInt64OrDefault(substring(content, 2), toInt64(-1)) >= %d", t.low)
	}
	if _, err := db.query(ctx, sql()); err != nil { // from now on there is a reader
		return nil, err
	}
	go last.run(ctx)
	for ; t.left > 0; pause(ctx) {
		got, err := db.query(ctx, sql())
		now := time.Now()
		if err != nil {
			return nil, err
		}
		if _, err := t.note(got[0], now, last.written); err != nil {
			return nil, err
		}
	}
	return t.arrivals(), nil
}

// until waits for a query to return 1. It asks seldom: a question is work.
func until(ctx context.Context, p *process, db *engine, sql string) error {
	for end := time.Now().Add(subjectTimeout); ; {
		got, err := db.query(ctx, sql)
		if err == nil && got[0] == "1" {
			return nil
		}
		if p.ended() || time.Now().After(end) {
			return fmt.Errorf("%s: %v: %v\n%s", sql, got, err, lastLines(p.log.String()))
		}
		if err := rest(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// spend measures the cost of the processes while f runs.
func spend(ctx context.Context, p *process, f func() error) (s spending, err error) {
	cpu, written := consumed(p)
	began := time.Now()
	if err := f(); err != nil {
		return s, err
	}
	if p.ended() {
		return s, errors.New(lastLines(p.log.String()))
	}
	s.took = time.Since(began)
	after, more := consumed(p)
	s.cpu, s.written = make(map[string]time.Duration), more-written
	for name, d := range after {
		s.cpu[name] = max(d-cpu[name], 0)
	}
	return s, ctx.Err()
}

// consumed is the CPU time so far of the processes, by program, and the bytes that they had written.
func consumed(p *process) (cpu map[string]time.Duration, written int64) {
	cpu = make(map[string]time.Duration)
	for _, pid := range descendants(p.cmd.Process.Pid) {
		d, _ := proc.Of(pid)
		cpu[program(pid)] += d
		written += proc.Written(pid)
	}
	return cpu, written
}

// program is the kind of a process: the sidecar, a decoder or the store.
func program(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := strings.Split(string(b), "\x00")
	switch {
	case filepath.Base(args[0]) == "earshot-store":
		return "store"
	case len(args) > 1 && args[1] == "run":
		return "sidecar"
	}
	return "decoders"
}

func corpusFiles(c *corpus) []string {
	files, _ := filepath.Glob(filepath.Join(c.dir, "sessions/*/messages.jsonl"))
	return files
}

func copyFile(to, from string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}

func sum(of map[string]int64) (n int64) {
	for _, v := range of {
		n += v
	}
	return n
}

func leftOnPage(e *env, all []leftOn) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What it costs to leave it on\n\nWritten by `go run ./bench/cmd/bench -idle`, with `-vs DIR` for the executables of another build: the embedded store, default settings, one file of\n"+
		"Legion traffic. %s after the start nothing happens for %s; then a line is written each second, and %s after the first, the next %s are measured. There is no reader\n"+
		"meanwhile. CPU is the share of one core of all processes, from /proc; written are the bytes that they made the kernel write to the disk. Then a reader asks about once a second while 20 lines a second\n"+
		"are written: from append to visible. Then a backlog of %s is read, and %s later the memory of all is added up (PSS).\n\nMachine: %s.\n\n",
		settleFor, idleFor, beginFor, lineFor, mb(backlogOf), silentFor, machine())
	b.WriteString("| build | idle: CPU | written a minute | a line a second: CPU | of it sidecar, decoders, store | written a minute | with a reader: p50 | p99 | PSS after a backlog | of it sidecar, decoders, store |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, l := range all {
		fmt.Fprintf(&b, "| %s | %.2f %% | %.2f MiB | %.2f %% | %.2f, %.2f, %.2f %% | %.2f MiB | %s | %s | %.0f MiB | %s MiB |\n", l.name, 100*l.idle.all(), l.idle.perMinute(), 100*l.line.all(),
			100*l.line.share("sidecar"), 100*l.line.share("decoders"), 100*l.line.share("store"), l.line.perMinute(), ms(l.arrived.at(0.5)), ms(l.arrived.at(0.99)), mib(sum(l.pss)),
			strings.Join([]string{strconv.FormatInt(l.pss["sidecar"]>>20, 10), strconv.FormatInt(l.pss["decoders"]>>20, 10), strconv.FormatInt(l.pss["store"]>>20, 10)}, ", "))
	}
	b.WriteString("\nGoals: idle 0.3 % and nothing written; a line a second 1.5 % and 1 MiB; p99 300 ms; PSS 200 MiB.\n")
	return b.String()
}
