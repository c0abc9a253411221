package clickhouse

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/attribution"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// turn is a turn of a random forest: its facts, and the turn that called it.
type turn struct {
	session string
	trace   msg.TraceID
	facts   map[string]string // of its first run, by field
	caller  *turn
	hidden  bool // its first run is not stored
}

// forest makes turns that call each other in traces of their own, sessions with attributes, and usage of
// all of them, some of it of no turn.
type forest struct {
	*rand.Rand
	turns   []*turn
	session map[string]map[string]string // facts and attributes of sessions, by field
	hosts   map[string]int64             // when the run began that a session's host is of
	batch   export.Batch
}

func (f *forest) pick(of ...string) string { return of[f.IntN(len(of))] }

func newForest(seed uint64, turns int) *forest {
	f := &forest{Rand: rand.New(rand.NewPCG(seed, 22)), session: map[string]map[string]string{}, hosts: map[string]int64{}, batch: export.Batch{ID: fmt.Sprint("forest-", seed)}}
	begin := time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC).UnixNano()
	for i := range turns {
		t := &turn{session: fmt.Sprint("s", f.IntN(turns/3+1)), trace: msg.NewTraceID("", "", "forest", fmt.Sprint(seed, i)), hidden: f.IntN(12) == 0}
		t.facts = map[string]string{
			"project": f.pick("", "", "/srv/quay/lights", "/srv/mill", `C:\work\mill\`, "/home/ada/srv"), "branch": f.pick("", "main", "ada/QUAY-17-berths", "feature\nQUAY-18"),
			"user": f.pick("", "", "ada", "grace", "o'hara\\"), "host": f.pick("", "pier-1", "pier-2"), "agent_version": "3.1", "agent": f.pick("pilot", "scout"), "source": "legion", "format": "legion", "tenant": "default",
		}
		if len(f.turns) > 0 && f.IntN(3) == 0 {
			t.caller = f.turns[f.IntN(len(f.turns))]
		}
		f.turns = append(f.turns, t)
		at := begin + f.Int64N(int64(3*time.Hour))
		f.begin(t, at)
		f.run(t, at)
		for range f.IntN(4) {
			f.usage(t.session, t.trace, at+f.Int64N(int64(time.Hour)))
		}
		f.usage(t.session, msg.TraceID{}, at)
	}
	return f
}

// begin makes the message with the facts of a session, which it has once.
func (f *forest) begin(t *turn, at int64) {
	if f.session[t.session] != nil {
		return
	}
	facts := map[string]string{"project": f.pick("", "/srv/ferry"), "user": f.pick("", "odd"), "attributes.user.email": f.pick("", "tove@example.org"),
		"attributes.repository": f.pick("", "git@example.org:harbour/lights.git", "https://example.org/harbour/tides/"), "header.x-earshot-team": f.pick("", "divers")}
	if f.session[t.session] = facts; facts["user"] == "" {
		facts["user"] = facts["attributes.user.email"]
	}
	m := f.message(t.session, at)
	m.Kind, m.Client = msg.Status, msg.Client{Project: facts["project"], User: facts["user"]}
	m.Attrs = []msg.Attr{{Key: "user.email", Value: facts["attributes.user.email"]}, {Key: "repository", Value: facts["attributes.repository"]}, {Key: "header.x-earshot-team", Value: facts["header.x-earshot-team"]}, {Key: "attempt", Value: "1"}}
	f.batch.Messages = append(f.batch.Messages, new(m))
}

func (f *forest) message(session string, at int64) msg.Message {
	m := sampleMessages(1)[0]
	m.Key, m.Session, m.Time, m.Attrs = fmt.Sprint("k", len(f.batch.Messages)), session, at, nil
	m.Host.ID, m.Host.TraceID = msg.NewID("", "", session, m.Key), msg.TraceID{}
	return m
}

func (f *forest) usage(session string, trace msg.TraceID, at int64) {
	m := f.message(session, at)
	m.Kind, m.Model, m.Host.TraceID = msg.Usage, f.pick("claude-opus-4-5", "gpt-5", "tern-2"), trace
	m.Usage = msg.Tokens{Input: f.Uint64N(9000), Output: f.Uint64N(900), CacheRead: f.Uint64N(90000), CacheWrite: f.Uint64N(900), Reasoning: f.Uint64N(90)}
	f.batch.Messages = append(f.batch.Messages, new(m))
}

func (f *forest) run(t *turn, at int64) {
	if t.hidden {
		return
	}
	if first, ok := f.hosts[t.session]; t.facts["host"] != "" && (!ok || at < first) {
		f.hosts[t.session], f.session[t.session]["host"] = at, t.facts["host"]
	}
	s := msg.Span{
		Tenant: "default", Source: "legion", Format: "legion", TraceID: t.trace, ID: msg.NewSpanID("", "", t.session, msg.SpanRun, t.trace.String()), Kind: msg.SpanRun, State: msg.SpanClosed,
		Start: at, End: at + 1e9, Ver: 1 << 60, Session: t.session, Run: t.trace.String(), Agent: msg.Agent{Name: t.facts["agent"]},
		Client: msg.Client{Project: t.facts["project"], Branch: t.facts["branch"], User: t.facts["user"], Host: t.facts["host"], Version: "3.1"},
		Links:  []msg.SpanLink{{TraceID: msg.TraceID{7}, SpanID: msg.SpanID{1}, Attrs: []msg.Attr{{Key: "earshot.link", Value: "previous_turn"}}}},
	}
	if t.caller != nil {
		s.Links = append(s.Links, msg.SpanLink{TraceID: t.caller.trace, SpanID: msg.SpanID{2}, Attrs: []msg.Attr{{Key: "earshot.link", Value: "delegation"}}})
	}
	child := s // of the turn, with facts that count for nothing
	child.ID, child.Parent, child.Client = msg.NewSpanID("", "", t.session, msg.SpanRun, t.trace.String()+"/child"), s.ID, msg.Client{User: "child", Project: "/child"}
	f.batch.Spans = append(f.batch.Spans, new(s), new(child))
}

// want is the attribution of all work, as the rules derive it in Go.
func (f *forest) want(t *testing.T, rules []attribution.Rule) map[string]map[string]string {
	t.Helper()
	rules = append(slices.Clone(rules), attribution.Defaults()...)
	out := map[string]map[string]string{}
	derive := func(work, session string, facts map[string]string) {
		got, err := attribution.Derive(rules, func(field string) string {
			switch {
			case field == "session":
				return session
			case facts[field] != "":
				return facts[field]
			}
			return f.session[session][field]
		})
		if err != nil {
			t.Fatal(err)
		}
		out[work] = got
	}
	for _, turn := range f.turns {
		root := turn
		for root.caller != nil && !root.hidden {
			if root.caller.hidden { // nothing is known of it
				break
			}
			root = root.caller
		}
		if root.caller != nil && root != turn { // the chain ends at a turn that is not known
			root = turn
		}
		if !turn.hidden {
			derive(turn.trace.String(), root.session, root.facts)
		}
		derive(turn.session, turn.session, map[string]string{"source": "legion", "format": "legion", "tenant": "default", "agent": "harbour-pilot"})
	}
	return out
}

// attributed reads the table.
func attributed(t *testing.T, c *Conn) map[string]map[string]string {
	t.Helper()
	out := map[string]map[string]string{}
	for _, r := range rows(t, c, "SELECT work, mapFilter((k, v) -> v != '', mapConcat(map('team', team, 'user', user, 'host', host, 'project', project, 'repository', repository, 'branch', branch, 'ticket', ticket), CAST(more, 'Map(String, String)'))) AS d FROM attribution FINAL") {
		got := map[string]string{}
		for k, v := range r["d"].(map[string]any) {
			got[k] = v.(string)
		}
		out[r["work"].(string)] = got
	}
	return out
}

var someRules = []attribution.Rule{
	{Field: "header.x-earshot-team", Match: `(?P<team>.+)`},
	{Field: "project", Match: `^/srv/(?P<team>[a-z]+)(?:/(?P<berth>[a-z]+))?$`},
	{Field: "user", Dimension: "team", Values: map[string]string{"ada": "engines", `o'hara\`: "o'hara's\\"}},
	{Field: "branch", Match: `(?i)^ADA/`, Set: map[string]string{"team": "engines", "cost_center": "17"}},
	{Field: "branch", Match: `^feature.QUAY`, Set: map[string]string{"team": "a dot matches no line break"}},
	{Field: "session", Match: `^s[13]$`, Set: map[string]string{"team": "odd sessions"}},
}

// TestSumsByDimensionAreTheUsage: for random trees the sums over the values of each dimension, unknown
// among them, are the tokens and the cost of v_usage, before the rollup is computed and after; and each turn has the
// dimensions that the rules derive in Go from the facts of the turn that began it.
func TestSumsByDimensionAreTheUsage(t *testing.T) {
	x, c := exporter(t, func(s *Settings) { s.Dimensions = someRules })
	x.keeper.stop() // a pass of it beside the truncation would store what was there before
	p := attributorOf(x)
	for seed := range uint64(2) {
		f := newForest(seed, 40)
		for _, table := range []string{"messages", "spans", "turn_facts", "session_facts", "session_attributes", "sessions", "usage_rollup", "attribution", "rollup_hours"} {
			if err := c.Exec(t.Context(), "TRUNCATE TABLE "+table); err != nil {
				t.Fatal(err)
			}
		}
		export1(t, x, &f.batch)
		for _, rules := range [][]attribution.Rule{someRules, nil, someRules} { // a change, and back
			if _, err := ApplyRules(t.Context(), c, x.schema, rules); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(f.want(t, rules), attributed(t, c)); d != "" {
				t.Fatalf("seed %d, %d rules (-Go +store):\n%s", seed, len(rules), d)
			}
		}
		for _, when := range []string{"from the rows", "from the rollup"} {
			const sums = "sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(reasoning_tokens), sumIf(tokens, NOT has_price), round(sum(cost_usd) * 1e5)"
			want := count(t, c, "SELECT "+sums+" FROM v_usage")
			if strings.HasPrefix(want, "0\t") || strings.HasSuffix(want, "\t0") {
				t.Fatalf("v_usage has %q", want)
			}
			dimensions := append(attribution.Builtin(), "cost_center", "began_by")
			sets := "(" + strings.Join(dimensions, "), (") + ")"
			got := count(t, c, "SELECT DISTINCT sum(a), sum(b), sum(c), sum(d), sum(e), sum(f), round(sum(g)) FROM (SELECT grouping("+strings.Join(dimensions, ", ")+") AS of, "+
				strings.Replace(sums, "round(sum(cost_usd) * 1e5)", "sum(cost_usd) * 1e5", 1)+" FROM (SELECT *, more['cost_center'] AS cost_center FROM v_attributed_usage) GROUP BY GROUPING SETS ("+sets+")) AS s (of, a, b, c, d, e, f, g) GROUP BY of")
			if got != want {
				t.Errorf("seed %d, %s: v_usage has\n%s, by a dimension there is\n%s", seed, when, want, got)
			}
			roll(t, rollerOf(x, 0))
		}
		// Another pass changes nothing.
		before := attributed(t, c)
		if n, err := p.pass(t.Context(), time.Time{}); err != nil || n == 0 {
			t.Fatalf("%d conversations, %v", n, err)
		}
		if d := cmp.Diff(before, attributed(t, c)); d != "" {
			t.Errorf("applied again (-before +after):\n%s", d)
		}
	}
}

// TestRulesOfAShortRun: the work of a sidecar that ends before its keeper has written the rules is attributed by them.
func TestRulesOfAShortRun(t *testing.T) {
	x, c := exporter(t, func(s *Settings) { s.Dimensions = someRules })
	x.keeper.stop()
	x.keeper.ruled.Store(false)
	if err := c.Exec(t.Context(), "TRUNCATE TABLE attribution_rules"); err != nil {
		t.Fatal(err)
	}
	f := &forest{}
	m := f.message("s", time.Now().UnixNano())
	m.Host.TraceID = msg.TraceID{1}
	run := msg.Span{Tenant: "default", TraceID: m.Host.TraceID, ID: msg.SpanID{1}, Kind: msg.SpanRun, Start: m.Time, End: m.Time + 1, State: msg.SpanClosed, Ver: 1, Session: "s", Client: msg.Client{User: "ada"}}
	export1(t, x, &export.Batch{Messages: exporttest.Records(m), Spans: exporttest.Records(run)})
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := count(t, c, "SELECT DISTINCT team FROM attribution FINAL"); got != "engines" {
		t.Errorf("team %q, want engines", got)
	}
}

// TestAttributionFollowsNewFacts: a pass derives the turns that are new since the last one, and the user of a
// conversation that becomes known later.
func TestAttributionFollowsNewFacts(t *testing.T) {
	x, c := exporter(t, nil)
	x.keeper.stop() // its passes would do the same
	p := attributorOf(x)
	if _, err := ApplyRules(t.Context(), c, x.schema, someRules); err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC).UnixNano()
	run := func(n byte, session string, client msg.Client) msg.Span {
		return msg.Span{Tenant: "default", TraceID: msg.TraceID{n}, ID: msg.SpanID{n}, Kind: msg.SpanRun, State: msg.SpanClosed, Start: begin + int64(n), End: begin + 1e9, Ver: 1 << 60, Session: session, Client: client}
	}
	f := &forest{session: map[string]map[string]string{}}
	usage := f.message("s2", begin)
	usage.Kind, usage.Usage, usage.Host.TraceID = msg.Usage, msg.Tokens{Input: 10}, msg.TraceID{2}
	want := func(when string, want ...string) {
		t.Helper()
		if _, err := p.pass(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		got := strings.Split(count(t, c, "SELECT concat(began_by, '|', team, '|', user, '|', project, '|') FROM attribution FINAL WHERE length(work) = 32 ORDER BY work"), "\n")
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", when, d)
		}
	}
	called := run(2, "s2", msg.Client{User: "grace", Project: "/srv/mill"})
	called.Links = []msg.SpanLink{{TraceID: msg.TraceID{1}, SpanID: msg.SpanID{2}, Attrs: []msg.Attr{{Key: "earshot.link", Value: "delegation"}}}}
	export1(t, x, &export.Batch{Messages: exporttest.Records(usage), Spans: exporttest.Records(called)})
	want("its caller is not known", "s2|mill|grace|/srv/mill|")
	export1(t, x, &export.Batch{Spans: exporttest.Records(run(1, "s1", msg.Client{Branch: "main"}))})
	want("its caller is known", "s1|odd sessions|||", "s1|odd sessions|||")
	known := f.message("s1", begin)
	known.Kind, known.Client = msg.Status, msg.Client{User: "ada", Project: "/srv/quay"}
	export1(t, x, &export.Batch{Messages: exporttest.Records(known)})
	want("the session of its caller states more", "s1|quay|ada|/srv/quay|", "s1|quay|ada|/srv/quay|")
	if got := count(t, c, "SELECT concat(session_id, ' ', team, ' ', user, ' ', toString(tokens)) FROM v_attributed_usage"); got != "s2 quay ada 10" {
		t.Errorf("the usage is %q", got)
	}
}

// TestUserIsTheAccount: a conversation has the user that the agent's own telemetry or a request names.
func TestUserIsTheAccount(t *testing.T) {
	x, c := exporter(t, nil)
	f := &forest{}
	begin := time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC).UnixNano()
	for i, attrs := range [][]msg.Attr{{{Key: "user_id", Value: "tove"}}, {{Key: "user.id", Value: "17"}, {Key: "user.email", Value: "ada@example.org"}}, {{Key: "other", Value: "x"}}} {
		m := f.message(fmt.Sprint("s", i), begin)
		m.Kind, m.Attrs = msg.User, attrs
		f.batch.Messages = append(f.batch.Messages, new(m))
	}
	export1(t, x, &f.batch)
	if got := count(t, c, "SELECT groupArray((session_id, user)) FROM (SELECT * FROM v_session_facts ORDER BY session_id)"); got != "[('s0','tove'),('s1','ada@example.org')]" {
		t.Error(got)
	}
}

// TestIdleStoreIsNotAsked: the rules are applied when rows were stored and have a reader, and a store without new rows is
// left alone.
func TestIdleStoreIsNotAsked(t *testing.T) {
	x, _ := exporter(t, nil)
	x.keeper.stop() // its own passes
	ctx, cancel := context.WithCancel(t.Context())
	rests := make(chan struct{})
	p := attributorOf(x)
	p.sleep = func(ctx context.Context, _ time.Duration) error {
		select {
		case rests <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	k := &keeper{stored: newArrivals()}
	var running sync.WaitGroup
	running.Go(func() { keepAttribution(ctx, p, nil, k, false, slog.New(slog.DiscardHandler)) })
	defer running.Wait()
	defer cancel()
	<-rests // the pass of the start
	for range 3 {
		select {
		case <-rests:
			t.Fatal("the rules were applied although no row was stored")
		case <-time.After(50 * time.Millisecond):
		}
		k.note(time.Now())
		<-rests
	}
	k.unread.Store(true)
	k.note(time.Now())
	select {
	case <-rests:
		t.Fatal("the rules were applied to rows that have no reader")
	case <-time.After(50 * time.Millisecond):
	}
	k.unread.Store(false)
	k.read.ring()
	<-rests
}

// TestFreshStoreHasNoPasses: in a new store the rules are written and nothing is derived or noted, until rows are there.
func TestFreshStoreHasNoPasses(t *testing.T) {
	x, c := exporter(t, nil)
	if err := x.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.keeper.stop()
	ctx, cancel := context.WithCancel(t.Context())
	rests := make(chan struct{})
	p := attributorOf(x)
	p.sleep = func(ctx context.Context, _ time.Duration) error {
		select {
		case rests <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	k := &keeper{stored: newArrivals()}
	var running sync.WaitGroup
	running.Go(func() { keepAttribution(ctx, p, nil, k, true, slog.New(slog.DiscardHandler)) })
	defer running.Wait()
	defer cancel()
	<-rests
	const notes = "SELECT (SELECT count() FROM attribution_rules FINAL WHERE until = 0), (SELECT count() FROM rollup_hours), (SELECT count() FROM attribution)"
	if got := count(t, c, notes); got != "1\t0\t0" {
		t.Errorf("rules, notes, turns of a new store: %s", got)
	}
	f := &forest{}
	began := time.Now()
	f.batch.Messages = append(f.batch.Messages, new(f.message("s", began.UnixNano())))
	export1(t, x, &f.batch)
	k.note(began)
	<-rests
	if got := count(t, c, "SELECT groupArray(work) FROM attribution FINAL"); got != "['s']" {
		t.Errorf("attributed: %s", got)
	}
}

// TestSinceWhenAPassDerives: from which rows on a pass collects and derives, and whether it notes the time.
func TestSinceWhenAPassDerives(t *testing.T) {
	now := time.Unix(1_000_000_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, c := range []struct {
		name             string
		until, collected time.Duration // before now, that are noted
		begin            time.Duration // of the insert, before now; 0: none
		touched, callers int
		alone            bool
		want             string
	}{
		{"at the start", 7 * time.Minute, 8 * time.Minute, 0, 2, 0, true, "conversations 8m0s, collect 8m0s, touched 8m0s, derive"},
		{"at the start, of a note that is due", 30 * time.Minute, 20 * time.Minute, 0, 2, 0, true, "conversations 20m0s, collect 20m0s, touched 30m0s, derive, note"},
		{"nothing is touched", 7 * time.Minute, 8 * time.Minute, 0, 0, 0, true, "conversations 8m0s, collect 8m0s, touched 8m0s"},
		{"turns have callers", 7 * time.Minute, 8 * time.Minute, 0, 1, 1, true, "conversations 8m0s, collect 8m0s, touched 8m0s, derive callers"},
		{"an insert", 7 * time.Minute, 7 * time.Minute, time.Minute, 2, 0, true, "caught up, collect 1m2s, touched 1m2s, derive"},
		{"an insert of long ago", 7 * time.Minute, 7 * time.Minute, 10 * time.Minute, 2, 0, true, "caught up, collect 7m0s, touched 7m0s, derive"},
		{"an insert, of a note that is due", 11 * time.Minute, 10 * time.Minute, time.Minute, 0, 0, true, "caught up, collect 10m0s, touched 11m0s, note"},
		{"to the moment", 10 * time.Minute, 10 * time.Minute, time.Minute, 0, 0, true, "caught up, collect 10m0s, touched 10m0s, note"},
		{"beside others", 11 * time.Minute, 11 * time.Minute, time.Minute, 0, 0, false, "conversations 11m0s, collect 11m0s, touched 11m0s, note"},
		{"beside others, that noted the time", 6 * time.Minute, 6 * time.Minute, time.Minute, 0, 0, false, "collect 1m2s, touched 1m2s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got []string
			from := func(what, pattern, sql string) {
				m := regexp.MustCompile(pattern + `\((?:toInt64\()?(\d+)`).FindStringSubmatch(sql)
				var n int64
				if m == nil {
					t.Fatalf("%s: %s", c.name, sql)
				}
				_, _ = fmt.Sscan(m[1], &n)
				at := time.Unix(n, 0)
				if n > 1e10 {
					at = time.UnixMilli(n)
				}
				if entry := fmt.Sprint(what, " ", now.Sub(at)); len(got) == 0 || got[len(got)-1] != entry {
					got = append(got, entry)
				}
			}
			conn, _ := scriptedConn(func(sql string) ([][]any, error) {
				switch {
				case strings.HasPrefix(sql, "SELECT max(generation)"):
					return [][]any{{3, "[]", ago(c.until)}}, nil
				case strings.Contains(sql, "toUnixTimestamp64Milli(toDateTime64"):
					return [][]any{{now.UnixMilli(), ago(c.collected).UnixMilli()}}, nil
				case strings.HasPrefix(sql, "SELECT (SELECT count()"):
					from("touched", "toDateTime", sql)
					return [][]any{{c.touched, c.callers}}, nil
				case strings.Contains(sql, "INTO `earshot`.`attribution` "):
					got = append(got, "derive"+map[bool]string{true: " callers"}[strings.Contains(sql, "WITH RECURSIVE")])
				case strings.Contains(sql, "INTO `earshot`.`attribution_rules`"):
					if !strings.Contains(sql, "VALUES (3, '[]', "+millis(ago(5*time.Minute))+", "+millis(now)+")") {
						t.Errorf("%s: %s", c.name, sql)
					}
				case strings.Contains(sql, collectedFacts):
					got = append(got, "note")
				case strings.Contains(sql, "`turn_facts`"), strings.Contains(sql, "argMinIfState(toString(s.host)"), strings.Contains(sql, "`session_attributes`"):
					from("collect", "fromUnixTimestamp64Milli", sql)
				case strings.HasPrefix(sql, "INSERT"):
					from("conversations", "fromUnixTimestamp64Milli", sql)
				}
				return nil, nil
			})
			p := attributor{c: conn, settle: 5 * time.Minute}
			if c.alone {
				p.catchUp = func(context.Context) error { got = append(got, "caught up"); return nil }
			}
			var begin time.Time
			if c.begin > 0 {
				begin = time.Now().Add(-c.begin)
			}
			if n, err := p.pass(t.Context(), begin); err != nil || n != uint64(c.touched) {
				t.Errorf("%s: %d conversations, %v", c.name, n, err)
			}
			if got := strings.Join(got, ", "); got != c.want {
				t.Errorf("%s: %s, want %s", c.name, got, c.want)
			}
		})
	}
	conn, server := scriptedConn(func(string) ([][]any, error) { return [][]any{{0, "", now}}, nil })
	if n, err := (attributor{c: conn}).pass(t.Context(), time.Time{}); n != 0 || err != nil || server.statements() != nil {
		t.Errorf("a store without rules: %d, %v", n, err)
	}
}

// TestRulesAreThoseOfTheStore: rules are written when they are other ones, in a generation above the last, also of a clock that is behind; and
// whether they are those that the store has is known without a write.
func TestRulesAreThoseOfTheStore(t *testing.T) {
	text, err := encodeRules(someRules)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name       string
		generation uint64
		has        string
		rules      []attribution.Rule
		writes     string
		same       bool
	}{
		{"the same", 7, text, someRules, "", true},
		{"other ones", 7, "[]", someRules, "toUInt64(8)), " + quoteText(text), false},
		{"none any more", 7, text, nil, "toUInt64(8)), '[]'", false},
		{"none as before", 7, "[]", nil, "", true},
		{"a new store", 0, "", someRules, "toUInt64(1)), " + quoteText(text), false},
		{"a new store without", 0, "", nil, "toUInt64(1)), '[]'", true},
	} {
		conn, server := scriptedConn(func(string) ([][]any, error) { return [][]any{{c.generation, c.has, time.Unix(0, 0)}}, nil })
		same, err := HasRules(t.Context(), conn, Schema{}, c.rules)
		if err != nil || same != c.same {
			t.Errorf("%s: the same %t, %v", c.name, same, err)
		}
		changed, err := attributor{c: conn}.write(t.Context(), c.rules)
		sent := strings.Join(server.statements(), "")
		if err != nil || changed != (c.writes != "") || changed != (sent != "") || !strings.Contains(sent, c.writes) {
			t.Errorf("%s: changed %t, %v, %s", c.name, changed, err, sent)
		}
	}
}

// TestDerivationsOfACluster: derived rows are on all shards before the next statement reads them.
func TestDerivationsOfACluster(t *testing.T) {
	for cluster, want := range map[string]bool{"": false, "c": true} {
		if got := strings.Contains((attributor{s: Schema{Cluster: cluster}}).deriving(), "distributed_foreground_insert = 1"); got != want {
			t.Errorf("cluster %q: %t", cluster, got)
		}
	}
}
