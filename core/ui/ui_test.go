package ui

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/price"
)

// canned answers every query with the rows of the first text that it contains.
type canned map[string][][]any

func (c canned) Each(_ context.Context, sql string, _ map[string]string, row func([]any) error) error {
	for part, rows := range c {
		if !strings.Contains(sql, part) {
			continue
		}
		for _, r := range rows {
			if len(r) == 0 {
				return errors.New("the store is down")
			}
			if err := row(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Table answers no query.
func (canned) Table(context.Context, string, func([]string), func([]any) error) error { return nil }

func get(t *testing.T, q Querier, host, path string) *httptest.ResponseRecorder {
	t.Helper()
	u, err := New(q, &price.Table{})
	if err != nil {
		t.Fatal(err)
	}
	u.soon = time.Hour // each answer has its status
	r := httptest.NewRequest(http.MethodGet, "http://"+host+path, nil)
	w := httptest.NewRecorder()
	u.ServeHTTP(w, r)
	return w
}

const local = "127.0.0.1:8090"

func TestOnlyThisMachineIsAnswered(t *testing.T) {
	for host, want := range map[string]int{
		local: 200, "localhost": 200, "localhost:1": 200, "[::1]:80": 200, "127.8.9.1": 200,
		"evil.example": 421, "evil.example:8090": 421, "10.0.0.1": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421,
	} {
		if got := get(t, canned{}, host, "/").Code; got != want {
			t.Errorf("%s: %d, want %d", host, got, want)
		}
	}
}

func TestForeignTextStaysText(t *testing.T) {
	w := get(t, canned{"tool_name, count()": {{"<script>alert(1)</script>", uint64(3), uint64(1), 1.0, 2.0, 3.0, 6.0}}}, local, "/tools")
	if body := w.Body.String(); strings.Contains(body, "<script>alert") || !strings.Contains(body, "&lt;script&gt;alert") {
		t.Errorf("page:\n%s", body)
	}
	if p := w.Header().Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || strings.Contains(p, "unsafe") {
		t.Errorf("policy %q", p)
	}
}

// TestAPageRecovers: an unreachable store, or a missing conversation, is reported
// once, and the next request gets its page.
func TestAPageRecovers(t *testing.T) {
	u, err := New(flaky{canned{"tool_name, count()": {{"sound", uint64(1), uint64(0), 1.0, 1.0, 1.0, 1.0}}}, new(atomic.Int32)}, &price.Table{})
	if err != nil {
		t.Fatal(err)
	}
	u.soon = time.Hour
	for n, want := range []int{http.StatusBadGateway, http.StatusOK, http.StatusOK} {
		w := httptest.NewRecorder()
		u.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://"+local+"/tools", nil))
		if w.Code != want || want == http.StatusOK && !strings.Contains(w.Body.String(), "sound") {
			t.Errorf("request %d: %d, want %d\n%s", n, w.Code, want, w.Body)
		}
	}
}

// flaky fails the first query.
type flaky struct {
	Querier
	asked *atomic.Int32
}

func (f flaky) Each(ctx context.Context, sql string, params map[string]string, row func([]any) error) error {
	if f.asked.Add(1) == 1 {
		return errors.New("the store is down")
	}
	return f.Querier.Each(ctx, sql, params, row)
}

func TestPages(t *testing.T) {
	open := [][]any{
		{"running", "t2", "3", "s2", "tool", "execute_tool dredge", "diver", int64(3_000), int64(1_000), true, uint64(1), "healthy", "", "legion", int64(0)},
		{"waiting", "t3", "4", "s3", "tool", "execute_tool ask", "diver", int64(3_000), int64(1_000), true, uint64(1), "waiting_permission", "ask has waited 1 s", "legion", int64(2_000)},
		{"stuck", "t1", "1", "s1", "tool", "execute_tool sound", "", int64(900_000), int64(600_000), true, uint64(1), "tool_running", "sound has run 15 min", "legion", int64(60_000)},
		{"stuck", "t1", "2", "s1", "run", "invoke_agent pilot", "pilot", int64(900_000), int64(600_000), false, uint64(1), "tool_running", "sound has run 15 min", "legion", int64(60_000)},
	}
	for path, c := range map[string]struct {
		q    canned
		code int
		want []string
	}{
		"/":                     {canned{}, 200, []string{"No delegation yet", "No conversation yet"}},
		"/sessions?search=tide": {canned{}, 200, []string{"No conversation has “tide”", `value="tide"`}},
		"/tools":                {canned{}, 200, []string{"No tool call has ended in this range"}},
		"/now":                  {canned{"v_open_spans\n\t\tWHERE (leaf": open}, 200, []string{"execute_tool sound", "15m00s", "10m00s", "1 step running", "1 waiting for a person", "1 stuck", ">waits for a person<", "(legion)", "sound has run 15 min (as of 1m00s ago)"}},
		"/session/x":            {canned{}, 404, []string{"Not Found"}},
		"/assets/style.css":     {canned{}, 200, []string{"color-scheme: light dark"}},
		"/assets/keys.js":       {canned{}, 200, []string{"use strict"}},
		"/assets/":              {canned{}, 404, nil},
		"/favicon.ico":          {canned{}, 301, []string{"/assets/icon.svg"}},
		"/elsewhere":            {canned{}, 404, nil},
	} {
		w := get(t, c.q, local, path)
		if w.Code != c.code {
			t.Errorf("%s: %d, want %d", path, w.Code, c.code)
		}
		for _, want := range c.want {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: no %q in\n%s", path, want, w.Body)
			}
		}
	}
	if w := get(t, canned{"v_open_spans\n\t\tWHERE (leaf": open}, local, "/now"); strings.Count(w.Body.String(), ">stuck<") != 1 {
		t.Errorf("what waits for something below it is not stuck:\n%s", w.Body)
	}
	if w := get(t, canned{"v_tool_calls": {{}}}, local, "/tools"); w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "the store is down") {
		t.Errorf("%d\n%s", w.Code, w.Body)
	}
	if w := get(t, canned{"sessions": {{}}}, local, "/session/x"); w.Code != http.StatusBadGateway {
		t.Errorf("a store that is down is no conversation that is not there: %d", w.Code)
	}
	if w := get(t, canned{"DISTINCT session_id": {{"0a1", "default"}, {"0a2", "default"}}}, local, "/session/0a"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "several begin so: 0a1 0a2") {
		t.Errorf("the beginning of two ids: %d\n%s", w.Code, w.Body)
	}
	if w := get(t, canned{"tool_name, count()": {{"a", "b"}}}, local, "/tools"); w.Code != http.StatusBadGateway {
		t.Errorf("rows of another shape: %d", w.Code)
	}
}

// TestBackgroundWorkGoesOn: a turn that has ended goes on while something that it began runs.
func TestBackgroundWorkGoesOn(t *testing.T) {
	over := &inspect.Step{Kind: "tool", Status: "error"}
	for want, steps := range map[bool][]*inspect.Step{false: {over}, true: {over, {Kind: "delegation", Steps: []*inspect.Step{{Kind: "tool", Status: "running"}}}}} {
		if goesOn(inspect.Turn{Root: &inspect.Step{Kind: "run", Steps: steps}, Steps: steps}) != want {
			t.Errorf("%v: not %t", steps, want)
		}
	}
}

// TestCriticalPathAddsUp makes trees whose steps overlap, reach over their
// parents and have no length: the segments marked as critical add up to the turn, with
// the time of the turn's own run.
func TestCriticalPathAddsUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 14))
	zero := time.Unix(1_800_000_000, 0)
	ids := 0
	var tree func(depth int) *inspect.Step
	tree = func(depth int) *inspect.Step {
		ids++
		s := &inspect.Step{
			SpanID: fmt.Sprint(ids), Kind: []string{"run", "chat", "tool", "delegation"}[rng.IntN(4)],
			Started: zero.Add(time.Duration(rng.IntN(1000)) * time.Millisecond), Duration: time.Duration(rng.IntN(1000)) * time.Millisecond,
		}
		for range rng.IntN(4) * min(depth, 1) {
			s.Steps = append(s.Steps, tree(depth-1))
		}
		return s
	}
	for n := range 2000 {
		root := tree(4)
		root.Kind = "run"
		turn := newTurn(1, &inspect.Turn{Started: root.Started, Root: root, Steps: root.Steps}, whole)
		var gated time.Duration
		for _, s := range turn.Steps {
			gated += s.Alone
			for _, b := range append(s.Critical, s.Bar) {
				if b.X < 0 || b.Width < 0 || b.X+b.Width > 1000.001 {
					t.Fatalf("tree %d: a bar at %v", n, b)
				}
			}
		}
		if gated > turn.Duration || turn.Duration != root.Duration {
			t.Fatalf("tree %d: %s of a turn of %s, whose run has %s", n, gated, turn.Duration, root.Duration)
		}
	}
	run := &inspect.Step{SpanID: "r", Kind: "run", Started: zero, Duration: 10 * time.Second}
	run.Steps = []*inspect.Step{
		{SpanID: "a", Kind: "tool", Started: zero, Duration: 4 * time.Second},
		{SpanID: "b", Kind: "tool", Started: zero.Add(time.Second), Duration: 8 * time.Second},
	}
	turn := newTurn(1, &inspect.Turn{Started: zero, Root: run, Steps: run.Steps}, whole)
	if a, b := turn.Steps[0], turn.Steps[1]; a.Alone != time.Second || b.Alone != 8*time.Second {
		t.Errorf("a gates %s, b %s: want 1s and 8s", a.Alone, b.Alone)
	}
}

// whole shows all steps of a turn.
var whole = window{size: 1 << 30}

// TestManySteps: of a turn of ten thousand steps the page has as many as a browser
// likes, ways to the others, and the whole of it in a strip.
func TestManySteps(t *testing.T) {
	zero := time.Unix(1_800_000_000, 0)
	root := &inspect.Step{SpanID: "root", Kind: "run", Started: zero, Duration: 10_000 * time.Second}
	for n := range 10_000 {
		s := &inspect.Step{SpanID: fmt.Sprint(n), Kind: "tool", Name: fmt.Sprint("t", n), Started: zero.Add(time.Duration(n) * time.Second), Duration: time.Second, Input: strings.Repeat("x", 4000)}
		if n == 7_000 {
			s.Status = "error"
		}
		root.Steps = append(root.Steps, s)
	}
	c := &inspect.Conversation{Session: inspect.Session{ID: "a b"}, Turns: []inspect.Turn{{Started: zero, Root: root, Steps: root.Steps}}}
	u, err := New(canned{}, &price.Table{})
	if err != nil {
		t.Fatal(err)
	}
	content, err := template.New("").Funcs(functions).ParseFS(pages, "pages/shell.html", "pages/parts.html", "pages/body.html", "pages/session.html")
	if err != nil {
		t.Fatal(err)
	}
	show := page{pattern: "/session/{id...}", template: "session.html", untimed: true}
	for query, want := range map[string]struct {
		steps int
		has   []string
	}{
		"":                     {most, []string{"10000 steps", `href="/session/a%20b?step=500&amp;turn=1"`, `class="failed"`}},
		"turn=1&step=500":      {most, []string{"501 to 1000 of 10000", "t999<", `step=1000&amp;turn=1"`, `href="/session/a%20b?turn=1"`}},
		"turn=1&step=9800":     {200, []string{"9801 to 10000 of 10000", "t9999<"}},
		"turn=1&only=failed":   {1, []string{"t7000<"}},
		"turn=1&only=longest":  {most, []string{"t0<"}},
		"turn=1&step=99999999": {0, []string{"10000 steps"}},
		"turn=2":               {0, []string{"Nothing of this conversation"}},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/session/x?"+query, nil)
		show.load = func(r request) (string, any, error) { return "A long turn", newSession(c, r.Request), nil }
		u.serve(show, content)(w, r)
		body := w.Body.String()
		if n := strings.Count(body, "<li "); w.Code != 200 || n != want.steps || w.Body.Len() > pageTexts {
			t.Errorf("%q: %d: %d steps in %d bytes", query, w.Code, n, w.Body.Len())
		}
		for _, has := range want.has {
			if !strings.Contains(body, has) {
				t.Errorf("%q: no %q", query, has)
			}
		}
	}
}

// TestManyTurns: a long conversation is paged as well.
func TestManyTurns(t *testing.T) {
	zero := time.Unix(1_800_000_000, 0)
	c := &inspect.Conversation{}
	for n := range 1001 {
		root := &inspect.Step{SpanID: fmt.Sprint("r", n), Kind: "run", Started: zero, Duration: time.Second}
		for k := range 50 {
			root.Steps = append(root.Steps, &inspect.Step{SpanID: fmt.Sprint(n, ".", k), Kind: "tool", Started: zero, Duration: time.Second})
		}
		c.Turns = append(c.Turns, inspect.Turn{Started: zero, Root: root, Steps: root.Steps})
	}
	for query, want := range map[string]struct{ first, turns int }{"": {1, turnsShown}, "skip=1000": {1001, 1}, "skip=5000": {0, 0}, "skip=-3": {1, turnsShown}, "skip=x": {1, turnsShown}} {
		p := newSession(c, httptest.NewRequest(http.MethodGet, "/session/x?"+query, nil))
		steps := 0
		for _, turn := range p.Turns {
			steps += len(turn.Steps)
		}
		if len(p.Turns) != want.turns || want.turns > 0 && p.Turns[0].Number != want.first || steps > stepsShown {
			t.Errorf("%q: %d turns, %d steps", query, len(p.Turns), steps)
		}
	}
}

// TestTurnsAreNumberedAsPeopleCount: a message outside of any turn has no number, and is none of the turns.
func TestTurnsAreNumberedAsPeopleCount(t *testing.T) {
	root := &inspect.Step{SpanID: "r", Kind: "run", Duration: time.Second}
	c := &inspect.Conversation{Turns: []inspect.Turn{{Prompt: "settings"}, {Root: root}, {Prompt: "a notice"}, {Root: root}, {TraceID: "t"}}}
	p := newSession(c, httptest.NewRequest(http.MethodGet, "/session/x", nil))
	var got []string
	for _, turn := range p.Turns {
		if turn.Outside() {
			got = append(got, "outside")
		} else {
			got = append(got, fmt.Sprint(turn.Number))
		}
	}
	if want := "outside 1 outside 2 3"; strings.Join(got, " ") != want || p.Count != 3 {
		t.Errorf("%v of %d turns, want %s of 3", got, p.Count, want)
	}
	if alone := newSession(c, httptest.NewRequest(http.MethodGet, "/session/x?turn=4", nil)); len(alone.Turns) != 1 || alone.Turns[0].Number != 2 {
		t.Errorf("the fourth part alone: %+v", alone.Turns)
	}
}

// TestUsualComparesRuns: the median is that of the delegates' runs, so what is compared with it is the run's time, and not
// that which a caller waited for a result that was reported late.
func TestUsualComparesRuns(t *testing.T) {
	row := slowRow{SlowDelegation: inspect.SlowDelegation{Wall: 100 * time.Second, WorkedMS: 20_000}, Trend: &inspect.Trend{Count: 5, P50: 20 * time.Second}}
	if got := row.Usual(); got != "the median is 20s" {
		t.Error(got)
	}
	row.WorkedMS = 0 // it still runs
	if got := row.Usual(); got != "5.0 times the median of 20s" {
		t.Error(got)
	}
}

// TestPartOfTools: a tool that took time has a part above zero.
func TestPartOfTools(t *testing.T) {
	for want, tool := range map[string]Tool{"<1%": {Total: time.Second}, "0%": {}, "12%": {Total: time.Second, Share: 12}} {
		if got := tool.Part(); got != want {
			t.Errorf("%+v: %s, want %s", tool, got, want)
		}
	}
}
