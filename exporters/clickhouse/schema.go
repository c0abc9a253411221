package clickhouse

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"text/template"
	"time"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// DefaultDatabase is where the tables are unless the DSN or the settings name
// another one.
const DefaultDatabase = "earshot"

// TTL is how long rows are kept, counted from when they were stored, so that a
// backfill of old conversations is not gone before anybody reads it. Zero keeps
// them for ever.
type TTL struct {
	Bodies   time.Duration // contents of messages, arguments, tasks
	Messages time.Duration // messages without their contents, tool calls, delegations
	Spans    time.Duration // spans, open spans, dead letters
	Rollups  time.Duration // hourly aggregates
	// Rows that are MoveAfter old go to the volume of the storage policy.
	Volume    string
	MoveAfter time.Duration
}

// Schema is the shape of the database: the migrations, rendered for one server or
// for a cluster.
//
// On a cluster every table is local to a shard under the name NAME_local,
// replicated within the shard, and read and written through a Distributed table
// NAME. A session, and a trace, live on one shard, so that a replay replaces rows
// where they are.
type Schema struct {
	Database string // DefaultDatabase when empty
	Cluster  string // empty for one server
	TTL      TTL
	// Sync has an insert answered when its rows survive a power cut.
	Sync bool
	// StoragePolicy of the tables with rows; the server's default when empty.
	StoragePolicy string
	// Tenants have a role of their own each; see Roles.
	Tenants []string

	// Replicated is for a database of the engine Replicated, which carries every
	// statement to its replicas and sets the paths of tables. Plan and Apply detect it;
	// Print does not look.
	Replicated bool

	byDay bool // a new table of messages has partitions of a day, as in the embedded store. Plan and Apply set it
}

// Migration is a numbered step. One that has landed never changes, but for the comments of the baseline. Numbers ascend.
type Migration struct {
	Version    int
	Name       string
	Checksum   string // of the template, in hex: the same for every server and cluster
	Statements []string
}

// Migrations returns all steps, first to last.
func (s Schema) Migrations() ([]Migration, error) {
	entries, err := fs.ReadDir(migrationFiles, "migrations")
	if err != nil {
		return nil, fmt.Errorf("clickhouse: migrations: %w", err)
	}
	out := make([]Migration, 0, len(entries))
	for _, e := range entries {
		m, err := s.migration(e.Name())
		if err != nil {
			return nil, fmt.Errorf("clickhouse: migration %s: %w", e.Name(), err)
		}
		out = append(out, m)
	}
	return out, nil
}

func (s Schema) migration(file string) (Migration, error) {
	text, err := migrationFiles.ReadFile("migrations/" + file)
	if err != nil {
		return Migration{}, err
	}
	number, name, _ := strings.Cut(strings.TrimSuffix(file, ".sql"), "_")
	m := Migration{Name: name}
	if m.Version, err = strconv.Atoi(number); err != nil {
		return m, err
	}
	m.Checksum = checksum(text)
	m.Statements, err = render(s, file, text)
	return m, err
}

func checksum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// render returns the statements of a template, which end with a semicolon at the end of a line.
func render(s Schema, file string, text []byte) (out []string, err error) {
	t, err := template.New(file).Option("missingkey=error").Funcs(s.functions()).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, nil); err != nil {
		return nil, err
	}
	for _, sql := range strings.Split(b.String(), ";\n") {
		if sql = strings.TrimSpace(sql); sql != "" {
			out = append(out, sql)
		}
	}
	return out, nil
}

// Print writes the whole schema as SQL that a client of ClickHouse runs on a new database.
func (s Schema) Print(w io.Writer) error {
	migrations, err := s.Migrations()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, sql := range s.bootstrap() {
		fmt.Fprintf(&b, "%s;\n\n", sql)
	}
	for _, m := range migrations {
		fmt.Fprintf(&b, "-- %d %s\n\n", m.Version, m.Name)
		for _, sql := range m.Statements {
			fmt.Fprintf(&b, "%s;\n\n", sql)
		}
		fmt.Fprintf(&b, "%s;\n\n", s.record(m))
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("clickhouse: print schema: %w", err)
	}
	return nil
}

func (s Schema) withDefaults() Schema {
	if s.Database == "" {
		s.Database = DefaultDatabase
	}
	return s
}

// bootstrap returns the statements that make the database and the table of
// migrations.
func (s Schema) bootstrap() []string {
	s = s.withDefaults()
	return []string{
		"CREATE DATABASE IF NOT EXISTS " + quoteName(s.Database) + s.onCluster(),
		"CREATE TABLE IF NOT EXISTS " + s.name("schema_migrations") + s.onCluster() + ` (
    version    UInt32 COMMENT 'Number of the migration',
    name       String COMMENT 'Name of the migration',
    checksum   String COMMENT 'SHA-256 of its template',
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When it was applied'
)
ENGINE = ` + s.everywhere("applied_at") + `
ORDER BY version
COMMENT 'Which steps of the schema this database has'`,
	}
}

// everywhere is the engine of a small table that all nodes of all shards have
// whole, so that it can be joined where the rows are.
func (s Schema) everywhere(ver string) string {
	switch {
	case s.Cluster != "":
		return "ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}', '{shard}-{replica}', " + ver + ")"
	case s.Replicated:
		return "ReplicatedReplacingMergeTree(" + ver + ")"
	}
	return "ReplacingMergeTree(" + ver + ")"
}

// record returns the statement that notes a migration as applied.
func (s Schema) record(m Migration) string {
	return fmt.Sprintf("INSERT INTO %s (version, name, checksum) VALUES (%d, %s, %s)", s.name("schema_migrations"), m.Version, quoteText(m.Name), quoteText(m.Checksum))
}

// name is the table that is read and written.
func (s Schema) name(table string) string {
	return quoteName(s.withDefaults().Database) + "." + quoteName(table)
}

// local is the table that has the rows.
func (s Schema) local(table string) string {
	if s.Cluster != "" {
		table += "_local"
	}
	return s.name(table)
}

func (s Schema) onCluster() string {
	if s.Cluster == "" {
		return ""
	}
	return " ON CLUSTER " + quoteText(s.Cluster)
}

// tableSetting is a setting of the tables with rows that follows the configuration.
type tableSetting struct{ name, value string }

func (t tableSetting) text() string { return t.name + " = " + t.value }

// tableSettings are those that the configuration wants. A merged part need not be synced: the
// parts that it replaces are kept for eight minutes, and the kernel writes it within one.
func tableSettings(s Schema) (out []tableSetting) {
	if s.Sync {
		out = append(out, tableSetting{"fsync_after_insert", "1"}, tableSetting{"fsync_part_directory", "1"})
	}
	if s.Cluster != "" || s.Replicated { // a hundred sidecars have inserted 10,000 blocks in less than a minute
		out = append(out, tableSetting{"replicated_deduplication_window", "100000"})
	}
	if s.StoragePolicy != "" {
		out = append(out, tableSetting{"storage_policy", quoteText(s.StoragePolicy)})
	}
	return out
}

// commonSettings are those of the tables with rows, those of the configuration among them.
//
// Statistics of columns are for joins and the order of conditions; gathering them in
// every part is a tenth of the cost of an insert, and no plan here uses them.
//
// A merge takes about ten parts instead of five, so that a row is written again half
// as often. Parts that grow old are merged as ever.
func commonSettings(s Schema) string {
	set := "auto_statistics_types = '', merge_selector_base = 10"
	if s.Cluster != "" || s.Replicated { // a retry may come after an outage of days
		set += ", replicated_deduplication_window_seconds = 604800"
	} else {
		set += ", non_replicated_deduplication_window = 1000"
	}
	for _, more := range tableSettings(s) {
		set += ", " + more.text()
	}
	return set
}

// functions are called by the templates of migrations.
func (s Schema) functions() template.FuncMap {
	engine := func(name string) func(args ...string) string {
		return func(args ...string) string {
			if s.Cluster != "" {
				// The path has the table's UUID: a table that was dropped and made again
				// does not find the remains of the old one.
				args = append([]string{"'/clickhouse/tables/{uuid}/{shard}'", "'{replica}'"}, args...)
			}
			kind := name
			if s.Cluster != "" || s.Replicated {
				kind = "Replicated" + name
			}
			return kind + "(" + strings.Join(args, ", ") + ")"
		}
	}
	return template.FuncMap{
		"everywhere":  s.everywhere,
		"table":       s.local,
		"name":        s.name,
		"onCluster":   s.onCluster,
		"byDay":       func() bool { return s.byDay },
		"replacing":   engine("ReplacingMergeTree"),
		"aggregating": engine("AggregatingMergeTree"),
		"settings":    func() string { return "ttl_only_drop_parts = 1, " + commonSettings(s) },
		// for a table whose TTL is that of columns
		"commonSettings": func() string { return commonSettings(s) },
		"ttl":            s.ttlClause,
		"rollup": func(table string, seconds int, columns string) (string, error) {
			r, err := rollupOf(table)
			if err != nil {
				return "", err
			}
			return r.view(s, seconds, list("%s", strings.Fields(columns)...)+"finalizeAggregation(sessions) AS sessions"), nil
		},
		"slots": func(table string) (string, error) {
			r, err := rollupOf(table)
			if err != nil {
				return "", err
			}
			return r.view(s, 300, r.every()), nil
		},
		"hours": func(table string) (string, error) {
			r, err := rollupOf(table)
			if err != nil {
				return "", err
			}
			return r.view(s, 3600, r.greatest()), nil
		},
		"facts": func(table string) (string, error) {
			f, err := factsOf(table)
			if err != nil {
				return "", err
			}
			return f.rows(s), nil
		},
		"columns":   s.columnList,
		"columnsOf": columnsOf,
		"add":       s.addColumn,
		"distributed": func(table, shardBy string) string {
			if s.Cluster == "" {
				return ""
			}
			return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s AS %s\nENGINE = Distributed(%s, %s, %s, %s)",
				s.name(table), s.onCluster(), s.local(table), quoteText(s.Cluster), quoteText(s.withDefaults().Database), quoteText(table+"_local"), shardBy)
		},
	}
}

// quoteName quotes an identifier.
func quoteName(s string) string {
	return "`" + strings.ReplaceAll(escapeBackslash(s), "`", "\\`") + "`"
}

// quoteText quotes a string literal.
func quoteText(s string) string {
	return "'" + strings.ReplaceAll(escapeBackslash(s), "'", `\'`) + "'"
}

func escapeBackslash(s string) string { return strings.ReplaceAll(s, `\`, `\\`) }
