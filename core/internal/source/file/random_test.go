package file

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "of the random tests; 0: some fixed ones")
	stepsFlag = flag.Int("steps", 150, "of a random test")
)

// logger is a process that writes a log, and its logrotate.
type logger struct {
	*env
	r       *rand.Rand
	name    string
	f       *os.File
	rest    []byte // of the line that is being written
	written []string
	rotated int
}

func (w *logger) open() {
	f, err := os.OpenFile(w.path(w.name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	w.must(err)
	w.f = f
}

// append writes a part of a line, or many lines.
func (w *logger) append(all bool) {
	n := 1 + w.r.IntN(600)
	for len(w.rest) < n {
		size := w.r.IntN(200)
		if w.r.IntN(40) == 0 {
			size = w.r.IntN(3 * minRead)
		}
		line := fmt.Sprintf("%s %d %s", w.name, len(w.written), strings.Repeat("~", size))
		w.written = append(w.written, line)
		w.rest = append(w.rest, line...)
		w.rest = append(w.rest, []string{"\n", "\r\n", "\n\n"}[w.r.IntN(3)]...)
	}
	if all {
		n = len(w.rest)
	}
	_, err := w.f.Write(w.rest[:n])
	w.must(err)
	w.rest = append(w.rest[:0], w.rest[n:]...)
}

func (w *logger) numbered(i int, suffix string) string {
	return fmt.Sprintf("%s.%d%s", w.name, i, suffix)
}

func (w *logger) exists(name string) bool {
	_, err := os.Stat(w.path(name))
	return err == nil
}

// note logs a step, for a test that fails.
func (w *logger) note(what, name string) {
	if info, err := os.Stat(w.path(name)); err == nil {
		id, at, _ := describe(info)
		w.Logf("%s %s %x %d", what, name, id.ino, at.size)
	}
}

// shift makes room for a new .1.
func (w *logger) shift() {
	w.rotated++
	for i := w.rotated; i > 0; i-- {
		for _, suffix := range []string{"", ".gz"} {
			if w.exists(w.numbered(i, suffix)) {
				w.note("shift", w.numbered(i, suffix))
				w.rename(w.numbered(i, suffix), w.numbered(i+1, suffix))
			}
		}
	}
}

// rotate rotates by one method or the other.
func (w *logger) rotate() {
	switch w.r.IntN(3) {
	case 0: // rename and create; the writer notices late
		w.shift()
		w.note("rename", w.name)
		w.rename(w.name, w.numbered(1, ""))
		w.append(true)
		w.must(w.f.Close())
		w.open()
	case 1: // copy and truncate, between two lines
		w.append(true)
		w.shift()
		w.copy(w.name, w.numbered(1, ""))
		w.note("copy", w.numbered(1, ""))
		if w.r.IntN(2) == 0 {
			runtime.Gosched()
		}
		w.must(os.Truncate(w.path(w.name), 0))
		w.note("truncate", w.name)
	case 2: // compress one
		var names []string
		for i := range w.rotated {
			if n := w.numbered(i+1, ""); w.exists(n) {
				names = append(names, n)
			}
		}
		if len(names) > 0 {
			n := names[w.r.IntN(len(names))]
			w.note("gzip", n)
			w.gzip(n, n+".gz")
			w.note("gzipped", n+".gz")
		}
	}
}

// TestRandom has several processes write logs in pieces of random sizes, which are
// rotated in random ways, and a reader that is killed at random and started again
// with an old checkpoint. Nothing may be missed, and no position may hold two things.
// Where the reader is not killed, no line is delivered twice.
func TestRandom(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4, 5, 6, 7, 8}
	if *seedFlag != 0 {
		seeds = []uint64{*seedFlag}
	}
	for _, seed := range seeds {
		for _, kill := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed %d kill %v", seed, kill), func(t *testing.T) {
				t.Parallel()
				testRandom(t, seed, kill)
			})
		}
	}
}

func testRandom(t *testing.T, seed uint64, kill bool) {
	r := rand.New(rand.NewPCG(seed, 0))
	e := newEnv(t, "**/*.jsonl*")
	e.settings.MaxRead = minRead
	e.settings.MaxOpen = []int{2, 100}[r.IntN(2)]
	e.settings.PollInterval = 20 * time.Millisecond
	e.settings.PollOnly = r.IntN(3) == 0
	l := newLedger(t)
	var stop func()
	start := func() {
		src, err := New(e.settings)
		e.must(err)
		src.completeAfter = 200 * time.Millisecond
		e.src = src
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- src.Run(ctx, l) }()
		stop = func() {
			cancel()
			e.must(<-done)
		}
	}
	start()
	defer func() {
		if t.Failed() {
			e.list()
		}
		stop()
	}()

	var loggers []*logger
	for i := range 3 {
		w := &logger{env: e, r: r, name: fmt.Sprintf("%d.jsonl", i)}
		w.open()
		defer func() { w.f.Close() }()
		loggers = append(loggers, w)
	}
	cp := l.checkpoint(r)
	for range *stepsFlag {
		w := loggers[r.IntN(len(loggers))]
		switch n := r.IntN(100); {
		case n < 70:
			w.append(r.IntN(3) == 0)
		case n < 80:
			w.rotate()
		case n < 85:
			e.until("some of it", func() bool { return e.src.Drained() })
		case n < 92:
			cp = l.checkpoint(r)
		case kill && n < 96:
			stop()
			l.restore(cp)
			start()
		default:
			runtime.Gosched()
		}
	}
	var all []string
	for _, w := range loggers {
		w.append(true)
		all = append(all, w.written...)
	}
	deadline := time.Now().Add(time.Minute)
	for n := 1; n > 0 && time.Now().Before(deadline); <-time.After(time.Millisecond) {
		n, _ = l.missing(all)
	}
	if n, example := l.missing(all); n > 0 {
		t.Errorf("%d of %d lines are missing, among them %.80q", n, len(all), example)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) != len(all) {
		t.Errorf("%d different lines delivered, %d written", len(l.lines), len(all))
	}
	twice := make(map[string]int)
	for _, keys := range l.lines {
		if len(keys) > 1 && !kill {
			twice[fmt.Sprint(slices.Sorted(maps.Keys(keys)))]++
		}
	}
	if len(twice) > 0 {
		t.Errorf("lines are in several streams: %v", twice)
	}
	for line := range l.lines {
		if !slices.Contains(all, line) {
			t.Errorf("%.80q was never written", line)
		}
	}
	if t.Failed() {
		t.Logf("go test -run TestRandom -seed %d -steps %d", seed, *stepsFlag)
	}
}

// list logs the directory and the state of the source.
func (e *env) list() {
	entries, err := os.ReadDir(e.dir)
	e.must(err)
	for _, d := range entries {
		info, err := d.Info()
		e.must(err)
		id, at, _ := describe(info)
		e.Logf("%s %x-%x %d", d.Name(), id.dev, id.ino, at.size)
	}
	e.src.files.mu.Lock()
	defer e.src.files.mu.Unlock()
	for _, f := range e.src.files.byInode {
		key := ""
		if f.stream != nil {
			key = f.stream.key
		}
		e.Logf("tailed: %s %x %s queued %d open %v partial %v candidate %v lost %v blocks %q", f.path, f.id.ino, key, f.queued, f.fd != nil, f.partial, f.candidate, f.lost, f.blocks)
	}
	e.Logf("blocked %v delayed %d", e.src.files.rotations.blocked, e.src.files.schedule.delayed)
	e.Logf("plain %d %d packed %d %d requests %d", e.src.files.schedule.plain.len(), e.src.files.schedule.plain.active, e.src.files.schedule.packed.len(), e.src.files.schedule.packed.active, len(e.src.files.requests))
	for _, gs := range e.src.files.orphans {
		for _, g := range gs {
			key := ""
			if g.stream != nil {
				key = g.stream.key
			}
			e.Logf("orphan: %s %x %s queued %d open %v blocks %q", g.path, g.id.ino, key, g.queued, g.fd != nil, g.blocks)
		}
	}
}
