package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

const module = "github.com/earshot-dev/earshot/"

// comments knows the comments of struct fields, from the source of their packages: the one
// place where a key is described.
type comments struct {
	byField map[string]string // by package, type and field
	err     error
}

// of returns the comment of a field.
func (c *comments) of(t reflect.Type, field string) string {
	id := t.PkgPath() + "." + t.Name() + "." + field
	if _, read := c.byField[id]; !read && c.err == nil {
		c.err = c.read(t.PkgPath())
	}
	return c.byField[id]
}

// read reads the comments of a package of this module.
func (c *comments) read(pkg string) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	if c.byField == nil {
		c.byField = map[string]string{}
	}
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(strings.TrimPrefix(pkg, module)), "*.go"))
	if err != nil {
		return err
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, field := range f.Names {
						c.byField[pkg+"."+spec.Name.Name+"."+field.Name] = f.Doc.Text()
					}
				}
			}
			return false
		})
	}
	return nil
}

// moduleRoot is the folder of go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("go.mod: %w", fs.ErrNotExist)
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}
