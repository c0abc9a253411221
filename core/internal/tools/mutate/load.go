package main

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

// mutated is a package with its changes.
type mutated struct {
	dir     string
	changes []*change
	files   map[string][]byte // with the switches of the changes, and the helper
}

// load returns the package with every change of its files that compiles, without its tests and generated files.
func load(module, pattern string) (*mutated, error) {
	pkg, err := loaded(module, pattern, nil)
	if err != nil {
		return nil, err
	}
	if len(pkg.Errors) > 0 {
		return nil, pkg.Errors[0]
	}
	m := &mutated{dir: pkg.Dir}
	for _, tree := range pkg.Syntax {
		if ast.IsGenerated(tree) {
			continue
		}
		f := &source{path: pkg.Fset.Position(tree.FileStart).Filename, set: pkg.Fset, info: pkg.TypesInfo}
		text, err := os.ReadFile(f.path)
		if err != nil {
			return nil, err
		}
		f.text = string(text)
		m.changes = append(m.changes, f.changes(tree)...)
	}
	path, text := helperFile(pkg.Dir, pkg.Name)
	for {
		if len(m.changes) == 0 {
			return nil, fmt.Errorf("nothing to change in %s", pkg.Dir)
		}
		m.files = switched(m.changes)
		m.files[path] = text
		with, err := loaded(module, pattern, m.files)
		if err != nil {
			return nil, err
		}
		if len(with.Errors) == 0 {
			return m, nil
		}
		before := len(m.changes)
		m.drop(with)
		if len(m.changes) == before {
			return nil, fmt.Errorf("with its switches: %w", with.Errors[0])
		}
	}
}

func loaded(module, pattern string, overlay map[string][]byte) (*packages.Package, error) {
	list, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
		Dir:  module, Overlay: maps.Clone(overlay),
	}, pattern)
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("%s are %d packages, not one", pattern, len(list))
	}
	return list[0], nil
}

// drop drops the changes of the lines that do not compile: a switch adds no line.
func (m *mutated) drop(with *packages.Package) {
	bad := make(map[string]bool)
	for _, e := range with.TypeErrors {
		at := e.Fset.Position(e.Pos)
		bad[fmt.Sprint(at.Filename, ":", at.Line)] = true
	}
	kept := m.changes[:0]
	for _, c := range m.changes {
		first, last := 1+strings.Count(c.file.text[:c.from], "\n"), 1+strings.Count(c.file.text[:c.to], "\n")
		if !bad[fmt.Sprint(c.file.path, ":", first)] && !bad[fmt.Sprint(c.file.path, ":", last)] {
			kept = append(kept, c)
		}
	}
	m.changes = kept
}

// overlay writes the files and the list that replaces those of the package by them, for go build -overlay.
func (m *mutated) overlay(dir string) (string, error) {
	list, n := new(strings.Builder), 0
	for path, text := range m.files {
		to := filepath.Join(dir, fmt.Sprintf("%d.go", n))
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return "", err
		}
		if n++; n > 1 {
			list.WriteString(",")
		}
		fmt.Fprintf(list, "%q:%q", path, to)
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, []byte(`{"Replace":{`+list.String()+`}}`), 0o644)
}
