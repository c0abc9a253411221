// Command mutate changes packages of a module in one place at a time, and reports which of the changes
// the tests of the package do not notice (mutation testing; DeMillo, Lipton and Sayward, 1978). A change is
// in an overlay of the build: no file is touched.
//
// All changes of a package would take hours, so a sample of them is drawn, the same one for the same seed.
// A change that does not compile is not counted. Log lines, the texts of errors, capacities, and files of
// other platforms are not changed.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

func main() {
	dir := flag.String("C", ".", "directory of the module")
	n := flag.Int("n", 25, "changes of each package")
	seed := flag.Uint64("seed", 1, "of the sample")
	short := flag.Bool("short", true, "run the tests with -short")
	run := flag.String("run", "", "run the tests that match; empty: all")
	jobs := flag.Int("j", 1, "changes that are tried at a time; the tests must bear the load")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: mutate [flags] PACKAGE... (as ./core/internal/journal; PACKAGE=TESTPACKAGE,... for tests that are elsewhere)")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	missed := 0
	fmt.Println("| package | changes | noticed | by a timeout | survived |\n|---|---|---|---|---|")
	for _, arg := range flag.Args() {
		t := tests{dir: *dir, args: []string{"-run", *run}}
		if *short {
			t.args = append(t.args, "-short")
		}
		s, err := t.mutate(arg, *n, *seed, max(*jobs, 1))
		if err != nil {
			fmt.Fprintf(os.Stderr, "mutate: %s: %v\n", arg, err)
			os.Exit(1)
		}
		fmt.Printf("| %s | %d | %d %% | %d | %d |\n", s.pkg, s.changes, 100*(s.changes-s.survived)/max(s.changes, 1), s.timeouts, s.survived)
		missed += s.survived
	}
	if missed > 0 {
		fmt.Printf("%d changes were not noticed\n", missed)
	}
}

// score is how the tests of a package did.
type score struct {
	pkg                         string
	changes, timeouts, survived int
}

// tests are those of a package, with the arguments of go test.
type tests struct {
	dir      string
	args     []string
	packages []string
}

// test runs the tests, and returns what they print.
func (t *tests) test(limit time.Duration, overlay string) (string, error) {
	args := append([]string{"test", "-count=1", "-failfast", "-vet=off", "-timeout", limit.String()}, t.args...)
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit+5*time.Minute) // to build
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append(args, t.packages...)...)
	cmd.Dir = t.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// outcome is what the tests print of a change.
type outcome struct {
	out string
	err error
}

func (t *tests) mutate(arg string, n int, seed uint64, jobs int) (s score, err error) {
	pkg, elsewhere, _ := strings.Cut(arg, "=")
	s.pkg = strings.TrimPrefix(pkg, "./")
	t.packages = []string{pkg}
	if elsewhere != "" {
		t.packages = strings.Split(elsewhere, ",")
	}
	changes, err := changesOf(filepath.Join(t.dir, pkg))
	if err != nil {
		return s, err
	}
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
	work, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(work)
	began := time.Now()
	if out, err := t.test(10*time.Minute, ""); err != nil {
		return s, fmt.Errorf("the tests fail without a change: %w\n%s", err, out)
	}
	limit := 30*time.Second + 5*time.Duration(jobs)*time.Since(began)
	running := make(chan chan outcome, jobs-1) // in the order of the sample
	enough := make(chan struct{})
	defer func() {
		close(enough)
		for range running { // until those that are under way have ended
		}
	}()
	go func() {
		defer close(running)
		var wg sync.WaitGroup
		defer wg.Wait()
		for i, c := range changes {
			result := make(chan outcome, 1)
			select {
			case running <- result:
			case <-enough:
				return
			}
			wg.Go(func() {
				overlay, err := c.overlay(filepath.Join(work, fmt.Sprint(i)))
				if err != nil {
					result <- outcome{err: err}
					return
				}
				out, err := t.test(limit, overlay)
				result <- outcome{out, err}
			})
		}
	}()
	for _, c := range changes {
		if s.changes == n {
			break
		}
		o := <-<-running
		var exit *exec.ExitError
		switch {
		case o.err == nil:
			s.changes++
			s.survived++
			fmt.Fprintln(os.Stderr, c.String())
		case !errors.As(o.err, &exit):
			return s, o.err
		case strings.Contains(o.out, "[build failed]"), strings.Contains(o.out, "[setup failed]"):
		default:
			s.changes++
			if strings.Contains(o.out, "panic: test timed out") {
				s.timeouts++
			}
		}
	}
	return s, nil
}

// overlay writes the changed file and the overlay that replaces it.
func (c *change) overlay(dir string) (string, error) {
	var b bytes.Buffer
	b.Write(c.file.text[:c.from])
	b.WriteString(c.with)
	b.Write(c.file.text[c.to:])
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, b.Bytes(), 0o644); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{c.file.path: changed}})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, text, 0o644)
}
