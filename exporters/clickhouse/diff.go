package clickhouse

import (
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg/schema"
	"github.com/earshot-dev/earshot/core/semconv"
)

// tableTTL finds the rows' TTL in the text of a table's engine.
var tableTTL = regexp.MustCompile(` TTL (.+?)(?: SETTINGS |$)`)

// adjust compares the retention of every table with the configured one, and the comments of
// columns with those of core/msg/schema, and returns the statements that correct them. A
// comment is not part of a migration: a reworded one reaches the databases that are there.
func (s Schema) adjust(ctx context.Context, c *Conn) ([]string, error) {
	tables, err := s.engines(ctx, c)
	if err != nil {
		return nil, err
	}
	columns := make(map[string]map[string]described)
	var comments []string
	for _, t := range schema.Tables {
		if _, there := tables[t.Name]; !there {
			continue // its migration is pending
		}
		names := []string{s.local(t.Name)}
		if s.Cluster != "" {
			names = append(names, s.name(t.Name))
		}
		for _, name := range names {
			have, err := s.columns(ctx, c, name)
			if err != nil {
				return nil, err
			}
			columns[name] = have
			var list []string
			for _, col := range t.Columns {
				if is, there := have[col.Name]; there && is.comment != col.Comment {
					list = append(list, "COMMENT COLUMN "+quoteName(col.Name)+" "+quoteText(col.Comment))
				}
			}
			if len(list) > 0 {
				comments = append(comments, "ALTER TABLE "+name+s.onCluster()+" "+strings.Join(list, ", "))
			}
		}
	}
	var out []string
	for _, r := range retentions() {
		engine, there := tables[r.table]
		if !there {
			continue
		}
		have := ""
		if m := tableTTL.FindStringSubmatch(engine); m != nil {
			have = m[1]
		}
		if r.column != "" {
			have = columns[s.local(r.table)][r.column].ttl
		}
		if want := r.expression(s.TTL); want != have {
			// The parts that are there learn of it without being written again.
			if cheap := "materialize_ttl_recalculate_only = 1"; !strings.Contains(engine, cheap) {
				tables[r.table] = engine + cheap
				out = append(out, "ALTER TABLE "+s.local(r.table)+s.onCluster()+" MODIFY SETTING "+cheap)
			}
			out = append(out, s.modify(r, want))
		}
	}
	for _, t := range slices.Sorted(maps.Keys(tables)) {
		if engine := tables[t]; strings.Contains(engine, "ttl_only_drop_parts") {
			out = append(out, changeSettings(s, t, engine)...)
		}
	}
	return append(out, comments...), nil
}

// changeSettings are the statements that bring the settings of a table to those of the
// configuration.
func changeSettings(s Schema, table, engine string) (out []string) {
	alter := "ALTER TABLE " + s.local(table) + s.onCluster()
	var set []string
	for _, w := range tableSettings(s) {
		if !strings.Contains(engine, w.text()) {
			set = append(set, w.text())
		}
	}
	if len(set) > 0 {
		out = append(out, alter+" MODIFY SETTING "+strings.Join(set, ", "))
	}
	if !s.Sync && strings.Contains(engine, "fsync_after_insert = 1") {
		out = append(out, alter+" RESET SETTING fsync_after_insert, fsync_part_directory")
	}
	return out
}

// engines returns the full text of the engine of every table that has rows, by
// its name in this schema.
func (s Schema) engines(ctx context.Context, c *Conn) (map[string]string, error) {
	rows, err := c.db.Query(ctx, "SELECT name, engine_full FROM system.tables WHERE database = "+
		quoteText(s.withDefaults().Database)+" AND engine LIKE '%MergeTree'")
	if err != nil {
		return nil, fmt.Errorf("read tables: %w", err)
	}
	defer rows.Close()
	out := make(map[string]string)
	for rows.Next() {
		var name, engine string
		if err := rows.Scan(&name, &engine); err != nil {
			return nil, fmt.Errorf("read tables: %w", err)
		}
		if s.Cluster != "" {
			name = strings.TrimSuffix(name, "_local")
		}
		out[name] = engine
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read tables: %w", err)
	}
	return out, nil
}

// described is a line of DESCRIBE TABLE.
type described struct{ kind, comment, ttl string }

// columns describes the columns of a table, by name.
func (s Schema) columns(ctx context.Context, c *Conn, table string) (map[string]described, error) {
	rows, err := c.db.Query(ctx, "DESCRIBE TABLE "+table)
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", table, err)
	}
	defer rows.Close()
	out := make(map[string]described)
	for rows.Next() {
		var name, ignore string
		var d described
		if err := rows.Scan(&name, &d.kind, &ignore, &ignore, &d.comment, &ignore, &d.ttl); err != nil {
			return nil, fmt.Errorf("describe %s: %w", table, err)
		}
		out[name] = d
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("describe %s: %w", table, err)
	}
	return out, nil
}

// Diff writes how the database differs from this program: the statements that Apply would
// run, and columns that rows are written to and that are missing or of another type, which
// no migration explains: a person changed the table. It reports whether there is a
// difference.
func (s Schema) Diff(ctx context.Context, c *Conn, w io.Writer) (bool, error) {
	p, err := s.Plan(ctx, c)
	if err != nil {
		return false, err
	}
	var b strings.Builder
	for _, m := range p.Pending {
		fmt.Fprintf(&b, "-- migration %d (%s) is not applied\n", m.Version, m.Name)
	}
	for _, sql := range p.Statements() {
		fmt.Fprintf(&b, "%s;\n", sql)
	}
	if len(p.Pending) == 0 {
		byHand, err := s.byHand(ctx, c)
		if err != nil {
			return false, fmt.Errorf("clickhouse: schema: %w", err)
		}
		for _, line := range byHand {
			fmt.Fprintf(&b, "-- %s\n", line)
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return false, fmt.Errorf("clickhouse: schema: write: %w", err)
	}
	return b.Len() > 0, nil
}

func (s Schema) byHand(ctx context.Context, c *Conn) ([]string, error) {
	profile, err := semconv.New("")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, t := range newWriters(profile, s).tables() {
		have, err := s.columns(ctx, c, s.local(t.name))
		if err != nil {
			return nil, err
		}
		for _, want := range t.block.Columns {
			got, there := have[want.Name]
			switch {
			case !there:
				out = append(out, fmt.Sprintf("%s.%s is missing", t.name, want.Name))
			case got.kind != want.Type().String():
				out = append(out, fmt.Sprintf("%s.%s is %s, and rows are written as %s", t.name, want.Name, got.kind, want.Type()))
			}
		}
	}
	return out, nil
}
