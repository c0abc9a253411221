package mcp

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// The bounds of a statement of the caller.
const (
	sqlRows    = 200
	SQLTime    = 10 * time.Second
	sqlCell    = 400 // characters of a value
	sqlWrapped = "SELECT * FROM (\n%s\n) LIMIT %d"
)

// tableFunctions make rows of nothing.
var tableFunctions = map[string]bool{"numbers": true, "zeros": true, "values": true, "generateseries": true, "generate_series": true}

// outward are functions that read a file or ask a network, for servers whose user has the right to.
var outward = map[string]bool{"file": true, "catboostevaluate": true, "reversednsquery": true}

// membership are the functions whose second argument may be a table.
var membership = map[string]bool{
	"in": true, "notin": true, "globalin": true, "globalnotin": true, "nullin": true, "notnullin": true, "globalnullin": true, "globalnotnullin": true,
}

// views returns why a statement may not run: it names something other than views v_*. It reads
// the tree that the store's own parser makes of it, so that there is no second opinion on names.
func views(ctx context.Context, q TableQuerier, sql string) error {
	tables := make(map[string]bool)
	database := ""
	err := q.Each(ctx, `SELECT name, currentDatabase() FROM system.tables WHERE database = currentDatabase()`, nil, func(v []any) error {
		name, _ := v[0].(string)
		database, _ = v[1].(string)
		tables[name] = true
		return nil
	})
	if err != nil {
		return fmt.Errorf("the names of the tables: %w", err)
	}
	var tree []string
	err = q.Each(ctx, "EXPLAIN AST "+sql, nil, func(v []any) error {
		line, _ := v[0].(string)
		tree = append(tree, line)
		return nil
	})
	if err != nil {
		return err
	}
	return checkTree(tree, func(name string) bool {
		name = strings.TrimPrefix(name, database+".")
		return strings.HasPrefix(name, "v_") || !strings.Contains(name, ".") && !tables[name] // a WITH, or nothing
	})
}

// node is a node of the tree.
type node struct {
	kind, name string
	below      []*node
}

// parse reads the lines of EXPLAIN AST: a node on each, below its parent by one blank.
func parse(lines []string) *node {
	root := &node{}
	path := []*node{root}
	for _, line := range lines {
		text := strings.TrimLeft(line, " ")
		n := &node{}
		n.kind, n.name, _ = strings.Cut(text, " ")
		n.name, _, _ = strings.Cut(n.name, " ")
		depth := min(len(line)-len(text)+1, len(path))
		path = append(path[:depth], n)
		path[depth-1].below = append(path[depth-1].below, n)
	}
	return root
}

func checkTree(lines []string, allowed func(table string) bool) error {
	root := parse(lines)
	if len(root.below) != 1 || root.below[0].kind != "SelectWithUnionQuery" {
		return errors.New("only a SELECT is run")
	}
	return root.check(allowed)
}

// check checks a node and all below it.
func (n *node) check(allowed func(table string) bool) error {
	for _, c := range n.below {
		if c.kind == "TableIdentifier" && !allowed(c.name) {
			return fmt.Errorf("%s is no view: only the views v_* may be read (the resource earshot://questions lists them)", c.name)
		}
		if n.kind == "TableExpression" && c.kind == "Function" && !tableFunctions[strings.ToLower(c.name)] {
			return fmt.Errorf("the table function %s is refused: only the views v_* may be read", c.name)
		}
		if c.kind == "Function" && outward[strings.ToLower(c.name)] {
			return fmt.Errorf("the function %s is refused: it reaches outside of the store", c.name)
		}
		if err := c.check(allowed); err != nil {
			return err
		}
	}
	if n.kind == "Function" && membership[strings.ToLower(n.name)] && len(n.below) > 0 && len(n.below[0].below) == 2 {
		if of := n.below[0].below[1]; of.kind == "Identifier" && !allowed(of.name) {
			return fmt.Errorf("%s is no view: only the views v_* may be read", of.name)
		}
	}
	return nil
}

// runSQL runs a statement and writes its rows to a, a line each.
func runSQL(ctx context.Context, q TableQuerier, sql string, a *answer) (more string, err error) {
	ctx, cancel := context.WithTimeout(ctx, SQLTime+time.Second)
	defer cancel()
	sql = fmt.Sprintf(sqlWrapped, strings.TrimRight(sql, "; \t\r\n"), sqlRows+1)
	if err := views(ctx, q, sql); err != nil {
		return "", err
	}
	rows := 0
	full := errors.New("enough rows")
	err = q.Table(ctx, sql, func(columns []string) { a.line("%s", strings.Join(columns, " | ")) }, func(v []any) error {
		if rows++; rows > sqlRows {
			return full
		}
		cells := make([]string, len(v))
		for i, x := range v {
			cells[i] = cell(x)
		}
		a.line("%s", strings.Join(cells, " | "))
		return nil
	})
	switch {
	case errors.Is(err, full):
		return fmt.Sprintf("Only the first %d rows were read: aggregate, or use LIMIT and OFFSET in the query.", sqlRows), nil
	case err != nil:
		return "", err
	case rows == 0:
		return "no rows", nil
	}
	return "", nil
}

// cell is a value in few characters.
func cell(v any) string {
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer { // of a Nullable
		if p.IsNil() {
			return "NULL"
		}
		v = p.Elem().Interface()
	}
	switch v := v.(type) {
	case time.Time:
		return v.UTC().Format("2006-01-02 15:04:05.000")
	case float64:
		return strconv.FormatFloat(v, 'g', 8, 64)
	}
	text := fmt.Sprint(v)
	if runes := []rune(text); len(runes) > sqlCell {
		text = fmt.Sprintf("%s… (%d characters more: ask for substring(…))", string(runes[:sqlCell]), len(runes)-sqlCell)
	}
	return text
}
