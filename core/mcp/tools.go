package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/earshot-dev/earshot/core/inspect"
)

// timeLimit is that of a tool.
const timeLimit = 30 * time.Second

// add adds a tool. call writes untrusted lines, and returns a sentence on how to get more, which must have
// no foreign text.
func add[In any](m *Server, name, title, what string, page func(In) Page, call func(ctx context.Context, in In, a *answer) (more string, err error)) {
	no := false
	sdk.AddTool(m.sdk, &sdk.Tool{Name: name, Title: title, Description: what, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no}},
		func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
			ctx, cancel := context.WithTimeout(ctx, timeLimit)
			defer cancel()
			a := newAnswer(page(in))
			more, err := call(ctx, in, a)
			if err != nil { // it may quote a row
				a, more = newAnswer(Page{MaxTokens: 2 * leastTokens}), ""
				a.line("%s", err.Error())
			}
			return &sdk.CallToolResult{IsError: err != nil, Content: []sdk.Content{&sdk.TextContent{Text: a.text(more)}}}, nil, nil
		})
}

type stuckArgs struct {
	Limit int `json:"limit,omitempty" jsonschema:"steps in each state, 10 unless told"`
	Page
}

type slowArgs struct {
	Trace   string  `json:"trace,omitempty" jsonschema:"explain this trace; the beginning of its id is enough"`
	Session string  `json:"session,omitempty" jsonschema:"only of this session; the beginning of its id is enough"`
	Tenant  string  `json:"tenant,omitempty" jsonschema:"of the session, where several tenants have it"`
	Hours   float64 `json:"hours,omitempty" jsonschema:"that ran within so many hours, 24 unless told; all of the session with session"`
	Limit   int     `json:"limit,omitempty" jsonschema:"delegations, 5 unless told"`
	Page
}

type changedArgs struct {
	Hours    float64 `json:"hours,omitempty" jsonschema:"change points found in the last so many hours, and these compared with as many before; 24 unless told"`
	VersionA string  `json:"version_a,omitempty" jsonschema:"compare this version of the agent's program within the hours with version_b"`
	VersionB string  `json:"version_b,omitempty" jsonschema:"see version_a"`
	Page
}

type spentArgs struct {
	Hours float64 `json:"hours,omitempty" jsonschema:"within the last so many hours, 24 unless told"`
	Page
}

type findArgs struct {
	Text  string  `json:"text" jsonschema:"words, a part of a text, the id of anything, or the name of an agent, a tool or a file"`
	Hours float64 `json:"hours,omitempty" jsonschema:"within the last so many hours; without it the last day, then longer until there is enough"`
	Limit int     `json:"limit,omitempty" jsonschema:"messages, 10 unless told"`
	Page
}

type showArgs struct {
	ID     string `json:"id" jsonschema:"a session or a trace; the beginning of its id is enough"`
	Tenant string `json:"tenant,omitempty" jsonschema:"of the session, where several tenants have it"`
	Span   string `json:"span,omitempty" jsonschema:"of the trace: the messages of this step in full"`
	Full   bool   `json:"full,omitempty" jsonschema:"whole texts of a session instead of their beginnings"`
	Page
}

type diffArgs struct {
	A      string `json:"a" jsonschema:"a trace or a session; the beginning of its id is enough"`
	B      string `json:"b" jsonschema:"the other one"`
	Tenant string `json:"tenant,omitempty" jsonschema:"of the sessions, where several tenants have one of them"`
	Page
}

type sqlArgs struct {
	Query     string `json:"query,omitempty" jsonschema:"one SELECT of ClickHouse's SQL over the views v_*"`
	ColumnsOf string `json:"columns_of,omitempty" jsonschema:"instead of a query: the columns of this view; v_ has all views"`
	Page
}

func (m *Server) tools() {
	add(m, "stuck_now", "What is stuck now", "The work in progress: what is stuck, what waits for a person, what runs, each with its verdict, the evidence for it, and how long it has been silent.",
		func(in stuckArgs) Page { return in.Page }, m.stuck)
	add(m, "why_slow", "Why it was slow", "The slowest delegations, each with the bottleneck on its critical path, and the slowest explained in words; or one trace explained.",
		func(in slowArgs) Page { return in.Page }, m.slow)
	add(m, "what_changed", "What changed", "Since when, and with which version, agents, tools and models have another duration, errors, tokens or calls; then all that ran in two stretches of time, or of two versions: counts, errors, p50, p95, and which parts of the critical path the difference is in.",
		func(in changedArgs) Page { return in.Page }, m.changed)
	add(m, "who_spent", "Who spent what", "Tokens and cost, in all and by agent, model, project, team, user, repository, ticket and day. The cost of agents below a turn is that of who began it.",
		func(in spentArgs) Page { return in.Page }, m.spent)
	add(m, "find", "Find", "Messages that have a text, and sessions, traces, agents, tools and files with that id or name.",
		func(in findArgs) Page { return in.Page }, m.find)
	add(m, "show", "Show", "A session turn by turn, a trace as a waterfall with its critical path (*) and the ids of its steps, or the messages of one step.",
		func(in showArgs) Page { return in.Page }, m.show)
	add(m, "diff", "Compare", "Two traces or sessions step by step: the first step at which they diverge, and the differences in time, tokens and cost.",
		func(in diffArgs) Page { return in.Page }, m.diff)
	add(m, "sql", "SQL", fmt.Sprintf("A SELECT over the views v_*, read-only: at most %d rows and %s. Durations are in milliseconds, times in UTC.", sqlRows, SQLTime),
		func(in sqlArgs) Page { return in.Page }, m.sql)
}

// hours is a duration from an argument.
func hours(h, unless float64) time.Duration {
	if h <= 0 {
		h = unless
	}
	return time.Duration(min(h, 24*366*10) * float64(time.Hour))
}

// trace is where more of a trace is.
func (m *Server) trace(id string) string {
	if m.Pages == "" {
		return "earshot explain " + id
	}
	return m.Pages + "/trace/" + url.PathEscape(id)
}

// quoted is a text as one word of a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// session is where more of a session is.
func (m *Server) session(id inspect.Ref) string {
	if m.Pages == "" {
		text := "earshot show " + quoted(id.ID)
		if id.Tenant != "" {
			text += " --tenant " + quoted(id.Tenant)
		}
		return text
	}
	return m.Pages + "/session/" + url.PathEscape(id.ID) + suffix("?tenant=", url.QueryEscape(id.Tenant), "")
}

func (m *Server) stuck(ctx context.Context, in stuckArgs, a *answer) (string, error) {
	t, err := inspect.LoadTop(ctx, m.Store, nil, bounded(in.Limit, 10, 100), time.Now())
	if err != nil {
		return "", err
	}
	for _, s := range []struct {
		state, words string
		list         []inspect.OpenWork
	}{{inspect.Stuck, "stuck", t.Stuck}, {inspect.Waiting, "waiting for a person", t.Waiting}, {inspect.Running, "running", t.Running}} {
		var open []string
		for _, k := range t.Open {
			if k.State == s.state {
				open = append(open, fmt.Sprintf("%d %s (oldest %s)", k.Count, k.Kind, inspect.Span(time.Duration(k.Oldest)*time.Millisecond)))
			}
		}
		a.line("%s: %s", s.words, cmp.Or(strings.Join(open, ", "), "nothing"))
		for _, w := range s.list {
			a.line("- %s %s of %s: %s, silent %s, age %s. %s", w.Kind, inspect.Clip(w.Name, 80), inspect.Clip(w.Actor(), 60), w.Verdict, inspect.Span(w.Silent()), inspect.Span(w.Age()), inspect.Clip(w.Reason(), 320))
			if act := w.Advice(); act != "" {
				a.line("  to do: %s Its session is %s.", act, inspect.Clip(w.SessionID, 100))
			}
			a.line("  %s", m.trace(w.TraceID))
		}
	}
	return "Running work that others below it do is not listed. why_slow with a trace has where its time went, show with a trace its steps.", nil
}

func (m *Server) slow(ctx context.Context, in slowArgs, a *answer) (string, error) {
	now := time.Now().In(m.Zone)
	explain := func(id string) error {
		t, err := inspect.LoadTrace(ctx, m.Store, id, m.Prices, now)
		if err != nil {
			return err
		}
		for _, s := range t.Explain().Text {
			a.line("%s", s)
		}
		a.line("  %s", m.trace(t.ID))
		return nil
	}
	if in.Trace != "" {
		return "show with the trace lists its steps.", explain(in.Trace)
	}
	f := inspect.SlowFilter{Since: hours(in.Hours, 24), Session: inspect.Ref{Tenant: in.Tenant, ID: in.Session}, Limit: bounded(in.Limit, 5, 50), Prices: m.Prices, Now: now}
	if in.Session != "" && in.Hours == 0 {
		f.Since = 0
	}
	list, err := inspect.Slow(ctx, m.Store, f)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		last, err := inspect.Latest(ctx, m.Store)
		switch {
		case err != nil:
			return "", err
		case last.IsZero():
			a.line("no delegations: no agent has handed work to another one yet")
		default:
			a.line("no delegations; the latest of all ended at %s", inspect.Stamp(last, m.Zone))
		}
		return "what_changed and sql over v_tool_calls have single agents too.", nil
	}
	for i := range list {
		d := &list[i]
		a.line("- %s took %s from %s on%s: mostly %s. %s", inspect.Clip(d.Pair(), 160), inspect.Span(d.Wall), inspect.Stamp(d.Started, m.Zone), suffix(" (", d.Status, ")"), d.Top(), inspect.Clip(d.Why, 300))
		a.line("  session %s, trace %s", inspect.Clip(d.SessionID, 100), d.TraceID)
	}
	a.line("The slowest one's turn:")
	return "why_slow with another trace explains that one.", explain(list[0].TraceID)
}

func (m *Server) changed(ctx context.Context, in changedArgs, a *answer) (string, error) {
	now, window := time.Now().In(m.Zone), hours(in.Hours, 24)
	x, y := inspect.Sample{From: now.Add(-2 * window), To: now.Add(-window)}, inspect.Sample{From: now.Add(-window), To: now}
	if (in.VersionA == "") != (in.VersionB == "") {
		return "", errors.New("version_a and version_b are compared: both are needed")
	}
	if in.VersionA != "" {
		x = y
		x.Version, y.Version = in.VersionA, in.VersionB
	}
	if in.VersionA == "" {
		if err := m.points(ctx, a, window, now); err != nil {
			return "", err
		}
	}
	list, err := inspect.Changes(ctx, m.Store, x, y, m.Prices, now)
	if err != nil {
		return "", err
	}
	for _, s := range []struct {
		name string
		inspect.Sample
	}{{"A", x}, {"B", y}} {
		a.line("%s: %s to %s%s", s.name, inspect.Stamp(s.From, m.Zone), inspect.Stamp(s.To, m.Zone), suffix(", version ", inspect.Clip(s.Version, 60), ""))
	}
	if len(list) == 0 {
		a.line("nothing ran in either of the two")
	}
	for i := range list {
		c := &list[i]
		a.line("- %s %s: %s. A: %s. B: %s.", c.Kind, inspect.Clip(c.Title(), 100), strings.TrimSuffix(inspect.Clip(c.Summary(), 300), "."), stats(c.A), stats(c.B))
		if c.Both() && c.DeltaMS != 0 {
			a.line("  p95 of A is in trace %s, of B in trace %s", c.A.TraceID, c.B.TraceID)
		}
	}
	return "diff with the two traces compares them step by step.", nil
}

// points lists the change points that were found within a time.
func (m *Server) points(ctx context.Context, a *answer, window time.Duration, now time.Time) error {
	found, err := inspect.WhatChanged(ctx, m.Store, inspect.ChangedFilter{Since: window, Now: now, Prices: m.Prices})
	if err != nil {
		return err
	}
	if len(found.Changes) == 0 {
		a.line("Change points: none. %s", found.Basis())
	} else {
		a.line("Change points, beyond chance. %s", found.Basis())
	}
	for i := range found.Changes {
		c := &found.Changes[i]
		a.line("- %s %s: %s %s, from %s, %d runs before and %d after. %s", inspect.Clip(c.Title(), 100), c.Metric, c.Shift(), inspect.Clip(c.Cause(), 120), inspect.Stamp(c.At, m.Zone), c.A.Runs, c.B.Runs,
			inspect.Clip(strings.Join(c.Detail(), " "), 400))
		a.line("  a median before is trace %s, after %s", c.TraceA, c.TraceB)
	}
	a.line("All that ran, in both stretches of time, whether or not the difference is chance:")
	return nil
}

func stats(s inspect.Stats) string {
	if s.Count == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, %d failed, p50 %s, p95 %s", s.Count, s.Errors, inspect.Span(time.Duration(s.P50*1e6)), inspect.Span(time.Duration(s.P95*1e6)))
}

func (m *Server) spent(ctx context.Context, in spentArgs, a *answer) (string, error) {
	since := hours(in.Hours, 24)
	s, err := inspect.LoadSpent(ctx, m.Store, inspect.Condition{
		SQL: "ts >= now() - toIntervalSecond({since:Int64})", Params: map[string]string{"since": fmt.Sprint(int64(since / time.Second))},
	})
	if err != nil {
		return "", err
	}
	one := func(name string, s inspect.Spending) {
		a.line("%s: %s for %d tokens%s%s", name, cmp.Or(s.Dollars(), "nothing"), s.Tokens, suffix(", ", s.Hits(), " of what was sent from caches"), suffix(", ", count(s.Unpriced), " tokens without a price"))
	}
	one("the last "+inspect.Span(since), s.Total)
	for _, by := range []struct {
		title string
		list  []inspect.Spending
	}{{"agent", s.Agents}, {"model", s.Models}, {"project", s.Projects}, {"team", s.Teams}, {"user", s.Users}, {"repository", s.Repositories}, {"ticket", s.Tickets}, {"day (UTC)", s.Days}} {
		if len(by.list) == 1 && by.list[0].Name == "" && by.title != "project" {
			continue // no work has one
		}
		for _, x := range by.list {
			one("- "+by.title+" "+cmp.Or(inspect.Clip(x.Name, 100), "unknown"), x)
		}
	}
	alerts, err := inspect.LoadBudgetAlerts(ctx, m.Store, since)
	if err != nil {
		return "", err
	}
	for i := range alerts[:min(len(alerts), 10)] {
		b := &alerts[i]
		a.line("- budget %s, %s %s: %s", inspect.Clip(b.Budget, 60), b.Alert, b.State(m.Zone), inspect.Clip(b.Evidence, 300))
	}
	return "sql over v_attributed_usage has it by any two of them, host, branch and session, over v_usage by message" + suffix("; the page is ", m.Pages, "/cost") + ".", nil
}

func (m *Server) find(ctx context.Context, in findArgs, a *answer) (string, error) {
	now := time.Now()
	q := inspect.SearchQuery{Text: in.Text, To: now, Enough: bounded(in.Limit, 10, 100), Budget: 5 * time.Second}
	if strings.TrimSpace(in.Text) == "" {
		return "", errors.New("text is empty")
	}
	if in.Hours > 0 {
		q.From = now.Add(-hours(in.Hours, 0))
	}
	r, err := inspect.Search(ctx, m.Store, q)
	if err != nil {
		return "", err
	}
	from := "the beginning"
	if !r.All {
		from = inspect.Stamp(r.From, m.Zone)
	}
	how := "these words"
	if r.PartOfText {
		how = "this as a part of their text"
	}
	a.line("%d messages with %s from %s on%s", len(r.Messages), how, from, map[bool]string{true: ", and more"}[r.More])
	if r.Stopped {
		a.line("The search was ended after its time there; hours bounds it.")
	}
	for _, by := range []struct {
		what string
		list []inspect.NameHit
	}{{"session", r.Sessions}, {"trace", r.Traces}, {"agent", r.Agents}, {"tool", r.Tools}, {"file", r.Files}} {
		for _, n := range by.list[:min(len(by.list), q.Enough)] {
			a.line("- %s %s%s%s, last %s", by.what, inspect.Clip(n.Name, 200), suffix(" (", n.What, ")"), suffix(", session ", inspect.Clip(n.Session, 100), ""), inspect.Stamp(n.Last, m.Zone))
		}
	}
	for i := range r.Messages {
		h := &r.Messages[i]
		var text strings.Builder
		for _, f := range h.Excerpt {
			text.WriteString(f.Text)
		}
		a.line("- %s %s %s in %s, session %s%s%s", inspect.Stamp(h.At, m.Zone), h.Kind, inspect.Clip(h.Name, 60), h.Field, inspect.Clip(h.Session, 100), suffix(", trace ", h.Trace, ""), suffix(", span ", h.Span, ""))
		a.line("  %s", inspect.Clip(text.String(), 400))
	}
	return "show with a session has the conversation, with a trace and span the messages in full.", nil
}

func (m *Server) show(ctx context.Context, in showArgs, a *answer) (string, error) {
	now := time.Now().In(m.Zone)
	if in.ID == "" {
		return "", errors.New("id is empty")
	}
	t, err := inspect.LoadTrace(ctx, m.Store, in.ID, m.Prices, now)
	if errors.Is(err, inspect.ErrNoTrace) {
		if in.Span != "" {
			return "", err
		}
		id := inspect.Ref{Tenant: in.Tenant, ID: in.ID}
		a.line("%s", m.session(id))
		err = inspect.WriteSession(ctx, a, m.Store, id, inspect.Style{Width: 240, Full: in.Full, Zone: m.Zone})
		return "full has whole texts. sql over v_turns has the traces of the turns.", err
	}
	if err != nil {
		return "", err
	}
	a.line("trace %s: %s", t.ID, m.trace(t.ID))
	if in.Span == "" {
		w := t.Waterfall()
		if err := w.Write(a, inspect.Style{Width: 100, Zone: m.Zone}); err != nil {
			return "", err
		}
		a.line("ids of the steps, in this order:")
		for _, r := range w.Spans {
			a.line("%s %s %s", r.SpanID, r.Kind, inspect.Clip(r.Name, 60))
		}
		return "show with the trace and a span has the messages of that step, why_slow with the trace explains its time.", nil
	}
	list, err := t.Messages(ctx, m.Store, in.Span, inspect.LongTexts)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		a.line("no messages of span %s", in.Span)
	}
	for i := range list {
		x := &list[i]
		a.line("%s %s %s %s%s", inspect.Stamp(x.At, m.Zone), x.Kind, inspect.Clip(x.Agent, 60), inspect.Clip(x.Tool, 60), map[bool]string{true: " failed"}[x.Failed])
		for _, part := range []string{x.Task, x.Arguments, x.Content} {
			if part != "" {
				fmt.Fprintln(a, part)
			}
		}
	}
	return "", nil
}

func (m *Server) diff(ctx context.Context, in diffArgs, a *answer) (string, error) {
	if in.A == "" || in.B == "" {
		return "", errors.New("a and b are compared: both are needed")
	}
	d, err := inspect.Diff(ctx, m.Store, inspect.Ref{Tenant: in.Tenant, ID: in.A}, inspect.Ref{Tenant: in.Tenant, ID: in.B}, m.Prices, time.Now().In(m.Zone))
	if err != nil {
		return "", err
	}
	return "= same arguments, ~ others, - only in A, + only in B. show has either of them" + suffix("; the page is ", m.Pages, "/compare") + ".",
		d.Write(a, inspect.Style{Zone: m.Zone})
}

func (m *Server) sql(ctx context.Context, in sqlArgs, a *answer) (string, error) {
	if (strings.TrimSpace(in.Query) == "") == (in.ColumnsOf == "") {
		return "", errors.New("query or columns_of, one of them, is needed")
	}
	if in.ColumnsOf == "" {
		return runSQL(ctx, m.SQL, in.Query, a)
	}
	last := ""
	err := m.Store.Each(ctx, `
		SELECT table, name, type FROM system.columns
		WHERE database = currentDatabase() AND startsWith(table, 'v_') AND (table = {view:String} OR {view:String} = 'v_' AND position = 1)
		ORDER BY table, position`, map[string]string{"view": in.ColumnsOf}, func(v []any) error {
		table, _ := v[0].(string)
		name, _ := v[1].(string)
		kind, _ := v[2].(string)
		if last = table; in.ColumnsOf == "v_" {
			a.line("%s", table)
		} else {
			a.line("%s %s", name, kind)
		}
		return nil
	})
	if err == nil && last == "" {
		err = errors.New("there is no view of that name: columns_of v_ has all of them")
	}
	return "", err
}

// bounded is n, or another number when it is not positive.
func bounded(n, unless, most int) int {
	if n <= 0 {
		return unless
	}
	return min(n, most)
}

// suffix is a text between two others, or nothing when it is empty.
func suffix(before, text, after string) string {
	if text == "" {
		return ""
	}
	return before + text + after
}

func count(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
