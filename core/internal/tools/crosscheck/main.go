// Command crosscheck type-checks the module in a directory, tests too, for each platform that
// agents run on. Nothing is compiled, and function bodies of other modules are not read: all platforms
// together take half a minute of processor time, where go vet takes four minutes for one.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/tools/go/packages"
)

// platforms have the packages that are checked. Windows has no embedded store, and no tests.
var platforms = []struct {
	os, arch string
	tests    bool
	patterns []string
}{
	{"linux", "arm64", true, []string{"./..."}},
	{"darwin", "amd64", true, []string{"./..."}},
	{"darwin", "arm64", true, []string{"./..."}},
	{"windows", "amd64", false, []string{"./cmd/earshot"}},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crosscheck DIR")
		os.Exit(2)
	}
	root := os.Args[1]
	failed := false
	for _, p := range platforms {
		began := time.Now()
		problems, err := check(root, p.os, p.arch, p.tests, p.patterns)
		if err != nil {
			problems = append(problems, err.Error())
		}
		for _, text := range problems {
			failed = true
			fmt.Printf("%s/%s: %s\n", p.os, p.arch, text)
		}
		fmt.Printf("%s/%s checked in %s\n", p.os, p.arch, time.Since(began).Round(100*time.Millisecond))
	}
	if failed {
		os.Exit(1)
	}
}

func check(root, system, arch string, tests bool, patterns []string) ([]string, error) {
	list, err := packages.Load(&packages.Config{
		Mode:  packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule,
		Dir:   root,
		Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0"),
		Tests: tests,
		ParseFile: func(set *token.FileSet, name string, src []byte) (*ast.File, error) {
			f, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
			if f != nil && !strings.HasPrefix(name, root+string(filepath.Separator)) {
				for _, d := range f.Decls {
					if fn, ok := d.(*ast.FuncDecl); ok {
						fn.Body = nil
					}
				}
			}
			return f, err
		},
	}, patterns...)
	if err != nil {
		return nil, err
	}
	var problems []string
	packages.Visit(list, nil, func(p *packages.Package) {
		// Without bodies, imports of other modules and of generated mains of tests seem unused.
		if p.Module == nil || !p.Module.Main || strings.HasSuffix(p.ID, ".test") {
			return
		}
		for _, e := range p.Errors {
			problems = append(problems, e.Error())
		}
	})
	return problems, nil
}
