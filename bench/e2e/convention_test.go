package e2e

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// signals is an OTLP receiver over HTTP.
type signals struct {
	mu      sync.Mutex
	spans   map[string]*tracepb.Span // by id
	events  map[string]int           // by the id of their span
	metrics map[string]bool
}

func (r *signals) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	z, err := gzip.NewReader(q.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	body, err := io.ReadAll(z)
	var traces coltracepb.ExportTraceServiceRequest
	var logs collogspb.ExportLogsServiceRequest
	var metrics colmetricspb.ExportMetricsServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, map[string]proto.Message{"/v1/traces": &traces, "/v1/logs": &logs, "/v1/metrics": &metrics}[q.URL.Path])
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rs := range traces.ResourceSpans {
		for _, s := range rs.ScopeSpans[0].Spans {
			r.spans[string(s.SpanId)] = s
		}
	}
	for _, rl := range logs.ResourceLogs {
		for _, l := range rl.ScopeLogs[0].LogRecords {
			if l.EventName == "gen_ai.client.inference.operation.details" {
				r.events[string(l.SpanId)]++
			}
		}
	}
	for _, rm := range metrics.ResourceMetrics {
		for _, sm := range rm.ScopeMetrics {
			for _, m := range sm.Metrics {
				r.metrics[m.Name] = true
			}
		}
	}
}

// named is the only span with a name of this prefix and with the attribute.
func (r *signals) named(prefix, key, value string) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		attrs := make(map[string]string)
		for _, a := range s.Attributes {
			attrs[a.Key] = plain(a.Value)
		}
		if strings.HasPrefix(s.Name, prefix) && attrs[key] == value {
			return attrs
		}
	}
	return nil
}

func plain(v *commonpb.AnyValue) string {
	switch x := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return x.StringValue
	case *commonpb.AnyValue_IntValue:
		return fmt.Sprint(x.IntValue)
	case *commonpb.AnyValue_BoolValue:
		return fmt.Sprint(x.BoolValue)
	}
	return v.String()
}

// TestWhatIsAskedOfAModel sends a request to a model and its streamed answer through a tap:
// over OTLP the span has the request's parameters, the provider, the messages, and its event;
// the pauses of the stream are a metric. The environment chooses the newest names.
func TestWhatIsAskedOfAModel(t *testing.T) {
	for _, c := range []struct{ optIn, perChunk, cacheWrite string }{
		{"", "gen_ai.client.operation.time_per_output_chunk", "gen_ai.usage.cache_creation.input_tokens"},
		{"gen_ai_latest_experimental", "gen_ai.client.inference.time_per_output_chunk", "gen_ai.usage.cache_write.input_tokens"},
	} {
		t.Run("opt in "+c.optIn, func(t *testing.T) {
			h := newHome(t)
			h.env = []string{"OTEL_SEMCONV_STABILITY_OPT_IN=" + c.optIn}
			turn := recordedExchange(t, "anthropic-sse", "turn")
			upstream := h.agent(func(w http.ResponseWriter, q *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for event := range strings.SplitAfterSeq(turn.events, "\n\n") {
					fmt.Fprint(w, event)
					w.(http.Flusher).Flush()
					time.Sleep(time.Millisecond) // the pieces are to be pieces
				}
			})
			r := &signals{spans: make(map[string]*tracepb.Span), events: make(map[string]int), metrics: make(map[string]bool)}
			receiver := h.agent(r.ServeHTTP)
			line, tap := h.tap("anthropic-sse", upstream)
			h.configure("exporters: {otlp: {endpoint: \""+receiver+"\", content: true, metrics_interval: 200ms}}", "sources:", line)
			p := h.startRunning()
			h.post(tap+"/v1/messages", "application/json", turn.request)
			h.until("the spans, their events and the pauses", func() bool {
				r.mu.Lock()
				defer r.mu.Unlock()
				return len(r.events) == 1 && len(r.spans) > 0 && r.metrics[c.perChunk]
			})
			h.must(p.Process.Signal(os.Interrupt))
			h.waitExit(p)

			host, port, err := net.SplitHostPort(strings.TrimPrefix(upstream, "http://"))
			h.must(err)
			chat := r.named("chat claude-sonnet-4-5", "gen_ai.operation.name", "chat")
			for key, want := range map[string]string{
				"gen_ai.request.model": "claude-sonnet-4-5", "gen_ai.response.model": "claude-sonnet-4-5-20250929", "gen_ai.provider.name": "anthropic",
				"gen_ai.request.stream": "true", "gen_ai.request.max_tokens": "1024", "server.address": host, "server.port": port,
				"gen_ai.conversation.id": "5e550000-0000-4000-8000-0000000000a1", "gen_ai.system_instructions": `[{"type":"text","content":"You keep the lighthouse log."}]`,
				"gen_ai.input.messages":   `[{"role":"user","parts":[{"type":"text","content":"When is high water at Skerry on the second?"}]}]`,
				"gen_ai.tool.definitions": `[{"type":"function","name":"tide_table","description":"Tides","parameters":{"type":"object"}}]`, c.cacheWrite: "812",
			} {
				if d := cmp.Diff(want, strings.ReplaceAll(chat[key], `{"type": "object"}`, `{"type":"object"}`)); d != "" {
					t.Errorf("%s (-want +got):\n%s", key, d)
				}
			}
			if out := chat["gen_ai.output.messages"]; !strings.Contains(out, `"type":"tool_call"`) || strings.Contains(out, "finish_reason") != (c.optIn == "") {
				t.Errorf("output messages %s", out)
			}
		})
	}
}
