package dashboards

import (
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/price"
	"github.com/earshot-dev/earshot/core/ui"
	"github.com/earshot-dev/earshot/dashboards/internal/macro"
)

// panel runs a query of a panel over the time from from to to, with those variables picked; of several with one title
// that of the kind.
func (a *alarms) panel(board, title, kind, ref string, from, to time.Time, pick map[string]string) result {
	a.Helper()
	for _, q := range queries(a.T) {
		if q.board != board+".json" || q.title != title || kind != "" && q.kind != kind || ref != "" && q.ref != ref {
			continue
		}
		m := (&world{began: a.now}).all(q)
		m.From, m.To, m.Interval = from, to, max(q.least, time.Minute)
		for name, v := range pick {
			m.Variables[name] = macro.Value{Single: m.Variables[name].Single, Items: []string{v}}
		}
		sql, err := m.Expand(q.sql)
		if err != nil {
			a.Fatal(err)
		}
		r, err := run(a.T, a.reader, sql)
		if err != nil {
			a.Fatalf("%s: %v\n%s", q, err, sql)
		}
		return r
	}
	a.Fatalf("no panel %s / %s", board, title)
	return result{}
}

// hours is panel over the hours up to now.
func (a *alarms) hours(board, title, kind string, pick map[string]string) result {
	a.Helper()
	return a.panel(board, title, kind, "", a.now.Add(-3*time.Hour), a.now.Add(time.Minute), pick)
}

// last is the last number of a stat.
func (r result) last(t *testing.T) float64 {
	t.Helper()
	if len(r.rows) == 0 {
		return 0
	}
	return number(r.rows[len(r.rows)-1][0])
}

// spent is a message of a response that cost a dollar: 40,000 tokens of output.
func (a *alarms) spent(ago time.Duration, change func(*msg.Message)) *msg.Message {
	m := a.said(ago, msg.Millis)
	m.Kind, m.Content, m.Model, m.Usage = msg.Usage, msg.Text{}, "claude-opus-4-5-20251101", msg.Tokens{Output: 40_000}
	if change != nil {
		change(&m)
	}
	m.Host.ID = msg.NewID(m.Host.Tenant, "", m.Session, m.Key)
	return &m
}

// TestTenantsShareNoConversation: conversations of two tenants that have one id are two, everywhere.
func TestTenantsShareNoConversation(t *testing.T) {
	a := newAlarms(t)
	b := &export.Batch{}
	for _, tenant := range []string{"default", "acme", "acme"} {
		b.Messages = append(b.Messages, a.spent(30*time.Minute, func(m *msg.Message) { m.Host.Tenant = tenant }))
		b.Spans = append(b.Spans, new(a.work(msg.SpanTool, 30*time.Minute, time.Duration(len(b.Spans)+1)*time.Second, func(s *msg.Span) { s.Tenant = tenant })))
	}
	a.store(b)
	tools := a.hours("tools", "By tool", "", nil)
	for column, want := range map[string]float64{"Sessions": 2, "Calls": 3, "p50": 2000, "p95": 3000, "Total": 6000} {
		if got := tools.column(t, column); len(got) != 1 || number(got[0]) != want {
			t.Errorf("%s of the tool: %v, want %v", column, got, want)
		}
	}
	if got := a.hours("tokens", "By conversation", "", nil).column(t, "Cost"); len(got) != 2 || number(got[0]) != 2 || number(got[1]) != 1 {
		t.Errorf("conversations that cost %v, want 2 and 1", got)
	}
	if got := a.hours("tokens", "By model", "", nil).sum(t, "Sessions"); got != 2 {
		t.Errorf("%v sessions of the model, want 2", got)
	}
	if got := a.hours("tokens", "Cost per conversation", "", nil).last(t); got != 1.5 {
		t.Errorf("%v dollars per conversation, want 1.5", got)
	}
	if got := a.hours("sessions", "Active conversations", "", nil).sum(t, "sessions"); got != 2 {
		t.Errorf("%v active conversations, want 2", got)
	}
	if got := len(a.hours("sessions", "Conversations", "", nil).rows); got != 2 {
		t.Errorf("%d rows of conversations, want 2", got)
	}
}

// TestPairsHaveOneP95: the graph and the table have the same p95 of a pair, which no running delegation lowers, and the
// same share that failed.
func TestPairsHaveOneP95(t *testing.T) {
	a := newAlarms(t)
	b := &export.Batch{}
	for n := range 40 {
		took := 10 * time.Second
		if n < 39 {
			took = 0
		}
		b.Spans = append(b.Spans, new(a.work(msg.SpanDelegation, 20*time.Minute, took, func(s *msg.Span) {
			if took > 0 {
				s.Outcome = msg.OutcomeError
			}
		})))
	}
	b.Spans = append(b.Spans, new(a.work(msg.SpanDelegation, 20*time.Minute, 10*time.Second, nil)))
	a.store(b)
	pairs := a.hours("delegations", "By pair", "", nil)
	if got := pairs.sum(t, "p95"); got != 10_000 {
		t.Errorf("p95 %v, want 10 s", got)
	}
	from, to := a.now.Add(-3*time.Hour), a.now.Add(time.Minute)
	edges := a.panel("delegations", "Who calls whom", "nodeGraph", "edges", from, to, nil)
	if got := edges.column(t, "secondarystat"); len(got) != 1 || got[0] != "p95 10 s" {
		t.Errorf("on the edge %v, want p95 10 s", got)
	}
	nodes := a.panel("delegations", "Who calls whom", "nodeGraph", "nodes", from, to, nil)
	for i, id := range nodes.column(t, "id") {
		if got := number(nodes.column(t, "arc__failed")[i]); id == "diver" && got != pairs.sum(t, "Failed") {
			t.Errorf("%v of the ring failed, want %v as in the table", got, pairs.sum(t, "Failed"))
		}
	}
}

// TestVariablesPickOpenWork: the panels of open work have that which the variables of their board pick, and count the
// calls that the others of the board do.
func TestVariablesPickOpenWork(t *testing.T) {
	a := newAlarms(t)
	b := &export.Batch{}
	for n, tenant := range []string{"default", "acme", "acme"} {
		for _, kind := range []msg.SpanKind{msg.SpanDelegation, msg.SpanTool} {
			b.Spans = append(b.Spans, new(a.work(kind, 20*time.Minute, 0, func(s *msg.Span) {
				s.Tenant, s.Tool.Name, s.Client.Project, s.Model = tenant, fmt.Sprint("buoy-", n), fmt.Sprint("/pier/", n), fmt.Sprint("gull-", n)
			})))
		}
		b.Spans = append(b.Spans, new(a.work(msg.SpanWorkflow, 20*time.Minute, time.Second, func(s *msg.Span) { s.Tenant = tenant })))
	}
	b.Spans = append(b.Spans, new(a.work(msg.SpanTool, 20*time.Minute, 0, func(s *msg.Span) { s.Tool.Internal = true })))
	for _, s := range b.Spans {
		if s.State == msg.SpanOpen {
			b.Verdicts = append(b.Verdicts, msg.Verdict{Tenant: s.Tenant, TraceID: s.TraceID, Span: s.ID, Kind: s.Kind, Session: "s", Name: "tool_running", Evidence: "slow", Since: s.Start, At: s.Start, Ver: 1})
		}
	}
	a.store(b)
	for _, c := range []struct {
		board, title string
		pick         map[string]string
		want         float64
	}{
		{"delegations", "In flight", nil, 3},
		{"delegations", "In flight", map[string]string{"tenant": "acme"}, 2},
		{"delegations", "In flight", map[string]string{"project": "/pier/2"}, 1},
		{"delegations", "Stuck", map[string]string{"tenant": "acme"}, 4},
		{"tools", "Running", nil, 3},
		{"tools", "Running", map[string]string{"tenant": "acme"}, 2},
		{"tools", "Running", map[string]string{"tool": "buoy-0"}, 1},
		{"tools", "Running", map[string]string{"model": "gull-2"}, 1},
		{"tools", "Calls", map[string]string{"model": "gull-2"}, 1},
	} {
		if got := a.hours(c.board, c.title, "stat", c.pick).last(t); got != c.want {
			t.Errorf("%s / %s with %v: %v, want %v", c.board, c.title, c.pick, got, c.want)
		}
	}
	acme := map[string]string{"tenant": "acme"}
	if got := len(a.hours("delegations", "Delegations in flight", "", acme).rows); got != 2 {
		t.Errorf("%d delegations in flight, want 2", got)
	}
	if got := len(a.hours("delegations", "Stuck now", "", acme).rows); got != 4 {
		t.Errorf("%d are stuck now, want 4", got)
	}
	if got := a.hours("delegations", "Steps of workflows", "", acme).sum(t, "Times"); got != 2 {
		t.Errorf("%v steps of workflows, want 2", got)
	}
}

// TestInternalCallsAreQuiet: calls of the framework itself that fail set off no alarm: the panel that the alarm leads to
// does not have them.
func TestInternalCallsAreQuiet(t *testing.T) {
	a := newAlarms(t)
	b := &export.Batch{}
	for range 12 {
		b.Spans = append(b.Spans, new(a.work(msg.SpanTool, 20*time.Minute, time.Second, func(s *msg.Span) { s.Outcome, s.Tool.Internal = msg.OutcomeError, true })))
	}
	a.store(b)
	if a.fires("A tool fails") {
		t.Error("the alarm fires")
	}
}

// TestPaceOfACutInterval: a dollar every minute is 1440 dollars a day, in the intervals too that the range cuts.
func TestPaceOfACutInterval(t *testing.T) {
	a := newAlarms(t)
	a.now = a.now.Truncate(15 * time.Minute)
	b := &export.Batch{}
	for n := range 60 {
		b.Messages = append(b.Messages, a.spent(time.Duration(n)*time.Minute+30*time.Second, nil))
	}
	a.store(b)
	r := a.panel("tokens", "Cost per day, at this pace", "", "", a.now.Add(-55*time.Minute), a.now.Add(-5*time.Minute), nil)
	got := r.column(t, "dollars a day")
	if len(got) != 4 {
		t.Errorf("%d intervals, want 4", len(got))
	}
	for i, v := range got {
		if math.Abs(number(v)-1440) > 1e-6 {
			t.Errorf("interval %d: %v dollars a day, want 1440", i, v)
		}
	}
}

// TestQuantilesOfWaits: a call that only waited for a person has no time of a tool, in the tables as in the number above them.
func TestQuantilesOfWaits(t *testing.T) {
	a := newAlarms(t)
	b := &export.Batch{}
	for n := range 40 {
		b.Spans = append(b.Spans, new(a.work(msg.SpanTool, 20*time.Minute, 10*time.Second, func(s *msg.Span) {
			if n > 0 {
				s.Events = []msg.SpanEvent{{Time: s.Start, Name: msg.WaitStart.String()}, {Time: s.End, Name: msg.WaitEnd.String()}}
			}
		})))
	}
	a.store(b)
	want := a.hours("tools", "p95", "stat", nil).last(t)
	if want != 10_000 {
		t.Errorf("p95 %v, want 10 s", want)
	}
	for _, title := range []string{"By tool", "By agent", "By model", "By MCP server"} {
		r := a.hours("tools", title, "", nil)
		if got := r.column(t, "p95"); len(got) != 1 || number(got[0]) != want {
			t.Errorf("%s: p95 %v, want %v as in the number above", title, got, want)
		}
		if got := r.sum(t, "Calls"); got != 40 {
			t.Errorf("%s: %v calls, want 40", title, got)
		}
	}
}

// TestWidestTurns: the turn with the most delegations is the same in the chart and the table, where the agents of a turn
// have sessions of their own too.
func TestWidestTurns(t *testing.T) {
	a := newAlarms(t)
	b := &export.Batch{}
	for n := range 6 {
		b.Spans = append(b.Spans, new(a.work(msg.SpanDelegation, time.Duration(20-n)*time.Minute, time.Second, func(s *msg.Span) {
			s.TraceID, s.Session, s.Agent.Name = msg.NewTraceID("default", "", "s", "turn"), fmt.Sprint("s", n/2), fmt.Sprint("keeper ", n)
		})))
	}
	a.store(b)
	widest := 0.0
	for _, v := range a.hours("delegations", "Fan-out", "", nil).column(t, "widest") {
		widest = max(widest, number(v))
	}
	r := a.hours("delegations", "Widest turns", "", nil)
	if got := r.column(t, "Delegations"); widest != 6 || len(got) != 1 || number(got[0]) != widest {
		t.Errorf("%v at most in the chart, %v in the table, want 6", widest, got)
	}
	if got := r.column(t, "Caller"); len(got) != 1 || got[0] != "keeper 0" {
		t.Errorf("the caller is %v, want the first", got)
	}
}

// TestPeriodsMeet: a row at the moment in which the range begins is of the range, and not of the period before.
func TestPeriodsMeet(t *testing.T) {
	a := newAlarms(t)
	a.now = a.now.Truncate(time.Hour)
	a.store(&export.Batch{Spans: exporttest.Records(a.work(msg.SpanTool, time.Hour, time.Second, nil), a.work(msg.SpanTool, 90*time.Minute, time.Second, nil),
		a.work(msg.SpanDelegation, time.Hour, time.Second, nil), a.work(msg.SpanDelegation, 90*time.Minute, time.Second, nil))})
	for board, title := range map[string]string{"tools": "Calls", "delegations": "Delegations"} {
		r := a.panel(board, title, "stat", "", a.now.Add(-time.Hour), a.now, nil)
		if got := r.column(t, "value"); len(got) != 2 || number(got[0]) != 1 || number(got[1]) != 1 {
			t.Errorf("%s / %s: %v, want 1 before and 1 in the range", board, title, got)
		}
	}
}

// TestTurnsHaveAllTokens: a turn has the tokens that its runs report beyond those of responses, as v_usage has, each once;
// it is of the run above all others, and the failure of a step is no failure of a call.
func TestTurnsHaveAllTokens(t *testing.T) {
	a := newAlarms(t)
	const opus, unknown = "claude-opus-4-5-20251101", "gull-9"
	b := &export.Batch{}
	// span adds a span of the turn; its tokens are of output, of which 40,000 of opus cost a dollar.
	span := func(turn string, kind msg.SpanKind, model string, output uint64, change func(*msg.Span)) {
		b.Spans = append(b.Spans, new(a.work(kind, 20*time.Minute, time.Minute, func(s *msg.Span) {
			s.TraceID, s.Model, s.Usage = msg.NewTraceID("default", "", "s", turn), model, msg.Tokens{Output: output}
			if kind == msg.SpanChat {
				s.Parent = msg.NewSpanID("default", "", "s", msg.SpanRun, turn)
			}
			if change != nil {
				change(s)
			}
		})))
	}
	below := func(s *msg.Span) { // the clock of its machine is behind
		s.Parent, s.Agent.Name, s.Start = msg.NewSpanID("default", "", "s", msg.SpanRun, "above"), "diver", s.Start-int64(time.Hour)
	}
	span("by run", msg.SpanRun, opus, 40_000, nil)
	span("by response", msg.SpanRun, opus, 80_000, nil)
	span("by response", msg.SpanChat, opus, 40_000, nil)
	span("by response", msg.SpanChat, opus, 40_000, nil)
	span("mixed", msg.SpanRun, opus, 120_000, nil)
	span("mixed", msg.SpanChat, opus, 80_000, nil)
	span("stale", msg.SpanRun, opus, 0, func(s *msg.Span) { s.State, s.End = msg.SpanOpen, 0 })
	span("stale", msg.SpanChat, opus, 40_000, nil)
	span("unpriced", msg.SpanRun, unknown, 40_000, nil)
	span("two agents", msg.SpanRun, opus, 40_000, nil)
	span("two agents", msg.SpanRun, opus, 80_000, below)
	span("two agents", msg.SpanWorkflow, "", 0, func(s *msg.Span) { below(s); s.Outcome = msg.OutcomeError })
	a.store(b)
	for turn, want := range map[string]string{
		"by run": "40000 1 keeper 0", "by response": "80000 2 keeper 0", "mixed": "120000 3 keeper 0", "stale": "40000 1 keeper 0", "unpriced": "40000 <nil> keeper 0",
		"two agents": "120000 3 keeper 0",
	} {
		r, err := run(t, a.reader, "SELECT output_tokens, toString(cost_usd), agent_name, errors FROM v_turns WHERE trace_id = '"+msg.NewTraceID("default", "", "s", turn).String()+"'")
		if err != nil {
			t.Fatal(err)
		}
		got := "no row"
		if len(r.rows) == 1 {
			cost := r.rows[0][1]
			if s, ok := cost.(*string); ok && s != nil {
				cost = *s
			} else if ok {
				cost = nil
			}
			got = fmt.Sprintln(r.rows[0][0], cost, r.rows[0][2], r.rows[0][3])
			got = got[:len(got)-1]
		}
		if got != want {
			t.Errorf("%s: %s, want %s", turn, got, want)
		}
	}
}

// question is the SQL of a question of docs/questions.md.
func question(t *testing.T, number int) string {
	t.Helper()
	b, err := os.ReadFile("../docs/questions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), fmt.Sprintf("\n## %d. ", number))
	_, rest, _ = strings.Cut(rest, "```sql\n")
	sql, _, found := strings.Cut(rest, "\n```")
	if !found {
		t.Fatalf("question %d has no SQL", number)
	}
	return sql
}

// TestQuestionsKeepTenantsApart: what two tenants do in a conversation of one id, and in a run of one id, is not one thing.
func TestQuestionsKeepTenantsApart(t *testing.T) {
	a := newAlarms(t)
	b := &export.Batch{}
	for _, tenant := range []string{"default", "acme"} {
		of := func(s *msg.Span) {
			s.Tenant, s.Run, s.Client.Version, s.ID = tenant, "r", "1", msg.NewSpanID(tenant, "", "s", s.Kind, s.Tool.CallID)
			s.TraceID = msg.NewTraceID(tenant, "", "s", "r")
		}
		b.Spans = append(b.Spans, new(a.work(msg.SpanRun, 20*time.Minute, time.Minute, of)), new(a.work(msg.SpanChat, 10*time.Minute, time.Minute, of)),
			new(a.work(msg.SpanTool, 15*time.Minute, time.Minute, func(s *msg.Span) {
				of(s)
				s.ResultTokens, s.ResultTokensFrom, s.Outcome = 100, msg.Provider, msg.OutcomeError
			})))
		for range 39 {
			b.Spans = append(b.Spans, new(a.work(msg.SpanTool, 15*time.Minute, time.Minute, func(s *msg.Span) {
				of(s)
				s.Tool.Name, s.Events = "Task", []msg.SpanEvent{{Time: s.Start, Name: msg.WaitStart.String()}, {Time: s.End, Name: msg.WaitEnd.String()}}
			})))
		}
		called := a.spent(15*time.Minute, func(m *msg.Message) {
			m.Host.Tenant, m.Run, m.Kind, m.Usage, m.Tool = tenant, "r", msg.ToolCall, msg.Tokens{}, msg.Tool{Name: "Task", CallID: "1"}
		})
		b.Messages = append(b.Messages, called, a.spent(10*time.Minute, func(m *msg.Message) { m.Host.Tenant, m.Run, m.Usage.Input = tenant, "r", 10 }))
	}
	a.store(b)
	for n, want := range map[int][2]string{
		3: {"max(conversations)", "2"}, 4: {"sum(conversations)", "2"}, 9: {"count()", "0"}, 11: {"sum(tokens_read)", "200"}, 13: {"sum(conversations)", "2"},
		14: {"max(p95_ms)", "60000"}, 17: {"count()", "2"}, 19: {"sum(conversations)", "0"},
	} {
		r, err := run(t, a.reader, "SELECT toString("+want[0]+") FROM (\n"+question(t, n)+"\n)")
		if err != nil {
			t.Errorf("question %d: %v", n, err)
			continue
		}
		got := r.rows[0][0]
		if s, ok := got.(*string); ok && s != nil {
			got = *s
		}
		if got != want[1] {
			t.Errorf("question %d: %s is %v, want %s", n, want[0], got, want[1])
		}
	}
}

// TestWhoNamesAllAgents: earshot who names agents and models as the boards do, also those without a name; tokens outside of
// turns are of no turn.
func TestWhoNamesAllAgents(t *testing.T) {
	a := newAlarms(t)
	b := &export.Batch{}
	for n := range 3 {
		b.Messages = append(b.Messages, a.spent(30*time.Minute, func(m *msg.Message) {
			if m.Agent.Name = "keeper"; n > 0 {
				m.Agent.Name, m.Model = "", ""
			}
			if n == 1 {
				m.Host.TraceID = msg.NewTraceID("default", "", "s", "turn")
			}
		}))
	}
	a.store(b)
	f := inspect.WhoFilter{By: []string{"agent", "model"}, From: a.now.Add(-time.Hour), To: a.now}
	names := func() string {
		t.Helper()
		sql, params, err := f.SQL()
		if err != nil {
			t.Fatal(err)
		}
		rows, err := a.reader.Query(t.Context(), "SELECT agent, model, tokens, turns FROM ("+sql+")", params)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var out strings.Builder
		for rows.Next() {
			fmt.Fprintln(&out, rows.Values()...)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got, want := names(), "keeper claude-opus-4-5-20251101 40000 0\n(claude-code) unknown 80000 1\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f.Where = map[string]string{"agent": "(claude-code)"}
	if got, want := names(), "(claude-code) unknown 80000 1\n"; got != want {
		t.Errorf("of that agent %q, want %q", got, want)
	}
	for board, column := range map[string]string{"By agent": "Agent", "By model": "Model"} {
		if got := fmt.Sprint(a.hours("tokens", board, "", nil).column(t, column)); got != "[keeper (claude-code)]" && got != "[claude-opus-4-5-20251101 unknown]" {
			t.Errorf("the board has %s", got)
		}
	}
}

// TestToolsPageIsTheBoard: the page Tools has the calls and the quantiles of its board, to which each of its lines leads.
func TestToolsPageIsTheBoard(t *testing.T) {
	a := newAlarms(t)
	b := &export.Batch{Spans: exporttest.Records(a.work(msg.SpanTool, 20*time.Minute, 11*time.Second, nil))}
	for n := range 60 {
		b.Spans = append(b.Spans, new(a.work(msg.SpanTool, 20*time.Minute, 7*time.Second, func(s *msg.Span) {
			s.Tool.Name = "waits"
			if s.Events = []msg.SpanEvent{{Time: s.Start, Name: msg.WaitStart.String()}, {Time: s.End, Name: msg.WaitEnd.String()}}; n < 30 {
				s.Tool.Name = "Task"
			}
		})), new(a.work(msg.SpanTool, 20*time.Minute, 13*time.Second, func(s *msg.Span) { s.Tool.Name, s.Tool.Internal = "machinery", true })))
	}
	a.store(b)
	board := a.hours("tools", "By tool", "", nil)
	if got := fmt.Sprint(board.column(t, "Tool"), board.column(t, "p95")); got != "[Task waits] [11000 0]" {
		t.Errorf("the board has %s", got)
	}
	pages, err := ui.New(rowsOf{a.reader}, &price.Table{})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRecorder()
	pages.ServeHTTP(r, httptest.NewRequest("GET", "http://127.0.0.1/tools?from=now-3h&to=now", nil))
	_, page, _ := strings.Cut(r.Body.String(), "<tbody")
	page, _, _ = strings.Cut(page, "</tbody")
	if r.Code != 200 || strings.Contains(page, "machinery") || strings.Count(page, ">11s<") < 3 {
		t.Errorf("%d %s", r.Code, page)
	}
}

// TestOneConversationOfTwoTenants: the board of a conversation shows that of the tenant that is picked, else the one that was asked last,
// and a list that names one of them has the other not in it.
func TestOneConversationOfTwoTenants(t *testing.T) {
	a := newAlarms(t)
	b := &export.Batch{}
	for n, tenant := range []string{"acme", "default", "default"} {
		ago := time.Duration(30-n) * time.Minute
		text, hidden := a.said(ago, msg.Millis), a.said(ago, msg.Millis)
		text.Kind, text.Content, hidden.Hidden = msg.User, msg.Plain("lamps of "+tenant), true
		for _, m := range []*msg.Message{&text, &hidden} {
			m.Host.Tenant, m.Run = tenant, m.Key
			m.Host.TraceID, m.Host.ID = msg.NewTraceID(tenant, "", "s", m.Key), msg.NewID(tenant, "", "s", m.Key)
			b.Messages = append(b.Messages, m)
		}
		b.Spans = append(b.Spans, new(a.work(msg.SpanRun, ago, time.Second, func(s *msg.Span) {
			s.Tenant, s.TraceID = tenant, text.Host.TraceID
			s.ID = msg.NewSpanID(tenant, "", "s", msg.SpanRun, text.Key)
		})))
	}
	a.store(b)
	for _, c := range []struct {
		pick  map[string]string
		turns int
		asked string
	}{
		{map[string]string{"session": "s"}, 2, "lamps of default"},
		{map[string]string{"session": "s", "tenant": "default"}, 2, "lamps of default"},
		{map[string]string{"session": "s", "tenant": "acme"}, 1, "lamps of acme"},
		{map[string]string{"tenant": "acme"}, 1, "lamps of acme"},
		{nil, 2, "lamps of default"},
	} {
		asked := a.hours("sessions", "Turns", "", c.pick).column(t, "Asked")
		if len(asked) != c.turns || asked[0] != c.asked {
			t.Errorf("%v: turns %v, want %d of %q", c.pick, asked, c.turns, c.asked)
		}
	}
	list := a.hours("sessions", "Conversations", "", map[string]string{"search": "acme"})
	if got := list.column(t, "Tenant"); len(got) != 1 || got[0] != "acme" {
		t.Errorf("conversations with the word are of %v", got)
	}
	if got := list.column(t, "Messages"); len(got) != 1 || number(got[0]) != 1 {
		t.Errorf("it has %v messages, want the one that is shown", got)
	}
	if got := a.hours("sessions", "Messages", "timeseries", nil).sum(t, "messages"); got != 3 {
		t.Errorf("%v messages are shown, want 3", got)
	}
}

// TestATraceThatRuns: the numbers of a trace have the steps that run.
func TestATraceThatRuns(t *testing.T) {
	a := newAlarms(t)
	top := a.work(msg.SpanRun, 10*time.Minute, 0, nil)
	below := func(kind msg.SpanKind, took time.Duration) *msg.Span {
		return new(a.work(kind, 9*time.Minute, took, func(s *msg.Span) { s.TraceID, s.Parent = top.TraceID, top.ID }))
	}
	pick := map[string]string{"trace_id": top.TraceID.String()}
	numbers := func(spans, runs float64) {
		t.Helper()
		for title, want := range map[string]float64{"Spans": spans, "Agents": runs, "Failed": 0} {
			if got := a.hours("trace", title, "stat", pick).last(t); got != want {
				t.Errorf("%s: %v, want %v", title, got, want)
			}
		}
		if got := a.hours("trace", "Duration", "stat", pick).last(t); got < 600_000 || got > 700_000 {
			t.Errorf("it has run for %v ms, want ten minutes", got)
		}
	}
	a.store(&export.Batch{Spans: []*msg.Span{&top}, Messages: []*msg.Message{a.spent(8*time.Minute, func(m *msg.Message) { m.Host.TraceID = top.TraceID })}})
	numbers(1, 1)
	if got := a.hours("trace", "Tokens", "stat", pick).last(t); got != 40_000 {
		t.Errorf("%v tokens", got)
	}
	a.store(&export.Batch{Spans: []*msg.Span{below(msg.SpanChat, time.Second), below(msg.SpanRun, 0)}})
	numbers(3, 2)
	turns := a.hours("sessions", "Turns", "", map[string]string{"session": "s"})
	if got := turns.column(t, "Status"); len(got) != 1 || got[0] != "running" || !isNull(turns.column(t, "Duration")[0]) {
		t.Errorf("the turn of the conversation is %v", turns.rows)
	}
}
