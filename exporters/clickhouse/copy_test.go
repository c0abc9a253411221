package clickhouse

import (
	"compress/gzip"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// inDatabase finds the database of a table, and not the earshot.* attributes.
var inDatabase = regexp.MustCompile(`([ (])earshot\.`)

// released makes the tables and views of the first release, as its 28 steps left them.
func released(t *testing.T, conn *Conn, schema Schema) {
	t.Helper()
	if err := conn.Exec(t.Context(), schema.bootstrap()[0]); err != nil {
		t.Fatal(err)
	}
	objects := firstRelease(t)
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		sql := inDatabase.ReplaceAllString(objects[name], "${1}"+schema.Database+".")
		if err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%v in:\n%s", err, objects[name])
		}
	}
	for version := 1; version <= baseline; version++ {
		if err := conn.Exec(t.Context(), schema.record(Migration{Version: version, Name: "step", Checksum: lastStep})); err != nil {
			t.Fatal(err)
		}
	}
}

// storeRows stores the rows of testdata/store_28: those of the demo's traffic and of six generated
// conversations, four of which were cut off, as the last build before migration 29 stored
// them, and some by hand.
func storeRows(t *testing.T, c *Conn) {
	t.Helper()
	for _, table := range []string{"otel_traces", "tool_calls", "delegations"} {
		f, err := os.Open("testdata/store_28/" + table + ".jsonl.gz")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.db.InsertFormat(t.Context(), "JSONEachRow", "INSERT INTO "+quoteName(c.database)+"."+table, lines); err != nil {
			t.Fatal(err)
		}
	}
	more, err := os.ReadFile("testdata/store_28/more.sql")
	if err != nil {
		t.Fatal(err)
	}
	for sql := range strings.SplitSeq(strings.TrimSpace(string(more)), ";\n") {
		if err := c.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%v in:\n%s", err, sql)
		}
	}
}

// spanViews are queries of everything that the former tables had, but for the versions, which are
// others, and the time at which a call was stored, which is that of its span.
var spanViews = map[string]string{
	"otel_traces": `SELECT * EXCEPT (Ver, Operation, AgentName, ToolName, SessionId, Kind, Format, Model, Outcome, FirstToken, OutputTokens, State, Async, DelegateTo) REPLACE (mapSort(SpanAttributes) AS SpanAttributes),
		Operation, AgentName, ToolName, SessionId, Kind, Format, Model, Outcome, FirstToken, OutputTokens FROM otel_traces FINAL ORDER BY Timestamp, SpanId`,
	"otel_traces_trace_id_ts": `SELECT TraceId, min(Start), max(End) FROM otel_traces_trace_id_ts GROUP BY TraceId ORDER BY TraceId`,
	"tool_calls":              `SELECT * EXCEPT (ver, ingest_ts) FROM tool_calls FINAL ORDER BY ts, span_id`,
	"delegations":             `SELECT * EXCEPT (ver, ingest_ts) FROM delegations FINAL ORDER BY ts, span_id`,
	"open_spans": `SELECT tenant, ts, last_seen, alive_at, source, format, kind, name, session_id, run_id, trace_id, span_id, parent_span_id, agent_name, tool_name, tool_call_id,
		delegate_to, waits_for, is_deleted FROM open_spans FINAL ORDER BY ts, span_id`,
	"v_spans": `SELECT * FROM v_spans ORDER BY ts, span_id`,
}

func spanRowsOf(t *testing.T, c *Conn) map[string][]map[string]any {
	t.Helper()
	out := make(map[string][]map[string]any)
	for name, sql := range spanViews {
		if name == "otel_traces" { // whose former columns are no part of *
			sql = strings.Replace(sql, "(Ver, Operation, AgentName, ToolName, SessionId, Kind, Format, Model, Outcome, FirstToken, OutputTokens, State, Async, DelegateTo)", exceptOf(t, c), 1)
		}
		out[name] = rows(t, c, sql+" SETTINGS session_timezone = 'UTC'")
	}
	return out
}

func exceptOf(t *testing.T, c *Conn) string {
	t.Helper()
	if count(t, c, "SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = 'otel_traces'") == "View" {
		return "(Ver, Operation, AgentName, ToolName, SessionId, Kind, Format, Model, Outcome, FirstToken, OutputTokens, State, Async, DelegateTo)"
	}
	return "(Ver)"
}

// TestRowsAreCopied has a database as the 28 steps before the first release made it. The migration behind it is ended after each of its
// statements that copy, after every third of the others, and in the middle of a day, and begins again; another sidecar stores a row in a
// former table while it is under way. At the end every row is there once, and the tables equal those of a new database.
func TestRowsAreCopied(t *testing.T) {
	_, s := database(t)
	schema := Schema{Database: s.Database, TTL: testTTL, Logger: slog.New(slog.DiscardHandler)}
	admin, err := open(s, false)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	released(t, admin, schema)
	conn, err := Open(s)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	storeRows(t, conn)
	want := spanRowsOf(t, conn)
	for name, list := range want {
		if len(list) == 0 {
			t.Errorf("no rows in %s", name)
		}
	}
	migrations, err := schema.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	m := migrations[1]
	last := 0
	for number, st := range m.Statements {
		if st.Days != "" {
			last = number
		}
	}
	for ended := range m.Statements {
		if ended%3 != 0 && ended != last && m.Statements[ended].Days == "" { // it runs before the next one that is the last
			continue
		}
		for number := range ended + 1 {
			if err := (step{schema, admin, m, number}).run(t.Context()); err != nil {
				t.Fatalf("ended after %d, statement %d: %v", ended, number, err)
			}
		}
		if m.Statements[ended].Days != "" { // the last day was copied and not noted
			if err := conn.Exec(t.Context(), fmt.Sprintf("DELETE FROM schema_progress WHERE statement = %d AND day = '2026-11-21'", ended)); err != nil {
				t.Fatal(err)
			}
		}
		if ended <= last {
			if got := spanRowsOf(t, conn); !reflect.DeepEqual(want, got) { // which costs a tenth of a Diff
				t.Fatalf("while rows are copied (-want +got):\n%s", cmp.Diff(want, got))
			}
		}
		if ended == last {
			if err := conn.Exec(t.Context(), `INSERT INTO otel_traces (Timestamp, TraceId, SpanId, ScopeName, SpanName, SpanKind, ServiceName, ResourceAttributes, StatusCode, SpanAttributes, Ver) VALUES
				('2026-11-21 13:00:00', '0000000000000000000000000000a00c', '000000000000b00c', 'github.com/earshot-dev/earshot', 'chat late', 'Client', '', {'service.name': ''}, 'Unset', {'gen_ai.operation.name': 'chat', 'earshot.span.state': 'closed'}, 108086391056891904)`); err != nil {
				t.Fatal(err)
			}
			want = spanRowsOf(t, conn)
		}
	}
	done, err := schema.Apply(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(migrations[1:], done.Pending, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("pending (-want +got):\n%s", d)
	}
	sameAsNew(t, admin, schema)
	if p, err := schema.Plan(t.Context(), admin); err != nil || !p.Empty() {
		t.Errorf("error %v, still to do: %s", err, p.Statements())
	}
	// A run that continues after a silence is open, and in otel_traces when it ends.
	for name, id := range map[string]string{"otel_traces": "SpanId", "v_spans": "span_id"} {
		want[name] = slices.DeleteFunc(want[name], func(r map[string]any) bool { return r[id] == "000000000000b004" })
	}
	want["otel_traces_trace_id_ts"] = slices.DeleteFunc(want["otel_traces_trace_id_ts"], func(r map[string]any) bool {
		return r["TraceId"] == "0000000000000000000000000000a002" || r["TraceId"] == "0000000000000000000000000000a004"
	})
	got := spanRowsOf(t, conn)
	for _, r := range got["v_spans"] { // columns that came later, which rows of before have empty
		delete(r, "seen_by") // computed
		for _, name := range []string{"project", "branch", "agent_version", "host", "user", "tokens_from", "times_from", "conflict", "outcome_from", "first_token_from"} {
			if r[name] != "" {
				t.Errorf("v_spans: %s is %q", name, r[name])
			}
			delete(r, name)
		}
	}
	for name := range want {
		if d := cmp.Diff(want[name], got[name]); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	if n := count(t, conn, "SELECT groupArray(name) FROM system.tables WHERE database = currentDatabase() AND (name LIKE 'former%' OR name = 'schema_progress')"); n != "[]" {
		t.Errorf("left: %s", n)
	}

	// Open spans continue: the next row of each replaces the copied one.
	x, err := New(t.Context(), Settings{Conn: s, TTL: testTTL})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close(t.Context())
	at := func(clock string) int64 {
		when, err := time.Parse(time.DateTime, "2026-11-21 "+clock)
		if err != nil {
			t.Fatal(err)
		}
		return when.UnixNano()
	}
	span := func(id byte, kind msg.SpanKind, session string, start, seen int64, state msg.SpanState) msg.Span {
		s := msg.Span{
			Tenant: "default", Source: "harbour", Format: "agno", Session: session, Kind: kind, State: state, Start: start, LastSeen: seen, TraceID: msg.TraceID{15: 1, 14: 0xa0}, ID: msg.SpanID{6: 0xb0, 7: id},
			Ver: 1<<56 | uint64(state)<<54 | uint64(seen/1000)&(1<<51-1),
		}
		if state != msg.SpanOpen {
			s.End = seen
		}
		return s
	}
	export1(t, x, &export.Batch{ID: "next", Messages: exporttest.Records(sampleMessages(3)...), Spans: exporttest.Records(
		span(1, msg.SpanRun, "s-open", at("09:00:00")+5e8, at("09:30:00"), msg.SpanOpen),
		span(2, msg.SpanTool, "s-open", at("09:00:05"), at("09:31:00"), msg.SpanClosed),
		span(3, msg.SpanDelegation, "s-open", at("09:00:07"), at("09:31:00"), msg.SpanIdle),
		span(4, msg.SpanRun, "s-again", at("10:00:00"), at("10:40:00"), msg.SpanClosed),
	)})
	if got := count(t, conn, "SELECT count() FROM v_messages"); got != "3" {
		t.Errorf("%s messages in an upgraded database", got)
	}
	if got := count(t, conn, "SELECT span_id, last_seen FROM open_spans"); got != "000000000000b001\t2026-11-21 09:30:00.000000000" {
		t.Errorf("open: %s", got)
	}
	if got := count(t, conn, "SELECT groupArray((span_id, status)) FROM (SELECT span_id, status FROM tool_calls WHERE session_id = 's-open' ORDER BY span_id)"); got != "[('000000000000b002','ok'),('000000000000b003','ok')]" {
		t.Errorf("calls: %s", got)
	}
	if got := count(t, conn, "SELECT SpanId, Duration FROM otel_traces WHERE SessionId = 's-again'"); got != "000000000000b004\t2400000000000" {
		t.Errorf("the run that went on: %s", got)
	}
}
