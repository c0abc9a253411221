package clickhouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg/schema"
)

// refusing is a proxy of the store that refuses some statements of a migration with an exception of the server.
type refusing struct {
	mu      sync.Mutex
	asked   map[string]int // how often each statement came
	refuses func(sql string, asked int) (code int)
}

// through returns a Conn to a database by the proxy.
func (p *refusing) through(t *testing.T, database string) *Conn {
	t.Helper()
	opts, err := options(ConnSettings{DSN: storeDSN(t)})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	if opts.DialContext != nil { // a socket
		transport.DialContext = func(ctx context.Context, _, addr string) (net.Conn, error) { return opts.DialContext(ctx, addr) }
	}
	store := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", opts.Addr[0]
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		sql := string(body)
		p.mu.Lock()
		p.asked[sql]++
		code := p.refuses(sql, p.asked[sql])
		p.mu.Unlock()
		if code != 0 {
			w.Header().Set("X-ClickHouse-Exception-Code", fmt.Sprint(code))
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, "Code: %d. DB::Exception: Not now\n", code)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.Close(); transport.CloseIdleConnections() })
	c, err := open(ConnSettings{DSN: strings.Replace(server.URL, "//", "//default@", 1), Database: database}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestMigrationBesideAnother: a statement of a migration that meets a table which another program replaces in that moment is run again,
// unless that program has ended the migration; one that the server refuses is not.
func TestMigrationBesideAnother(t *testing.T) {
	x, c := exporter(t, nil)
	x.keeper.stop()
	const last = 93 // which replaces a view
	again := func() {
		t.Helper()
		if err := x.conn.Exec(t.Context(), fmt.Sprintf("ALTER TABLE %s DELETE WHERE version = %d SETTINGS mutations_sync = 2", x.schema.name("schema_migrations"), last)); err != nil {
			t.Fatal(err)
		}
	}
	migrations, err := x.schema.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	m := migrations[slices.IndexFunc(migrations, func(m Migration) bool { return m.Version == last })]
	replace := m.Statements[slices.IndexFunc(m.Statements, func(sql string) bool { return strings.Contains(sql, "CREATE OR REPLACE") })]
	for _, k := range []struct {
		name  string
		code  int
		ended bool // by the other program
		asked int
		fails bool
	}{
		{"it was replaced", 60, false, 2, false},
		{"the other has ended the migration", 60, true, 1, false},
		{"the server refuses it", 497, false, 1, true},
	} {
		again()
		p := &refusing{asked: make(map[string]int)}
		p.refuses = func(sql string, asked int) int {
			if sql != replace || asked > 1 {
				return 0
			}
			if k.ended {
				if err := x.conn.Exec(t.Context(), x.schema.record(m)); err != nil {
					t.Error(err)
				}
			}
			return k.code
		}
		done, err := x.schema.Apply(t.Context(), p.through(t, x.schema.Database))
		if (err != nil) != k.fails || k.fails && (!errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), replace)) {
			t.Errorf("%s: %v", k.name, err)
		}
		if len(done.Pending) != 1 || done.Pending[0].Version != last {
			t.Errorf("%s: pending are %v", k.name, done.Pending)
		}
		if p.asked[replace] != k.asked {
			t.Errorf("%s: it was run %d times", k.name, p.asked[replace])
		}
		if got := count(t, c, fmt.Sprintf("SELECT count() FROM schema_migrations FINAL WHERE version = %d", last)); (got == "1") == k.fails {
			t.Errorf("%s: %s are noted", k.name, got)
		}
	}
	if _, err := x.schema.Apply(t.Context(), x.conn); err != nil {
		t.Fatal(err)
	}
}

// TestMigrationIsTriedAgain: a statement that meets a table which is being replaced is run again, each time a little later, for some seconds; one that
// fails otherwise is not, and nothing is behind either.
func TestMigrationIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		code  int32
		tries int
		took  time.Duration
	}{{60, 9, 3600 * time.Millisecond}, {241, 1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			conn, server := databaseAt(baseline-1, nil)
			answers := server.answers
			server.answers = func(sql string) ([][]any, error) {
				if !strings.HasPrefix(sql, "SELECT") && !strings.HasPrefix(sql, "DESCRIBE") {
					return nil, &chgo.Exception{Code: c.code}
				}
				return answers(sql)
			}
			began := time.Now()
			_, err := (Schema{}).Apply(t.Context(), conn)
			if took := time.Since(began); err == nil || took != c.took || len(server.statements()) != c.tries {
				t.Errorf("code %d: %v behind %s", c.code, err, took)
			}
		})
	}
}

// databaseAt is a database with the migrations up to one, and tables as they would be with that retention. Further migrations are noted as they are applied.
func databaseAt(version int, tables [][]any) (*Conn, *scripted) {
	migrations, _ := Schema{}.Migrations()
	var noted [][]any
	for _, m := range migrations {
		if m.Version <= version {
			noted = append(noted, []any{uint32(m.Version), m.Name, m.Checksum})
		}
	}
	return scriptedConn(func(sql string) ([][]any, error) {
		switch {
		case strings.HasPrefix(sql, "SELECT countIf(engine = 'Replicated')"):
			return [][]any{{false}}, nil
		case sql == "SELECT version()":
			return [][]any{{"26.7.1.1"}}, nil
		case strings.HasPrefix(sql, "SELECT version, name, checksum"):
			return noted, nil
		case strings.HasPrefix(sql, "SELECT count() FROM system.tables"):
			return [][]any{{len(noted)}}, nil
		case strings.HasPrefix(sql, "SELECT name, engine_full"):
			return tables, nil
		case strings.HasPrefix(sql, "DESCRIBE TABLE"):
			return [][]any{{"content", "String", "", "", "of before", "", "toDateTime(ingest_ts) + toIntervalDay(1)"}, {"model", "String", "", "", "of before", "", ""}, {"of_a_person", "String", "", "", "", "", ""}}, nil
		}
		return nil, nil
	})
}

// TestWhatIsApplied: which statements a database gets, by the migrations that it has: of a new one on a cluster those of the table of migrations come first, and
// where nothing is to do nothing is run.
func TestWhatIsApplied(t *testing.T) {
	migrations, err := (Schema{}).Migrations()
	if err != nil {
		t.Fatal(err)
	}
	for i := range migrations[1:] { // of equal ones only one would be run
		if migrations[i+1].Version <= migrations[i].Version {
			t.Errorf("migration %d is behind %d", migrations[i+1].Version, migrations[i].Version)
		}
	}
	last := migrations[len(migrations)-1]
	if text, err := migrationFiles.ReadFile(fmt.Sprintf("migrations/%04d_%s.sql", last.Version, last.Name)); err != nil || last.Checksum != checksum(text) { // by which a database knows its steps again
		t.Errorf("checksum %s of %d, %v", last.Checksum, last.Version, err)
	}
	for _, c := range []struct {
		name    string
		schema  Schema
		version int
		first   string
		pending int
		adjusts int // how often the tables are read
	}{
		{"a new database", Schema{}, 0, "CREATE DATABASE IF NOT EXISTS `earshot`", len(migrations), 0},
		{"a new one on a cluster", Schema{Cluster: "c"}, 0, "CREATE DATABASE IF NOT EXISTS `earshot` ON CLUSTER 'c'", len(migrations), 0},
		{"one that is up to date", Schema{}, last.Version, "", 0, 1},
		{"one that lacks the last", Schema{}, last.Version - 1, last.Statements[0], 1, 2},
	} {
		conn, server := databaseAt(c.version, nil)
		answers, adjusts := server.answers, 0
		server.answers = func(sql string) ([][]any, error) {
			if strings.HasPrefix(sql, "SELECT name, engine_full") {
				adjusts++
			}
			return answers(sql)
		}
		p, err := c.schema.Plan(t.Context(), conn)
		if err != nil || server.statements() != nil || p.Applied != c.version || p.Empty() != (c.pending == 0) {
			t.Errorf("%s: planned %d behind %d, %v", c.name, len(p.Pending), p.Applied, err)
		}
		var want []string
		for _, m := range p.Pending {
			want = append(want, m.Statements...)
		}
		if !slices.Equal(p.Statements(), want) {
			t.Errorf("%s: %d statements, want %d", c.name, len(p.Statements()), len(want))
		}
		adjusts = 0
		done, err := c.schema.Apply(t.Context(), conn)
		sent := server.statements()
		if c.first == "" && sent != nil || c.first != "" && (len(sent) == 0 || sent[0] != c.first) || err != nil || len(done.Pending) != c.pending || adjusts != c.adjusts {
			t.Errorf("%s: %d pending, tables read %d times, %v: %.200q", c.name, len(done.Pending), adjusts, err, sent)
		}
		if c.schema.Cluster == "" && c.pending > 0 && sent[len(sent)-1] != c.schema.record(last) {
			t.Errorf("%s: ends with %s", c.name, sent[len(sent)-1])
		}
	}
}

// TestWhatDiffers: columns that a person has changed are named, and those that rows are not written to are not.
func TestWhatDiffers(t *testing.T) {
	conn, _ := databaseAt(1000, nil)
	var b strings.Builder
	differs, err := (Schema{}).Diff(t.Context(), conn, &b)
	if err != nil || !differs {
		t.Errorf("differs %t, %v", differs, err)
	}
	lines := strings.Split(b.String(), "\n")
	for line, want := range map[string]bool{
		"-- messages.tenant is missing": true, "-- messages.content is missing": false, "-- messages.model is String, and rows are written as LowCardinality(String)": true, "-- streams.stream is missing": true,
	} {
		if slices.Contains(lines, line) != want {
			t.Errorf("%q: %t in\n%s", line, !want, &b)
		}
	}
	if strings.Contains(b.String(), "of_a_person") || strings.Contains(b.String(), "messages.content ") {
		t.Errorf("columns that fit are named:\n%s", &b)
	}
	if _, err := (Schema{}).Diff(t.Context(), conn, full{}); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
	conn, _ = databaseAt(92, nil)
	b.Reset()
	if differs, err := (Schema{}).Diff(t.Context(), conn, &b); err != nil || !differs || strings.Contains(b.String(), "-- messages.") || !strings.Contains(b.String(), "-- migration 93 (views) is not applied\n") || !strings.Contains(b.String(), ";\n") {
		t.Errorf("migrations: %t, %v, %.300s", differs, err, &b)
	}
}

// TestRetentionAndCommentsAreAdjusted: the statements that bring a database to the retention, the settings and the words of this program: each table learns once how
// its parts learn of a retention, and a cluster has its tables of shards and those that distribute them.
func TestRetentionAndCommentsAreAdjusted(t *testing.T) {
	const engine = "ReplacingMergeTree(ver) ORDER BY a TTL toDateTime(ingest_ts) + toIntervalDay(3) SETTINGS index_granularity = 8192"
	comment := func(column string) string {
		d, _ := schema.Of("messages")
		for _, c := range d.Columns {
			if c.Name == column {
				return "COMMENT COLUMN `" + column + "` " + quoteText(c.Comment)
			}
		}
		return ""
	}
	for _, c := range []struct {
		name   string
		schema Schema
		tables [][]any
		want   []string
	}{
		{"a server", Schema{TTL: TTL{Bodies: 2 * testDay, Messages: 3 * testDay}}, [][]any{{"messages", engine}}, []string{
			"ALTER TABLE `earshot`.`messages` MODIFY SETTING materialize_ttl_recalculate_only = 1",
			"ALTER TABLE `earshot`.`messages` MODIFY COLUMN `content` TTL toDateTime(ingest_ts) + toIntervalDay(2)",
			"ALTER TABLE `earshot`.`messages` MODIFY COLUMN `tool_arguments` TTL toDateTime(ingest_ts) + toIntervalDay(2)",
			"ALTER TABLE `earshot`.`messages` MODIFY COLUMN `delegate_task` TTL toDateTime(ingest_ts) + toIntervalDay(2)",
			"ALTER TABLE `earshot`.`messages` " + comment("model") + ", " + comment("content"),
		}},
		{"another retention", Schema{TTL: TTL{Bodies: testDay}, Sync: true}, [][]any{{"streams", engine + ", materialize_ttl_recalculate_only = 1, ttl_only_drop_parts = 1"}}, []string{
			"ALTER TABLE `earshot`.`streams` REMOVE TTL",
			"ALTER TABLE `earshot`.`streams` MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1",
		}},
		{"a cluster", Schema{Cluster: "c", TTL: TTL{Bodies: testDay, Messages: 4 * testDay}}, [][]any{{"messages_local", engine + ", materialize_ttl_recalculate_only = 1"}}, []string{
			"ALTER TABLE `earshot`.`messages_local` ON CLUSTER 'c' MODIFY TTL toDateTime(ingest_ts) + toIntervalDay(4)",
			"ALTER TABLE `earshot`.`messages_local` ON CLUSTER 'c' MODIFY COLUMN `tool_arguments` TTL toDateTime(ingest_ts) + toIntervalDay(1)",
			"ALTER TABLE `earshot`.`messages_local` ON CLUSTER 'c' MODIFY COLUMN `delegate_task` TTL toDateTime(ingest_ts) + toIntervalDay(1)",
			"ALTER TABLE `earshot`.`messages_local` ON CLUSTER 'c' " + comment("model") + ", " + comment("content"),
			"ALTER TABLE `earshot`.`messages` ON CLUSTER 'c' " + comment("model") + ", " + comment("content"),
		}},
	} {
		conn, server := databaseAt(1000, c.tables)
		if c.tables[0][0] == "streams" {
			answers := server.answers
			server.answers = func(sql string) ([][]any, error) {
				if strings.HasPrefix(sql, "DESCRIBE") {
					return nil, nil
				}
				return answers(sql)
			}
		}
		got, err := c.schema.adjust(t.Context(), conn)
		if d := cmp.Diff(c.want, got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, d)
		}
	}
}

// TestPartsOfTheSchema: statements and columns of tables, on a server and on a cluster, and the errors of templates.
func TestPartsOfTheSchema(t *testing.T) {
	for cluster, want := range map[string]string{"": "[]", "c": "[CREATE TABLE IF NOT EXISTS `earshot`.`a` ON CLUSTER 'c' AS `earshot`.`a_local`\nENGINE = Distributed('c', 'earshot', 'a_local', rand())]"} {
		if got, err := render(Schema{Cluster: cluster}, "x", []byte(`{{distributed "a" "rand()"}}`)); fmt.Sprint(got) != want || err != nil {
			t.Errorf("cluster %q: %s, %v", cluster, got, err)
		}
	}
	if got, err := columnsOf("messages", "model content"); err != nil || strings.Count(got, " COMMENT ") != 2 || !strings.HasPrefix(got, "    `model` LowCardinality(String) COMMENT '") || !strings.Contains(got, "',\n    `content` String COMMENT '") {
		t.Errorf("%v, %s", err, got)
	}
	if list, err := render(Schema{}, "x", []byte("\n A;\n\nB\n;\n\n")); err != nil || len(list) != 2 || list[0] != "A" || list[1] != "B" {
		t.Errorf("%q, %v", list, err)
	}
	for name, c := range map[string]struct {
		schema Schema
		want   string
	}{
		"a server":   {Schema{}, "ReplacingMergeTree(ver) AggregatingMergeTree() ReplacingMergeTree(at) non_replicated_deduplication_window = 1000"},
		"replicated": {Schema{Replicated: true}, "ReplicatedReplacingMergeTree(ver) ReplicatedAggregatingMergeTree() ReplicatedReplacingMergeTree(at) replicated_deduplication_window_seconds = 604800, replicated_deduplication_window = 100000"},
		"a cluster": {Schema{Cluster: "c"}, "ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', ver) ReplicatedAggregatingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}') " +
			"ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}', '{shard}-{replica}', at) replicated_deduplication_window_seconds = 604800, replicated_deduplication_window = 100000"},
	} {
		list, err := render(c.schema, "x", []byte(`{{replacing "ver"}} {{aggregating}} {{everywhere "at"}} {{settings}}`))
		if err != nil || strings.Replace(list[0], "ttl_only_drop_parts = 1, auto_statistics_types = '', merge_selector_base = 10, ", "", 1) != c.want {
			t.Errorf("%s: %q, %v", name, list, err)
		}
	}
	if list, err := (Schema{TTL: testTTL}).columnList("messages"); err != nil || strings.Count(list, " TTL toDateTime(ingest_ts) + toIntervalDay(90)") != 3 || !strings.Contains(list, "`ingest_ts` DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT '") {
		t.Errorf("columns that are kept for a time: %v in\n%s", err, list)
	}
	var b strings.Builder
	if err := (Schema{}).Print(&b); err != nil {
		t.Fatal(err)
	}
	migrations, err := (Schema{}).Migrations()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join((Schema{}).bootstrap(), ";\n\n") + ";\n\n"
	for _, m := range migrations {
		want += fmt.Sprintf("-- %d %s\n\n", m.Version, m.Name)
		for _, sql := range m.Statements {
			want += sql + ";\n\n"
		}
		want += (Schema{}).record(m) + ";\n\n"
	}
	if got := b.String(); got != want {
		t.Errorf("printed %d bytes, want %d", len(got), len(want))
	}
	for what, err := range map[string]error{
		"a view": func() error { _, err := columnsOf("messages", "model no_such"); return err }(), "columns": func() error { _, err := Schema{}.columnList("no_such"); return err }(),
		"rollup": func() error { _, err := rollupOf("no_such"); return err }(), "facts": func() error { _, err := factsOf("no_such"); return err }(),
		"template": func() error { _, err := render(Schema{}, "x", []byte("{{no_such}}")); return err }(), "call": func() error { _, err := render(Schema{}, "x", []byte(`{{columns "no_such"}}`)); return err }(),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}
