package clickhouse

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestWhatGoesOnNow: v_open_spans has a state for each span, by its verdict and the threshold
// of the settings; a span that waits for a child has the state of the child.
func TestWhatGoesOnNow(t *testing.T) {
	x, c := exporter(t, nil)
	now := time.Now()
	var spans []msg.Span
	add := func(trace, id, parent byte, session string, silent time.Duration, events ...msg.SpanEvent) *msg.Span {
		s := sampleSpan()
		s.TraceID, s.ID, s.Parent, s.Session = msg.TraceID{trace}, msg.SpanID{id}, msg.SpanID{parent}, session
		s.State, s.End, s.Events = msg.SpanOpen, 0, events
		s.Alive = now.Add(-silent).UnixNano()
		s.LastSeen, s.Start = s.Alive, s.Alive-int64(10*time.Second)
		spans = append(spans, s)
		return &spans[len(spans)-1]
	}
	asks := msg.SpanEvent{Name: msg.WaitStart.String()}
	add(1, 10, 0, "1 works", time.Hour) // its call works
	add(1, 11, 10, "1 works/call", time.Second)
	add(1, 12, 10, "1 works/other call", time.Hour)
	add(2, 20, 0, "2 hangs", time.Hour)
	add(2, 21, 20, "2 hangs/call", time.Hour)
	add(3, 30, 0, "3 asks", time.Hour)
	add(3, 31, 30, "3 asks/call", time.Hour, asks)
	add(4, 40, 0, "4 is paused", time.Hour, msg.SpanEvent{Name: msg.RunPause.String()})
	add(4, 41, 40, "4 is paused/call", time.Hour)
	add(5, 50, 0, "5 thinks", 2*time.Minute)
	add(7, 70, 0, "7 goes on again", time.Second)
	clock := add(6, 60, 0, "6 has a clock of its own", time.Second)
	clock.LastSeen -= int64(8 * time.Hour)
	clock.Start -= int64(8 * time.Hour)
	var verdicts []msg.Verdict
	for _, s := range spans {
		name := map[byte]string{12: "tool_running", 21: "child_dead", 20: "child_dead", 70: "model_silent"}[s.ID[0]]
		if name == "" {
			continue
		}
		v := msg.Verdict{Tenant: s.Tenant, TraceID: s.TraceID, Span: s.ID, Kind: s.Kind, Session: s.Session, Name: name, Evidence: "because", Since: s.Start, At: s.Alive, Ver: 1}
		verdicts = append(verdicts, v)
		if name == "model_silent" {
			v.Resolved, v.Resolution, v.Ver = s.Alive+1, "progress", 2
			verdicts = append(verdicts, v)
		}
	}
	export1(t, x, &export.Batch{ID: "now", Spans: exporttest.Records(spans...), Verdicts: verdicts})
	const states = "SELECT concat(session_id, ': ', state, if(leaf, '', ' below')) FROM v_open_spans ORDER BY session_id"
	want := []string{
		"1 works: running below", "1 works/call: running", "1 works/other call: stuck",
		"2 hangs: stuck below", "2 hangs/call: stuck",
		"3 asks: waiting below", "3 asks/call: waiting",
		"4 is paused: waiting below", "4 is paused/call: waiting",
		"5 thinks: silent", "6 has a clock of its own: running", "7 goes on again: running",
	}
	if d := cmp.Diff(strings.Join(want, "\n"), count(t, c, states)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if got := count(t, c, "SELECT age_ms BETWEEN 11000 AND 60000 AND silent_ms BETWEEN 1000 AND 50000 FROM v_open_spans WHERE session_id LIKE '6%'"); got != "true" && got != "1" {
		t.Errorf("the age by a clock that is eight hours behind: %s", count(t, c, "SELECT age_ms, silent_ms FROM v_open_spans WHERE session_id LIKE '6%'"))
	}
	if got := count(t, c, "SELECT verdict, evidence FROM v_open_spans WHERE session_id LIKE '1%other call'"); got != "tool_running\tbecause" {
		t.Errorf("%q", got)
	}
	if got := count(t, c, "SELECT countIf(holds), countIf(NOT holds AND resolution = 'progress' AND resolved IS NOT NULL) FROM v_verdicts"); got != "3\t1" {
		t.Errorf("verdicts: %q", got)
	}
	x.settings.SilentAfter = 3 * time.Minute
	for range 2 { // the second time there is nothing to do
		if err := x.writeThresholds(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := count(t, c, "SELECT state FROM v_open_spans WHERE session_id LIKE '5%'"); got != "running" {
		t.Errorf("with other thresholds: %s", got)
	}
	if got := count(t, c, "SELECT name, count() FROM thresholds FINAL GROUP BY name ORDER BY name"); got != "silent\t1\nstuck\t1" {
		t.Errorf("%q", got)
	}
}

// TestInferredTimesAreNoTimes: bookkeeping, and messages without a time of their own, do
// not make a conversation older, newer or longer.
func TestInferredTimesAreNoTimes(t *testing.T) {
	x, c := exporter(t, nil)
	start := time.Date(2025, 6, 1, 9, 0, 0, 0, time.UTC)
	var list []msg.Message
	say := func(session string, at time.Time, p msg.Precision, hidden bool) {
		m := sampleMessages(1)[0]
		m.Session, m.Time, m.Precision, m.Hidden = session, at.UnixNano(), p, hidden
		m.Key += session + at.String()
		m.Host.ID = msg.NewID("", "", m.Session, m.Key)
		list = append(list, m)
	}
	copied := start.AddDate(1, 0, 0)
	say("dated", start, msg.Millis, false)
	say("dated", start.Add(time.Hour), msg.Millis, false)
	say("dated", copied, msg.Inferred, true)
	say("dated", copied, msg.Inferred, false)
	say("dated", start.Add(-time.Hour), msg.Millis, true)
	say("undated", copied, msg.Inferred, false)
	export1(t, x, &export.Batch{ID: "first", Messages: exporttest.Records(list[:2]...)})
	export1(t, x, &export.Batch{ID: "then", Messages: exporttest.Records(list[2:]...)})
	want := "dated 2025-06-01 09:00:00 2025-06-01 10:00:00\nundated 2026-06-01 09:00:00 2026-06-01 09:00:00"
	for _, sql := range []string{
		"SELECT concat(session_id, ' ', toString(toDateTime(started)), ' ', toString(toDateTime(last_message))) FROM v_sessions ORDER BY session_id",
		"SELECT concat(session_id, ' ', toString(toDateTime(began)), ' ', toString(toDateTime(latest))) FROM v_session_times ORDER BY session_id",
	} {
		if d := cmp.Diff(want, count(t, c, sql)); d != "" {
			t.Errorf("%s: -want +got:\n%s", sql, d)
		}
	}
}
