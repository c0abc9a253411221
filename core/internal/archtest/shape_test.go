package archtest

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxMethods bounds the methods of a type: a type with more has parts that own their state.
const maxMethods = 30

// TestTypesHaveFewMethods holds the method sets of hand-written types to maxMethods. -v lists
// the largest, and the lines of each top-level folder.
func TestTypesHaveFewMethods(t *testing.T) {
	methods, files := map[string]int{}, map[string]map[string]bool{}
	lines := map[string]int{}
	err := filepath.WalkDir(root(t), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); n == ".git" || n == "testdata" || n == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") || strings.HasSuffix(path, "_gen.go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root(t), path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		top, _, _ := strings.Cut(rel, "/")
		lines[top] += bytes.Count(src, []byte("\n"))
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			name := filepath.ToSlash(filepath.Dir(rel)) + "." + receiver(fn.Recv.List[0].Type)
			if files[name] == nil {
				files[name] = map[string]bool{}
			}
			methods[name]++
			files[name][rel] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	byCount := slices.SortedFunc(maps.Keys(methods), func(a, b string) int {
		return cmp.Or(cmp.Compare(methods[b], methods[a]), strings.Compare(a, b))
	})
	for _, name := range byCount[:12] {
		t.Logf("%d methods in %d files: %s", methods[name], len(files[name]), name)
	}
	for _, top := range slices.Sorted(maps.Keys(lines)) {
		t.Logf("%d lines in %s, without tests and generated files", lines[top], top)
	}
	for name, n := range methods {
		if n > maxMethods {
			t.Errorf("%s has %d methods, more than %d: give a part of it a type of its own", name, n, maxMethods)
		}
	}
}

// receiver is the name of a method's receiver type.
func receiver(t ast.Expr) string {
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}
