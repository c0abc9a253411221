package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a running earshot.
type process struct {
	cmd  *exec.Cmd
	out  buffer
	done chan struct{}
	err  error
}

func start(exe string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(exe, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.err = p.cmd.Wait(); close(p.done) }()
	return p, nil
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// interrupt ends the process as Ctrl-C does.
func (p *process) interrupt(within time.Duration) error {
	_ = p.cmd.Process.Signal(os.Interrupt)
	return p.stop(within)
}

// stop waits for the process to end within a time, and kills it otherwise.
func (p *process) stop(within time.Duration) error {
	select {
	case <-p.done:
		return p.err
	case <-time.After(within):
		p.kill()
		return fmt.Errorf("%v does not end in %s:\n%s", p.cmd.Args, within, p.out.tail())
	}
}

// children are the processes below p whose command line has a text.
func (p *process) children(with string) []int {
	var found []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, after, _ := bytes.Cut(b, []byte(") "))
		fields := strings.Fields(string(after))
		if len(fields) < 2 || fields[1] != strconv.Itoa(p.cmd.Process.Pid) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if line, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline")); err == nil && bytes.Contains(line, []byte(with)) {
			found = append(found, pid)
		}
	}
	return found
}

// signal sends a signal to those children, and reports whether there was one.
func (p *process) signal(with string, sig syscall.Signal) bool {
	pids := p.children(with)
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig)
	}
	return len(pids) > 0
}

// resident is the resident memory of p in bytes.
func (p *process) resident() int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[1], 10, 64)
	return n * int64(os.Getpagesize())
}

// refusals is the number of writes that p has logged as refused by a full disk.
func (p *process) refusals() int { return strings.Count(p.out.String(), "file too large") }

// buffer keeps the end of the bytes that are written to it.
type buffer struct {
	mu sync.Mutex
	b  []byte
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b = append(b.b, p...)
	if over := len(b.b) - 64<<10; over > 0 {
		b.b = append(b.b[:0], b.b[over:]...)
	}
	return len(p), nil
}

func (b *buffer) String() string { b.mu.Lock(); defer b.mu.Unlock(); return string(b.b) }

func (b *buffer) tail() string {
	s := b.String()
	return s[max(0, len(s)-4000):]
}

// query runs a query and returns its rows.
func (r *run) query(sql string) ([]string, error) {
	c := exec.Command(r.exe, "query", "-c", r.config, "--format", "TabSeparated", sql)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return nil, errors.Join(err, errors.New(stderr.String()))
	}
	return strings.Split(strings.TrimRight(string(out), "\n"), "\n"), nil
}
