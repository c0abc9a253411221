package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
)

// MinServer is the oldest server that is supported: 26.2 has the text index and
// deduplicates inserts into materialized views by itself. Tested with 26.7.
const MinServer = "26.2"

// ErrSchema is wrapped by every error of a database that does not fit this program, or of a
// server that refuses to change it: it persists until a person changes something. Nothing is
// lost: the rows wait.
var ErrSchema = errors.New("schema does not fit")

// baseline is the version that the first migrations make from nothing: 0092_tables.sql and 0093_views.sql. A database that a build of
// before made has the same tables and views, and notes of other migrations under their numbers.
const baseline = 93

// upgrades is the last commit that upgrades a database of any version from 28 on to 92, and moves its messages to partitions of a day.
const upgrades = "99a51da8"

// Plan is the difference between a database and this program.
type Plan struct {
	Server  string      // its version
	Applied int         // the last migration that the database has
	Pending []Migration // in order
	Adjust  []string    // statements that bring retention and comments to those of this program
}

// Empty reports whether there is nothing to do.
func (p Plan) Empty() bool { return len(p.Pending) == 0 && len(p.Adjust) == 0 }

// Statements are those that Apply would run, in order, without the records in
// schema_migrations.
func (p Plan) Statements() (out []string) {
	for _, m := range p.Pending {
		out = append(out, m.Statements...)
	}
	return append(out, p.Adjust...)
}

// Plan reads the database and returns the missing steps. It changes nothing. It
// refuses, with ErrSchema, a server that is too old, a database that a newer
// program has migrated, and a migration that is not the one that was applied.
func (s Schema) Plan(ctx context.Context, c *Conn) (Plan, error) {
	_, p, err := s.plan(ctx, c)
	return p, err
}

// plan is Plan, and the schema as this database needs it.
func (s Schema) plan(ctx context.Context, c *Conn) (Schema, Plan, error) {
	err := c.db.QueryRow(ctx, "SELECT countIf(engine = 'Replicated') > 0 FROM system.databases WHERE name = "+quoteText(s.withDefaults().Database)).Scan(&s.Replicated)
	if err != nil {
		return s, Plan{}, fmt.Errorf("clickhouse: schema: read databases: %w", err)
	}
	s.byDay = c.embedded
	p, err := s.missing(ctx, c)
	if err != nil {
		return s, p, fmt.Errorf("clickhouse: schema: %w", err)
	}
	return s, p, nil
}

func (s Schema) missing(ctx context.Context, c *Conn) (Plan, error) {
	var p Plan
	migrations, err := s.Migrations()
	if err != nil {
		return p, err
	}
	if p.Server, err = serverVersion(ctx, c); err != nil {
		return p, err
	}
	applied, err := s.applied(ctx, c)
	if err != nil {
		return p, err
	}
	for version := range applied {
		p.Applied = max(p.Applied, version)
	}
	if oldest := migrations[0].Version; p.Applied > 0 && p.Applied < oldest {
		return p, fmt.Errorf("%w: the database has migration %d, and this program upgrades from %d on: run a build of commit %s once, which upgrades it to that, "+
			"or drop database %s, or configure another one, and every source is read again",
			ErrSchema, p.Applied, oldest, upgrades, s.withDefaults().Database)
	}
	if s.byDay {
		if err := moved(ctx, c, s); err != nil {
			return p, err
		}
	}
	for _, m := range migrations {
		a, done := applied[m.Version]
		switch {
		case !done:
			p.Pending = append(p.Pending, m)
		case m.Version > baseline && m.Checksum != a.checksum:
			return p, fmt.Errorf("%w: migration %d (%s) was applied in another form: this program is not the release that made the tables", ErrSchema, m.Version, a.name)
		}
	}
	if last := migrations[len(migrations)-1].Version; p.Applied > last {
		return p, fmt.Errorf("%w: the database has migration %d, this program knows %d: upgrade earshot", ErrSchema, p.Applied, last)
	}
	if p.Applied > 0 {
		p.Adjust, err = s.adjust(ctx, c)
	}
	return p, err
}

// moved refuses an embedded store whose messages an earlier build was moving to partitions of a day: the table that it copies to
// has the name messages_by_day, and afterwards that which it copies from, with rows that no other table has yet.
func moved(ctx context.Context, c *Conn, s Schema) error {
	var tables uint64
	err := c.db.QueryRow(ctx, "SELECT count() FROM system.tables WHERE name = 'messages_by_day' AND database = "+quoteText(s.withDefaults().Database)).Scan(&tables)
	if err != nil {
		return fmt.Errorf("look for messages_by_day: %w", err)
	}
	if tables > 0 {
		return fmt.Errorf("%w: an earlier build moves messages to partitions of a day and has not ended: run a build of commit %s until table %s is gone", ErrSchema, upgrades, s.name("messages_by_day"))
	}
	return nil
}

// Apply changes the database to the schema of this program, and returns the steps that it
// took. Every step can be done twice, so two programs may do this at one time.
func (s Schema) Apply(ctx context.Context, c *Conn) (Plan, error) {
	s, p, err := s.plan(ctx, c)
	if err != nil {
		return p, err
	}
	if p.Applied == 0 {
		for _, sql := range s.bootstrap() {
			if err := c.change(ctx, sql); err != nil {
				return p, fmt.Errorf("clickhouse: schema: %w", err)
			}
		}
	}
	for _, m := range p.Pending {
		err := s.migrate(ctx, c, m)
		for try := 1; err != nil && replacedMeanwhile(err) && try <= 8; try++ {
			if appliedMeanwhile(ctx, c, s, m) {
				err = nil
				break
			}
			select {
			case <-ctx.Done():
				return p, ctx.Err()
			case <-time.After(time.Duration(try) * 100 * time.Millisecond):
			}
			err = s.migrate(ctx, c, m)
		}
		if err != nil {
			return p, fmt.Errorf("clickhouse: schema: migration %d (%s): %w", m.Version, m.Name, err)
		}
	}
	if len(p.Pending) > 0 && p.Applied > 0 { // tables of a later migration may not have been there
		if p.Adjust, err = s.adjust(ctx, c); err != nil {
			return p, fmt.Errorf("clickhouse: schema: %w", err)
		}
	}
	for _, sql := range p.Adjust {
		if err := c.change(ctx, sql); err != nil {
			return p, fmt.Errorf("clickhouse: schema: retention and comments: %w", err)
		}
	}
	return p, nil
}

// appliedMeanwhile reports whether another program has applied the migration: a later one may
// already have removed a table that a statement of this one needs.
func appliedMeanwhile(ctx context.Context, c *Conn, s Schema, m Migration) bool {
	applied, err := s.applied(ctx, c)
	if err != nil {
		return false
	}
	is, ok := applied[m.Version]
	return ok && is.checksum == m.Checksum
}

func (s Schema) migrate(ctx context.Context, c *Conn, m Migration) error {
	for _, sql := range m.Statements {
		if err := c.change(ctx, sql); err != nil {
			return err
		}
	}
	return c.change(ctx, s.record(m))
}

// change runs a statement of the schema.
func (c *Conn) change(ctx context.Context, sql string) error {
	err := c.db.Exec(ctx, sql)
	var ex *chgo.Exception
	if errors.As(err, &ex) && refusesSchema(ex.Code) {
		return fmt.Errorf("%w: the server refuses a statement: %w\n%s", ErrSchema, err, sql)
	}
	return err
}

// Verify reports, with ErrSchema, a database that Apply would have to change for
// rows to be stored.
func (s Schema) Verify(ctx context.Context, c *Conn) error {
	p, err := s.Plan(ctx, c)
	if err != nil {
		return err
	}
	if n := len(p.Pending); n > 0 {
		return fmt.Errorf("clickhouse: schema: %w: the database has migration %d, this program needs %d: run earshot schema apply",
			ErrSchema, p.Applied, p.Pending[n-1].Version)
	}
	return nil
}

func serverVersion(ctx context.Context, c *Conn) (string, error) {
	var version string
	if err := c.db.QueryRow(ctx, "SELECT version()").Scan(&version); err != nil {
		return "", fmt.Errorf("server version: %w", err)
	}
	if !atLeast(version, MinServer) {
		return version, fmt.Errorf("%w: server %s is too old: %s or newer is needed", ErrSchema, version, MinServer)
	}
	return version, nil
}

// atLeast compares the first two numbers of versions.
func atLeast(version, least string) bool {
	numbers := func(v string) []int {
		major, rest, _ := strings.Cut(v, ".")
		minor, _, _ := strings.Cut(rest, ".")
		a, _ := strconv.Atoi(major) // 0 for no number
		b, _ := strconv.Atoi(minor)
		return []int{a, b}
	}
	return slices.Compare(numbers(version), numbers(least)) >= 0
}

type appliedMigration struct{ name, checksum string }

// applied reads which migrations the database has; none when there is no
// database yet.
func (s Schema) applied(ctx context.Context, c *Conn) (map[int]appliedMigration, error) {
	var there uint64
	err := c.db.QueryRow(ctx, "SELECT count() FROM system.tables WHERE database = "+quoteText(s.withDefaults().Database)+
		" AND name = 'schema_migrations'").Scan(&there)
	if err != nil {
		return nil, fmt.Errorf("look for schema_migrations: %w", err)
	}
	out := make(map[int]appliedMigration)
	if there == 0 {
		return out, nil
	}
	rows, err := c.db.Query(ctx, "SELECT version, name, checksum FROM "+s.name("schema_migrations")+" FINAL ORDER BY version")
	if err != nil {
		return nil, fmt.Errorf("read schema_migrations: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var version uint32
		var a appliedMigration
		if err := rows.Scan(&version, &a.name, &a.checksum); err != nil {
			return nil, fmt.Errorf("read schema_migrations: %w", err)
		}
		out[int(version)] = a
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read schema_migrations: %w", err)
	}
	return out, nil
}
