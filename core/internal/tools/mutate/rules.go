package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// Below are the rules by which places are not changed, because no test should notice: docs/mutation.md has the reason of each.

// leftOut reports whether nothing in a node is changed.
func (f *source) leftOut(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		return f.report(n) || f.capacity(n)
	case *ast.ExprStmt:
		call, ok := n.X.(*ast.CallExpr)
		return ok && (f.report(call) || f.capacity(call) || f.called(call) == "panic")
	case *ast.GenDecl:
		return n.Tok == token.IMPORT || n.Tok == token.CONST
	}
	return false
}

// called returns the last name of the function that a call calls.
func (f *source) called(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}

// report: a call that writes a log line or makes an error's text.
func (f *source) report(call *ast.CallExpr) bool {
	if _, method := call.Fun.(*ast.SelectorExpr); !method || len(call.Args) == 0 {
		return false
	}
	return slices.Contains([]string{"Debug", "Info", "Warn", "warn", "Error", "Errorf"}, f.called(call))
}

// capacity: how much is reserved.
func (f *source) capacity(call *ast.CallExpr) bool {
	switch f.called(call) {
	case "make":
		if len(call.Args) == 2 {
			_, isMap := f.info.TypeOf(call.Args[0]).Underlying().(*types.Map)
			return isMap
		}
		return len(call.Args) == 3
	case "Grow", "NewReaderSize", "NewWriterSize":
		return true
	}
	return false
}

// sameEitherWay reports whether a comparison at its bound has the same result either way.
func (d *finder) sameEitherWay(n *ast.BinaryExpr) bool {
	switch n.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
	default:
		return false
	}
	return d.now(n.X) || d.now(n.Y) || d.clamp(n)
}

// now: a duration until or since the present, which is never a bound to the nanosecond.
func (f *source) now(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && slices.Contains([]string{"time.Since", "time.Until", "time.Now"}, f.of(call.Fun)) {
			found = true
		}
		return !found
	})
	return found
}

// clamp: if a < b { a = b }.
func (d *finder) clamp(n *ast.BinaryExpr) bool {
	parent, ok := d.parents[len(d.parents)-1].(*ast.IfStmt)
	if !ok || parent.Cond != n || len(parent.Body.List) != 1 || parent.Else != nil {
		return false
	}
	set, ok := parent.Body.List[0].(*ast.AssignStmt)
	if !ok || set.Tok != token.ASSIGN || len(set.Lhs) != 1 || len(set.Rhs) != 1 {
		return false
	}
	x, y, l, r := d.of(n.X), d.of(n.Y), d.of(set.Lhs[0]), d.of(set.Rhs[0])
	return l == x && r == y || l == y && r == x
}
