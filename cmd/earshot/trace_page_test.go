package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/ui"
)

// site is the pages over a home.
type site struct {
	*testing.T
	pages http.Handler
}

func (h *home) site() site {
	h.Helper()
	r := h.reader()
	pages, err := ui.New(r, r.prices)
	if err != nil {
		h.Fatal(err)
	}
	return site{h.T, pages}
}

// get returns a page, and how long it took.
func (s site) get(path string) (string, time.Duration) {
	s.Helper()
	w := httptest.NewRecorder()
	began := time.Now()
	s.pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:1"+path, nil))
	if w.Code != http.StatusOK {
		s.Fatalf("%s: %d\n%s", path, w.Code, w.Body)
	}
	return w.Body.String(), time.Since(began)
}

// has fails for each text that a page does not have.
func (s site) has(path string, want ...string) string {
	s.Helper()
	body, _ := s.get(path)
	for _, w := range want {
		if !strings.Contains(body, w) {
			s.Errorf("%s: no %q in\n%s", path, w, body)
		}
	}
	return body
}

// largeTurn has n steps: model responses and tools below delegates.
func largeTurn(session string, began time.Time, n int) *turn {
	t := newTurn(session, began)
	t.run("root", "", "pilot", 0, float64(n)/2)
	for i := 0; len(t.spans) < n; i++ {
		at := float64(i * 50)
		d, diver := fmt.Sprint("d", i), fmt.Sprint("diver-", i%7)
		t.delegation(d, "root", "pilot", diver, at, at+50)
		t.run(d+"r", d, diver, at, at+50)
		for k := 0; k < 49 && len(t.spans) < n; k++ {
			from := at + float64(k)
			t.chat(fmt.Sprint(d, "c", k), d+"r", from, from+0.1, from+0.5).Usage.Input = 1000
			t.tool(fmt.Sprint(d, "t", k), d+"r", "Bash", from+0.5, from+1)
		}
	}
	return t
}

// counted counts the statements that are asked, and the rows that are read of the store.
type counted struct {
	*reader
	statements, rows *atomic.Int64
}

func (c counted) Each(ctx context.Context, sql string, params map[string]string, row func([]any) error) error {
	c.statements.Add(1)
	return c.reader.Each(ctx, sql, params, func(v []any) error {
		c.rows.Add(1)
		return row(v)
	})
}

// TestLargeTrace: the page of a trace of any size reads each span once, weighs under 300 kB with its first rows, has
// rows without a script, and reaches every step, by depth, by time, and by failure. Afterwards rows and steps read no span
// again, by a statement or two. EARSHOT_LARGE_TRACE=100000 sets the number of steps.
func TestLargeTrace(t *testing.T) {
	n := 20_000
	if os.Getenv("EARSHOT_LARGE_TRACE") != "" {
		if _, err := fmt.Sscan(os.Getenv("EARSHOT_LARGE_TRACE"), &n); err != nil {
			t.Fatal(err)
		}
	}
	h := newHome(t)
	x := largeTurn("large", time.Now().Add(-24*time.Hour), n)
	n = len(x.spans)
	x.spans[n/2].Outcome, x.spans[n/2].StatusMessage = msg.OutcomeError, "the hose came off"
	for i := 0; i < n; i += 20_000 {
		h.export(export.Batch{Spans: exporttest.Records(x.spans[i:min(i+20_000, n)]...)})
	}
	var asked, read atomic.Int64
	store := counted{h.reader(), &asked, &read}
	pages, err := ui.New(store, store.prices)
	if err != nil {
		t.Fatal(err)
	}
	s := site{t, pages}
	path := "/trace/" + x.spans[0].TraceID.String()
	page, took := s.get(path)
	if got := read.Swap(0); got > int64(n)+300 {
		t.Errorf("the page reads %d rows of %d spans", got, n)
	}
	if got := asked.Swap(0); got > 4 {
		t.Errorf("the page asks %d statements", got)
	}
	weight := len(page)
	rows, next := s.get(path + "/rows?at=0")
	if got := read.Load(); got > 300 || len(rows) > 120_000 {
		t.Errorf("a page of rows reads %d rows, and weighs %d bytes", got, len(rows))
	}
	if got := asked.Load(); got > 1 {
		t.Errorf("a page of rows asks %d statements", got)
	}
	weight += len(rows)
	for _, asset := range []string{"style.css", "trace.css", "trace.js", "keys.js", "icon.svg"} {
		text, _ := s.get("/assets/" + asset)
		weight += len(text)
	}
	t.Logf("%d steps: open in %s, rows in %s, %d kB", n, took, next, weight/1000)
	if weight > 300_000 {
		t.Errorf("the page weighs %d bytes", weight)
	}
	if rows := strings.Count(page, `<a class="row`); rows != 200 || !strings.Contains(page, "later rows") {
		t.Errorf("%d rows without a script", rows)
	}
	type answer struct {
		Total, At, Step int
		Rows            []struct {
			N, D, Below int
			ID, T, S    string
		}
	}
	ask := func(query string) (a answer) {
		t.Helper()
		text, _ := s.get(path + "/rows?" + query)
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := ask(fmt.Sprint("at=", n-5)); a.Total != n || len(a.Rows) != 5 || a.Rows[4].N != n-1 {
		t.Errorf("the end: %+v", a)
	}
	if a := ask("depth=2"); a.Total != 1+(n-1+99)/100 || a.Rows[0].Below != a.Total-1 || a.Rows[1].Below != 0 {
		t.Errorf("two levels: %d rows, %+v", a.Total, a.Rows[:2])
	}
	if a := ask("zoom=50250-50750"); a.Total != 4 && a.Total != 5 || a.Rows[0].T != "pilot" {
		t.Errorf("half a second: %+v", a)
	}
	if a := ask("only=failed"); a.Total != 1 || !strings.Contains(a.Rows[0].S, "the hose came off") && !strings.Contains(a.Rows[0].S, "error") {
		t.Errorf("failed: %+v", a)
	}
	last := x.spans[n-1].ID.String()
	if a := ask("step=" + last); a.Step < n-3 {
		t.Errorf("the last step is row %d", a.Step)
	}
	s.has(path+"?step="+last, `id="step"`, "this step alone", last)
	s.has(path+"?zoom=x&depth=-1&only=nothing&row=99999999&step=nope", "Pick a step")
	s.has(path+"/step/"+last, "In its trace")

	for _, what := range []string{"/rows?at=10000", "/rows?depth=2", "/rows?only=failed", "/step/" + x.spans[n/2].ID.String()} {
		asked.Store(0)
		read.Store(0)
		s.get(path + what)
		if asked, read := asked.Load(), read.Load(); asked > 2 || read > 300 {
			t.Errorf("%s: %d statements, %d rows", what, asked, read)
		}
	}
}

// hostile is text as an agent may have written it.
const hostile = "<script>alert(1)</script> <img src=x onerror=alert(2)> \x1b[31mred\x1b[0m \u202eevil\u202c [click](javascript:alert(3)) ![pixel](https://evil.example/p.png) \x00\x07"

// formValues are values that a form sends back unchanged.
var formValues = regexp.MustCompile(` value="[^"]*"`)

// TestHostileText has every page show texts of agents as text: no element, address or control character of theirs.
func TestHostileText(t *testing.T) {
	h := newHome(t)
	began := time.Now().Add(-time.Hour)
	x := newTurn("evil'; DROP TABLE messages --", began)
	x.run("root", "", hostile, 0, 60)
	x.delegation("d", "root", hostile, hostile, 1, 50)
	x.run("r", "d", hostile, 1, 50)
	c := x.chat("c", "r", 2, 3, 10)
	c.Model = hostile
	e := x.tool("t", "r", hostile, 10, 49)
	e.Outcome, e.StatusMessage, e.ErrorType = msg.OutcomeError, hostile, hostile
	e.Events = []msg.SpanEvent{{Time: x.at(20), Name: hostile, Attrs: []msg.Attr{{Key: hostile, Value: hostile}}}}
	var list []msg.Message
	for i, m := range []msg.Message{
		{Kind: msg.User, Role: msg.RoleUser, Content: msg.Plain(hostile + "\n\n# Title\n\n- a\n- b\n\n```go\nfunc main() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |")},
		{Kind: msg.Assistant, Role: msg.RoleAssistant, Content: msg.Plain(hostile)},
		{Kind: msg.ToolCall, Tool: msg.Tool{CallID: "t", Name: hostile, Arguments: msg.Plain(`{"file_path":"/a/<b>.go","old_string":"one\ntwo\nthree","new_string":"one\n<b>2</b>\nthree"}`)}},
		{Kind: msg.ToolResult, Tool: msg.Tool{CallID: "t", Name: hostile}, Content: msg.Plain(hostile), Attachments: []msg.Attachment{{Name: "<i>.png", MediaType: "image/png", Size: 7, SHA256: strings.Repeat("ab", 32)}}},
	} {
		m.Key, m.Session, m.Run, m.Time, m.Complete = fmt.Sprint("m", i), x.session, "turn", x.at(float64(i)), msg.Complete
		m.Agent.Name = hostile
		m.Host = msg.Host{Tenant: "default", Source: "harbour", Format: "legion", ID: msg.NewID("default", "legion", x.session, m.Key), Ver: 1, Seq: uint64(i)}
		m.Host.TraceID, m.Host.SpanID = x.spans[0].TraceID, x.id([]string{"root", "c", "t", "t"}[i])
		list = append(list, m)
	}
	h.export(export.Batch{Messages: exporttest.Records(list...), Spans: exporttest.Records(x.spans...)})
	s := h.site()
	trace := "/trace/" + x.spans[0].TraceID.String()
	session := "/session/" + url.PathEscape(x.session)
	for path, want := range map[string][]string{
		"/": {"alert(1)", "Newest conversations", " of it was ", "the step"}, "/slow?agent=" + url.QueryEscape(hostile): {"alert(1)"}, "/sessions": {"alert(1)"}, "/tools": nil, "/now": nil,
		session: {"alert(1)", "<h1", "<code class=\"language-go\">", "<td>1</td>", "trace</a>"},
		trace:   {"alert(1)"}, trace + "?step=" + x.id("t").String(): {"&lt;b&gt;2&lt;/b&gt;", `class="del"`, `class="add"`, "sha256", "&lt;i&gt;.png"}, trace + "?step=" + x.id("c").String(): {"alert(1)"},
		trace + "/step/" + x.id("root").String(): {"<h1", "href=\"https://evil.example/p.png\""},
		"/search?q=alert":                        {"<mark>alert</mark>"}, "/search?q=" + url.QueryEscape(hostile): nil, "/search?q=" + url.QueryEscape("' OR 1=1 --"): {"No message has"},
	} {
		body := formValues.ReplaceAllString(s.has(path, want...), "")
		for _, bad := range []string{"<script>alert", "<img", "onerror=alert(2)>", "javascript:", "\x1b", "\u202e", "\x00", "\x07"} {
			if strings.Contains(strings.ReplaceAll(body, "onerror=alert(2)&gt;", ""), bad) {
				at := strings.Index(body, bad)
				if bad == "javascript:" && !strings.Contains(body, `="javascript:`) && !strings.Contains(body, `=javascript:`) {
					continue // as text
				}
				t.Errorf("%s has %q: %q", path, bad, body[max(0, at-200):min(len(body), at+100)])
			}
		}
	}
	before, _ := s.get("/live/" + url.PathEscape(x.session))
	more := list[1]
	more.Key, more.Content = "m9", msg.Plain("more")
	more.Host.ID = msg.NewID("default", "legion", x.session, more.Key)
	h.export(export.Batch{Messages: exporttest.Records(more)})
	if after, _ := s.get("/live/" + url.PathEscape(x.session)); after == before {
		t.Errorf("the conversation went on, and its token is still %q", after)
	}
}

// TestSlowPage: the page ranks delegations that a caller waited for, names the bottleneck, compares with the pair's others, and its
// filters pick rows; work in the background is apart. Where the delegate's run ended before the result came, both times are there.
func TestSlowPage(t *testing.T) {
	h := newHome(t)
	var spans []msg.Span
	for i := range 12 {
		x := newTurn(fmt.Sprint("s", i), time.Now().Add(-time.Duration(20-i)*time.Hour))
		long := 10.0
		if i == 11 {
			long = 60
		}
		x.run("root", "", "pilot", 0, long+2)
		d := x.delegation("d", "root", "pilot", "diver", 1, long)
		if i == 5 { // its result was reported two seconds after the run's end
			d.Worked = d.Start + 7_000_000_000
		}
		x.run("r", "d", "diver", 1, long)
		w := x.tool("t", "r", "Bash", 1, long)
		if i == 11 {
			w.Events = []msg.SpanEvent{{Time: x.at(5), Name: "earshot.wait_start"}, {Time: x.at(35), Name: "earshot.wait_end"}}
		}
		if i == 3 {
			x.delegation("b", "root", "pilot", "cook", 1, 500).Delegate.Async = true
		}
		spans = append(spans, x.spans...)
	}
	h.export(export.Batch{Spans: exporttest.Records(spans...)})
	s := h.site()
	page := s.has("/slow", "pilot → diver", "times the median of 9.0s", "waiting for a person", "In the background", "pilot → cook", `role="img"`, "of 12", "run 7.0s")
	if strings.Count(page, "<small>run ") != 1 {
		t.Error("a run that ended with its result has a time of its own")
	}
	if strings.Index(page, "pilot → cook") < strings.Index(page, "In the background") {
		t.Error("work that nobody waited for is ranked among the slow")
	}
	if n := strings.Count(page, "pilot → diver"); n != 12 {
		t.Errorf("%d delegations", n)
	}
	for query, want := range map[string]int{"delegate=diver": 12, "delegate=cook": 0, "agent=x": 0, "tool=Task": 12, "format=legion&tenant=default&status=ok": 12, "status=error": 0, "from=now-630m": 2, "from=now-90s": 0} {
		page, _ := s.get("/slow?" + query)
		if n := strings.Count(page, "pilot → diver</a>"); n != want {
			t.Errorf("%s: %d delegations, want %d", query, n, want)
		}
	}
	s.has("/slow?status=error", "has all of these filters")
	s.has("/slow?from=now-90s", "The latest ended", "Show all time")
}

// TestStepOfSeveralViews: the page of a step that several formats show names them, and of which of them each number is.
func TestStepOfSeveralViews(t *testing.T) {
	h := newHome(t)
	in := newTurn("views", time.Now().Add(-time.Hour))
	in.run("turn", "", "pilot", 0, 10)
	chat := in.chat("answer", "turn", 1, 2, 5)
	chat.Usage.Input = 1000
	chat.Seen = msg.Seen{By: []string{"legion", "otlp"}, Tokens: "otlp", Times: "legion", Conflict: "legion 900/0/0/0, otlp 1000/0/0/0"}
	said := msg.Message{
		Key: "said", Session: "views", Run: "turn", Kind: msg.Assistant, Role: msg.RoleAssistant, Content: msg.Plain("The tide turns at noon."), Time: chat.End, Complete: msg.Complete,
		Host: msg.Host{Tenant: "default", Source: "harbour", Format: "legion", ID: msg.NewID("default", "legion", "views", "said"), TraceID: chat.TraceID, SpanID: chat.ID, Ver: 1},
	}
	chat.Seen.Messages = []msg.SeenMessage{{ID: said.Host.ID, By: []string{"otlp", "legion"}}}
	trace, step := chat.TraceID.String(), chat.ID.String()
	h.export(export.Batch{Spans: exporttest.Records(in.spans...), Messages: exporttest.Records(said)})
	s := h.site()
	want := []string{
		"<dt>seen by</dt><dd>legion, otlp: times of legion, tokens and their cost of otlp, status of legion</dd>",
		`<dt>views differ</dt><dd class="bad">legion 900/0/0/0, otlp 1000/0/0/0</dd>`, "The tide turns at noon.", `<p class="soft">seen by otlp, legion</p>`,
	}
	s.has("/trace/"+trace+"/step/"+step, want...)
	s.has("/trace/"+trace+"?step="+step, want...)
	if root, _ := s.get("/trace/" + trace + "/step/" + in.spans[0].ID.String()); strings.Contains(root, "seen by") {
		t.Errorf("one format shows the run:\n%s", root)
	}
}
