package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// source is a file of a package.
type source struct {
	path string
	text []byte
	set  *token.FileSet
}

// change is one place of a file with another text.
type change struct {
	file     *source
	from, to int
	with     string
}

func (c *change) String() string {
	was := string(c.file.text[c.from:c.to])
	line := 1 + strings.Count(string(c.file.text[:c.from]), "\n")
	whole, _, _ := strings.Cut(string(c.file.text[strings.LastIndexByte(string(c.file.text[:c.from]), '\n')+1:]), "\n")
	with := c.with
	if with == "" {
		with = "nothing"
	}
	was, _, _ = strings.Cut(was, "\n")
	return fmt.Sprintf("%s:%d: %s, instead of %s, in: %s", filepath.Base(filepath.Dir(c.file.path))+"/"+filepath.Base(c.file.path), line, with, was, strings.TrimSpace(whole))
}

// changesOf returns the changes of the package in a directory, without its tests and generated files.
func changesOf(dir string) (list []change, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if here, err := build.Default.MatchFile(dir, filepath.Base(path)); err != nil || !here || strings.HasSuffix(path, "_test.go") {
			continue
		}
		f := &source{set: token.NewFileSet()}
		if f.path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		if f.text, err = os.ReadFile(path); err != nil {
			return nil, err
		}
		tree, err := parser.ParseFile(f.set, path, f.text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if !ast.IsGenerated(tree) {
			list = append(list, f.changes(tree)...)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no Go files in %s", dir)
	}
	return list, nil
}

// operators are replaced by each other.
var operators = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.LAND: "||", token.LOR: "&&", token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*",
}

func (f *source) changes(tree *ast.File) (list []change) {
	at := func(p token.Pos) int { return f.set.Position(p).Offset }
	add := func(from, to token.Pos, with string) {
		list = append(list, change{file: f, from: at(from), to: at(to), with: with})
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if with := operators[n.Op]; with != "" {
				add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), with)
			}
		case *ast.IfStmt:
			add(n.Cond.Pos(), n.Cond.End(), "!("+string(f.text[at(n.Cond.Pos()):at(n.Cond.End())])+")")
		case *ast.ExprStmt:
			if call, ok := n.X.(*ast.CallExpr); ok {
				if f.logs(call) {
					return false
				}
				add(n.Pos(), n.End(), "")
			}
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				add(n.Pos(), n.End(), "")
			}
		case *ast.IncDecStmt:
			add(n.Pos(), n.End(), "")
		case *ast.BranchStmt:
			if n.Label == nil && (n.Tok == token.BREAK || n.Tok == token.CONTINUE) {
				add(n.Pos(), n.End(), "")
			}
		case *ast.CallExpr:
			if name, ok := n.Fun.(*ast.Ident); ok && name.Name == "make" && len(n.Args) == 3 {
				return false
			}
			return !f.logs(n)
		case *ast.ImportSpec, *ast.GenDecl:
			_, vars := n.(*ast.GenDecl)
			return vars && n.(*ast.GenDecl).Tok != token.IMPORT
		}
		return true
	})
	return list
}

// logs reports whether a call writes a log line or makes an error's text.
func (f *source) logs(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch s.Sel.Name {
	case "Debug", "Info", "Warn", "warn", "Error", "Errorf":
		return len(call.Args) > 0
	}
	return false
}
