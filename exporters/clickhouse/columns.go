package clickhouse

import (
	"fmt"
	"strings"

	"github.com/earshot-dev/earshot/core/msg/schema"
)

// columnList renders the columns of a table as the baseline has them.
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

// columnsOf renders columns of a table for a view that has them as they are.
func columnsOf(table, columns string) (string, error) {
	t, _ := schema.Of(table)
	defs := make(map[string]string)
	for _, c := range t.Columns {
		defs[c.Name] = "    " + quoteName(c.Name) + " " + c.SQLType() + " COMMENT " + quoteText(c.Comment)
	}
	var list []string
	for name := range strings.FieldsSeq(columns) {
		if defs[name] == "" {
			return "", fmt.Errorf("no column %s.%s in core/msg/schema", table, name)
		}
		list = append(list, defs[name])
	}
	return strings.Join(list, ",\n"), nil
}
