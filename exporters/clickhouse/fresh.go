package clickhouse

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

// A new database has each table and view made once, in the form that all migrations leave them
// in: in a third of the time of the migrations, which make a view up to four times. A cluster and
// a database of the engine Replicated take the migrations.
//
//go:generate go test -count=1 -run TestFreshSchema . -update
//go:embed fresh.sql
var freshFile []byte

// freshNote is in the table of migrations before any table that fresh.sql makes: an interrupted first
// start goes on in the same release, and is distinguished from one of a release that ran the migrations.
func freshNote() Migration { return Migration{Name: "fresh", Checksum: checksum(freshFile)} }

// fresh returns the statements that make a database that no migration was applied to, and note all of them
// as applied; none where the migrations have to. Each can be run twice.
func fresh(s Schema, migrations []Migration, filled bool, applied map[int]appliedMigration) ([]string, error) {
	note, noted := applied[0]
	switch {
	case s.Cluster != "" || s.Replicated || filled && !noted:
		return nil, nil
	case noted && note.checksum != freshNote().Checksum:
		return nil, fmt.Errorf("%w: the first start of another release was interrupted while it made the tables, and no row was stored: drop database %s",
			ErrSchema, s.withDefaults().Database)
	}
	made, err := render(s, "fresh.sql", freshFile)
	if err != nil {
		return nil, fmt.Errorf("fresh.sql: %w", err)
	}
	out := append(s.bootstrap(), s.record(freshNote()))
	messages := "CREATE TABLE IF NOT EXISTS " + s.name("messages") + " ("
	for _, st := range made {
		if s.days && strings.HasPrefix(st.SQL, messages) {
			st.SQL = inDays(st.SQL)
		}
		out = append(out, st.SQL)
	}
	return append(out, s.record(migrations...)), nil
}

// filled reports whether the database has tables beside that of the migrations.
func filled(ctx context.Context, c *Conn, s Schema) (bool, error) {
	var tables uint64
	err := c.db.QueryRow(ctx, "SELECT count() FROM system.tables WHERE name != 'schema_migrations' AND database = "+quoteText(s.withDefaults().Database)).Scan(&tables)
	if err != nil {
		return false, fmt.Errorf("look for tables: %w", err)
	}
	return tables > 0, nil
}

// moreSettings are the settings of a table that follow the configuration, behind those of every one.
func moreSettings(s Schema) string {
	var b strings.Builder
	for _, more := range tableSettings(s) {
		b.WriteString(", " + more.text())
	}
	return b.String()
}
