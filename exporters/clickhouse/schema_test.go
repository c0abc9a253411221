package clickhouse

import (
	"context"
	"errors"
	flags "flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

const testDay = 24 * time.Hour

var testTTL = TTL{Bodies: 90 * testDay, Messages: 180 * testDay, Spans: 30 * testDay, Rollups: 36 * time.Hour}

// TestSchemaIsAppliedOnce has four programs make the tables at one time: then there is nothing more to do, nothing differs, and what is
// changed by hand is named.
func TestSchemaIsAppliedOnce(t *testing.T) {
	conn, s := database(t)
	schema := Schema{Database: s.Database, TTL: testTTL}
	diff := func() string {
		t.Helper()
		var b strings.Builder
		differs, err := schema.Diff(t.Context(), conn, &b)
		if err != nil {
			t.Fatal(err)
		}
		if differs != (b.Len() > 0) {
			t.Errorf("differs %v, and:\n%s", differs, &b)
		}
		return b.String()
	}
	if got := diff(); !strings.Contains(got, "-- migration 92 (tables) is not applied") || !strings.Contains(got, "CREATE TABLE") {
		t.Errorf("before the first apply:\n%.500s", got)
	}
	var wg sync.WaitGroup
	plans, errs := make([]Plan, 4), make([]error, 4)
	for i := range errs {
		wg.Go(func() { plans[i], errs[i] = schema.Apply(t.Context(), conn) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	first := slices.IndexFunc(plans, func(p Plan) bool { return p.Applied == 0 && len(p.Pending) > 0 })
	if first < 0 {
		t.Fatal("nobody has applied the migrations")
	}
	second, err := schema.Apply(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if pending := plans[first].Pending; !second.Empty() || second.Applied != pending[len(pending)-1].Version {
		t.Errorf("the second time there was something to do: %+v", second)
	}
	if err := schema.Verify(t.Context(), conn); err != nil {
		t.Error(err)
	}
	if got := diff(); got != "" {
		t.Errorf("behind the apply:\n%s", got)
	}
	for _, sql := range []string{
		"ALTER TABLE " + schema.name("messages") + " DROP COLUMN agent_kind",
		"ALTER TABLE " + schema.name("messages") + " MODIFY COLUMN seq UInt32",
		"ALTER TABLE " + schema.name("spans") + " REMOVE TTL",
	} {
		if err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	got := diff()
	for _, want := range []string{
		"messages.agent_kind is missing", "messages.seq is UInt32, and rows are written as UInt64", "MODIFY TTL toDateTime(ingest_ts) + toIntervalDay(180)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
}

// objects returns the statement with which the server would create each table and view of
// the database, without its comments, which change with the words of the program.
func objects(t *testing.T, c *Conn, database string) map[string]string {
	t.Helper()
	list, err := c.Query(t.Context(), "SELECT name, create_table_query FROM system.tables WHERE database = {db:String}", Params{"db": database})
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	comment := regexp.MustCompile(` COMMENT '(?:[^'\\]|\\.)*'`)
	out := make(map[string]string)
	for list.Next() {
		sql := strings.ReplaceAll(fmt.Sprint(list.Values()[1]), database+".", "earshot.")
		out[fmt.Sprint(list.Values()[0])] = comment.ReplaceAllString(sql, "")
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	return out
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

var update = flags.Bool("update", false, "write testdata/schema_93.sql anew, from what the baseline makes")

// TestBaselineIsFixed holds the first two migrations, and the columns of core/msg/schema that they render, to the tables and views of version 93, but for
// comments: any other change is a further migration, because databases that are there do not get it otherwise. The database is made by the output of Print.
func TestBaselineIsFixed(t *testing.T) {
	conn, s := database(t)
	schema := Schema{Database: s.Database, TTL: testTTL}
	migrations, err := schema.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	if len(migrations) < 2 || migrations[0].Version != 92 || migrations[1].Version != baseline {
		t.Fatal("the first migrations are others")
	}
	printed(t, conn, schema)
	is := objects(t, conn, s.Database)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(is)) {
		text.WriteString(is[name] + "\n")
	}
	const file = "testdata/schema_93.sql"
	if *update {
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text.String(), "\n")); d != "" {
		t.Errorf("(-version 93 +now):\n%s", d)
	}
	if got := count(t, conn, "SELECT groupArray((name, after_ms, ver)) FROM (SELECT * FROM "+schema.name("thresholds")+" ORDER BY name)"); got != "[('silent',60000,0),('stuck',600000,0)]" {
		t.Errorf("thresholds: %s", got)
	}
	if p, err := schema.Plan(t.Context(), conn); err != nil || !p.Empty() {
		t.Errorf("error %v, still to do: %s", err, p.Statements())
	}

	if err := conn.Exec(t.Context(), "DROP DATABASE "+quoteName(s.Database)+" SYNC"); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Apply(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	embedded := objects(t, conn, s.Database)
	if conn.embedded != strings.Contains(embedded["messages"], "PARTITION BY toDate(ts)") || !strings.Contains(is["messages"], "PARTITION BY toYYYYMM(ts)") {
		t.Errorf("messages of the embedded store: %s\nof a server: %s", embedded["messages"], is["messages"])
	}
	delete(embedded, "messages")
	delete(is, "messages")
	if d := cmp.Diff(is, embedded); d != "" {
		t.Errorf("(-printed +applied):\n%s", d)
	}
}

// TestDatabasesOfBefore: a database of version 92 or 93 of a build of before, which has notes of other migrations, is brought to this one; a copy of the
// messages that has not ended is left to the build that began it.
func TestDatabasesOfBefore(t *testing.T) {
	x, _ := ownExporter(t, nil)
	x.keeper.stop()
	want := objects(t, x.conn, x.conn.database)
	exec := func(sql string) {
		t.Helper()
		if err := x.conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	noted := func(versions ...int) {
		t.Helper()
		exec("TRUNCATE TABLE " + x.schema.name("schema_migrations"))
		for _, version := range versions {
			exec(x.schema.record(Migration{Version: version, Name: "of_before", Checksum: "00"}))
		}
	}
	noted(0, 28, 91, 92, 93)
	if p, err := x.schema.Plan(t.Context(), x.conn); err != nil || !p.Empty() || p.Applied != 93 {
		t.Errorf("version 93: %d, %d pending, %v", p.Applied, len(p.Pending), err)
	}
	noted(28, 91, 92)
	exec("CREATE OR REPLACE VIEW " + x.schema.name("v_tool_calls") + " AS SELECT 1 AS cost_usd")
	if p, err := x.schema.Apply(t.Context(), x.conn); err != nil || len(p.Pending) == 0 || p.Pending[0].Version != 93 {
		t.Errorf("version 92: %d pending, %v", len(p.Pending), err)
	}
	if d := cmp.Diff(want, objects(t, x.conn, x.conn.database)); d != "" {
		t.Errorf("(-new +upgraded):\n%s", d)
	}
	if x.conn.embedded {
		exec("CREATE TABLE " + x.schema.name("messages_by_day") + " AS " + x.schema.name("messages"))
		if err := x.schema.Verify(t.Context(), x.conn); !errors.Is(err, ErrSchema) || !strings.Contains(fmt.Sprint(err), "messages_by_day") {
			t.Errorf("a copy that has not ended: %v", err)
		}
	}
}

// TestFirstStartIsInterrupted has a database with some of the tables and views, of which none is noted.
func TestFirstStartIsInterrupted(t *testing.T) {
	conn, s := database(t)
	schema := Schema{Database: s.Database, TTL: testTTL}
	p, err := schema.Plan(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	all := append(schema.bootstrap(), p.Statements()...)
	for _, sql := range all[:len(all)/2] {
		if err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := schema.Apply(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	if p, err := schema.Plan(t.Context(), conn); err != nil || !p.Empty() {
		t.Errorf("error %v, still to do: %s", err, p.Statements())
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

// TestEverythingHasAComment holds for tables, views and columns.
func TestEverythingHasAComment(t *testing.T) {
	_, conn := exporter(t, nil)
	for what, sql := range map[string]string{
		"table": `SELECT name FROM system.tables WHERE database = {db:String} AND comment = '' AND engine != 'MaterializedView' AND name NOT LIKE '.inner%'`,
		"column": `SELECT table || '.' || name FROM system.columns WHERE database = {db:String} AND comment = ''
			AND table IN (SELECT name FROM system.tables WHERE database = {db:String} AND (engine LIKE '%MergeTree' OR engine = 'View'))`,
	} {
		rows, err := conn.Query(t.Context(), sql, Params{"db": conn.database})
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			t.Errorf("%s %s has no comment", what, rows.Values()[0])
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSchemaRefusals(t *testing.T) {
	conn, s := database(t)
	schema := Schema{Database: s.Database}
	refused := func(when, want string, err error) {
		t.Helper()
		if !errors.Is(err, ErrSchema) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: error %v, want one with %q", when, err, want)
		}
	}
	refused("no tables", "run earshot schema apply", schema.Verify(t.Context(), conn))
	if _, err := schema.Apply(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	migrations, err := schema.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	note := func(version int, name, sum string) {
		t.Helper()
		// The table keeps one row per version, the one that was applied last.
		m := Migration{Version: version, Name: name, Checksum: sum}
		if err := conn.Exec(t.Context(), strings.Replace(schema.record(m), "(version, name, checksum) VALUES (", "(applied_at, version, name, checksum) VALUES (now64(3) + "+fmt.Sprint(version+1)+", ", 1)); err != nil {
			t.Fatal(err)
		}
	}
	note(migrations[len(migrations)-1].Version+3, "of_tomorrow", "00")
	_, err = schema.Apply(t.Context(), conn)
	refused("a newer database", "upgrade earshot", err)
	refused("a newer database", "upgrade earshot", schema.Verify(t.Context(), conn))
	if err := conn.Exec(t.Context(), "TRUNCATE TABLE "+schema.name("schema_migrations")); err != nil {
		t.Fatal(err)
	}
	note(migrations[0].Version-1, "of_before", "00")
	_, err = schema.Apply(t.Context(), conn)
	refused("a database of before the baseline", "run a build of commit 99a51da8 once", err)
}

func TestServerVersions(t *testing.T) {
	for v, want := range map[string]bool{
		"26.2.1.1": true, "26.7.2.1": true, "27.1": true, "26.10": true, "100.0.0": true,
		"26.2": true, "26": false, "26.1.9.9": false, "25.8.1.1": false, "18.16.1": false, "": false, "x.y": false,
	} {
		if got := atLeast(v, MinServer); got != want {
			t.Errorf("%q: %v", v, got)
		}
	}
}

// TestRetentionFollowsTheConfiguration changes every TTL of a database that is
// there, takes it away and sets it again.
func TestRetentionFollowsTheConfiguration(t *testing.T) {
	conn, s := database(t)
	for _, ttl := range []TTL{testTTL, {Bodies: testDay, Messages: 25 * time.Hour, Spans: 2 * testDay, Rollups: testDay}, {}, testTTL} {
		schema := Schema{Database: s.Database, TTL: ttl}
		if _, err := schema.Apply(t.Context(), conn); err != nil {
			t.Fatalf("%+v: %v", ttl, err)
		}
		p, err := schema.Plan(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		if !p.Empty() {
			t.Errorf("%+v: still to do: %s", ttl, p.Statements())
		}
	}
	var kept uint64
	err := conn.db.QueryRow(t.Context(), "SELECT count() FROM system.tables WHERE database = "+quoteText(s.Database)+
		" AND engine_full LIKE '% TTL %'").Scan(&kept)
	if err != nil || kept == 0 {
		t.Errorf("%d tables with a TTL, error %v", kept, err)
	}
}

// formatted has the server read statements, and returns each as it writes it.
func formatted(t *testing.T, c *Conn, statements []string) (out []string) {
	t.Helper()
	for some := range slices.Chunk(statements, 16) { // a query has 256 KiB at most
		quoted := make([]string, len(some))
		for i, sql := range some {
			quoted[i] = quoteText(sql)
		}
		list := rows(t, c, "SELECT formatQuerySingleLineOrNull(arrayJoin(["+strings.Join(quoted, ", ")+"])) AS sql")
		if len(list) != len(some) {
			t.Fatalf("%d of %d statements", len(list), len(some))
		}
		for i, r := range list {
			sql, ok := r["sql"].(string)
			if !ok {
				t.Errorf("the server cannot read:\n%s", some[i])
			}
			out = append(out, sql)
		}
	}
	return out
}

// TestClusterSchema has no cluster to run on: it checks that the server can read
// every statement, that each has ON CLUSTER, and that nothing is written past
// the Distributed tables.
func TestClusterSchema(t *testing.T) {
	conn, s := database(t)
	schema := Schema{Database: s.Database, Cluster: "it's", TTL: testTTL}
	migrations, err := schema.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	statements := schema.bootstrap()
	for _, m := range migrations {
		statements = append(statements, m.Statements...)
	}
	for _, r := range retentions() {
		statements = append(statements, schema.modify(r, r.expression(testTTL)), schema.modify(r, ""))
	}
	distributed := make(map[string]bool)
	for i, formatted := range formatted(t, conn, statements) {
		sql := statements[i]
		if !strings.Contains(formatted, `ON CLUSTER `) && !strings.HasPrefix(formatted, "INSERT ") { // which replication carries
			t.Errorf("not on the cluster: %s", formatted)
		}
		if strings.Contains(sql, "ENGINE = Distributed") {
			distributed[strings.Split(sql, "`")[3]] = true
			for table, key := range map[string]string{"messages": "session_id", "spans": "session_id"} {
				if strings.Contains(sql, "'"+table+"_local'") && !strings.HasSuffix(sql, "cityHash64("+key+"))") {
					t.Errorf("%s is not distributed by %s: %s", table, key, formatted)
				}
			}
		} else if strings.Contains(sql, "MergeTree") && !strings.Contains(sql, "Replicated") {
			t.Errorf("not replicated: %s", formatted)
		}
	}
	if want := len(newWriters(nil, schema).tables()) + 16; len(distributed) != want { // and five of conversations and turns, four rollups, three of facts, attribution, changes, alerts of budgets and spans of agents
		t.Errorf("%d distributed tables, want %d", len(distributed), want)
	}
}

// TestReplicatedSchema has no Keeper to replicate with: it checks that the server
// can read every statement, and that no table is left to one replica.
func TestReplicatedSchema(t *testing.T) {
	conn, s := database(t)
	schema := Schema{Database: s.Database, Replicated: true, TTL: testTTL}
	migrations, err := schema.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	statements := schema.bootstrap()
	for _, m := range migrations {
		statements = append(statements, m.Statements...)
	}
	tables := 0
	formatted(t, conn, statements)
	for _, sql := range statements {
		if strings.Contains(sql, "MergeTree") {
			tables++
			if !strings.Contains(sql, "ENGINE = Replicated") || strings.Contains(sql, "'/clickhouse/") {
				t.Errorf("not replicated, or under a path of its own: %s", sql)
			}
		}
		if strings.Contains(sql, "ON CLUSTER") || strings.Contains(sql, "Distributed") {
			t.Errorf("for a cluster: %s", sql)
		}
	}
	if want := len(newWriters(nil, schema).tables()) + 21; tables != want { // and the sixteen of TestClusterSchema, prices, thresholds, rules, migrations and the hours of rollups
		t.Errorf("%d tables, want %d", tables, want)
	}
	if found, _, err := (Schema{Database: s.Database}).plan(t.Context(), conn); err != nil || found.Replicated {
		t.Errorf("a plain database is taken for a replicated one, or error %v", err)
	}
}

func TestPrepareWithoutPermissionToChange(t *testing.T) {
	_, s := database(t)
	x, err := New(t.Context(), Settings{Conn: s})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close(context.Background())
	if err := x.Prepare(t.Context()); !errors.Is(err, ErrSchema) {
		t.Errorf("error %v", err)
	}
}

// TestRefusedStatements: a refusal that persists until a person changes something is
// reported, with the statement and the server's error.
func TestRefusedStatements(t *testing.T) {
	_, s := database(t)
	reader := s
	reader.DSN = strings.Replace(s.DSN, "//default@", "//reader@", 1)
	for name, c := range map[string]struct {
		settings Settings
		want     []string
	}{
		"no right to write": {Settings{Conn: reader, CreateSchema: true}, []string{"CREATE DATABASE IF NOT EXISTS", "ACCESS_DENIED"}},
		"no such cluster":   {Settings{Conn: s, Cluster: "nowhere", CreateSchema: true}, []string{"ON CLUSTER 'nowhere'", "nowhere"}},
	} {
		x, err := New(t.Context(), c.settings)
		if err != nil {
			t.Fatal(err)
		}
		err = x.Prepare(t.Context())
		if !errors.Is(err, ErrSchema) {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.want {
			if !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%s: no %q in: %v", name, want, err)
			}
		}
		if err := x.Export(t.Context(), &export.Batch{ID: "b", Messages: exporttest.Records(make([]msg.Message, 1)...)}); err == nil || export.IsPermanent(err) {
			t.Errorf("%s: the rows are blamed: %v", name, err)
		}
		if err := x.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	x, err := New(t.Context(), Settings{Conn: ConnSettings{DSN: "http://127.0.0.1:1"}, CreateSchema: true})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close(context.Background())
	if err := x.Prepare(t.Context()); err == nil || errors.Is(err, ErrSchema) {
		t.Errorf("a server that is not there refuses nothing: %v", err)
	}
}

func TestAddColumn(t *testing.T) {
	for cluster, want := range map[string]string{
		"":  "ALTER TABLE `earshot`.`spans` ADD COLUMN IF NOT EXISTS `attempt` ",
		"c": "ALTER TABLE `earshot`.`spans_local` ON CLUSTER 'c' ADD COLUMN IF NOT EXISTS `attempt` UInt16 COMMENT ",
	} {
		sql, err := (Schema{Cluster: cluster}).addColumn("spans", "attempt")
		if err != nil || !strings.HasPrefix(sql, want) || !strings.HasSuffix(sql, " CODEC(T64, ZSTD(1)) AFTER `result_bytes`") || strings.Count(sql, "ALTER") != 1+len(cluster) {
			t.Errorf("cluster %q: %v in\n%s", cluster, err, sql)
		}
	}
	if _, err := (Schema{}).addColumn("spans", "no_such"); err == nil {
		t.Error("an unknown column was added")
	}
}
