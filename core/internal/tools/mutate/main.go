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
	"time"
)

func main() {
	dir := flag.String("C", ".", "directory of the module")
	n := flag.Int("n", 25, "changes of each package")
	seed := flag.Uint64("seed", 1, "of the sample")
	short := flag.Bool("short", true, "run the tests with -short")
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
		s, err := mutate(*dir, arg, *n, *seed, *short)
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

func mutate(dir, arg string, n int, seed uint64, short bool) (s score, err error) {
	pkg, elsewhere, _ := strings.Cut(arg, "=")
	s.pkg = strings.TrimPrefix(pkg, "./")
	tests := []string{pkg}
	if elsewhere != "" {
		tests = strings.Split(elsewhere, ",")
	}
	changes, err := changesOf(filepath.Join(dir, pkg))
	if err != nil {
		return s, err
	}
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
	work, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(work)
	test := func(limit time.Duration, overlay string) (string, error) {
		args := []string{"test", "-count=1", "-failfast", "-timeout", limit.String()}
		if short {
			args = append(args, "-short")
		}
		if overlay != "" {
			args = append(args, "-overlay", overlay)
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit+5*time.Minute) // to build
		defer cancel()
		cmd := exec.CommandContext(ctx, "go", append(args, tests...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	began := time.Now()
	if out, err := test(10*time.Minute, ""); err != nil {
		return s, fmt.Errorf("the tests fail without a change: %w\n%s", err, out)
	}
	limit := 30*time.Second + 5*time.Since(began)
	for _, c := range changes {
		if s.changes == n {
			break
		}
		overlay, err := c.overlay(work)
		if err != nil {
			return s, err
		}
		out, err := test(limit, overlay)
		var exit *exec.ExitError
		switch {
		case err == nil:
			s.changes++
			s.survived++
			fmt.Fprintln(os.Stderr, c.String())
		case !errors.As(err, &exit):
			return s, err
		case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		default:
			s.changes++
			if strings.Contains(out, "panic: test timed out") {
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
