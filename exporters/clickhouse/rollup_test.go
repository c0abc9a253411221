package clickhouse

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// fromRows compute the views of the rollups from the rows.
var fromRows = map[string]string{
	"v_messages": `SELECT tenant, toDateTime(toStartOfInterval(ts, INTERVAL %d SECOND), 'UTC') AS slot, source, format, agent_name, kind, model, count(), countIf(failed), countIf(hidden),
		sum(content_bytes), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(reasoning_tokens), uniqExact(session_id)
		FROM messages FINAL GROUP BY ALL ORDER BY ALL`,
	"v_tool_calls": `SELECT tenant, toDateTime(toStartOfInterval(ts, INTERVAL %d SECOND), 'UTC') AS slot, source, format, tool_name, mcp_server, agent_name, model, is_delegation, internal,
		count(), countIf(status = 'error'), countIf(status = 'cancelled'), countIf(attempt > 1),
		countIf(duration_ns >= 1e9), countIf(duration_ns >= 10e9), countIf(duration_ns >= 60e9), sum(duration_ns), sum(waited_ns), sum(args_bytes), sum(result_bytes), max(duration_ns), uniqExact(session_id)
		FROM tool_calls FINAL WHERE status != 'running' GROUP BY ALL ORDER BY ALL`,
}

// sameAsRows compares the views of the rollups, and the facts, with the rows, with those settings:
// final = 1 is how the user of Grafana reads them.
func sameAsRows(t *testing.T, c *Conn, when, settings string) {
	t.Helper()
	compare := func(what, rows, view string) {
		t.Helper()
		want, got := count(t, c, rows), count(t, c, view+settings)
		if want == "" {
			t.Errorf("%s: no rows for %s", when, what)
		}
		if d := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); d != "" {
			t.Fatalf("%s: %s%s (-rows +view):\n%s", when, what, settings, d)
		}
	}
	for view, sql := range fromRows {
		for step, suffix := range map[int]string{300: "_5m", 3600: "_1h"} {
			compare(view+suffix, fmt.Sprintf(sql, step), "SELECT * FROM "+view+suffix+" ORDER BY ALL")
		}
	}
	compare("tool_calls_slots", `SELECT tenant, toDateTime(toStartOfInterval(ts, INTERVAL 300 SECOND), 'UTC') AS slot, source, format, tool_name, mcp_server, agent_name, model, is_delegation, internal,
		max(result_bytes), countIf(waits_for != '' AND waited_ns >= duration_ns), arraySort(groupArrayIf(toUInt64(duration_ns - waited_ns), waits_for = '' OR waited_ns < duration_ns)), uniqExact(session_id)
		FROM tool_calls FINAL WHERE status != 'running' GROUP BY ALL ORDER BY ALL`,
		"SELECT tenant, ts, source, format, tool_name, mcp_server, agent_name, model, is_delegation, internal, largest_result, only_waited, active_ns, finalizeAggregation(sessions) FROM tool_calls_slots ORDER BY ALL")
	compare("pauses_slots", `SELECT tenant, toDateTime(toStartOfInterval(ts, INTERVAL 300 SECOND), 'UTC') AS slot, source, format, agent_name, model, count(), max(us),
			arrayMap(i -> toUInt64(arrayCount(x -> x > bounds[i] AND x <= bounds[i + 1], groupArray(us))), range(1, 12)), uniqExact(session_id)
		FROM (SELECT *, toUInt64(if(kept > 86400e6, 0, kept)) AS us, [-1, 1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 6e7, 1.8e8, 6e8, 1.8e9, 1e18] AS bounds
			FROM (SELECT *, dateDiff('microsecond', lagInFrame(ts, 1, ts) OVER (PARTITION BY tenant, session_id, run_id ORDER BY ts, seq), ts) AS kept FROM messages FINAL WHERE run_id != '' AND kind NOT IN ('usage', 'stop', 'status'))
			WHERE kind IN ('assistant', 'reasoning', 'tool_call', 'delegation'))
		GROUP BY tenant, slot, source, format, agent_name, model, bounds ORDER BY ALL`,
		"SELECT tenant, ts, source, format, agent_name, model, messages, longest_us, pauses, finalizeAggregation(sessions) FROM pauses_slots ORDER BY ALL")
	compare("pauses_hours", `SELECT tenant, toDateTime(toStartOfHour(ts), 'UTC') AS hour, source, format, agent_name, model, count(), max(us),
			arraySlice(arraySort(x -> (-toInt64(x.1), x.2, x.3, x.4), groupArray((us, ts, seq, session_id))), 1, 50)
		FROM (SELECT *, toUInt64(if(kept > 86400e6, 0, kept)) AS us
			FROM (SELECT *, dateDiff('microsecond', lagInFrame(ts, 1, ts) OVER (PARTITION BY tenant, session_id, run_id ORDER BY ts, seq), ts) AS kept FROM messages FINAL WHERE run_id != '' AND kind NOT IN ('usage', 'stop', 'status'))
			WHERE kind IN ('assistant', 'reasoning', 'tool_call', 'delegation'))
		GROUP BY tenant, hour, source, format, agent_name, model ORDER BY ALL`,
		"SELECT tenant, ts, source, format, agent_name, model, messages, longest_us, longest FROM pauses_hours ORDER BY ALL")
	for _, f := range everyFacts() {
		s := Schema{Database: c.database}
		_, values := f.columns()
		compare(f.table, "SELECT "+values+" FROM "+f.of+" FINAL WHERE "+f.where+" ORDER BY ALL", "SELECT * FROM ("+f.rows(s)+") ORDER BY ALL")
	}
}

func rollerOf(x *Exporter, settle time.Duration) roller {
	return roller{c: x.conn, s: x.schema, settle: settle, sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
}

func roll(t *testing.T, p roller) (n int) {
	t.Helper()
	for _, r := range everyComputed() {
		done, err := p.pass(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		n += done
	}
	return n
}

// history makes rows that come late, are renamed, move in time and to other sessions, and are
// taken back.
type history struct {
	*rand.Rand
	messages []msg.Message
	spans    []msg.Span
	ver      uint64
	batch    int
}

func pick[T any](h *history, of ...T) T { return of[h.IntN(len(of))] }

var historyBegin = time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC).UnixNano()

func (h *history) when() int64 { return historyBegin + h.Int64N(int64(5*time.Hour)) }

func (h *history) next() *export.Batch {
	h.batch++
	b := &export.Batch{ID: fmt.Sprint("history-", h.batch)}
	if h.batch == 1 { // that stay: the random ones may all be open, or taken back
		answer := sampleMessages(2)[1]
		answer.Key, answer.Session, answer.Time, answer.Host.ID = "answer", "s0", h.when(), msg.NewID("", "", "", "answer")
		b.Messages = append(b.Messages, new(unknownMessage("stays", h.when())), new(answer))
		call := sampleSpan()
		call.ID, call.Session, call.Kind, call.State, call.Start = msg.NewSpanID("", "", "", msg.SpanTool, "stays"), "s0", msg.SpanTool, msg.SpanClosed, h.when()
		call.End = call.Start + int64(time.Second)
		b.Spans = append(b.Spans, &call)
	}
	for range 1 + h.IntN(12) {
		h.ver++
		h.message(b)
		h.span(b)
	}
	return b
}

// unknownMessage is of a type that no decoder knows.
func unknownMessage(key string, at int64) msg.Message {
	m := sampleMessages(1)[0]
	m.Key, m.Session, m.Time, m.Kind = key, "s0", at, msg.Unknown
	m.Attrs, m.Host.ID = []msg.Attr{{Key: "type", Value: "beacon"}}, msg.NewID("", "", "", key)
	return m
}

func (h *history) message(b *export.Batch) {
	if len(h.messages) == 0 || h.IntN(3) == 0 {
		m := sampleMessages(4)[h.IntN(4)]
		m.Key, m.Session, m.Time = fmt.Sprint("k", h.ver), fmt.Sprint("s", h.IntN(4)), h.when()
		m.Usage.Input, m.Usage.Output, m.IsError, m.Hidden = uint64(h.IntN(100)), uint64(h.IntN(9)), h.IntN(4) == 0, h.IntN(4) == 0
		m.Host.ID, m.Host.Ver = msg.NewID("", "", "", m.Key), h.ver
		h.messages = append(h.messages, m)
		b.Messages = append(b.Messages, new(m))
		return
	}
	i := h.IntN(len(h.messages))
	m := &h.messages[i]
	before := *m
	m.Host.Ver = h.ver
	switch h.IntN(6) {
	case 5:
		m.Kind, m.Attrs = pick(h, msg.Unknown, msg.Assistant), []msg.Attr{{Key: "type", Value: pick(h, "beacon", "foghorn")}}
	case 0:
		m.Agent.Name = pick(h, "scout", "pilot", "")
	case 1:
		m.Time = h.when()
	case 2:
		m.Session = fmt.Sprint("s", h.IntN(4))
	case 3:
		m.Usage.Output, m.Model = uint64(h.IntN(9)), pick(h, "tern-1", "tern-2")
		m.Usage.Tier, m.Usage.Stated, m.Usage.CacheRead, m.ResponseID = pick(h, "", "flex", "batch+us"), pick(h, uint64(0), 7), pick(h, uint64(0), 200_000, 300_000), pick(h, "", "r")
		if h.IntN(3) == 0 {
			m.Usage = msg.Tokens{}
		}
	case 4: // taken back
		before.Host.Ver, before.Host.Tombstone = h.ver+1, true
		b.Messages = append(b.Messages, new(before))
		h.messages = append(h.messages[:i], h.messages[i+1:]...)
		return
	}
	if m.Time != before.Time || m.Session != before.Session {
		before.Host.Ver, before.Host.Tombstone = h.ver, true
		b.Messages = append(b.Messages, new(before))
	}
	b.Messages = append(b.Messages, new(*m))
}

func (h *history) span(b *export.Batch) {
	if len(h.spans) == 0 || h.IntN(3) == 0 {
		s := sampleSpan()
		s.ID, s.Session, s.Start = msg.NewSpanID("", "", "", s.Kind, fmt.Sprint(h.ver)), fmt.Sprint("s", h.IntN(4)), h.when()
		s.Kind, s.State, s.Tool.Name = pick(h, msg.SpanTool, msg.SpanDelegation, msg.SpanRun, msg.SpanChat, msg.SpanWorkflow), pick(h, msg.SpanOpen, msg.SpanClosed), pick(h, "Read", "Task")
		s.End, s.Outcome, s.Attempt = s.Start+h.Int64N(int64(2*time.Minute)), pick(h, msg.OutcomeOK, msg.OutcomeError, msg.OutcomeCancelled), uint16(h.IntN(3))
		s.Parent, s.FirstToken = pick(h, s.Parent, msg.SpanID{}), pick(h, 0, s.Start+5)
		s.Ver = 1<<55 | h.ver
		h.spans = append(h.spans, s)
		b.Spans = append(b.Spans, new(s))
		return
	}
	i := h.IntN(len(h.spans))
	s := &h.spans[i]
	before := *s
	s.Ver = 1<<55 | h.ver
	switch h.IntN(5) {
	case 0:
		s.Agent.Name = pick(h, "scout", "pilot", "")
	case 1:
		d := s.End - s.Start
		s.Start = h.when()
		s.End = s.Start + d
	case 2:
		s.State, s.Outcome = msg.SpanClosed, pick(h, msg.OutcomeOK, msg.OutcomeError)
		s.Kind, s.Parent = pick(h, s.Kind, msg.SpanDelegation), pick(h, s.Parent, msg.SpanID{})
	case 3:
		s.Tool.Name, s.ResultBytes = pick(h, "Read", "Write"), h.Uint32N(1000)
	case 4:
		before.Ver, before.Tombstone = 1<<55|(h.ver+1), true
		b.Spans = append(b.Spans, new(before))
		h.spans = append(h.spans[:i], h.spans[i+1:]...)
		return
	}
	if s.Start != before.Start {
		before.Ver, before.Tombstone = s.Ver, true
		b.Spans = append(b.Spans, new(before))
	}
	b.Spans = append(b.Spans, new(*s))
}

// TestRollupsAreWhatTheRowsAre compares every rollup with the rows, after random histories of late,
// renamed, moved and taken-back rows, replays and merges: with the slots that are computed, and
// with those that are not yet.
func TestRollupsAreWhatTheRowsAre(t *testing.T) {
	x, c := exporter(t, nil)
	x.keeper.stop()
	seed := rand.Uint64()
	h := &history{Rand: rand.New(rand.NewPCG(seed, 1))}
	var all []*export.Batch
	for i := range 18 {
		when := fmt.Sprintf("seed %d, batch %d", seed, i)
		b := h.next()
		all = append(all, b)
		export1(t, x, b)
		switch h.IntN(6) {
		case 0: // a restart from an older checkpoint
			again := *pick(h, all...)
			again.ID = fmt.Sprint("again-", i)
			export1(t, x, &again)
		case 1:
			if err := x.conn.Exec(t.Context(), "OPTIMIZE TABLE "+x.schema.name(pick(h, "messages", "spans", "messages_rollup", "tool_calls_rollup", "usage_facts", "span_facts_by_day", "unknown_facts"))+" FINAL"); err != nil {
				t.Fatal(err)
			}
		case 2, 3:
			roll(t, rollerOf(x, pick(h, 0, time.Hour)))
		}
		if i%6 == 5 {
			sameAsRows(t, c, when, pick(h, "", " SETTINGS final = 1"))
		}
	}
	// The rows of the last millisecond before the clock of a pass may still come.
	time.Sleep(2 * time.Millisecond)
	roll(t, rollerOf(x, 0))
	sameAsRows(t, c, fmt.Sprintf("seed %d, computed", seed), "")
	for _, r := range everyComputed() {
		h := r.base()
		if got := count(t, c, "SELECT count() FROM ("+h.pending(x.schema)+")"); got != "0" {
			t.Errorf("%s: %s hours are not computed", h.table, got)
		}
	}
	if n := roll(t, rollerOf(x, 0)); n != 0 {
		t.Errorf("%d hours are computed again, without a new row", n)
	}
}

// TestHoursThatArriveAreRead: while an hour still gets rows it is not computed, because readers take its rows
// in any case; an idle store that got a row is left alone.
func TestHoursThatArriveAreRead(t *testing.T) {
	x, c := exporter(t, nil)
	x.keeper.stop()
	b := fullBatch("a", 30)
	b.Messages = append(b.Messages, new(unknownMessage("unknown", 0)))
	for i := range b.Messages {
		b.Messages[i].Time, b.Messages[i].Usage.Output = time.Now().UnixNano(), 1
	}
	for i := range b.Spans {
		b.Spans[i].Start, b.Spans[i].End = time.Now().UnixNano(), time.Now().UnixNano()
	}
	export1(t, x, b)
	time.Sleep(2 * time.Millisecond)
	for range 2 {
		if n := roll(t, rollerOf(x, time.Hour)); n != 0 {
			t.Errorf("%d hours are computed although their rows still arrive", n)
		}
	}
	if got := count(t, c, "SELECT count() FROM "+x.schema.name("rollup_hours")+" WHERE name != '"+collectedFacts+"'"); got != "0" {
		t.Errorf("%s rows are written about hours that are not computed", got)
	}
	sameAsRows(t, c, "not computed", "")
	if n := roll(t, rollerOf(x, 0)); n == 0 {
		t.Error("no hour is computed")
	}
	sameAsRows(t, c, "computed", "")
}

// TestRollupsOutliveTheRows: when the rows of an hour are past their retention, their counts stay,
// also after a late row.
func TestRollupsOutliveTheRows(t *testing.T) {
	x, c := exporter(t, func(s *Settings) { s.TTL = TTL{Messages: testDay, Spans: testDay, Rollups: 700 * testDay} })
	x.keeper.stop()
	export1(t, x, fullBatch("a", 30))
	time.Sleep(2 * time.Millisecond)
	roll(t, rollerOf(x, 0))
	const calls = "SELECT sum(calls), sum(errors) FROM v_tool_calls_1h"
	want := count(t, c, calls)
	for _, sql := range []string{
		"TRUNCATE TABLE " + x.schema.name("spans"),
		"INSERT INTO " + x.schema.name("rollup_hours") + " SELECT name, hour, until, at + INTERVAL 1 MILLISECOND, oldest - INTERVAL 2 DAY FROM " + x.schema.name("rollup_hours"),
	} {
		if err := x.conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	late := sampleSpan()
	late.ID = msg.SpanID{99}
	export1(t, x, &export.Batch{ID: "late", Spans: exporttest.Records(late)})
	time.Sleep(2 * time.Millisecond)
	roll(t, rollerOf(x, 0))
	if got := count(t, c, calls); got != want {
		t.Errorf("calls and errors %s, had %s", got, want)
	}
}

// TestHoursThatFollow: an hour is computed with so many that follow it, each once.
func TestHoursThatFollow(t *testing.T) {
	at := func(hours ...int) (out []touchedHour) {
		for _, h := range hours {
			out = append(out, touchedHour{hour: time.Unix(0, 0).Add(time.Duration(h) * time.Hour)})
		}
		return out
	}
	for reach, want := range [][]touchedHour{at(9, 8, 3), at(9, 8, 3, 10, 4), at(9, 8, 3, 10, 11, 4, 5)} {
		if got := following(at(9, 8, 3), reach); !slices.Equal(got, want) {
			t.Errorf("reach %d: %v, want %v", reach, got, want)
		}
	}
}
