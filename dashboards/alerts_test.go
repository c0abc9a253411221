package dashboards

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/dashboards/internal/macro"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

// alarms is a database of its own, against which the queries of the alert rules run.
type alarms struct {
	*testing.T
	out    *clickhouse.Exporter
	reader *clickhouse.Conn
	now    time.Time
	n      int
}

func newAlarms(t *testing.T) *alarms {
	w := theWorld(t)
	conn := clickhouse.ConnSettings{DSN: w.dsn("default"), Database: "alarms_" + strings.Map(letter, t.Name())}
	x, err := clickhouse.New(t.Context(), clickhouse.Settings{Conn: conn, CreateSchema: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := clickhouse.Open(conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), x.Close(context.Background()) })
	return &alarms{T: t, out: x, reader: r, now: time.Now()}
}

// letter has an underscore in the place of all but letters.
func letter(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return r
	}
	return '_'
}

func (a *alarms) store(b *export.Batch) {
	a.Helper()
	a.n++
	b.ID = fmt.Sprint(a.n)
	if err := a.out.Export(a.Context(), b); err != nil {
		a.Fatal(err)
	}
}

// work is a piece of work that began so long ago and took so long; open when that is 0.
func (a *alarms) work(kind msg.SpanKind, ago, took time.Duration, change func(*msg.Span)) msg.Span {
	a.n++
	s := msg.Span{
		Tenant: "default", Source: "pier", Format: "claude-code", Session: "s", Run: fmt.Sprint(a.n), Kind: kind, Ver: 1, Agent: msg.Agent{Name: "keeper"},
		Start: a.now.Add(-ago).UnixNano(), State: msg.SpanClosed, Outcome: msg.OutcomeOK, Tool: msg.Tool{Name: "Task", CallID: fmt.Sprint(a.n)},
	}
	s.TraceID, s.ID = msg.NewTraceID("default", "", "s", s.Run), msg.NewSpanID("default", "", "s", kind, s.Run)
	s.End = s.Start + int64(took)
	s.LastSeen = s.End
	if took == 0 {
		s.State, s.End, s.Outcome = msg.SpanOpen, 0, msg.OutcomeUnset
	}
	if kind == msg.SpanDelegation {
		s.Delegate.To = "diver"
	}
	if change != nil {
		change(&s)
	}
	return s
}

func (a *alarms) said(ago time.Duration, p msg.Precision) msg.Message {
	a.n++
	key := fmt.Sprint(a.n)
	return msg.Message{
		Key: key, Session: "s", Kind: msg.Assistant, Content: msg.Plain("Aye."), Time: a.now.Add(-ago).UnixNano(), Precision: p, Complete: msg.Complete,
		Host: msg.Host{Tenant: "default", Source: "pier", Format: "claude-code", ID: msg.NewID("default", "", "s", key), Ver: 1},
	}
}

// fires reports which number, and whether, makes the rule of that title fire.
func (a *alarms) fires(title string) bool {
	a.Helper()
	for _, q := range queries(a.T) {
		if q.kind != "alert" || q.title != title {
			continue
		}
		sql, err := (&macro.Query{From: a.now.Add(-q.window), To: a.now.Add(time.Hour), Interval: time.Minute}).Expand(q.sql)
		if err != nil {
			a.Fatal(err)
		}
		r, err := run(a.T, a.reader, sql)
		if err != nil {
			a.Fatalf("%s: %v\n%s", title, err, sql)
		}
		for _, row := range r.rows {
			for _, v := range row {
				if n := number(v); n > q.above {
					return true
				}
			}
		}
		return false
	}
	a.Fatalf("no rule %s", title)
	return false
}

var judged = []string{"Work is stuck", "Messages come late", "Delegations are slow", "Delegations fail", "A tool fails", "Earshot is silent"}

// TestAlertsAreQuiet: a first import, people who take their time, work in the background,
// calls that a person denied and estimated times set off no alarm.
func TestAlertsAreQuiet(t *testing.T) {
	a := newAlarms(t)
	b := &export.Batch{Ledger: []msg.Ledger{{
		Tenant: "default", Source: "pier", Format: "claude-code", Stream: "x", Seen: a.now.UnixNano(), Since: a.now.Add(-time.Minute).UnixNano(), Ver: 1,
	}}}
	for n := range 10 {
		b.Messages = append(b.Messages, new(a.said(time.Duration(n+5)*time.Minute, msg.Millis)), new(a.said(50*time.Second, msg.Inferred)), new(a.said(0, msg.Millis)))
		denied := func(s *msg.Span) { s.Outcome, s.ErrorType = msg.OutcomeError, "denied" }
		b.Spans = append(b.Spans, new(a.work(msg.SpanDelegation, 20*time.Minute, 10*time.Minute, func(s *msg.Span) { s.Delegate.Async = true })),
			new(a.work(msg.SpanTool, 20*time.Minute, time.Second, denied)), new(a.work(msg.SpanDelegation, 20*time.Minute, time.Second, denied)))
	}
	b.Spans = append(b.Spans, new(a.work(msg.SpanTool, 5*time.Hour, 0, func(s *msg.Span) {
		s.Events = []msg.SpanEvent{{Time: s.Start, Name: msg.WaitStart.String()}}
	})))
	a.store(b)
	for _, title := range judged {
		if a.fires(title) {
			t.Errorf("%s", title)
		}
	}
}

// TestAlertsFire: work that is really stuck, late, slow or silent sets off its alarm.
func TestAlertsFire(t *testing.T) {
	a := newAlarms(t)
	b := &export.Batch{Ledger: []msg.Ledger{{
		Tenant: "default", Source: "pier", Format: "claude-code", Stream: "x", Seen: a.now.Add(-7 * time.Minute).UnixNano(), Since: a.now.Add(-time.Hour).UnixNano(), Ver: 1,
	}}, Spans: exporttest.Records(a.work(msg.SpanTool, 26*time.Hour, 0, nil))}
	hangs := b.Spans[0]
	b.Verdicts = []msg.Verdict{{Tenant: "default", TraceID: hangs.TraceID, Span: hangs.ID, Kind: hangs.Kind, Session: "s", Name: "tool_running", Evidence: "Task has run 26 h", Since: hangs.Start, At: hangs.Start, Ver: 1}}
	for range 10 {
		b.Messages = append(b.Messages, new(a.said(5*time.Minute, msg.Millis)))
		broken := func(s *msg.Span) { s.Outcome, s.ErrorType = msg.OutcomeError, "timeout" }
		b.Spans = append(b.Spans, new(a.work(msg.SpanDelegation, 20*time.Minute, 10*time.Minute, broken)), new(a.work(msg.SpanTool, 20*time.Minute, time.Second, broken)))
	}
	a.store(b)
	for _, title := range judged {
		if !a.fires(title) {
			t.Errorf("%s: quiet", title)
		}
	}
	for _, r := range alertRules(t) {
		if want := map[bool]string{true: "Alerting", false: "OK"}[r.Title == "Earshot is silent"]; r.NoDataState != want {
			t.Errorf("%s: without data %s, want %s", r.Title, r.NoDataState, want)
		}
	}
}

// TestAlertOfAChange: a slower tool sets off an alarm for a day, and a faster one none.
func TestAlertOfAChange(t *testing.T) {
	const title = "An agent or a tool changed"
	a := newAlarms(t)
	row := func(ago time.Duration, ratio float64) clickhouse.ChangeRow {
		a.n++
		return clickhouse.ChangeRow{Tenant: "default", Found: a.now.Add(-ago), At: a.now.Add(-ago), Kind: "tool", Agent: "keeper", Name: fmt.Sprint("Bash", a.n), Metric: "duration", Since: []string{"client 2"}, Ratio: ratio, Version: 1}
	}
	for _, c := range []struct {
		row  clickhouse.ChangeRow
		want bool
	}{{row(time.Hour, 0.5), false}, {row(25*time.Hour, 2), false}, {row(time.Hour, 2), true}} {
		if err := a.out.StoreChanges(t.Context(), []clickhouse.ChangeRow{c.row}); err != nil {
			t.Fatal(err)
		}
		if got := a.fires(title); got != c.want {
			t.Errorf("ratio %g, found at %s: fires %v", c.row.Ratio, c.row.Found, got)
		}
	}
}

// TestAlertOfADrop: bytes that were dropped set off an alarm for an hour, and unaccounted ones for as long as they are in an account.
func TestAlertOfADrop(t *testing.T) {
	for name, c := range map[string]struct {
		account msg.Ledger
		want    bool
	}{
		"none":        {msg.Ledger{Read: 9, Decoded: 9}, false},
		"now":         {msg.Ledger{Read: 9, Decoded: 4, Dropped: 5, DroppedAt: -int64(time.Minute)}, true},
		"long ago":    {msg.Ledger{Read: 9, Decoded: 4, Dropped: 5, DroppedAt: -int64(2 * time.Hour)}, false},
		"unaccounted": {msg.Ledger{Read: 9, Decoded: 4}, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAlarms(t)
			l := c.account
			l.Tenant, l.Source, l.Format, l.Stream, l.Seen, l.Ver = "default", "pier", "claude-code", "x", a.now.UnixNano(), 1
			if l.DroppedAt != 0 {
				l.DroppedAt += a.now.UnixNano()
			}
			a.store(&export.Batch{Ledger: []msg.Ledger{l}})
			if got := a.fires("Bytes are unaccounted for or dropped"); got != c.want {
				t.Errorf("fires %v", got)
			}
		})
	}
}
