package clickhouse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg/schema"
)

// columnList renders the columns of a table as the first release has them.
func (s Schema) columnList(table string) (string, error) {
	t, ok := schema.Of(table)
	if !ok {
		return "", fmt.Errorf("no table %q in core/msg/schema", table)
	}
	var list []string
	for _, c := range t.Columns {
		if c.Since == 0 {
			list = append(list, "    "+s.column(t, c))
		}
	}
	return strings.Join(list, ",\n"), nil
}

// column renders the definition of one column.
func (s Schema) column(t schema.Table, c schema.Column) string {
	def := quoteName(c.Name) + " " + c.SQLType()
	if c.Default != "" {
		def += " " + c.Default
	}
	def += " COMMENT " + quoteText(c.Comment)
	if codec := c.Codec(); codec != "" {
		def += " " + codec
	}
	if ttl, err := s.ttlClause(t.Name + "." + c.Name); err == nil { // most columns are kept as long as their row
		def += ttl
	}
	return def
}

// addColumn renders the statements that add a column to a table, and on a cluster to the
// table that distributes it: for the migration of the column's Since.
func (s Schema) addColumn(table, column string) (string, error) {
	t, _ := schema.Of(table)
	for i, c := range t.Columns {
		if c.Name != column || i == 0 {
			continue
		}
		alter := func(name string) string {
			return "ALTER TABLE " + name + s.onCluster() + " ADD COLUMN IF NOT EXISTS " + s.column(t, c) + " AFTER " + quoteName(t.Columns[i-1].Name)
		}
		if s.Cluster == "" {
			return alter(s.name(table)), nil
		}
		return alter(s.local(table)) + ";\n" + alter(s.name(table)), nil
	}
	return "", fmt.Errorf("no column %s.%s in core/msg/schema", table, column)
}

// addKeys adds columns of a rollup to its table, and to the end of its sort key, in one statement: a key takes only columns that are new
// and have no default.
func addKeys(s Schema, table string, columns ...string) (string, error) {
	t, _ := schema.Of(table)
	r, err := rollupOf(table)
	if err != nil {
		return "", err
	}
	var add []string
	for i, c := range t.Columns {
		if i > 0 && slices.Contains(columns, c.Name) {
			add = append(add, "ADD COLUMN IF NOT EXISTS "+s.column(t, c)+" AFTER "+quoteName(t.Columns[i-1].Name))
		}
	}
	if len(add) != len(columns) {
		return "", fmt.Errorf("not all of the columns %v of %s are in core/msg/schema", columns, table)
	}
	key := ", MODIFY ORDER BY (tenant, step, ts, " + strings.Join(r.keys, ", ") + ")"
	alter := func(name, more string) string {
		return "ALTER TABLE " + name + s.onCluster() + " " + strings.Join(add, ", ") + more
	}
	if s.Cluster == "" {
		return alter(s.name(table), key), nil
	}
	return alter(s.local(table), key) + ";\n" + alter(s.name(table), ""), nil
}

// comments renders the comments of columns of a table, for a view that has them as they are.
func comments(table, columns string) (string, error) {
	t, _ := schema.Of(table)
	comment := make(map[string]string)
	for _, c := range t.Columns {
		comment[c.Name] = c.Comment
	}
	var list []string
	for name := range strings.FieldsSeq(columns) {
		if comment[name] == "" {
			return "", fmt.Errorf("no column %s.%s in core/msg/schema", table, name)
		}
		list = append(list, "    COMMENT COLUMN "+quoteName(name)+" "+quoteText(comment[name]))
	}
	return strings.Join(list, ",\n"), nil
}
