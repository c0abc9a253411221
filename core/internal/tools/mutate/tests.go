package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// binary is the compiled tests of a package.
type binary struct {
	path, dir string
	args      []string
}

// test is one test of a binary.
type test struct {
	of      *binary
	name    string
	cost    time.Duration // of the processors, or the time that passes if that is more, as in one that drives another process
	reaches []byte        // 1 for each change that it reaches
}

// suite is all tests that may notice a change.
type suite struct {
	work  string
	tests []*test       // the cheapest first
	most  time.Duration // cost limit of the tests of a change; 0: none
}

// built compiles the tests of the packages, with the switches in the code.
func built(module, work, overlay string, patterns, args []string) (list []*binary, err error) {
	for i, pattern := range patterns {
		b := &binary{path: filepath.Join(work, fmt.Sprintf("%d.test", i)), args: args}
		dir := exec.Command("go", "list", "-f", "{{.Dir}}", pattern)
		dir.Dir = module
		out, err := dir.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pattern, err)
		}
		b.dir = strings.TrimSpace(string(out))
		build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", b.path, pattern)
		build.Dir = module
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", pattern, err, out)
		}
		list = append(list, b)
	}
	return list, nil
}

// memory is how much a process may map, in KiB: a loop that does not end takes all otherwise.
const memory = 16 << 20

// result is how a process of tests ended.
type result struct {
	failed, late bool
	out          string
	cost, wall   time.Duration
}

// run runs the tests whose names match, with a setting in their environment. The limit is of processor time, and four times as much may pass.
func (b *binary) run(match, setting string, limit time.Duration) (r result, err error) {
	wall := 30*time.Second + 4*limit
	ctx, cancel := context.WithTimeout(context.Background(), wall)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{
		"-c", `ulimit -t "$1" && ulimit -S -v "$2" && shift 2 && exec "$@"`, "sh", strconv.Itoa(1 + int(limit/time.Second)), strconv.Itoa(memory),
		b.path, "-test.paniconexit0", "-test.failfast", "-test.count=1", "-test.run", match,
	}, b.args...)...)
	cmd.Dir, cmd.Env = b.dir, append(os.Environ(), setting)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	began := time.Now()
	out, err := cmd.CombinedOutput()
	r.out, r.wall = string(out), time.Since(began)
	if cmd.ProcessState == nil {
		return r, err
	}
	r.cost = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		return r, err
	}
	r.late = ctx.Err() != nil || r.cost > limit
	r.failed = err != nil
	return r, nil
}

// learn runs every test alone, without a change, to see its cost and the changes that it reaches.
func (s *suite) learn(b *binary, only string, skip *regexp.Regexp, changes int) error {
	list := exec.Command(b.path, "-test.list", only)
	list.Dir = b.dir
	out, err := list.Output()
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(name, "Benchmark") || skip != nil && skip.MatchString(name) {
			continue
		}
		path := filepath.Join(s.work, "reached")
		if err := os.WriteFile(path, make([]byte, changes), 0o600); err != nil {
			return err
		}
		r, err := b.run("^"+name+"$", "MUTANT_REACHED="+path, 10*time.Minute)
		if err != nil {
			return err
		}
		if r.failed {
			return fmt.Errorf("%s fails without a change:\n%s", name, r.out)
		}
		t := &test{of: b, name: name, cost: max(r.cost, r.wall)}
		if t.reaches, err = os.ReadFile(path); err != nil {
			return err
		}
		s.tests = append(s.tests, t)
	}
	slices.SortStableFunc(s.tests, func(a, b *test) int { return cmp.Compare(a.cost, b.cost) })
	return nil
}

// within returns the first tests that cost no more than that together, or the first one; all if most is 0.
func within(list []*test, most time.Duration) []*test {
	var cost time.Duration
	for i, t := range list {
		if cost += t.cost; most > 0 && cost > most && i > 0 {
			return list[:i]
		}
	}
	return list
}

// outcome is the result of trying a change.
type outcome struct {
	reached, noticed, late bool
}

// try runs the tests that reach a change, the cheap ones in one process and then ever more, until one fails.
func (s *suite) try(n int) (o outcome, err error) {
	var reach []*test
	for _, t := range s.tests {
		if t.reaches[n] != 0 {
			reach = append(reach, t)
		}
	}
	o.reached = len(reach) > 0
	reach = within(reach, s.most)
	for budget := 250 * time.Millisecond; len(reach) > 0; budget *= 4 {
		var names []string
		var cost time.Duration
		of := reach[0].of
		for len(reach) > 0 && reach[0].of == of && (len(names) == 0 || cost+reach[0].cost <= budget) {
			names, cost = append(names, reach[0].name), cost+reach[0].cost
			reach = reach[1:]
		}
		r, err := of.run("^("+strings.Join(names, "|")+")$", "MUTANT="+strconv.Itoa(n), 10*time.Second+5*cost)
		if err != nil || r.failed {
			o.noticed, o.late = r.failed, r.late
			return o, err
		}
	}
	return o, nil
}
