package dashboards

import (
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/price"
	"github.com/earshot-dev/earshot/core/ui"
	"github.com/earshot-dev/earshot/dashboards/internal/macro"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

// ask runs the query of one panel with those variables picked.
func ask(t *testing.T, w *world, board, title string, pick map[string]string) result {
	t.Helper()
	var found []asked
	if w.asked == nil {
		w.asked = queries(t)
	}
	for _, a := range w.asked {
		if a.board == board+".json" && a.title == title {
			found = append(found, a)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no panel %s / %s", board, title)
	}
	for _, a := range found { // of several with one title the first that is a stat
		if a.kind == "stat" {
			found[0] = a
		}
	}
	return askOne(t, w, found[0], pick)
}

func askOne(t *testing.T, w *world, a asked, pick map[string]string) result {
	t.Helper()
	q := w.all(a)
	for name, v := range pick {
		q.Variables[name] = macro.Value{Single: q.Variables[name].Single, Items: []string{v}}
	}
	sql, err := q.Expand(a.sql)
	if err != nil {
		t.Fatal(err)
	}
	r, err := run(t, w.reader(t), sql)
	if err != nil {
		t.Fatalf("%s: %v\n%s", a, err, sql)
	}
	return r
}

// number is a value as a number; NaN when it is none.
func number(v any) float64 {
	switch v := v.(type) {
	case uint8:
		return float64(v)
	case int32:
		return float64(v)
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	case float64:
		return v
	case *float64:
		if v != nil {
			return *v
		}
	}
	return math.NaN()
}

// column returns the values of a column.
func (r result) column(t *testing.T, name string) []any {
	t.Helper()
	if len(r.rows) == 0 { // without rows the driver reports no columns
		return nil
	}
	for i, c := range r.columns {
		if c.Name != name {
			continue
		}
		out := make([]any, 0, len(r.rows))
		for _, row := range r.rows {
			out = append(out, row[i])
		}
		return out
	}
	t.Fatalf("no column %s in %v", name, r.columns)
	return nil
}

func (r result) sum(t *testing.T, name string) float64 {
	t.Helper()
	sum := 0.0
	for _, v := range r.column(t, name) {
		sum += number(v)
	}
	return sum
}

// TestNumbersAreTrue compares panels with the numbers from which the traffic was
// generated.
func TestNumbersAreTrue(t *testing.T) {
	w := theWorld(t)
	o := w.oracle.Total
	legion, claude := map[string]string{"format": "legion"}, map[string]string{"format": "claude-code"}
	agno := map[string]string{"format": "agno"}
	for _, c := range []struct {
		board, title string
		pick         map[string]string
		want         float64
	}{
		{"tools", "Calls", legion, float64(o.ToolCalls - o.Delegations)},
		{"delegations", "Delegations", legion, float64(o.Delegations)},
		{"tokens", "Tokens", legion, float64(o.Input + o.Output + o.CacheRead + o.CacheWrite + o.Reasoning)},
		{"tokens", "Output tokens", legion, float64(o.Output + o.Reasoning)},
		{"tokens", "Tokens without a price", legion, 0},
		{"self", "Dead letters", legion, float64(o.Broken)},
		{"self", "Unknown", legion, float64(o.Kinds["unknown"])},
		{"self", "Bytes unaccounted for", nil, 0},

		{"delegations", "Delegations", claude, scouts},
		{"delegations", "Delegations", map[string]string{"agent": "claude-code"}, scouts},
		{"delegations", "p50", claude, 42_000},
		{"delegations", "p95", claude, 62_000},
		{"delegations", "Failed", claude, 1.0 / scouts},
		{"tools", "Calls", claude, 2 * scouts},
		{"tools", "Calls", map[string]string{"format": "claude-code", "model": "claude-opus-4-5-20251101"}, 2 * scouts},
		{"tools", "Calls", map[string]string{"format": "claude-code", "model": "another"}, 0},
		{"tools", "Failed", claude, 0.5 / scouts},
		// 30 responses of 10 input, 50 output, 1000 read from a cache and 100 written to it.
		{"tokens", "Cost", claude, 30 * (10*5 + 50*25 + 1000*0.5 + 100*6.25) / 1e6},
		{"tokens", "Read from caches", claude, 1000.0 / 1110},
		{"tokens", "Tokens", claude, 30 * 1160},
		{"trace", "Duration", nil, 72_000},
		{"trace", "Agents", nil, 2},
		{"trace", "Failed", nil, 1},
		{"trace", "Tokens", nil, 5 * 1160},

		{"streaming", "First byte, p95", agno, 2},
		{"streaming", "Gap between chunks, p95", nil, 8},
		{"streaming", "Longest stall", agno, 40_000},
		{"streaming", "Buffered", nil, 10},
		{"delegations", "In flight", nil, 1},
		{"delegations", "Stuck", nil, 2},
		{"delegations", "Stuck", legion, 0},
		{"tools", "Running", nil, 1},
		{"tokens", "Tokens without a price", nil, 40 * 500},
		{"streaming", "First token, p50", agno, 2100},
		{"streaming", "First token, p95", agno, 3900},
	} {
		r := ask(t, w, c.board, c.title, c.pick)
		if got := number(r.rows[len(r.rows)-1][0]); math.Abs(got-c.want) > 1e-9*math.Max(1, math.Abs(c.want)) {
			t.Errorf("%s / %s with %v: %v, want %v", c.board, c.title, c.pick, got, c.want)
		}
	}
	if got := ask(t, w, "self", "Account of the sources", legion).sum(t, "Read"); got != float64(o.Bytes) {
		t.Errorf("%v bytes were read, want %d", got, o.Bytes)
	}
	if got := len(ask(t, w, "sessions", "Conversations", legion).rows); got != w.oracle.Options.Sessions {
		t.Errorf("%d conversations, want %d", got, w.oracle.Options.Sessions)
	}
}

// TestPausesOfANewConversation: the times of conversations are derived seconds behind their rows. Until then the pauses of a new one
// are there all the same, one that an hour began in too.
func TestPausesOfANewConversation(t *testing.T) {
	w := theWorld(t)
	c, err := clickhouse.Open(clickhouse.ConnSettings{DSN: w.dsn("default") + "/earshot"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		err := c.Exec(t.Context(), "ALTER TABLE messages DELETE WHERE session_id = 'unlisted' SETTINGS mutations_sync = 1") // other tests count
		if err := errors.Join(err, c.Close()); err != nil {
			t.Error(err)
		}
	}()
	asked := w.began.Truncate(time.Hour).Add(-30 * time.Second)
	if err := c.Exec(t.Context(), fmt.Sprintf(`INSERT INTO messages (tenant, source, format, session_id, run_id, message_id, kind, agent_name, seq, ts, ver)
SELECT 'default', 'claude', 'claude-code', 'unlisted', 'r', unhex(hex(sipHash128(x.1))), x.1, 'newcomer', x.2, fromUnixTimestamp64Milli(x.3), 1
FROM (SELECT arrayJoin([('user', 1, %[1]d), ('assistant', 2, %[1]d + 90000)]) AS x)`, asked.UnixMilli())); err != nil {
		t.Fatal(err)
	}
	r := ask(t, w, "streaming", "Longest pauses", map[string]string{"agent": "newcomer"})
	if got := r.column(t, "Pause"); len(got) != 1 || number(got[0]) != 90_000 {
		t.Errorf("pauses %v, want one of 90 seconds", got)
	}
}

// TestFormerNames: an agent whose name becomes known late has had another one, which its conversation keeps. No list offers it.
func TestFormerNames(t *testing.T) {
	w := theWorld(t)
	settings := clickhouse.ConnSettings{DSN: w.dsn("default") + "/earshot"}
	c, err := clickhouse.Open(settings)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		err := c.Exec(t.Context(), "ALTER TABLE messages DELETE WHERE session_id = 'renamed' SETTINGS mutations_sync = 1") // other tests count
		if err := errors.Join(err, c.Exec(t.Context(), "ALTER TABLE sessions DELETE WHERE session_id = 'renamed' SETTINGS mutations_sync = 1"), c.Close()); err != nil {
			t.Error(err)
		}
	}()
	said := w.began.Add(-10 * time.Minute).Truncate(time.Second)
	for ver, name := range []string{"a7e19c0d55b2f0013", "cartographer"} {
		if err := c.Exec(t.Context(), fmt.Sprintf(`INSERT INTO messages (tenant, source, format, session_id, run_id, message_id, kind, agent_name, seq, ts, ver)
SELECT 'default', 'claude', 'claude-code', 'renamed', 'r', unhex(hex(sipHash128('renamed'))), 'assistant', '%s', 1, fromUnixTimestamp64Milli(%d), %d`, name, said.UnixMilli(), ver+1)); err != nil {
			t.Fatal(err)
		}
		if err := clickhouse.DeriveConversations(t.Context(), settings); err != nil {
			t.Fatal(err)
		}
	}
	names := ask(t, w, "sessions", "agent", nil).column(t, "value")
	if slices.Contains(names, any("a7e19c0d55b2f0013")) || !slices.Contains(names, any("cartographer")) {
		t.Errorf("the boards offer the agents %v", names)
	}
	pages, err := ui.New(rowsOf{w.reader(t)}, &price.Table{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/sessions", "/sessions?from=now-1h&to=now", "/sessions?agent=cartographer"} {
		r := httptest.NewRecorder()
		pages.ServeHTTP(r, httptest.NewRequest("GET", "http://127.0.0.1"+path, nil))
		if page := r.Body.String(); strings.Contains(page, "a7e19c0d55b2f0013") || !strings.Contains(page, `<option value="cartographer"`) {
			t.Errorf("%s: %.3000s", path, page)
		}
	}
}

// TestCriticalPathAddsUp holds the path of every turn of the corpus against the
// turn's duration, and that of the transcript against its generator.
func TestCriticalPathAddsUp(t *testing.T) {
	w := theWorld(t)
	turns := ask(t, w, "trace", "Turns in this range", nil)
	durations := turns.column(t, "Duration")
	for i, id := range turns.column(t, "Trace")[:40] {
		r := ask(t, w, "trace", "Critical path", map[string]string{"trace_id": id.(string)})
		if got, want := r.sum(t, "Time"), number(durations[i]); math.Abs(got-want) > 1e-6*want+1e-6 {
			t.Errorf("trace %s: the path adds up to %v ms, the turn took %v", id, got, want)
		}
	}
	r := ask(t, w, "trace", "Where the time went", nil)
	got := make(map[string]float64)
	for i, what := range r.column(t, "what") {
		got[fmt.Sprint(what)] = number(r.column(t, "time")[i])
	}
	if got["tool (claude-code)"] != 56_000 && got["tool surveyor"] != 56_000 {
		t.Errorf("the child's tool took 56 s of the path, not %v", got)
	}
}

// TestTraceFallsBackToTheLatest: without an id the dashboard shows the latest
// turn.
func TestTraceFallsBackToTheLatest(t *testing.T) {
	w := theWorld(t)
	latest := fmt.Sprint(ask(t, w, "trace", "Turns in this range", nil).column(t, "Trace")[0])
	r := ask(t, w, "trace", "Waterfall", map[string]string{"trace_id": ""})
	if ids := r.column(t, "traceID"); len(ids) == 0 || fmt.Sprint(ids[0]) != latest {
		t.Errorf("shows %v, want %s", ids, latest)
	}
}

// TestTraceHasEventsAndLinks: the trace panel has the events of a span, and the spans of other traces that it
// points to, in the names that it reads.
func TestTraceHasEventsAndLinks(t *testing.T) {
	a := newAlarms(t)
	span := a.work(msg.SpanTool, time.Minute, time.Second, func(s *msg.Span) {
		s.Events = []msg.SpanEvent{{Time: s.Start + int64(250*time.Millisecond), Name: "finding", Attrs: []msg.Attr{{Key: "buoy", Value: "red"}}}}
		s.Links = []msg.SpanLink{{TraceID: msg.NewTraceID("default", "", "s", "other"), SpanID: msg.NewSpanID("default", "", "s", msg.SpanRun, "other"), Attrs: []msg.Attr{{Key: "method", Value: "prompt"}}}}
	})
	a.store(&export.Batch{Spans: exporttest.Records(span)})
	for _, q := range queries(t) {
		if q.kind != "traces" {
			continue
		}
		sql, err := (&macro.Query{From: a.now.Add(-time.Hour), To: a.now, Interval: time.Minute, Variables: map[string]macro.Value{"trace_id": macro.Text(span.TraceID.String())}}).Expand(q.sql)
		if err != nil {
			t.Fatal(err)
		}
		r, err := run(t, a.reader, "SELECT toJSONString(logs) AS logs, toJSONString(references) AS references, startTime FROM ("+sql+")")
		if err != nil {
			t.Fatalf("%v\n%s", err, sql)
		}
		at := number(r.column(t, "startTime")[0]) + 250
		for column, want := range map[string]string{
			"logs":       fmt.Sprintf(`[{"name":"earshot.finding","timestamp":%s,"fields":[{"key":"buoy","value":"red"}]}]`, strconv.FormatFloat(at, 'f', -1, 64)),
			"references": fmt.Sprintf(`[{"traceID":%q,"spanID":%q,"tags":[{"key":"method","value":"prompt"}]}]`, span.Links[0].TraceID, span.Links[0].SpanID),
		} {
			if got := r.column(t, column); len(got) != 1 || got[0] != want {
				t.Errorf("%s: %v, want %s", column, got, want)
			}
		}
	}
}

// TestGraphHangsTogether: an edge between nodes that are not there makes Grafana
// show nothing at all.
func TestGraphHangsTogether(t *testing.T) {
	w := theWorld(t)
	var nodes, edges result
	for _, a := range queries(t) {
		switch {
		case a.kind == "nodeGraph" && a.ref == "nodes":
			nodes = askOne(t, w, a, nil)
		case a.kind == "nodeGraph":
			edges = askOne(t, w, a, nil)
		}
	}
	known := make(map[any]bool)
	for _, id := range nodes.column(t, "id") {
		known[id] = true
	}
	for _, end := range append(edges.column(t, "source"), edges.column(t, "target")...) {
		if !known[end] {
			t.Errorf("an edge ends at %v, which is no node", end)
		}
	}
	ok, failed := nodes.column(t, "arc__ok"), nodes.column(t, "arc__failed")
	for i := range ok {
		if sum := number(ok[i]) + number(failed[i]); math.Abs(sum-1) > 1e-9 {
			t.Errorf("the arcs of node %d add up to %v", i, sum)
		}
	}
	if got, want := edges.sum(t, "mainstat"), nodes.sum(t, "mainstat"); got != want {
		t.Errorf("%v delegations on the edges, %v in the nodes", got, want)
	}
}

// TestConversationUnfolds: hidden, a conversation is prompts and answers; shown,
// it is everything.
func TestConversationUnfolds(t *testing.T) {
	w := theWorld(t)
	pick := map[string]string{"session": lighthouse}
	folded := ask(t, w, "sessions", "Transcript", pick)
	if len(folded.rows) != 2*scouts {
		t.Errorf("folded it has %d lines, want a prompt and an answer for each of %d turns", len(folded.rows), scouts)
	}
	for i, turn := range folded.column(t, "Turn") {
		if number(turn) != float64(i/2+1) {
			t.Errorf("line %d is of turn %v", i, turn)
		}
	}
	pick["steps"] = "1"
	if all := ask(t, w, "sessions", "Transcript", pick); len(all.rows) < 5*scouts {
		t.Errorf("unfolded it has only %d lines", len(all.rows))
	}
	for words, want := range map[string]int{"keeper has to change": 1, "KEEPER change": 1, "keeper unicorns": 0, lighthouse: 1, "it's": 0} {
		got := 0
		for _, id := range ask(t, w, "sessions", "Conversations", map[string]string{"search": words, "format": "claude-code"}).column(t, "Session") {
			if id == lighthouse {
				got++
			}
		}
		if got != want {
			t.Errorf("%q finds it %d times, want %d", words, got, want)
		}
	}
}
