package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// benchmark is a Go benchmark of the repository that a page shows.
type benchmark struct {
	pkg   string
	match string
	time  string // of -benchtime
	count int
}

func (b benchmark) args() []string {
	return []string{"test", "-run", "^$", "-bench", b.match, "-benchmem", "-benchtime", b.time, "-count", strconv.Itoa(b.count), "./" + b.pkg}
}

// results are the values of a benchmark by its name and their units, in the order of
// the runs.
type results map[string]map[string][]float64

// run runs a benchmark and adds its results.
func (r results) run(ctx context.Context, b benchmark) error {
	fmt.Fprintln(os.Stderr, "go", strings.Join(b.args(), " "))
	out, err := exec.CommandContext(ctx, "go", b.args()...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", b.match, err, lastLines(string(out)))
	}
	if !r.parse(string(out)) {
		return fmt.Errorf("%s: no benchmark of that name in %s\n%s", b.match, b.pkg, lastLines(string(out)))
	}
	return nil
}

// parse reads the lines of results in the output of go test. It reports whether there
// were any.
func (r results) parse(out string) (found bool) {
	procs := fmt.Sprintf("-%d", runtime.GOMAXPROCS(0))
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name := strings.TrimSuffix(strings.TrimPrefix(f[0], "Benchmark"), procs)
		if r[name] == nil {
			r[name] = make(map[string][]float64)
		}
		for i := 2; i+1 < len(f); i += 2 {
			if v, err := strconv.ParseFloat(f[i], 64); err == nil {
				r[name][f[i+1]] = append(r[name][f[i+1]], v)
				found = true
			}
		}
	}
	return found
}

// median returns the middle of a benchmark's values in a unit; false when it has none.
func (r results) median(name, unit string) (float64, bool) {
	v := r[name][unit]
	if len(v) == 0 {
		return 0, false
	}
	mid, _, _ := middle(v)
	return mid, true
}
