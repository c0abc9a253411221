package clickhouse

import (
	"errors"
	flags "flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flags.Bool("update", false, "write fresh.sql anew, from what the migrations make")

// migrated makes the database by its migrations.
func migrated(t *testing.T, conn *Conn, schema Schema) {
	t.Helper()
	migrations, err := schema.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range schema.bootstrap() {
		if err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range migrations {
		if err := schema.migrate(t.Context(), conn, m); err != nil {
			t.Fatal(err)
		}
	}
}

// printed makes the database by the output of Print for a client of ClickHouse.
func printed(t *testing.T, conn *Conn, schema Schema) {
	t.Helper()
	var b strings.Builder
	if err := schema.Print(&b); err != nil {
		t.Fatal(err)
	}
	comment := regexp.MustCompile(`(?m)^--.*$`)
	for _, sql := range strings.Split(comment.ReplaceAllString(b.String(), ""), ";\n") {
		if sql = strings.TrimSpace(sql); sql == "" {
			continue
		}
		if err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%v in:\n%s", err, sql)
		}
	}
}

// TestFreshSchema holds fresh.sql to the migrations: the tables, views and rows of a new database are
// those that the migrations make, to the last comment, with each setting of the configuration and without. They are made by
// the output of Print, too.
func TestFreshSchema(t *testing.T) {
	for _, c := range []struct {
		name   string
		schema Schema
		make   func(*testing.T, *Conn, Schema)
	}{
		{"printed", Schema{TTL: testTTL}, printed},
		{"migrated", Schema{Sync: true}, migrated},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, s := database(t)
			schema := c.schema
			schema.Database = s.Database
			c.make(t, conn, schema)
			if p, err := schema.Plan(t.Context(), conn); err != nil || !p.Empty() {
				t.Errorf("error %v, still to do: %s", err, p.Statements())
			}
			if schema.TTL == testTTL {
				text := freshSchema(t, conn, schema)
				if *update {
					if err := os.WriteFile("fresh.sql", []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
					freshFile = []byte(text)
				}
				if string(freshFile) != text {
					t.Error("fresh.sql is not what the migrations make: go generate ./exporters/clickhouse")
				}
			}
			want := everything(t, conn, schema)
			if err := conn.Exec(t.Context(), "DROP DATABASE "+quoteName(s.Database)+" SYNC"); err != nil {
				t.Fatal(err)
			}
			done, err := schema.Apply(t.Context(), conn)
			if err != nil {
				t.Fatal(err)
			}
			if len(done.Fresh) == 0 {
				t.Error("the migrations were run")
			}
			if d := cmp.Diff(want, everything(t, conn, schema)); d != "" {
				t.Errorf("(-%s +fresh):\n%s", c.name, d)
			}
			if p, err := schema.Plan(t.Context(), conn); err != nil || !p.Empty() {
				t.Errorf("error %v, still to do: %s", err, p.Statements())
			}
		})
	}
}

// TestVersionsOfARowAreInOnePartition: readers merge the parts of each partition alone, so the partition of a row follows from its sort key in
// every table of which a later version replaces a row.
func TestVersionsOfARowAreInOnePartition(t *testing.T) {
	_, c := exporter(t, nil)
	all := rows(t, c, "SELECT name, partition_key, sorting_key FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%Replacing%' AND partition_key != ''")
	if len(all) < 10 {
		t.Fatalf("%d tables", len(all))
	}
	for _, table := range all {
		of := regexp.MustCompile(`^(?:toDate|toYYYYMM)\((\w+)\)$`).FindStringSubmatch(table["partition_key"].(string))
		if of == nil {
			t.Errorf("%s: partitions by %s", table["name"], table["partition_key"])
			continue
		}
		key := strings.Split(table["sorting_key"].(string), ", ")
		if !slices.Contains(key, of[1]) && !slices.Contains(key, "toStartOfHour("+of[1]+")") && !slices.Contains(key, "toDateTime("+of[1]+")") {
			t.Errorf("%s: the key %s has not the time of partition %s", table["name"], table["sorting_key"], of[0])
		}
	}
}

// TestAConversationOfTwoMonths: tables of aggregates have a row of it in each month, which no merge of one partition adds up. There are three, and their views
// have one row.
func TestAConversationOfTwoMonths(t *testing.T) {
	x, c := exporter(t, nil)
	var apart []string
	for _, table := range rows(t, c, "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%Aggregating%' AND partition_key != '' ORDER BY name") {
		apart = append(apart, table["name"].(string))
	}
	if want := []string{"run_setups", "session_facts", "sessions"}; !slices.Equal(apart, want) {
		t.Errorf("tables of aggregates in partitions: %q, want %q", apart, want)
	}
	state := func(fn, value string) string {
		return fn + "State('" + value + "', (began, toUInt64(0)), toUInt8(1))"
	}
	for _, month := range []string{"2026-01-31", "2026-02-01"} {
		for _, sql := range []string{
			"INSERT INTO " + x.schema.name("sessions") + " (tenant, session_id, began, latest) SELECT 'default', 'long', toDateTime64('" + month + "', 9, 'UTC') AS began, began",
			"INSERT INTO " + x.schema.name("session_facts") + " (tenant, session_id, began, project) SELECT 'default', 'long', toDateTime64('" + month + "', 9, 'UTC') AS began, " + state("argMinIf", "p "+month) + " GROUP BY began",
		} {
			if err := c.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	const final = " WHERE session_id = 'long' SETTINGS final = 1, do_not_merge_across_partitions_select_final = 1"
	if got := rows(t, c, "SELECT toString(toDate(began)) AS a, toString(toDate(latest)) AS b FROM "+x.schema.name("v_session_times")+final); len(got) != 1 || got[0]["a"] != "2026-01-31" || got[0]["b"] != "2026-02-01" {
		t.Errorf("times: %v", got)
	}
	if got := rows(t, c, "SELECT project FROM "+x.schema.name("v_session_facts")+final); len(got) != 1 || got[0]["project"] != "p 2026-01-31" {
		t.Errorf("facts: %v", got)
	}
}

// freshSchema writes the objects of the database as a template: tables first, each kind by name.
func freshSchema(t *testing.T, conn *Conn, schema Schema) string {
	t.Helper()
	ofDatabase := regexp.MustCompile(`\b` + schema.Database + `\.(\w+)`)
	text := "{{- /* Written by go generate from what the migrations make. A database of a release has this form as long as no other migration is there. */ -}}\n"
	for _, x := range rows(t, conn, "SELECT name, create_table_query, total_rows > 0 AS filled FROM system.tables WHERE name != 'schema_migrations' AND database = "+
		quoteText(schema.Database)+" ORDER BY engine LIKE '%View', name") {
		name, sql := x["name"].(string), x["create_table_query"].(string)
		if strings.Contains(sql, "{{") {
			t.Fatalf("%s looks like a template", name)
		}
		for _, r := range retentions() {
			if clause := " TTL " + r.expression(schema.TTL); r.table == name && r.column == "" {
				sql = strings.Replace(sql, clause+" SETTINGS ", fmt.Sprintf("{{ttl %q}} SETTINGS ", name), 1)
			} else if r.table == name {
				column := regexp.MustCompile("(`" + r.column + "` [^`]*)" + regexp.QuoteMeta(clause))
				sql = column.ReplaceAllString(sql, fmt.Sprintf("${1}{{ttl %q}}", name+"."+r.column))
			}
		}
		if strings.Contains(sql, "ttl_only_drop_parts") {
			sql = settingsOf.ReplaceAllString(sql, "$0{{moreSettings}}")
		}
		sql = ofDatabase.ReplaceAllString(sql, `{{name "$1"}}`)
		for _, kind := range []string{"CREATE TABLE ", "CREATE VIEW ", "CREATE MATERIALIZED VIEW "} {
			if rest, is := strings.CutPrefix(sql, kind); is {
				sql = kind + "IF NOT EXISTS " + rest
			}
		}
		text += sql + ";\n"
		if strings.Contains(fmt.Sprint(x["filled"]), "1") {
			var b strings.Builder
			if err := conn.Format(t.Context(), &b, "Values", "SELECT * FROM "+schema.name(name)+" ORDER BY ALL", nil); err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintf("INSERT INTO {{name %q}} VALUES %s;\n", name, &b)
		}
	}
	return text
}

// settingsOf finds the settings of a table.
var settingsOf = regexp.MustCompile(` SETTINGS \w+ = (?:'[^']*'|\w+)(?:, \w+ = (?:'[^']*'|\w+))*`)

// everything returns the statements of tables and views, settings in order, and the rows of tables.
func everything(t *testing.T, conn *Conn, schema Schema) map[string]any {
	t.Helper()
	out := make(map[string]any)
	for _, x := range rows(t, conn, "SELECT name, create_table_query, coalesce(total_rows, 0) AS filled FROM system.tables WHERE database = "+quoteText(schema.Database)) {
		name := x["name"].(string)
		out[name] = settingsOf.ReplaceAllStringFunc(x["create_table_query"].(string), func(list string) string {
			each := strings.Split(strings.TrimPrefix(list, " SETTINGS "), ", ")
			slices.Sort(each)
			return " SETTINGS " + strings.Join(each, ", ")
		})
		if fmt.Sprint(x["filled"]) != "0" && name != "schema_migrations" {
			out["rows of "+name] = rows(t, conn, "SELECT * FROM "+schema.name(name)+" ORDER BY ALL")
		}
	}
	out["applied"] = rows(t, conn, "SELECT version, name, checksum FROM "+schema.name("schema_migrations")+" FINAL WHERE version > 0 ORDER BY version")
	return out
}

// TestFirstStartIsInterrupted has a database with some of the tables: this release goes on with its
// own, runs the migrations where a release began with them, and refuses those of another one.
func TestFirstStartIsInterrupted(t *testing.T) {
	conn, s := database(t)
	schema := Schema{Database: s.Database, TTL: testTTL}
	p, err := schema.Plan(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	begin := func(statements []string) {
		t.Helper()
		for _, sql := range append([]string{"DROP DATABASE IF EXISTS " + quoteName(s.Database) + " SYNC"}, statements...) {
			if err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	complete := func(fresh bool) {
		t.Helper()
		done, err := schema.Apply(t.Context(), conn)
		if err != nil || (len(done.Fresh) > 0) != fresh {
			t.Fatalf("fresh %v, error %v", len(done.Fresh) > 0, err)
		}
		if err := schema.Verify(t.Context(), conn); err != nil {
			t.Error(err)
		}
	}
	begin(p.Fresh[:len(p.Fresh)/2])
	complete(true)

	other := freshNote()
	other.Checksum = "00"
	begin(append(schema.bootstrap(), schema.record(other)))
	if _, err := schema.Apply(t.Context(), conn); !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), "drop database "+s.Database) {
		t.Errorf("another release: %v", err)
	}

	migrations, err := schema.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	begin(append(schema.bootstrap(), texts(migrations[0])[:3]...))
	complete(false)
}
