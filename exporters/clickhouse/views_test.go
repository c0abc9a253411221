package clickhouse

import (
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

// conversations stores a conversation of four messages for each hour of a day.
func conversations(t *testing.T, x *Exporter, id string) time.Time {
	t.Helper()
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	b := &export.Batch{ID: id}
	for hour := range 24 {
		for i, m := range sampleMessages(4) {
			m.Session, m.Run = start.Add(time.Duration(hour)*time.Hour).Format(time.RFC3339), "r"
			m.Time = start.Add(time.Duration(hour)*time.Hour + time.Duration(i)*time.Second).UnixNano()
			m.Host.ID, m.Host.Seq = msg.NewID("", "", m.Session, m.Key), uint64(i)
			if i == 0 {
				m.Content = msg.Plain("When does the Ferry to Nordhavn leave?")
				m.Client, m.Title = msg.Client{Project: "/srv/quay", Branch: "main", Version: "3.1", User: "ada"}, "Ferries"
			}
			if i == 2 { // the project is the first, the branch the last
				m.Client = msg.Client{Project: "/srv/quay/shed", Branch: "ferries"}
			}
			if i == 3 {
				m.IsError = hour%6 == 0
				m.Usage = msg.Tokens{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5}
			}
			b.Messages = append(b.Messages, new(m))
		}
	}
	export1(t, x, b)
	return start
}

func TestSessionsAreSummedUp(t *testing.T) {
	x, c := exporter(t, nil)
	conversations(t, x, "first")
	conversations(t, x, "again") // a replay
	got := rows(t, c, "SELECT * FROM v_sessions ORDER BY session_id LIMIT 1 FORMAT JSONEachRow")
	want := map[string]string{
		"tenant": "default", "session_id": "2026-03-01T00:00:00Z", "source": "legion", "format": "legion",
		"started": "2026-03-01 00:00:00.000000000", "last_message": "2026-03-01 00:00:03.000000000", "duration_ms": "3000",
		"runs": "1", "messages": "4", "user_messages": "1", "tool_calls": "1", "delegations": "0", "errors": "1",
		"input_tokens": "1", "output_tokens": "2", "cache_read_tokens": "3", "cache_write_tokens": "4", "reasoning_tokens": "5",
		"agents": "[harbour-pilot]", "models": "[tern-2]",
		"project": "/srv/quay", "branch": "ferries", "title": "Ferries", "agent_version": "3.1", "host": "", "user": "ada",
	}
	if len(got) != 1 || len(got[0]) != len(want) {
		t.Fatalf("got %v", got)
	}
	for k, v := range want {
		if g := strings.Trim(strings.ReplaceAll(text(Column{}, got[0][k], ""), `"`, ""), " "); g != v {
			t.Errorf("%s: %s, want %s", k, g, v)
		}
	}
}

// TestSearchFindsWords: the index is built by merges, and the result does not
// depend on whether one has happened.
func TestSearchFindsWords(t *testing.T) {
	x, c := exporter(t, nil)
	conversations(t, x, "first")
	const search = "SELECT uniqExact(session_id) FROM v_messages WHERE hasAllTokens(lower(content), ['ferry', 'nordhavn'])"
	if got := count(t, c, search); got != "24" {
		t.Errorf("%s conversations before a merge", got)
	}
	if err := c.Exec(t.Context(), "OPTIMIZE TABLE messages FINAL"); err != nil {
		t.Fatal(err)
	}
	if got := count(t, c, search); got != "24" {
		t.Errorf("%s conversations after a merge", got)
	}
	if plan := count(t, c, "EXPLAIN indexes = 1 SELECT count() FROM messages WHERE hasToken(lower(content), 'ferry')"); !strings.Contains(plan, "idx_fts") {
		t.Errorf("the index is not used:\n%s", plan)
	}
}

// TestViewsReadWhatIsAskedFor: a condition on a view reaches the key of the table
// below, through FINAL.
func TestViewsReadWhatIsAskedFor(t *testing.T) {
	x, c := exporter(t, nil)
	conversations(t, x, "first")
	plan := count(t, c, "EXPLAIN indexes = 1 SELECT count() FROM v_messages WHERE tenant = 'default' AND ts > toDateTime64('2026-03-01 20:00:00', 9, 'UTC')")
	if !strings.Contains(plan, "toStartOfHour(ts) in [") || !strings.Contains(plan, "tenant in [") {
		t.Errorf("plan:\n%s", plan)
	}
}

// TestWaitsOfATurn: the times in which calls of a turn wait for a person count once, however many wait. A wait that did not end is as long as its
// span, and one for something else is none.
func TestWaitsOfATurn(t *testing.T) {
	x, c := exporter(t, nil)
	start := time.Date(2026, 10, 31, 23, 59, 58, 0, time.UTC)
	at := func(ms int64) int64 { return start.UnixNano() + ms*1e6 }
	b := &export.Batch{ID: "waits"}
	add := func(kind msg.SpanKind, name string, from, to int64, events ...msg.SpanEvent) {
		s := msg.Span{
			Tenant: "default", Source: "src", Format: "f", Session: "s", Run: "r", Kind: kind, State: msg.SpanClosed, Outcome: msg.OutcomeOK, Ver: 1,
			TraceID: msg.NewTraceID("default", "f", "s", "r"), ID: msg.NewSpanID("default", "f", "s", kind, name), Start: at(from), End: at(to), LastSeen: at(to), Events: events,
		}
		if kind != msg.SpanRun {
			s.Parent, s.Tool = msg.NewSpanID("default", "f", "s", msg.SpanRun, "r"), msg.Tool{Name: name, CallID: name}
		}
		b.Spans = append(b.Spans, &s)
	}
	event := func(ms int64, signal msg.Signal, attrs ...msg.Attr) msg.SpanEvent {
		return msg.SpanEvent{Time: at(ms), Name: signal.String(), Attrs: attrs}
	}
	outside := msg.Attr{Key: msg.EventWaitsFor, Value: "outside"}
	add(msg.SpanRun, "r", 0, 100_000, event(50_000, msg.RunPause), event(52_000, msg.RunResume))
	add(msg.SpanTool, "a", 1000, 20_000, event(2000, msg.WaitStart), event(2500, msg.WaitStart), event(6000, msg.WaitEnd), event(15_000, msg.WaitStart), event(16_000, msg.WaitEnd))
	add(msg.SpanTool, "b", 1000, 9000, event(4000, msg.WaitStart))                                            // 4 to 9 s
	add(msg.SpanTool, "c", 1000, 5000, event(500, msg.WaitStart), event(3000, msg.WaitEnd))                   // 1 to 3 s
	add(msg.SpanTool, "d", 30_000, 40_000, event(31_000, msg.WaitStart, outside), event(39_000, msg.WaitEnd)) // none
	export1(t, x, b)
	if got := count(t, c, "SELECT waited_ms FROM v_turns"); got != "11000" { // 1 to 9, 15 to 16, 50 to 52 s
		t.Errorf("the turn waited %s ms", got)
	}
}
