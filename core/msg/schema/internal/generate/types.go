package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg/schema"
)

// goTypes are the types of package msg as its source has them, by name. They are read, not
// imported: the package does not compile while its generated file is stale.
type goTypes map[string]ast.Expr

func readTypes(dir string) (goTypes, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	out := goTypes{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if t, ok := n.(*ast.TypeSpec); ok {
				out[t.Name.Name] = t.Type
			}
			return true
		})
	}
	return out, nil
}

// of returns the type of a field of a struct by its path.
func (g goTypes) of(name, path string) string {
	for part := range strings.SplitSeq(path, ".") {
		next := ""
		if s, ok := g[name].(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				for _, id := range f.Names {
					if id.Name == part {
						next = types.ExprString(f.Type)
					}
				}
			}
		}
		if next == "" {
			panic(fmt.Sprintf("msg.%s has no field %s", name, part))
		}
		name = next
	}
	return name
}

// isStruct reports whether the type of that name is a struct.
func (g goTypes) isStruct(name string) bool {
	_, ok := g[name].(*ast.StructType)
	return ok
}

var fieldPath = regexp.MustCompile(`^(\w+)\.(\w+(?:\.\w+)*)$`)

// column returns the type of the field that a column is, or nothing where it is not one of
// a type of package msg.
func (g goTypes) column(t schema.Table, c schema.Column) string {
	param, record, ok := strings.Cut(t.Record, " *msg.")
	path := fieldPath.FindStringSubmatch(c.From)
	if !ok || path == nil || path[1] != param {
		return ""
	}
	return g.of(record, path[2])
}
