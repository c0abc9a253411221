// Command staticcheck is honnef.co/go/tools/cmd/staticcheck in a directory, without the facts that need the IR of
// functions of other modules: which of them are pure, which never return nil, which take pairs of arguments. Its checks
// of this module, and the deprecations of other modules, are the same. The IR of other modules is more than
// half of the work with an empty cache.
package main

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/tools/go/analysis"
	"honnef.co/go/tools/analysis/lint"
	"honnef.co/go/tools/lintcmd"
	"honnef.co/go/tools/lintcmd/version"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"

	"github.com/earshot-dev/earshot/core/internal/tools/own"
)

// ofIR are the analyzers that a check of this module needs of other modules only for facts that follow from the IR.
var ofIR = []string{"buildir", "fact_purity", "nilness", "SA5012"}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: staticcheck DIR PACKAGES")
		os.Exit(2)
	}
	if err := os.Chdir(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cmd := lintcmd.NewCommand("staticcheck")
	cmd.SetVersion(version.Version, version.MachineVersion)
	cmd.ParseFlags(os.Args[2:])
	seen := make(map[*analysis.Analyzer]bool)
	for _, list := range [][]*lint.Analyzer{simple.Analyzers, staticcheck.Analyzers, stylecheck.Analyzers, {unused.Analyzer}} {
		for _, a := range list {
			limit(a.Analyzer, seen)
		}
		cmd.AddAnalyzers(list...)
	}
	cmd.Run()
}

// limit has an analyzer, and those that it requires, skip other modules if it is of the IR.
func limit(a *analysis.Analyzer, seen map[*analysis.Analyzer]bool) {
	if seen[a] {
		return
	}
	seen[a] = true
	for _, r := range a.Requires {
		limit(r, seen)
	}
	if !slices.Contains(ofIR, a.Name) {
		return
	}
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		if own.External(pass.Pkg.Path()) {
			return nil, nil
		}
		return run(pass)
	}
}
