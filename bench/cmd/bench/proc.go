package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/bench/proc"
)

// usage is the CPU and memory of a process and its descendants.
type usage struct {
	CPU  time.Duration // user and system, of all of them, also of those that have ended
	Peak int64         // bytes; the sum of each one's own highest resident memory
	Now  int64         // bytes resident at the last sample
}

// watch samples a process and its children until stop is called. Peaks are the kernel's
// (VmHWM), so only growth after the last sample is missed.
type watch struct {
	root int
	stop chan struct{}
	done chan struct{}

	pids    []int
	samples int

	mu   sync.Mutex
	peak map[int]int64
	now  int64
	cpu  map[int]time.Duration
}

// sampleEvery is the interval of the samples.
const sampleEvery = 50 * time.Millisecond

func watchProcess(pid int) *watch {
	w := &watch{root: pid, stop: make(chan struct{}), done: make(chan struct{}), peak: make(map[int]int64), cpu: make(map[int]time.Duration)}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			w.sample()
			select {
			case <-w.stop:
				return
			case <-tick.C:
			}
		}
	}()
	return w
}

// end stops the samples and returns the usage until then.
func (w *watch) end() usage {
	close(w.stop)
	<-w.done
	return w.current()
}

// current is the usage so far.
func (w *watch) current() usage {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := usage{Now: w.now}
	for _, n := range w.peak {
		u.Peak += n
	}
	for _, d := range w.cpu {
		u.CPU += d
	}
	return u
}

func (w *watch) sample() {
	if w.samples%10 == 0 { // to find children costs more than to sample them
		w.pids = descendants(w.root)
	}
	w.samples++
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = 0
	for _, pid := range w.pids {
		high, now, ok := memory(pid)
		if !ok {
			continue
		}
		w.peak[pid] = max(w.peak[pid], high)
		w.now += now
		if d, ok := proc.Of(pid); ok {
			w.cpu[pid] = d
		}
	}
}

// descendants is a process and its descendants.
func descendants(root int) []int {
	out := []int{root}
	for i := 0; i < len(out); i++ {
		// A child belongs to the thread that started it.
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", out[i]))
		for _, t := range tasks {
			b, err := os.ReadFile(t)
			if err != nil {
				continue
			}
			for _, f := range bytes.Fields(b) {
				if pid, err := strconv.Atoi(string(f)); err == nil {
					out = append(out, pid)
				}
			}
		}
	}
	return out
}

func memory(pid int) (high, now int64, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(string(b)) {
		name, rest, _ := strings.Cut(line, ":")
		kib := func() int64 {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10
		}
		switch name {
		case "VmHWM":
			high = kib()
		case "VmRSS":
			now = kib()
		}
	}
	return high, now, high > 0
}

// busy is the processor time that the whole machine has spent on anything.
func busy() time.Duration {
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	var ticks int64
	for i, f := range strings.Fields(line) {
		// user nice system idle iowait irq softirq steal; guest is in user already.
		if i == 0 || i == 4 || i == 5 || i > 8 {
			continue
		}
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
