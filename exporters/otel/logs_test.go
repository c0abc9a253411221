package otel

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

// logReceiver takes log records.
type logReceiver struct {
	collogspb.UnimplementedLogsServiceServer
	mu       sync.Mutex
	refuse   int // the request after so many; 0: none
	status   int // of a refusal over HTTP
	partial  *collogspb.ExportLogsPartialSuccess
	tokens   []string
	encoding string // of the last request over HTTP
	asked    int    // requests
	requests []*collogspb.ExportLogsServiceRequest
	records  []*logspb.LogRecord
}

func (r *logReceiver) take(q *collogspb.ExportLogsServiceRequest, token string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if r.refuse--; r.refuse == 0 {
		return false
	}
	r.tokens, r.requests = append(r.tokens, token), append(r.requests, q)
	for _, rl := range q.ResourceLogs {
		for _, sl := range rl.ScopeLogs {
			r.records = append(r.records, sl.LogRecords...)
		}
	}
	return true
}

func (r *logReceiver) serve(w http.ResponseWriter, q *http.Request) {
	var in io.Reader = q.Body
	if r.encoding = q.Header.Get("Content-Encoding"); r.encoding == "gzip" {
		z, err := gzip.NewReader(in)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		in = z
	}
	var req collogspb.ExportLogsServiceRequest
	if body, err := io.ReadAll(in); err != nil || q.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(body, &req) != nil {
		http.Error(w, "broken", http.StatusBadRequest)
		return
	}
	if !r.take(&req, q.Header.Get("X-Token")) {
		w.Header().Set("Retry-After", "7")
		http.Error(w, "busy", cmp.Or(r.status, http.StatusServiceUnavailable))
		return
	}
	if b, err := proto.Marshal(&collogspb.ExportLogsServiceResponse{PartialSuccess: r.partial}); err == nil {
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(b)
	}
}

// Export implements the gRPC service.
func (r *logReceiver) Export(ctx context.Context, q *collogspb.ExportLogsServiceRequest) (*collogspb.ExportLogsServiceResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if !r.take(q, strings.Join(md.Get("x-token"), ",")) {
		return nil, status.Error(codes.Unavailable, "busy")
	}
	return &collogspb.ExportLogsServiceResponse{PartialSuccess: r.partial}, nil
}

func withContent(s *Settings) { s.Content, s.Headers = true, map[string]string{"x-token": "t0"} }

// TestDetailsAreLogged sends the event of a response beside its span, once, over both
// protocols, and offers it again after a refusal.
func TestDetailsAreLogged(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		r := &receiver{logs: &logReceiver{refuse: 1}}
		x := exporter(t, r, protocol, withContent)
		b := turn()
		if err := x.Export(t.Context(), b); err == nil {
			t.Fatal("a refused log record is no error")
		}
		if err := x.Export(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if n := len(r.seen()); n != 1 {
			t.Errorf("spans were sent %d times", n)
		}
		if len(r.logs.records) != 1 || !slices.Equal(r.logs.tokens, []string{"t0"}) {
			t.Fatalf("%d records, tokens %q", len(r.logs.records), r.logs.tokens)
		}
		got, chat := r.logs.records[0], b.Spans[1]
		if got.EventName != "gen_ai.client.inference.operation.details" || !bytes.Equal(got.SpanId, chat.ID[:]) || !bytes.Equal(got.TraceId, chat.TraceID[:]) || got.TimeUnixNano != uint64(chat.End) {
			t.Errorf("record %v", got)
		}
		attrs := make(map[string]*commonpb.AnyValue)
		for _, a := range got.Attributes {
			attrs[a.Key] = a.Value
		}
		first := attrs[semconv.KeyOutputMessages].GetArrayValue().GetValues()
		if len(first) != 1 || first[0].GetKvlistValue() == nil {
			t.Errorf("output messages are no values: %v", attrs[semconv.KeyOutputMessages])
		}
		for _, key := range []string{semconv.KeyInputMessages, semconv.KeyInstructions, semconv.KeyToolDefinitions, semconv.KeyResponseModel, semconv.KeyFinishReasons} {
			if attrs[key] == nil {
				t.Errorf("no %s", key)
			}
		}
	})
}

// TestAReceiverWithoutLogs takes spans alone: it gets them, and is not asked again.
func TestAReceiverWithoutLogs(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		r := &receiver{}
		x := exporter(t, r, protocol, withContent)
		for _, id := range []string{"a", "b"} {
			b := turn()
			b.ID = id
			if err := x.Export(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		if len(r.seen()) != 2 || !x.logs.refused {
			t.Errorf("%d requests, refused %t", len(r.seen()), x.logs.refused)
		}
	})
}

// TestNoDetailsWithoutContent sends no event unless contents are asked for.
func TestNoDetailsWithoutContent(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		r := &receiver{logs: &logReceiver{}}
		x := exporter(t, r, protocol, nil)
		if err := x.Export(t.Context(), turn()); err != nil {
			t.Fatal(err)
		}
		if len(r.logs.records) != 0 {
			t.Errorf("%d records", len(r.logs.records))
		}
		for _, s := range r.seen()[0].spans.ResourceSpans[0].ScopeSpans[0].Spans {
			for _, a := range s.Attributes {
				switch a.Key {
				case semconv.KeyInputMessages, semconv.KeyOutputMessages, semconv.KeyInstructions, semconv.KeyToolDefinitions, semconv.KeyToolArguments, semconv.KeyToolResult:
					t.Errorf("%s has %s", s.Name, a.Key)
				}
			}
		}
	})
}

// TestAnswersToLogs: a receiver without a logs endpoint is asked once; each other refusal is an error, and is classified as that of spans.
func TestAnswersToLogs(t *testing.T) {
	for status, want := range map[int]*outcome{
		404: nil, 405: nil, 501: nil, 400: {permanent: true}, 401: {wait: 7 * time.Second}, 413: {permanent: true}, 422: {permanent: true}, 302: {wait: 7 * time.Second}, 503: {wait: 7 * time.Second},
	} {
		r := &receiver{logs: &logReceiver{refuse: 1, status: status}}
		x := exporter(t, r, ProtocolHTTP, withContent)
		err := x.Export(t.Context(), turn())
		if want != nil {
			if got := seen(t, err); got != *want || !strings.HasPrefix(err.Error(), "otel: upload log records: ") {
				t.Errorf("%d: %+v, want %+v: %v", status, got, *want, err)
			}
			continue
		}
		b := turn()
		b.ID = "next"
		if err := errors.Join(err, x.Export(t.Context(), b)); err != nil || r.logs.asked != 1 || x.Stats().Sent != 10 {
			t.Errorf("%d: asked %d times, %+v, %v", status, r.logs.asked, x.Stats(), err)
		}
	}
}

// attribute returns the value of an attribute of the only span.
func (x *Exporter) attribute(s *msg.Span, key string) string {
	for _, a := range x.content(s) {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// TestContentOfAChat sends a turn in batches of one message each: a chat with input, and
// a chat whose output is calls alone.
func TestContentOfAChat(t *testing.T) {
	x := exporter(t, &receiver{}, ProtocolHTTP, withContent)
	n := byte(0)
	first, second, call := msg.SpanID{1}, msg.SpanID{2}, msg.SpanID{3}
	say := func(kind msg.Kind, text string, chat msg.SpanID, tool msg.Tool) {
		n++
		m := msg.Message{Session: "s", Run: "r", Kind: kind, Content: msg.Plain(text), Tool: tool, Time: int64(n)}
		m.Host = msg.Host{ID: msg.ID{n}, SpanID: chat, Chat: chat}
		if tool.CallID != "" {
			m.Host.SpanID = call
		}
		x.cache.evict()
		x.cache.record(exporttest.Records(m))
	}
	say(msg.User, "how deep?", msg.SpanID{}, msg.Tool{})
	say(msg.ToolCall, "", first, msg.Tool{CallID: "c1", Name: "sound", Arguments: msg.Plain(`{"at": "pier"}`)})
	say(msg.ToolResult, "4 m", msg.SpanID{}, msg.Tool{CallID: "c1"})
	written := msg.SpanID{4}
	n++
	x.cache.record([]*msg.Message{{Session: "s", Run: "r", Kind: msg.ToolCall, Tool: msg.Tool{CallID: "c2", Arguments: msg.Plain("port 7")}, Host: msg.Host{ID: msg.ID{n}, SpanID: written, Chat: msg.SpanID{5}}}})
	say(msg.Assistant, "Four <metres> & more.", second, msg.Tool{})
	chat := func(id msg.SpanID, reasons ...string) *msg.Span {
		return &msg.Span{Kind: msg.SpanChat, Session: "s", Run: "r", ID: id, FinishReasons: reasons}
	}
	for _, c := range []struct {
		span *msg.Span
		key  string
		want string
	}{
		{chat(first, "tool_use"), semconv.KeyInputMessages, `[{"role":"user","parts":[{"type":"text","content":"how deep?"}]}]`},
		{chat(first, "tool_use"), semconv.KeyOutputMessages, `[{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"sound","arguments":{"at":"pier"}}],"finish_reason":"tool_use"}]`},
		{chat(second), semconv.KeyInputMessages, `[{"role":"user","parts":[{"type":"text","content":"how deep?"}]},{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"sound","arguments":{"at":"pier"}}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"4 m"}]},{"role":"assistant","parts":[{"type":"tool_call","id":"c2","arguments":"port 7"}]}]`},
		{chat(second), semconv.KeyOutputMessages, `[{"role":"assistant","parts":[{"type":"text","content":"Four <metres> & more."}],"finish_reason":"unknown"}]`},
		{&msg.Span{Kind: msg.SpanTool, Session: "s", Run: "r", ID: call, Outcome: msg.OutcomeOK}, semconv.KeyToolArguments, `{"at":"pier"}`},
		{&msg.Span{Kind: msg.SpanTool, Session: "s", Run: "r", ID: call, Outcome: msg.OutcomeOK}, semconv.KeyToolResult, "4 m"},
		{&msg.Span{Kind: msg.SpanTool, Session: "s", Run: "r", ID: written, Outcome: msg.OutcomeOK}, semconv.KeyToolArguments, "port 7"},
		{&msg.Span{Kind: msg.SpanTool, Session: "s", Run: "r", ID: call, Outcome: msg.OutcomeError}, semconv.KeyToolResult, ""},
		{&msg.Span{Kind: msg.SpanTool, Session: "s", Run: "r", ID: call, Outcome: msg.OutcomeCancelled}, semconv.KeyToolResult, ""},
	} {
		if d := gocmp.Diff(c.want, x.attribute(c.span, c.key)); d != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.span.Kind, c.key, d)
		}
	}
	latest, err := semconv.New(semconv.GenAILatest)
	if err != nil {
		t.Fatal(err)
	}
	x.settings.Profile = latest
	if got := x.attribute(chat(first, "tool_use"), semconv.KeyOutputMessages); strings.Contains(got, "finish_reason") {
		t.Errorf("the newest schema has %s", got)
	}
}

// TestHistoryIsBounded has a run with more content than fits, and more runs than the
// cache keeps: a span has the number of messages it lacks.
func TestHistoryIsBounded(t *testing.T) {
	x := exporter(t, &receiver{}, ProtocolHTTP, withContent)
	chat := msg.Span{Kind: msg.SpanChat, Session: "s", Run: "r", ID: msg.SpanID{9}}
	say := func(run string, n int, kind msg.Kind, chat msg.SpanID, size int) {
		m := msg.Message{Session: "s", Run: run, Kind: kind, Content: msg.Plain(strings.Repeat("x", size)), Time: int64(n)}
		m.Host = msg.Host{ID: msg.ID{byte(n), 1}, Chat: chat}
		x.cache.evict()
		x.cache.record(exporttest.Records(m))
	}
	for n := range 10 {
		say("r", n, msg.User, msg.SpanID{}, 20<<10)
	}
	say("r", 11, msg.Assistant, chat.ID, 10)
	var in []message
	if err := json.Unmarshal([]byte(x.attribute(&chat, semconv.KeyInputMessages)), &in); err != nil {
		t.Fatal(err)
	}
	dropped := int64(0)
	for _, a := range x.content(&chat) {
		if a.Key == semconv.KeyDropped {
			dropped = a.Value.GetIntValue()
		}
	}
	if len(in) == 0 || len(in)+int(dropped) != 10 {
		t.Errorf("%d messages, %d dropped", len(in), dropped)
	}
	for n := range maxHistories + 10 {
		say("other-"+string(rune(0x4e00+n)), n, msg.User, msg.SpanID{}, 1)
	}
	x.cache.evict()
	if n := len(x.cache.byRun); n != maxHistories || len(x.cache.order) != n {
		t.Errorf("%d runs are kept", n)
	}
}
