//go:build !race

// The faulty decoders under the whole suite: make conformance runs them. The race detector would
// have them take five times as long, for code that the suite's own tests have it watch.

package mutants

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// The suite rejects each mutant, names the rule that it breaks, and reports no failure
// that does not follow from the fault.
func TestTheSuiteRejectsEveryMutant(t *testing.T) {
	want := map[string]string{
		"one-state":             "C1 D5, C3 D4, C5 D2, C6 D1, C7 D3, C9 D5+D7, C10 D5+D8, C11 D1, C12 D4+D5",
		"snapshot-drops-open":   "C5 D2",
		"keeps-frame":           "C7 D3",
		"reads-clock":           "C1 D4, C12 D4",
		"time-of-reading":       "C1 D4, C12 D4",
		"leaks-goroutine":       "C11 D4",
		"random-keys":           "C1 D5, C12 D5",
		"position-keys":         "C1 D5, C3 D5, C4 D5, C9 D5, C11 D5, C12 D5",
		"counted-keys":          "C1 D5, C2 D5, C3 D5, C4 D5, C9 D5, C10 D5, C11 D5",
		"message-per-delta":     "C1 D5, C2 D5, C4 D5",
		"other-keys-in-reload":  "C4 D5",
		"other-keys-while-open": "C1 D5, C3 D5, C11 D5",
		"changes-complete":      "C3 D6",
		"drops-unknown":         "C1 D4, C9 D7, C14 D7",
		"drops-other-types":     "C14 D7",
		"fails-on-unknown":      "C1 D9, C9 D7, C10 D8, C14 D7",
		"fails-on-bad-frame":    "C1 D9, C10 D8, C14 D7",
		"two-problems":          "C1 D8, C10 D8",
		"no-problem":            "C1 D8, C10 D8",
		"panics-on-bad-frame":   "C1 D8, C10 D8, C14 D8",
		"panics-on-other-type":  "C10 D8, C14 D8",
		"forgets-on-bad-frame":  "C1 D4, C10 D8, C14 D7",
		"fails-on-open":         "C1 D9, C3 D9, C10 D8, C11 D9, C14 D7",
		"flush-forgets":         "C11 D10",
		"flush-completes":       "C1 D10, C3 D10, C10 D10, C11 D10, C14 D10",
		"grows-snapshot":        "C13 D11",
		"grows-memory":          "C13 D11",
		"reuses-text":           "C1 D4, C7 D12, C14 D7",
		"reuses-attributes":     "C1 D4, C7 D12, C14 D7",
	}
	rules := make(map[string]bool)
	for _, a := range Mutants() {
		rules[a.Rule] = true
		t.Run(a.Name, func(t *testing.T) {
			f := a.Factory()
			defer f.Close()
			s := &conformance.Suite{Subject: conformance.NewLocal(f), Cases: cases(t), LeavesOut: &unknown.List{}, Seed: 1}
			if a.Rule != "D11" {
				s.Checks = quick
			}
			got := verdict(t, s)
			if got != want[a.Name] {
				t.Errorf("%s (%s): got %q, want %q", a.Fault, a.Rule, got, want[a.Name])
			}
			if !slices.Contains(strings.FieldsFunc(got, func(c rune) bool { return strings.ContainsRune(" ,+", c) }), a.Rule) {
				t.Errorf("%s: the rule %s is not named", a.Fault, a.Rule)
			}
		})
	}
	for n := 1; n <= 12; n++ {
		if !rules[fmt.Sprint("D", n)] {
			t.Errorf("no mutant breaks rule D%d", n)
		}
	}
}

// quick are the checks without C13, which takes most of the time.
var quick = []string{"C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10", "C11", "C12", "C14"}

// The suite judges mutants as processes as it judges them in process, as far as a fault is
// visible from outside.
func TestTheSuiteRejectsMutantProcesses(t *testing.T) {
	server := build(t)
	for name, want := range map[string]string{
		"reference": "", "snapshot-drops-open": "C5 D2", "reads-clock": "C1 D4, C12 D4", "random-keys": "C1 D5, C12 D5", "changes-complete": "C3 D6",
		"drops-unknown": "C1 D4, C9 D7, C14 D7", "two-problems": "C1 D8, C10 D8", "panics-on-bad-frame": "C1 D8, C10 D8, C14 D8", "fails-on-open": "C1 D9, C3 D9, C10 D8, C11 D9, C14 D7",
		"flush-forgets": "C11 D10",
	} {
		t.Run(name, func(t *testing.T) {
			e, err := conformance.NewExec(t.Context(), server, name)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if got := verdict(t, &conformance.Suite{Subject: e, Cases: cases(t), LeavesOut: &unknown.List{}, Seed: 1, Checks: quick}); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// The output and the verdict of `earshot plugin test`.
func TestReport(t *testing.T) {
	server := build(t)
	for mutant, c := range map[string]struct {
		failed bool
		lines  []string
	}{
		"reference": {false, []string{"case       C1    C2\n", "cut        ok    -\n", "talk       ok    ok\n", "C2 recut: the case has no deltas.json", "5 passed, 0 failed, 1 skipped (seed 5)"}},
		"reads-clock": {true, []string{"cut        FAIL  -\n", "C1 golden, talk: D4 is broken: the output is not that of want.jsonl", "kitchen u-1: ts: want \"2026-",
			"skipped:", "see C12 (3)", "0 passed, 3 failed, 3 skipped (seed 5)"}},
	} {
		results, err := conformance.Test(t.Context(), os.DirFS("testdata"), 5, []string{"C1", "C2"}, server, mutant)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := conformance.Report(&out, results, 5); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.lines {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", mutant, want, out.String())
			}
		}
		if conformance.Failed(results) != c.failed {
			t.Errorf("%s: failed %t", mutant, !c.failed)
		}
	}
	if _, err := conformance.Test(t.Context(), os.DirFS("testdata"), 1, []string{"C99"}, server); err == nil {
		t.Error("an unknown check was accepted")
	}
	if _, err := conformance.Test(t.Context(), os.DirFS("testdata"), 1, nil, server, "unicorn"); err == nil || !strings.Contains(err.Error(), `there is no mutant "unicorn"`) {
		t.Errorf("the stderr of the process is missing: %v", err)
	}
}

func cases(t *testing.T) []conformance.Case {
	t.Helper()
	c, err := conformance.Load(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// verdict lists the checks that fail, each with the rules it names.
func verdict(t *testing.T, s *conformance.Suite) string {
	t.Helper()
	rules := make(map[string][]string)
	s.Run(t.Context(), func(r conformance.Result) {
		if r.Status != conformance.Fail {
			return
		}
		t.Logf("%s %s: %s: %s\n%s", r.Case, r.Check, r.Rule, r.Reason, r.Detail)
		if !slices.Contains(rules[r.Check], r.Rule) {
			rules[r.Check] = append(rules[r.Check], r.Rule)
		}
	})
	var out []string
	for n := 1; n <= 14; n++ {
		if c := fmt.Sprint("C", n); rules[c] != nil {
			out = append(out, c+" "+strings.Join(rules[c], "+"))
		}
	}
	return strings.Join(out, ", ")
}

// build builds the executable that serves the mutants.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "servemutant")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../servemutant")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}
