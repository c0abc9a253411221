package pipeline

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/msg"
)

// stopped is a pipeline that does not run, and a source of it.
func stopped(t *testing.T, s Settings) (*Pipeline, *Feed) {
	t.Helper()
	p := New(s, nothingKnown{}, discardSink{})
	p.formats["notes"] = p.newFormat("notes", decoder.Info{Revision: 4})
	feed, err := p.AddFeed("source", "tenant", "notes", "", false)
	if err != nil {
		t.Fatal(err)
	}
	return p, feed
}

// posted has the core make the calls that were posted before it runs.
func (p *Pipeline) posted() {
	for _, f := range p.inbox.early.take() {
		f(p.core)
	}
}

// metric is the sum of a metric over its labels.
func metric(t *testing.T, m *telemetry.Metrics, name string) (sum float64) {
	t.Helper()
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, x := range f.GetMetric() {
			if f.GetName() == name {
				sum += x.GetCounter().GetValue() + x.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// TestVerdictsThatHold: each verdict is a row; of one that is reported again, or is over twice, the metrics have one.
func TestVerdictsThatHold(t *testing.T) {
	p, _ := stopped(t, Settings{Metrics: telemetry.New(), Erased: func(tenant, session string) bool { return tenant == "tenant" && session == "erased" }})
	for i, x := range []struct {
		verdict    msg.Verdict
		made, hold float64
	}{
		{msg.Verdict{Span: msg.SpanID{1}, Name: "tool_running"}, 1, 1},
		{msg.Verdict{Span: msg.SpanID{1}, Name: "tool_running", Ver: 2}, 1, 1},
		{msg.Verdict{Span: msg.SpanID{2}, Name: "tool_running"}, 2, 2},
		{msg.Verdict{Span: msg.SpanID{2}, Name: "model_silent"}, 3, 3},
		{msg.Verdict{Span: msg.SpanID{1}, Name: "tool_running", Resolved: 9}, 3, 2},
		{msg.Verdict{Span: msg.SpanID{1}, Name: "tool_running", Resolved: 9}, 3, 2},
		{msg.Verdict{Span: msg.SpanID{1}, Name: "tool_running"}, 4, 3},
	} {
		p.core.Verdict(x.verdict)
		if made, hold := metric(t, p.metrics, "earshot_verdicts_made_total"), metric(t, p.metrics, "earshot_verdicts"); made != x.made || hold != x.hold || len(p.core.commits.batch.rows.Verdicts) != i+1 {
			t.Errorf("verdict %d: %v made, %v hold, %d rows", i, made, hold, len(p.core.commits.batch.rows.Verdicts))
		}
	}
	p.core.Message(msg.Message{Key: "k"})
	p.core.Finding("notes", "reused_id")
	if list := p.core.commits.batch.rows.Messages; len(list) != 1 || list[0].Key != "k" || metric(t, p.metrics, "earshot_findings_total") != 1 {
		t.Errorf("%d messages of the assembler", len(list))
	}
	rows := p.core.commits.batch.rows.Len()
	p.core.Verdict(msg.Verdict{Tenant: "tenant", Session: "erased", Span: msg.SpanID{3}, Name: "tool_running"})
	p.core.Span(msg.Span{Tenant: "tenant", Session: "erased"})
	p.core.commits.addStream(msg.Stream{Tenant: "tenant", Session: "erased"})
	if got := p.core.commits.batch.rows.Len(); got != rows || metric(t, p.metrics, "earshot_verdicts") != 3 {
		t.Errorf("%d rows of an erased session", got-rows)
	}
}

// TestEndedSpansAreCounted: a span counts when it has ended, once, and by its outcome; an open one, or one that is taken back, does not.
func TestEndedSpansAreCounted(t *testing.T) {
	p, _ := stopped(t, Settings{Metrics: telemetry.New()})
	for _, s := range []msg.Span{{State: msg.SpanOpen}, {State: msg.SpanClosed}, {State: msg.SpanClosed}, {State: msg.SpanIdle}, {State: msg.SpanIdle}, {State: msg.SpanClosed, Tombstone: true}, {State: msg.SpanClosed, Amends: true}} {
		p.core.Span(s)
	}
	if n := metric(t, p.metrics, "earshot_spans_total"); n != 4 || p.Progress().Spans != 4 || len(p.core.commits.batch.rows.Spans) != 7 {
		t.Errorf("%v are counted, progress %d, %d rows", n, p.Progress().Spans, len(p.core.commits.batch.rows.Spans))
	}
}

// TestTroubleOfASource: an input that a source cannot read is one dead letter for each input and reason, the same after a restart.
func TestTroubleOfASource(t *testing.T) {
	for range 2 {
		p, feed := stopped(t, Settings{Metrics: telemetry.New()})
		feed.Trouble("/o", "permission", "denied")
		feed.Trouble("/o", "permission", "still denied")
		feed.Trouble("/o", "too_long", "")
		feed.Trouble("/other", "permission", "denied")
		p.posted()
		letter := func(origin, reason, detail string) msg.DeadLetter {
			return msg.DeadLetter{ID: msg.NewDeadLetterID("tenant", "source", "read", origin, reason), Tenant: "tenant", Source: "source", Format: "notes",
				Stage: "read", Reason: reason, Detail: detail, Origin: origin, Ver: 1}
		}
		got := p.core.commits.batch.rows.DeadLetters
		for i := range got {
			if age := time.Since(time.Unix(0, got[i].Seen)); age < 0 || age > time.Minute {
				t.Errorf("seen %v ago", age)
			}
			got[i].Seen = 0
		}
		if d := cmp.Diff([]msg.DeadLetter{letter("/o", "permission", "denied"), letter("/o", "too_long", ""), letter("/other", "permission", "denied")}, got); d != "" {
			t.Error(d)
		}
		if n := metric(t, p.metrics, "earshot_problems_total"); n != 3 {
			t.Errorf("%v problems are counted", n)
		}
	}
}

// TestForgottenStreams: a source has the checkpoint forget streams that are gone, and none that is open.
func TestForgottenStreams(t *testing.T) {
	p, feed := stopped(t, Settings{})
	s := &stream{name: nameOf("source", "open"), feed: feed}
	if err := p.core.open(s, checkpoint.Stream{Source: "source", Key: "open"}); err != nil {
		t.Fatal(err)
	}
	if err := p.core.open(&stream{name: s.name, feed: feed}, checkpoint.Stream{Source: "source", Key: "open"}); err == nil {
		t.Error("a stream was opened twice")
	}
	feed.Forget("gone", "open", "gone too")
	p.posted()
	want := []checkpoint.Stream{{Source: "source", Key: "gone"}, {Source: "source", Key: "gone too"}}
	if d := cmp.Diff(want, p.core.commits.forgotten); d != "" {
		t.Error(d)
	}
}

// TestRecordsOfOthers: dead letters and alerts of other components are in the next batch, once.
func TestRecordsOfOthers(t *testing.T) {
	p, _ := stopped(t, Settings{Metrics: telemetry.New()})
	p.AddDeadLetter(msg.DeadLetter{Source: "s", Stage: "store", Reason: "refused"})
	p.AddAlerts(msg.Verdict{Name: "a"}, msg.Verdict{Name: "b"})
	for range 2 {
		p.core.collect()
		if rows := &p.core.commits.batch.rows; len(rows.DeadLetters) != 1 || len(rows.Verdicts) != 2 || metric(t, p.metrics, "earshot_problems_total") != 1 {
			t.Errorf("%d dead letters, %d alerts", len(rows.DeadLetters), len(rows.Verdicts))
		}
	}
}

// TestSettled: a source is settled when the core has everything that it delivered, but for streams whose decoder cannot be opened.
func TestSettled(t *testing.T) {
	p, feed := stopped(t, Settings{})
	_, other := stopped(t, Settings{})
	s := &stream{name: 1, feed: feed}
	if err := p.core.open(s, checkpoint.Stream{Source: "source", Key: "k"}); err != nil {
		t.Fatal(err)
	}
	a := p.core.accounts.of[s]
	for i, x := range []struct {
		next, pos int64
		stalled   bool
		want      bool
	}{{0, 0, false, true}, {9, 5, false, false}, {9, 5, true, true}, {9, 9, false, true}, {3, 9, false, true}} {
		s.cursor.next, a.record.Pos, a.stalled = x.next, x.pos, x.stalled
		if got := p.core.accounts.settled(feed); got != x.want || !p.core.accounts.settled(other) {
			t.Errorf("%d: %t", i, got)
		}
	}
}

// TestFormatIsClosed: a format's process can end when none of its decoders is open.
func TestFormatIsClosed(t *testing.T) {
	p, feed := stopped(t, Settings{})
	other := p.newFormat("other", decoder.Info{})
	s := &stream{name: 1, feed: feed}
	if err := p.core.open(s, checkpoint.Stream{Source: "source", Key: "k"}); err != nil {
		t.Fatal(err)
	}
	for _, open := range []bool{false, true} {
		p.core.accounts.of[s].decoderClosed = !open
		if got := p.core.accounts.closed(feed.format); got == open || !p.core.accounts.closed(other) {
			t.Errorf("open %t: closed %t", open, got)
		}
	}
}

// TestBytesOfALiveStream: only a stream that is open and recorded live shows when its last bytes arrived.
func TestBytesOfALiveStream(t *testing.T) {
	p, feed := stopped(t, Settings{})
	s := &stream{name: 1, feed: feed}
	if err := p.core.open(s, checkpoint.Stream{Source: "source", Key: "k"}); err != nil {
		t.Fatal(err)
	}
	p.core.accounts.of[s].record.Read = 7
	for _, live := range []bool{false, true} {
		feed.journalled = live
		if got := p.core.accounts.lastBytes(1); (got == 7) != live || p.core.accounts.lastBytes(2) != 0 {
			t.Errorf("live %t: %d", live, got)
		}
	}
}

// TestDetachedAccountsAreNotWritten: of a source that was taken away nothing is written any more, so that nothing is in the way of the next one's accounts.
func TestDetachedAccountsAreNotWritten(t *testing.T) {
	p, feed := stopped(t, Settings{Metrics: telemetry.New()})
	other := &Feed{source: "other", format: feed.format, counters: feed.counters}
	streams := []*stream{{name: 1, feed: feed}, {name: 2, feed: other}}
	for _, s := range streams {
		if err := p.core.open(s, checkpoint.Stream{Source: s.feed.source, Key: "k"}); err != nil {
			t.Fatal(err)
		}
		p.core.commits.ledgers.pending[s.name] = p.core.accounts.of[s]
	}
	p.core.detach(feed)
	k, x := &p.core.commits, &p.core.accounts
	if len(k.changed) != 1 || k.changed[2] == nil || len(k.ledgers.pending) != 1 || k.ledgers.pending[2] == nil || len(x.of) != 1 || x.named[2] == nil || len(x.awake) != 1 {
		t.Errorf("%d changed, %d pending, %d open", len(k.changed), len(k.ledgers.pending), len(x.of))
	}
	if !streams[0].cursor.closed || streams[1].cursor.closed || metric(t, p.metrics, "earshot_streams") != 1 {
		t.Errorf("closed: %t and %t", streams[0].cursor.closed, streams[1].cursor.closed)
	}
}

// TestResponseMetrics: a part that a response did not have is in no metric.
func TestResponseMetrics(t *testing.T) {
	count := func(row msg.Stream) map[string]float64 {
		p, _ := stopped(t, Settings{Metrics: telemetry.New()})
		p.core.accounting.observe(&row)
		families, err := p.metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		out := make(map[string]float64)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if n := m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum(); n != 0 && strings.Contains(f.GetName(), "response") {
					out[f.GetName()] += n
				}
			}
		}
		return out
	}
	row := msg.Stream{Source: "s", Format: "notes"}
	row.Pace.FirstByte, row.Pace.FirstEvent, row.Pace.GapP95, row.Pace.LongestStall = 1e9, 2e9, 3e9, 4e9
	row.Pace.Chunks = 1
	if d := cmp.Diff(map[string]float64{"earshot_responses_total": 1, "earshot_response_first_byte_seconds": 1}, count(row)); d != "" {
		t.Error(d)
	}
	row.Pace.Events, row.Pace.Chunks, row.Pace.Buffered = 1, 2, true
	if d := cmp.Diff(map[string]float64{
		"earshot_responses_total": 1, "earshot_responses_buffered_total": 1, "earshot_response_first_byte_seconds": 1,
		"earshot_response_first_event_seconds": 2, "earshot_response_gap_seconds": 3, "earshot_response_stall_seconds": 4,
	}, count(row)); d != "" {
		t.Error(d)
	}
}

// TestRowsOfAFileThatIsGoneDoNotWait: they are sent with the interval of the settings although there is no reader, because a restart could not read them again.
func TestRowsOfAFileThatIsGoneDoNotWait(t *testing.T) {
	p, feed := stopped(t, Settings{FlushInterval: time.Second})
	s := &stream{name: 1, feed: feed}
	if err := p.core.open(s, checkpoint.Stream{Source: "source", Key: "k", Origin: "/o"}); err != nil {
		t.Fatal(err)
	}
	k := &p.core.commits
	k.interval = time.Hour
	k.addMessage(&msg.Message{})
	for _, gone := range []bool{false, true} {
		s.Save(source.ID{Key: "k", Origin: "/p", State: []byte("state"), Gone: gone})
		p.posted()
		if got := k.due(k.batch.began.Add(2 * time.Second)); got != gone {
			t.Errorf("gone %t: due %t", gone, got)
		}
		if r := &p.core.accounts.of[s].record; r.Origin != "/p" || string(r.State) != "state" {
			t.Errorf("saved as %+v", r)
		}
		p.inbox.early.started = false // for the next
	}
}

// TestLocalIDs: the assembler knows of which formats the ids are local.
func TestLocalIDs(t *testing.T) {
	p, _ := stopped(t, Settings{})
	p.formats["local"] = p.newFormat("local", decoder.Info{LocalIDs: true})
	for name, want := range map[string]bool{"local": true, "notes": false, "unknown": false} {
		if got := p.localIDs(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
