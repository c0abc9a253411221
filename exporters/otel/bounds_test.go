package otel

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

// responses are chats of two sources with an answer of a random length each, and the messages.
func responses(r *rand.Rand, n, most int) (spans []*msg.Span, messages []*msg.Message) {
	for i := range n {
		s := &msg.Span{
			Tenant: "default", Source: []string{"quay", "harbour"}[r.IntN(2)], Format: "legion", Session: "s", Run: string(rune('a' + i)), Kind: msg.SpanChat, State: msg.SpanClosed,
			TraceID: msg.TraceID{1}, ID: msg.SpanID{byte(i + 1)}, Start: 1, End: 2,
		}
		m := &msg.Message{Session: s.Session, Run: s.Run, Kind: msg.Assistant, Content: msg.Plain(strings.Repeat("x", r.IntN(most)))}
		if r.IntN(2) == 0 { // the values of it take more than its text
			m.Kind, m.Content, m.Tool.Arguments = msg.ToolCall, msg.Text{}, msg.Plain("["+strings.Repeat("1,", r.IntN(most/4))+"1]")
		}
		m.Host = msg.Host{Tenant: s.Tenant, Format: s.Format, ID: msg.ID{byte(i + 1)}, SpanID: s.ID, Chat: s.ID}
		spans, messages = append(spans, s), append(messages, m)
	}
	return spans, messages
}

// TestRequestsAreFull: no request is over the limit, and none ends before the next span or log record would have been. A record that is too large has its
// messages as text.
func TestRequestsAreFull(t *testing.T) {
	const most = 3 << 10
	x := exporter(t, &receiver{}, ProtocolHTTP, func(s *Settings) {
		withContent(s)
		s.MaxBytes, s.Resource = most, map[string]string{"of": strings.Repeat("harbour ", 50)}
	})
	r := rand.New(rand.NewPCG(1, 3<<10))
	for range 50 {
		spans, messages := responses(r, 30, []int{100, 1000, 4000}[r.IntN(3)])
		x.cache = contentCache{}
		x.cache.record(messages)
		var ids []string
		var all []*tracepb.ResourceSpans
		var before int // bytes of the request before, and of what is reserved for its parts
		for q := range x.requests(spans) {
			size, n := proto.Size(&coltracepb.ExportTraceServiceRequest{ResourceSpans: q.resources}), 0
			for _, rs := range q.resources {
				for _, s := range rs.ScopeSpans[0].Spans {
					if n++; n == 1 && before > 0 && before+proto.Size(s)+proto.Size(rs.Resource)+200 <= most {
						t.Fatalf("a request ends at %d bytes, and the next span has %d", before, proto.Size(s))
					}
					ids = append(ids, string(s.SpanId))
				}
			}
			if size > most || n != q.spans {
				t.Fatalf("a request of %d bytes has %d spans, %d by its count", size, n, q.spans)
			}
			before = size + q.spans*overhead + len(q.resources)*3*overhead
			all = append(all, q.resources...)
		}
		recordsAreFull(t, x, all, most)
		if slices.Sort(ids); len(slices.Compact(ids)) != len(spans) {
			t.Fatalf("%d of %d spans are sent", len(slices.Compact(ids)), len(spans))
		}
	}
}

func recordsAreFull(t *testing.T, x *Exporter, resources []*tracepb.ResourceSpans, most int) {
	t.Helper()
	var want, got []string
	spans := make(map[string]*tracepb.Span)
	for _, rs := range resources {
		for _, s := range rs.ScopeSpans[0].Spans {
			want, spans[string(s.SpanId)] = append(want, string(s.SpanId)), s
		}
	}
	before := 0
	for _, q := range x.records(resources) {
		size, n := proto.Size(q), 0
		if size > most {
			t.Fatalf("a request of %d bytes", size)
		}
		for _, rl := range q.ResourceLogs {
			for _, l := range rl.ScopeLogs[0].LogRecords {
				if n++; n == 1 && before > 0 && before+proto.Size(l)+proto.Size(rl.Resource)+200 <= most {
					t.Fatalf("a request ends at %d bytes, and the next record has %d", before, proto.Size(l))
				}
				for _, a := range l.Attributes {
					if a.Key == semconv.KeyOutputMessages && a.Value.GetArrayValue() == nil && proto.Size(x.record(spans[string(l.SpanId)], true))+proto.Size(rl.Resource)+200 <= most {
						t.Fatalf("a record of %d bytes has its messages as text", proto.Size(l))
					}
				}
				got = append(got, string(l.SpanId))
			}
		}
		before = size + n*overhead + len(q.ResourceLogs)*4*overhead
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%d records of %d spans", len(got), len(want))
	}
}

// TestOnlyWhatIsTooLargeIsTrimmed: a span that fits is whole; of another the largest attribute goes, and what is left fits.
func TestOnlyWhatIsTooLargeIsTrimmed(t *testing.T) {
	x := exporter(t, &receiver{}, ProtocolHTTP, nil)
	whole := func() *tracepb.Span {
		s := &tracepb.Span{Name: "execute_tool tides", TraceId: make([]byte, 16), SpanId: make([]byte, 8)}
		for _, n := range []int{100, 700, 300} {
			s.Attributes = append(s.Attributes, pair(strings.Repeat("k", n/10), text(strings.Repeat("v", n))))
		}
		return s
	}
	size := proto.Size(whole())
	for limit := 250; limit < size+10; limit++ {
		s := whole()
		got := x.trim(s, limit)
		left := 3
		if limit < size {
			left = 2 + 1 // and the note
		}
		if got != proto.Size(s) || got > limit || len(s.Name) != 18 || limit >= 700 && len(s.Attributes) != left || limit >= 700 && s.DroppedAttributesCount > 0 != (limit < size) {
			t.Fatalf("of %d bytes, limit %d: %d bytes, by its count %d, %d attributes", size, limit, proto.Size(s), got, len(s.Attributes))
		}
	}
	x.settings.MaxBytes = 1
	tiny, sent := many(3, 1), 0
	for q := range x.requests(exporttest.Records(tiny...)) {
		if sent += q.spans; q.spans != 1 {
			t.Errorf("a request of %d spans", q.spans)
		}
	}
	if sent != 3 {
		t.Errorf("%d of 3 spans are sent", sent)
	}
	long := &tracepb.Span{Name: strings.Repeat("n", shortName)}
	if x.trim(long, 10); len(long.Name) != shortName || long.Attributes[0].Value.GetIntValue() != 0 {
		t.Errorf("a short name is cut: %v", long)
	}
}

// TestARefusedRequestOfLogs: records of a batch that were accepted are not sent again when a later request was refused.
func TestARefusedRequestOfLogs(t *testing.T) {
	r := &receiver{logs: &logReceiver{}}
	x := exporter(t, r, ProtocolHTTP, func(s *Settings) { withContent(s); s.MaxBytes = 3 << 10 })
	b := &export.Batch{ID: "b"}
	b.Spans, b.Messages = responses(rand.New(rand.NewPCG(1, 2)), 30, 1000)
	refusals := 0
	for refuse := 2; ; refuse += 3 {
		r.logs.mu.Lock()
		r.logs.refuse = refuse
		r.logs.mu.Unlock()
		if err := x.Export(t.Context(), b); err == nil {
			break
		}
		refusals++
	}
	var ids []string
	for _, l := range r.logs.records {
		ids = append(ids, string(l.SpanId))
	}
	spans := 0
	for _, q := range r.seen() {
		spans += len(q.ids())
	}
	if slices.Sort(ids); refusals < 2 || len(ids) != 30 || len(slices.Compact(ids)) != 30 || spans != 30 {
		t.Errorf("after %d refusals %d records of %d spans are there, %d spans are sent", refusals, len(ids), len(slices.Compact(ids)), spans)
	}
}

// TestRejectedLogRecords: the number of log records that a receiver rejected is in the log, in either protocol, and is no lost span.
func TestRejectedLogRecords(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		r := &receiver{logs: &logReceiver{partial: &collogspb.ExportLogsPartialSuccess{RejectedLogRecords: 1, ErrorMessage: "too old"}}}
		var log strings.Builder
		x := exporter(t, r, protocol, func(s *Settings) { withContent(s); s.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		if err := x.Export(t.Context(), turn()); err != nil {
			t.Fatal(err)
		}
		if x.Stats() != (Stats{Sent: 5}) || strings.Count(log.String(), `rejected=1 spans=0 message="too old"`) != 1 {
			t.Errorf("%+v, %s", x.Stats(), log.String())
		}
		r.logs.partial = &collogspb.ExportLogsPartialSuccess{}
		log.Reset()
		b := turn()
		b.ID = "next"
		if err := x.Export(t.Context(), b); err != nil || log.Len() > 0 {
			t.Error(err, log.String())
		}
	})
}
