package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// figures are the costs of one run of a subject.
type figures struct {
	Wall   time.Duration // from the start of the process until every row is there
	CPU    time.Duration // of all its processes, from start to end
	Peak   int64         // bytes; the highest resident memory of each process, added up
	Engine usage         // of the store, until it rests; without what the checks of the rows take
	// Others is the share of the machine that unmeasured processes took meanwhile. A large one
	// makes the wall time worthless.
	Others float64
}

// subjectTimeout limits the run of a subject.
const subjectTimeout = 15 * time.Minute

// stallTimeout limits the time without a new row.
const stallTimeout = time.Minute

// measure runs a subject on the corpus, from nothing to its end.
func measure(ctx context.Context, e *env, s subject) (f figures, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", s.name, err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, subjectTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "earshot-bench-")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	var db *engine
	if s.needsEngine {
		if db, err = startEngine(ctx, e.bin, dir); err != nil {
			return f, err
		}
		defer db.close()
	}
	args, err := s.command(e, dir, db)
	if err != nil {
		return f, err
	}
	before, ours := busy(), engineCPU(db)
	p, err := start(args)
	if err != nil {
		return f, err
	}
	defer p.kill()
	if s.needsEngine {
		err = p.waitRows(ctx, db, s, e.corpus)
	} else {
		err = p.waitIdle(ctx, e.corpus)
	}
	f.Wall = p.last.Sub(p.began)
	spent := busy() - before - p.watch.current().CPU - (engineCPU(db) - ours)
	f.Others = max(spent.Seconds(), 0) / time.Since(p.began).Seconds() / float64(runtime.NumCPU())
	if err == nil {
		f.CPU, f.Peak, err = p.finish(ctx, s.exits)
	}
	if err != nil {
		return f, fmt.Errorf("%w\n%s", err, lastLines(p.log.String()))
	}
	if s.output != nil && !strings.Contains(p.log.String(), s.output(e.corpus)) {
		return f, fmt.Errorf("want %q of\n%s", s.output(e.corpus), lastLines(p.log.String()))
	}
	if !s.needsEngine {
		return f, nil
	}
	if f.Engine, err = db.rests(ctx); err != nil {
		return f, err
	}
	for _, c := range s.checks(e.corpus) {
		got, err := db.query(ctx, c[0])
		if err != nil {
			return f, err
		}
		if row := strings.Join(got, "\t"); row != c[1] {
			return f, fmt.Errorf("%s: got %q, want %q", c[0], row, c[1])
		}
	}
	return f, nil
}

// process is a running subject.
type process struct {
	cmd   *exec.Cmd
	watch *watch
	log   bytes.Buffer
	began time.Time
	last  time.Time // when its work was done
	// worked is its CPU time by then, if it idles afterwards.
	worked time.Duration
	done   chan struct{}
	err    error
}

func start(args []string) (*process, error) {
	p := &process{cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{}), began: time.Now()}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.watch = watchProcess(p.cmd.Process.Pid)
	go func() { p.err = p.cmd.Wait(); close(p.done) }()
	return p, nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// waitRows waits until everything is in the store. A query costs the engine some milliseconds, more
// than many an insert: there is none before the subject has read everything, and then the interval grows with the time.
func (p *process) waitRows(ctx context.Context, db *engine, s subject, o *corpus) error {
	sql, all := s.arrived(o)
	had, was, moved := int64(-1), int64(-1), p.began
	for ; ; time.Sleep(max(50*time.Millisecond, time.Since(p.began)/40)) {
		ended := p.ended()
		p.last = time.Now()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if read := bytesRead(p.cmd.Process.Pid); !ended && read < o.size {
			if read != was {
				was, moved = read, p.last
			}
			if p.last.Sub(moved) > stallTimeout {
				return fmt.Errorf("no more than %d of %d bytes are read", read, o.size)
			}
			continue
		}
		got, err := db.query(ctx, sql)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n := int64(0)
		if err == nil { // the tables may not be there yet
			n, _ = strconv.ParseInt(got[0], 10, 64)
		}
		if n != had {
			had, moved = n, p.last
		}
		switch {
		case n == all:
			return nil
		case p.last.Sub(moved) > stallTimeout:
			return fmt.Errorf("no more than %d of %d arrive", n, all)
		case n > all:
			return fmt.Errorf("%d of %d are there", n, all)
		case ended:
			return fmt.Errorf("ended with %d of %d: %v", n, all, p.err)
		}
	}
}

// rests waits until the engine is idle, its merges included, and returns what it took until then.
func (e *engine) rests(ctx context.Context) (usage, error) {
	for before := e.watch.current(); ; {
		select {
		case <-ctx.Done():
			return before, ctx.Err()
		case <-time.After(window):
		}
		now := e.watch.current()
		if (now.CPU - before.CPU).Seconds() < idle*window.Seconds() {
			return before, nil
		}
		before = now
	}
}

// An idle collector looks for files five times a second, which takes about a twentieth of a
// core. A process works when it takes more than idle of a core, over a window.
const (
	idle   = 0.15
	window = time.Second
)

// waitIdle waits until the process has read everything and is idle, and records when that began
// and the CPU time until then: idling is not work.
func (p *process) waitIdle(ctx context.Context, o *corpus) error {
	type sample struct {
		at  time.Time
		cpu time.Duration
	}
	var past []sample
	for ; ; time.Sleep(sampleEvery) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		now := sample{time.Now(), p.watch.current().CPU}
		p.last = now.at
		if p.ended() {
			return nil
		}
		if bytesRead(p.cmd.Process.Pid) < o.size {
			past = past[:0]
			continue
		}
		past = append(past, now)
		for len(past) > 1 && now.at.Sub(past[1].at) >= window {
			past = past[1:]
		}
		first := past[0]
		if took := now.at.Sub(first.at); took >= window && (now.cpu-first.cpu).Seconds() < idle*took.Seconds() {
			p.last, p.worked = first.at, first.cpu
			return nil
		}
	}
}

// bytesRead is the number of bytes that a process has read.
func bytesRead(pid int) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	for line := range strings.Lines(string(b)) {
		if n, ok := strings.CutPrefix(line, "rchar: "); ok {
			v, _ := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			return v
		}
	}
	return 0
}

// finish waits for the end of the process, and terminates it unless it exits by itself.
func (p *process) finish(ctx context.Context, byItself bool) (time.Duration, int64, error) {
	if !byItself {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	u := p.watch.end()
	p.watch = nil
	var exit *exec.ExitError
	if p.err != nil && !(errors.As(p.err, &exit) && !byItself) {
		return 0, 0, p.err
	}
	if p.worked > 0 {
		return p.worked, u.Peak, nil
	}
	// The times of wait include the children that were waited for, to the end.
	st := p.cmd.ProcessState
	return max(st.UserTime()+st.SystemTime(), u.CPU), u.Peak, nil
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
	if p.watch != nil {
		p.watch.end()
	}
}

func lastLines(s string) string { return s[max(len(s)-2000, 0):] }

func engineCPU(db *engine) time.Duration {
	if db == nil {
		return 0
	}
	return db.watch.current().CPU
}
