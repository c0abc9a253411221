package clickhouse

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// fullBatch has rows for every table: more messages than one block holds, and
// calls of which each third fails.
func fullBatch(id string, calls int) *export.Batch {
	b := &export.Batch{ID: id, Messages: exporttest.Records(sampleMessages(2000)...)}
	for i := range calls {
		s := sampleSpan()
		s.ID, s.TraceID = msg.NewSpanID("", "", "", s.Kind, fmt.Sprint(i)), msg.NewTraceID("", "", "", fmt.Sprint(i/10))
		s.Session = fmt.Sprint("s", i/100)
		s.Start += int64(i) * int64(time.Minute)
		s.End = s.Start + int64(i)*int64(100*time.Millisecond)
		s.Outcome = []msg.Outcome{msg.OutcomeOK, msg.OutcomeError, msg.OutcomeCancelled}[i%3]
		if i%10 == 0 {
			s.State = msg.SpanOpen
		}
		b.Spans = append(b.Spans, new(s))
		b.DeadLetters = append(b.DeadLetters, msg.DeadLetter{ID: msg.NewDeadLetterID("", "", "", "", fmt.Sprint(i)), Tenant: "default", Ver: 1, Seen: s.Start})
		b.Ledger = append(b.Ledger, msg.Ledger{Tenant: "default", Source: "x", Stream: fmt.Sprint(i), Ver: 1, Seen: s.Start})
		b.Streams = append(b.Streams, msg.Stream{Tenant: "default", Source: "x", Stream: fmt.Sprint(i), Pace: msg.Pace{Start: s.Start, Total: int64(i)}, Ver: 1})
	}
	return b
}

// visible is a reader's view of the tables, in one line per question.
func visible(t *testing.T, c *Conn) string {
	t.Helper()
	var b strings.Builder
	for _, sql := range []string{
		"SELECT count(), uniqExact(message_id), sum(cityHash64(* EXCEPT ingest_ts)) FROM messages FINAL",
		"SELECT count(), uniqExact(SpanId), sum(cityHash64(* EXCEPT (IngestTs, FirstToken))) FROM otel_traces FINAL",
		"SELECT count(), sum(cityHash64(* EXCEPT ingest_ts)) FROM tool_calls FINAL",
		"SELECT count(), sum(cityHash64(* EXCEPT ingest_ts)) FROM delegations FINAL",
		"SELECT count(), sum(cityHash64(* EXCEPT (ingest_ts, age_ms, silent_ms))) FROM open_spans FINAL",
		"SELECT count(), sum(cityHash64(*)) FROM dead_letters FINAL",
		"SELECT count(), sum(cityHash64(*)) FROM source_ledger FINAL",
		"SELECT count(), sum(cityHash64(* EXCEPT ingest_ts)) FROM streams FINAL",
		"SELECT TraceId, min(Start) AS a, max(End) AS b FROM otel_traces_trace_id_ts GROUP BY TraceId ORDER BY TraceId LIMIT 3",
		"SELECT tool_name, sum(calls), sum(errors), sum(over_1s), sum(over_10s), sum(over_1m) FROM v_tool_calls_1h GROUP BY tool_name",
		"SELECT count(), sum(messages), sum(tool_calls), sum(errors) FROM v_sessions",
		"SELECT count(), sum(duration_ms) FROM v_tool_calls",
		"SELECT count() FROM v_open_spans",
		"SELECT count(), sum(duration_ms) FROM v_streams",
	} {
		fmt.Fprintf(&b, "%s\n  %s\n", sql, count(t, c, sql))
	}
	return b.String()
}

var stored = []string{"messages", "spans", "dead_letters", "source_ledger", "streams"}

// TestABatchIsStoredOnce is a retry: the answer to an insert was lost, and the
// same batch is sent again. No table gets a row twice, FINAL or not.
func TestABatchIsStoredOnce(t *testing.T) {
	x, c := exporter(t, nil)
	b := fullBatch("batch-1", 300)
	export1(t, x, b)
	once := visible(t, c)
	rows := make(map[string]string)
	for _, table := range stored {
		if rows[table] = count(t, c, "SELECT count() FROM "+table); rows[table] == "0" {
			t.Errorf("nothing in %s", table)
		}
	}
	for range 3 {
		export1(t, x, b)
	}
	for _, table := range stored {
		if again := count(t, c, "SELECT count() FROM "+table); again != rows[table] {
			t.Errorf("%s has %s rows after retries, had %s", table, again, rows[table])
		}
	}
	if got := visible(t, c); got != once {
		t.Errorf("after retries:\n%s\nbefore:\n%s", got, once)
	}
}

// TestAReplayChangesNothing is a restart from an older checkpoint: the same rows
// come in other batches.
func TestAReplayChangesNothing(t *testing.T) {
	x, c := exporter(t, nil)
	whole := fullBatch("batch-1", 300)
	export1(t, x, whole)
	once := visible(t, c)
	if !strings.Contains(once, "Task\t270\t90\t") { // 300 calls, of which 30 run; a third of the others failed
		t.Errorf("rollup:\n%s", once)
	}
	for i := range 3 {
		part := *whole
		part.ID = fmt.Sprint("replay-", i)
		from, to := i*500, i*500+1000
		part.Messages = part.Messages[from:to]
		part.Spans = part.Spans[i*100 : i*100+100]
		export1(t, x, &part)
	}
	again := *whole
	again.ID = "replay-whole"
	export1(t, x, &again)
	if got := visible(t, c); got != once {
		t.Errorf("after a replay:\n%s\nbefore:\n%s", got, once)
	}
	if raw := count(t, c, "SELECT count() FROM messages"); raw != "7000" {
		t.Errorf("%s rows are stored: the replay was dropped by its token", raw)
	}
}

// TestTheNewestVersionStands stores versions out of order, and tombstones for some.
func TestTheNewestVersionStands(t *testing.T) {
	x, c := exporter(t, nil)
	base := sampleMessages(1)[0]
	version := func(ver uint64, at time.Duration, text string) msg.Message {
		m := base
		m.Host.Ver, m.Time, m.Content = ver, base.Time+int64(at), msg.Plain(text)
		return m
	}
	for _, m := range []msg.Message{version(5, 0, "five"), version(7, 0, "seven"), version(6, 0, "six")} {
		export1(t, x, &export.Batch{ID: m.Content.String(), Messages: exporttest.Records(m)})
	}
	stand := func() string {
		return count(t, c, "SELECT arrayStringConcat(arraySort(groupArray(content)), ' ') FROM messages FINAL")
	}
	if got := stand(); got != "seven" {
		t.Fatalf("%q stands", got)
	}
	// It is completed at another time: in the same hour, where it is one row with
	// the version that it removes, and in another one, where it is not.
	for _, move := range []time.Duration{time.Minute, 26 * time.Hour} {
		final := version(9+uint64(move), move, "moved")
		back := version(final.Host.Ver, 0, "")
		back.Host.Tombstone = true
		for i, order := range [][]msg.Message{{final, back}, {back, final}} {
			export1(t, x, &export.Batch{ID: fmt.Sprint(move, i), Messages: exporttest.Records(order...)})
			if got := stand(); got != "moved" {
				t.Errorf("moved by %s: %q stands", move, got)
			}
		}
		base.Time += int64(move)
	}
}

// TestASpanThatMovesStandsOnce is a late link: the span's row under the old trace is
// removed, and the tables whose key has no trace have it once.
func TestASpanThatMovesStandsOnce(t *testing.T) {
	x, c := exporter(t, nil)
	alone := sampleSpan()
	export1(t, x, &export.Batch{ID: "alone", Spans: exporttest.Records(alone)})
	linked := alone
	linked.TraceID, linked.Ver = msg.TraceID{42}, alone.Ver+1<<53
	back := linked
	back.TraceID, back.Tombstone = alone.TraceID, true
	for i, order := range [][]msg.Span{{linked, back}, {back, linked}} {
		export1(t, x, &export.Batch{ID: fmt.Sprint(i), Spans: exporttest.Records(order...)})
		for _, table := range []string{"otel_traces FINAL", "tool_calls FINAL", "delegations FINAL"} {
			name := map[bool]string{true: "TraceId", false: "trace_id"}[strings.HasPrefix(table, "otel")]
			if got := count(t, c, "SELECT groupArray("+name+") FROM "+table); got != "['"+linked.TraceID.String()+"']" {
				t.Errorf("%s: under %s", table, got)
			}
		}
	}
	renamed := linked
	renamed.Agent.Name, renamed.Source, renamed.Tool.Name, renamed.Ver = "lead", "another", "Agent", linked.Ver+1
	export1(t, x, &export.Batch{ID: "renamed", Spans: exporttest.Records(renamed)})
	if got := count(t, c, "SELECT groupArray(ServiceName || ' ' || SpanName || ' ' || AgentName) FROM otel_traces FINAL"); got != "['another execute_tool Agent lead']" {
		t.Errorf("a later version under other names: %s", got)
	}
}

// TestASpanThatBeginsElsewhereStandsOnce is a span that was shown with another start: in the same second, in the same hour, and on another day.
func TestASpanThatBeginsElsewhereStandsOnce(t *testing.T) {
	for _, move := range []time.Duration{time.Millisecond, time.Minute, 26 * time.Hour} {
		t.Run(move.String(), func(t *testing.T) {
			x, c := exporter(t, nil)
			early := sampleSpan()
			export1(t, x, &export.Batch{ID: "early", Spans: exporttest.Records(early)})
			late := early
			late.Start, late.Ver = early.Start+int64(move), early.Ver+1
			back := late
			back.Start, back.Tombstone = early.Start, true
			export1(t, x, &export.Batch{ID: "late", Spans: exporttest.Records(back, late)})
			begins(t, c, late.Start)
		})
	}
}

func begins(t *testing.T, c *Conn, start int64) {
	t.Helper()
	for table, ts := range map[string]string{"otel_traces": "Timestamp", "tool_calls": "ts", "delegations": "ts"} {
		if got := count(t, c, "SELECT groupArray(toUnixTimestamp64Nano("+ts+")) FROM "+table+" FINAL"); got != fmt.Sprint("[", start, "]") {
			t.Errorf("%s: it begins at %s, want %d", table, got, start)
		}
	}
}

// TestTheNewestOfTwoTimesStands is a second decoding, by a newer decoder that dates
// things differently.
func TestTheNewestOfTwoTimesStands(t *testing.T) {
	x, c := exporter(t, nil)
	for i, move := range []time.Duration{0, 3 * time.Hour, 26 * time.Hour, time.Hour} {
		s, m := sampleSpan(), sampleMessages(1)[0]
		s.Start, s.Ver = s.Start+int64(move), s.Ver+uint64(i)<<56
		m.Time, m.Host.Ver, m.Host.Format = s.Start, s.Ver, s.Format
		if i == 2 {
			s.TraceID[0]++
		}
		other := s
		other.ID, other.Start = msg.SpanID{99}, sampleSpan().Start
		export1(t, x, &export.Batch{ID: fmt.Sprint(i), Spans: exporttest.Records(s, other), Messages: exporttest.Records(m)})
		for range 2 {
			if err := x.Supersede(t.Context(), []string{s.Format}); err != nil {
				t.Fatal(err)
			}
		}
		want := fmt.Sprint("[", s.Start, "]")
		for sql, id := range map[string]string{
			"SELECT groupArray(toUnixTimestamp64Nano(Timestamp)) FROM otel_traces FINAL WHERE SpanId = ": s.ID.String(),
			"SELECT groupArray(toUnixTimestamp64Nano(ts)) FROM tool_calls FINAL WHERE span_id = ":        s.ID.String(),
			"SELECT groupArray(toUnixTimestamp64Nano(ts)) FROM delegations FINAL WHERE span_id = ":       s.ID.String(),
			"SELECT groupArray(toUnixTimestamp64Nano(ts)) FROM messages FINAL WHERE message_id = ":       m.Host.ID.String(),
		} {
			if got := count(t, c, sql+"'"+id+"'"); got != want {
				t.Errorf("%d: %s: %s, want %s", i, sql, got, want)
			}
		}
		if got := count(t, c, "SELECT uniqExact(SpanId) FROM otel_traces FINAL"); got != "2" {
			t.Errorf("%d: %s spans", i, got)
		}
	}
}

func TestOpenSpansAppearAndVanish(t *testing.T) {
	x, c := exporter(t, nil)
	at := func(state msg.SpanState, seen time.Duration, shown bool) msg.Span {
		s := sampleSpan()
		s.State, s.Shown, s.LastSeen = state, shown, s.Start+int64(seen)
		s.Ver = uint64(state)<<54 | uint64(s.LastSeen/1000)&(1<<51-1)
		if state == msg.SpanOpen {
			s.End = 0
		}
		return s
	}
	for i, step := range []struct {
		what string
		span msg.Span
		open string
	}{
		{"it begins", at(msg.SpanOpen, time.Second, false), "1"},
		{"it goes on", at(msg.SpanOpen, 2*time.Second, false), "1"},
		{"it falls silent", at(msg.SpanIdle, 2*time.Second, true), "0"},
		{"it goes on after all", at(msg.SpanOpen, 3*time.Second, false), "1"},
		{"it ends, by a clock that ran backwards", at(msg.SpanClosed, time.Second, true), "0"},
		{"an old word comes again", at(msg.SpanOpen, 3*time.Second, false), "0"},
	} {
		export1(t, x, &export.Batch{ID: fmt.Sprint(i), Spans: exporttest.Records(step.span)})
		if got := count(t, c, "SELECT count() FROM v_open_spans"); got != step.open {
			t.Errorf("%s: %s open", step.what, got)
		}
	}
	other := at(msg.SpanClosed, time.Second, false)
	other.ID = msg.SpanID{99}
	export1(t, x, &export.Batch{ID: "other", Spans: exporttest.Records(other)})
	if got := count(t, c, "SELECT count() FROM open_spans WHERE span_id = '"+other.ID.String()+"'"); got != "0" {
		t.Error("a span that was never shown leaves a row")
	}
	running := at(msg.SpanOpen, time.Second, false)
	running.ID, running.Start = msg.SpanID{98}, time.Now().Add(-time.Minute).UnixNano()
	running.LastSeen = running.Start + int64(20*time.Second)
	export1(t, x, &export.Batch{ID: "running", Spans: exporttest.Records(running)})
	if got := count(t, c, "SELECT age_ms BETWEEN 60000 AND 600000, silent_ms BETWEEN 40000 AND 580000, name FROM v_open_spans"); got != "true\ttrue\texecute_tool Task" && got != "1\t1\texecute_tool Task" {
		t.Errorf("age: %s", got)
	}
}

// TestABackfillOfYears touches more partitions than one insert may.
func TestABackfillOfYears(t *testing.T) {
	x, c := exporter(t, nil)
	b := &export.Batch{ID: "years"}
	start := time.Date(2010, 1, 1, 12, 0, 0, 0, time.UTC)
	for i := range 95 { // months of messages, days of spans, twice round
		for turn := range 2 {
			m := sampleMessages(1)[0]
			m.Time = start.AddDate(0, i, turn).UnixNano()
			m.Host.ID = msg.NewID("", "", "", fmt.Sprint(i, turn))
			b.Messages = append(b.Messages, new(m))
			s := sampleSpan()
			s.Start = start.AddDate(0, 0, i).UnixNano()
			s.ID = msg.NewSpanID("", "", "", s.Kind, fmt.Sprint(i, turn))
			b.Spans = append(b.Spans, new(s))
		}
	}
	for range 2 {
		export1(t, x, b)
	}
	for sql, want := range map[string]string{
		"SELECT count(), uniqExact(toYYYYMM(ts)) FROM messages":         "190\t95",
		"SELECT count(), uniqExact(toDate(Timestamp)) FROM otel_traces": "190\t95",
		"SELECT count() FROM tool_calls":                                "190",
	} {
		if got := count(t, c, sql); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}

// TestInsertsAreBounded cuts a batch by bytes, retries it, and has a message that
// is larger than the limit and than any block.
func TestInsertsAreBounded(t *testing.T) {
	x, c := exporter(t, func(s *Settings) { s.MaxInsertBytes = 1 << 20 })
	before := lastPart(t, c)
	b := &export.Batch{ID: "large", Messages: exporttest.Records(sampleMessages(3000)...)}
	b.Messages[1500].Content = msg.Quoted([]byte(strings.Repeat(`wave\n`, 4<<20)))
	for range 2 {
		export1(t, x, b)
	}
	if got := count(t, c, "SELECT count(), uniqExact(message_id), max(content_bytes), max(length(content)) FROM messages"); got != "3000\t3000\t20971520\t20971520" {
		t.Errorf("stored: %s", got)
	}
	parts := count(t, c, "SELECT uniqExact(name) > 3 FROM system.parts WHERE database = currentDatabase() AND table = 'messages' AND min_block_number > "+before)
	if parts != "1" {
		t.Error("it went in one insert")
	}
}

// lastPart is the number of the last block that was stored in messages: parts of an earlier test may be there for minutes.
func lastPart(t *testing.T, c *Conn) string {
	t.Helper()
	return count(t, c, "SELECT max(max_block_number) FROM system.parts WHERE database = currentDatabase() AND table = 'messages'")
}
