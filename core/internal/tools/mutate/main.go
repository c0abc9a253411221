// Command mutate changes packages of a module in one place at a time, and reports which of the changes
// the tests of the package do not notice (mutation testing; DeMillo, Lipton and Sayward, 1978). A change is
// in an overlay of the build: no file is touched.
//
// All changes of a package are compiled once, as switches, and each test is run once to see which changes it reaches. So a change
// costs the tests that reach it, the cheapest first, until one fails. A change that no test reaches has survived.
//
// By default a sample of the changes is tried, the same one for the same seed. docs/mutation.md has the rules by which places are left out.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
)

func main() {
	m := run{report: func(line string) { fmt.Println(line) }}
	flag.StringVar(&m.module, "C", ".", "directory of the module")
	flag.IntVar(&m.n, "n", 25, "changes of each package; 0: all")
	flag.Uint64Var(&m.seed, "seed", 1, "of the sample")
	short := flag.Bool("short", true, "run the tests with -short")
	flag.StringVar(&m.tests, "run", ".", "run the tests that match")
	skip := flag.String("skip", "", "leave out the tests that match, as the dear ones of many: what only they notice has survived")
	flag.DurationVar(&m.most, "most", 0, "cost limit of the tests of a change, the cheapest first: what only a later one notices has survived; 0: no bound")
	at := flag.String("at", "", "try the changes whose line in the report matches, instead of a sample")
	flag.IntVar(&m.jobs, "j", 1, "changes that are tried at a time; the tests must bear the load")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: mutate [flags] PACKAGE... (as ./core/internal/journal; PACKAGE=TESTPACKAGE,... for tests that are elsewhere)")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if *short {
		m.args = []string{"-test.short"}
	}
	if *skip != "" {
		m.skip = regexp.MustCompile(*skip)
	}
	if *at != "" {
		m.at = regexp.MustCompile(*at)
	}
	var table strings.Builder
	missed := 0
	for _, arg := range flag.Args() {
		s, err := m.mutate(arg)
		if err != nil {
			fmt.Fprintf(os.Stderr, "mutate: %s: %v\n", arg, err)
			os.Exit(1)
		}
		fmt.Fprintf(&table, "| %s | %d | %d | %d %% | %d | %d | %d |\n", s.pkg, s.all, s.tried, 100*(s.tried-s.survived)/max(s.tried, 1), s.late, s.survived, s.unreached)
		missed += s.survived
	}
	fmt.Printf("| package | changes | tried | noticed | by a limit of time | survived | of them reached by no test |\n|---|---|---|---|---|---|---|\n%s", table.String())
	if missed > 0 {
		fmt.Printf("%d changes were not noticed\n", missed)
	}
}

// run is the settings of a run.
type run struct {
	module, tests string
	args          []string // of a test binary
	n, jobs       int
	seed          uint64
	most          time.Duration // what the tests of a change may cost
	at, skip      *regexp.Regexp
	report        func(line string) // of a change that was not noticed
}

// score is how the tests of a package did.
type score struct {
	pkg                                   string
	all, tried, late, survived, unreached int
}

func (m *run) mutate(arg string) (s score, err error) {
	pkg, elsewhere, _ := strings.Cut(arg, "=")
	patterns := []string{pkg}
	if elsewhere != "" {
		patterns = strings.Split(elsewhere, ",")
	}
	p, err := load(m.module, pkg)
	if err != nil {
		return s, err
	}
	s.pkg, s.all = strings.TrimPrefix(pkg, "./"), len(p.changes)
	work, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(work)
	overlay, err := p.overlay(work)
	if err != nil {
		return s, err
	}
	binaries, err := built(m.module, work, overlay, patterns, m.args)
	if err != nil {
		return s, err
	}
	all := suite{work: work, most: m.most}
	for _, b := range binaries {
		if err := all.learn(b, m.tests, m.skip, len(p.changes)); err != nil {
			return s, err
		}
	}
	sample := m.sample(p.changes)
	outcomes, failures := make([]outcome, len(sample)), make([]error, len(sample))
	var wg sync.WaitGroup
	slots := make(chan struct{}, max(m.jobs, 1))
	for i, n := range sample {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			outcomes[i], failures[i] = all.try(n)
			if o := outcomes[i]; failures[i] == nil && !o.noticed {
				unreached := ""
				if !o.reached {
					unreached = " (no test reaches it)"
				}
				m.report(p.changes[n].String() + unreached)
			}
		})
	}
	wg.Wait()
	for i, o := range outcomes {
		if failures[i] != nil {
			return s, failures[i]
		}
		s.tried++
		if o.late {
			s.late++
		}
		if !o.noticed {
			s.survived++
		}
		if !o.reached {
			s.unreached++
		}
	}
	return s, nil
}

// sample returns the numbers of the changes to try.
func (m *run) sample(changes []*change) (list []int) {
	for n, c := range changes {
		if m.at == nil || m.at.MatchString(c.String()) {
			list = append(list, n)
		}
	}
	if m.at != nil || m.n == 0 {
		return list
	}
	rand.New(rand.NewPCG(m.seed, 1)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(m.n, len(list))]
}
