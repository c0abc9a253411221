package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
)

// source is a file of a package.
type source struct {
	path string
	text string
	set  *token.FileSet
	info *types.Info
}

// at returns the offset of a position.
func (f *source) at(p token.Pos) int { return f.set.Position(p).Offset }

// of returns the text of a node.
func (f *source) of(n ast.Node) string { return f.text[f.at(n.Pos()):f.at(n.End())] }

// change is one place of a file that does something else while its number is selected.
type change struct {
	file     *source
	from, to int
	with     string // as a reader would write it; empty: without the statement
	edits    []edit
}

func (c *change) String() string {
	was, _, _ := strings.Cut(c.file.text[c.from:c.to], "\n")
	before := c.file.text[:c.from]
	whole, _, _ := strings.Cut(c.file.text[strings.LastIndexByte(before, '\n')+1:], "\n")
	with := c.with
	if with == "" {
		with = "nothing"
	}
	return fmt.Sprintf("%s/%s:%d: %s, instead of %s, in: %s", filepath.Base(filepath.Dir(c.file.path)), filepath.Base(c.file.path),
		1+strings.Count(before, "\n"), with, was, strings.TrimSpace(whole))
}

// operators are replaced by each other.
var operators = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.LAND: "||", token.LOR: "&&", token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*",
}

// switches are the functions of the helper that choose between an operator and the one that replaces it.
var switches = map[token.Token]string{
	token.LSS: "Lss", token.LEQ: "Leq", token.GTR: "Gtr", token.GEQ: "Geq", token.ADD: "Add", token.SUB: "Sub", token.MUL: "Mul", token.QUO: "Quo",
}

// finder collects the changes of a file.
type finder struct {
	*source
	list    []*change
	parents []ast.Node // of the node that is looked at, the file first
}

// changes returns the changes of a file, an outer one before those inside of it.
func (f *source) changes(tree *ast.File) []*change {
	d := &finder{source: f}
	ast.Inspect(tree, func(n ast.Node) bool {
		if n == nil {
			d.parents = d.parents[:len(d.parents)-1]
			return true
		}
		if f.leftOut(n) {
			return false
		}
		d.look(n)
		d.parents = append(d.parents, n)
		return true
	})
	return d.list
}

func (d *finder) add(from, to token.Pos, with string, edits ...edit) {
	d.list = append(d.list, &change{file: d.source, from: d.at(from), to: d.at(to), with: with, edits: edits})
}

func (d *finder) look(n ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		d.operator(n)
	case *ast.IfStmt:
		if !isEquality(n.Cond) { // else it is the change of the operator
			d.add(n.Cond.Pos(), n.Cond.End(), "!("+d.of(n.Cond)+")", d.open(n.Cond.Pos(), "(("), d.close(n.Cond.End(), ") != "+selected+")"))
		}
	case *ast.ExprStmt:
		if _, call := n.X.(*ast.CallExpr); call {
			d.without(n)
		}
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE && !allBlank(n.Lhs) {
			d.without(n)
		}
	case *ast.IncDecStmt:
		d.without(n)
	case *ast.BranchStmt:
		if n.Label == nil && (n.Tok == token.BREAK || n.Tok == token.CONTINUE) {
			d.without(n)
		}
	}
}

func isEquality(e ast.Expr) bool {
	b, ok := e.(*ast.BinaryExpr)
	return ok && (b.Op == token.EQL || b.Op == token.NEQ)
}

func allBlank(list []ast.Expr) bool {
	for _, e := range list {
		if name, ok := e.(*ast.Ident); !ok || name.Name != "_" {
			return false
		}
	}
	return true
}

// operator replaces the operator of an expression.
func (d *finder) operator(n *ast.BinaryExpr) {
	with := operators[n.Op]
	if with == "" || d.constant(n) || d.sameEitherWay(n) {
		return
	}
	var edits []edit
	switch end := n.OpPos + token.Pos(len(n.Op.String())); n.Op {
	case token.EQL, token.NEQ:
		edits = []edit{d.open(n.Pos(), "(("), d.close(n.End(), ") != "+selected+")")}
	case token.LAND, token.LOR: // by De Morgan's law, so that the right side is evaluated only when it would be
		edits = []edit{
			d.open(n.Pos(), "((("), d.close(n.X.End(), ") != "+selected), d.open(n.Y.Pos(), "("),
			d.close(n.End(), ") != "+selected+") != "+selected+")"),
		}
	default:
		call := helper + switches[n.Op]
		if b, ok := d.info.TypeOf(n.X).(*types.Basic); ok && b.Info()&types.IsUntyped == 0 {
			if b.Info()&types.IsString != 0 && n.Op == token.ADD {
				return
			}
			call += "[" + b.Name() + "]"
		}
		edits = []edit{d.open(n.Pos(), call+"("+number+", "), {at: d.at(n.OpPos), text: ",", drop: d.at(end) - d.at(n.OpPos)}, d.close(n.End(), ")")}
	}
	d.add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), with, edits...)
}

// without leaves out a statement.
func (d *finder) without(n ast.Stmt) {
	switch parent := d.parents[len(d.parents)-1].(type) {
	case *ast.BlockStmt, *ast.CaseClause:
		d.add(n.Pos(), n.End(), "", d.open(n.Pos(), "if !"+selected+" { "), d.close(n.End(), " }"))
	case *ast.CommClause:
		if parent.Comm != n {
			d.add(n.Pos(), n.End(), "", d.open(n.Pos(), "if !"+selected+" { "), d.close(n.End(), " }"))
		}
	case *ast.IfStmt:
		if parent.Init == n {
			d.add(n.Pos(), n.End(), "", d.open(n.Pos(), "func() { if !"+selected+" { "), d.close(n.End(), " } }()"))
		}
	}
}

func (d *finder) open(p token.Pos, text string) edit { return edit{at: d.at(p), text: text} }
func (d *finder) close(p token.Pos, text string) edit {
	return edit{at: d.at(p), text: text, closes: true}
}

// constant reports whether an expression is computed by the compiler: no switch can be in it.
func (f *source) constant(e ast.Expr) bool { return f.info.Types[e].Value != nil }
