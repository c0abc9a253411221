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

// figures are what one run of a subject took.
type figures struct {
	Wall   time.Duration // from the start of the process until every row is there
	CPU    time.Duration // of all its processes, from start to end
	Peak   int64         // bytes; the highest resident memory of each process, added up
	Engine usage         // of the store
	// Others is the share of the machine that was taken by what is not measured
	// here, while it ran. It is what makes a wall time worthless.
	Others float64
}

// patience is how long a subject may take.
const patience = 15 * time.Minute

// stuck is how long nothing may come.
const stuck = time.Minute

// measure runs a subject on the corpus, from nothing to its end.
func measure(ctx context.Context, e *env, s subject) (f figures, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", s.name, err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	dir, err := os.MkdirTemp("", "earshot-bench-")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	var db *engine
	addr := ""
	if s.stores {
		if db, err = startEngine(ctx, e.bin, dir); err != nil {
			return f, err
		}
		defer func() { f.Engine = db.close() }()
		addr = db.addr
	}
	args, err := s.command(e, dir, addr)
	if err != nil {
		return f, err
	}
	before, ours := busy(), engineCPU(db)
	p, err := start(args)
	if err != nil {
		return f, err
	}
	defer p.kill()
	if s.stores {
		err = p.arrive(ctx, db, s, e.corpus)
	} else {
		err = p.settle(ctx, e.corpus)
	}
	f.Wall = p.last.Sub(p.began)
	spent := busy() - before - p.watch.so().CPU - (engineCPU(db) - ours)
	f.Others = max(spent.Seconds(), 0) / time.Since(p.began).Seconds() / float64(runtime.NumCPU())
	if err == nil {
		f.CPU, f.Peak, err = p.finish(ctx, s.ends)
	}
	if err != nil {
		return f, fmt.Errorf("%w\n%s", err, lastLines(p.log.String()))
	}
	if s.said != nil && !strings.Contains(p.log.String(), s.said(e.corpus)) {
		return f, fmt.Errorf("want %q of\n%s", s.said(e.corpus), lastLines(p.log.String()))
	}
	if !s.stores {
		return f, nil
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

// process is a subject that runs.
type process struct {
	cmd   *exec.Cmd
	watch *watch
	log   bytes.Buffer
	began time.Time
	last  time.Time // when its work was done
	// worked is what it had used by then, where it goes on idling after that.
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

// arrive waits until everything is in the store. To look costs the engine some
// milliseconds, more than many an insert, so it looks less often the longer it takes.
func (p *process) arrive(ctx context.Context, db *engine, s subject, o *corpus) error {
	sql, all := s.arrived(o)
	had, moved := int64(-1), p.began
	for ; ; time.Sleep(max(50*time.Millisecond, time.Since(p.began)/40)) {
		ended := p.ended()
		p.last = time.Now()
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
		case p.last.Sub(moved) > stuck:
			return fmt.Errorf("no more than %d of %d come", n, all)
		case n > all:
			return fmt.Errorf("%d of %d are there", n, all)
		case ended:
			return fmt.Errorf("ended with %d of %d: %v", n, all, p.err)
		}
	}
}

// A collector that has nothing to do looks for files five times a second, which
// takes about a twentieth of a core. Work is what takes more than idle of a core,
// over a window.
const (
	idle   = 0.15
	window = time.Second
)

// settle waits until everything is read and nothing is done any more, and notes
// when that began and what had been used by then: idling is not work.
func (p *process) settle(ctx context.Context, o *corpus) error {
	type sample struct {
		at  time.Time
		cpu time.Duration
	}
	var past []sample
	for ; ; time.Sleep(look) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		now := sample{time.Now(), p.watch.so().CPU}
		p.last = now.at
		if p.ended() {
			return nil
		}
		if hasRead(p.cmd.Process.Pid) < o.size {
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

// hasRead is how many bytes a process has read.
func hasRead(pid int) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	for line := range strings.Lines(string(b)) {
		if n, ok := strings.CutPrefix(line, "rchar: "); ok {
			v, _ := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			return v
		}
	}
	return 0
}

// finish waits for the end of the process, which is told to end unless it does so
// itself.
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
	// What wait tells counts the children that were waited for, to the end.
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
	return db.watch.so().CPU
}
