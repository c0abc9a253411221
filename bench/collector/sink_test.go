package main

import (
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// span and metric are the collector's exports, with their resources.
type span struct {
	*tracepb.Span
	resource map[string]any
	schema   string
	scope    string
}

type metric struct {
	*metricspb.Metric
	resource map[string]any
}

// sink is the OTLP endpoint to which the collector exports.
type sink struct {
	url string

	mu      sync.Mutex
	spans   map[string]span // by span id; of one that is sent again the last version
	metrics map[string]metric
}

func newSink(t *testing.T) *sink {
	r := &sink{spans: make(map[string]span), metrics: make(map[string]metric)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, q *http.Request) {
		var in coltracepb.ExportTraceServiceRequest
		if r.read(w, q, &in) {
			r.takeSpans(&in)
		}
	})
	mux.HandleFunc("POST /v1/metrics", func(w http.ResponseWriter, q *http.Request) {
		var in colmetricspb.ExportMetricsServiceRequest
		if r.read(w, q, &in) {
			r.takeMetrics(&in)
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

func (r *sink) read(w http.ResponseWriter, q *http.Request, into proto.Message) bool {
	body, err := io.ReadAll(q.Body)
	if err == nil {
		err = proto.Unmarshal(body, into)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	return true
}

func (r *sink) takeSpans(in *coltracepb.ExportTraceServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rs := range in.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				r.spans[string(s.SpanId)] = span{s, resourceOf(rs.Resource), ss.SchemaUrl, ss.Scope.GetName()}
			}
		}
	}
}

func (r *sink) takeMetrics(in *colmetricspb.ExportMetricsServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rm := range in.ResourceMetrics {
		for _, sm := range rm.ScopeMetrics {
			for _, m := range sm.Metrics {
				r.metrics[m.Name] = metric{m, resourceOf(rm.Resource)}
			}
		}
	}
}

// named returns the spans of that name, in the order of their starts.
func (r *sink) named(name string) (out []span) {
	for _, s := range r.spans {
		if s.Name == name {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b span) int { return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) })
	return out
}

func resourceOf(r *resourcepb.Resource) map[string]any { return attributes(r.GetAttributes()) }

// attributes are attributes as values of Go.
func attributes(list []*commonpb.KeyValue) map[string]any {
	out := make(map[string]any)
	for _, a := range list {
		out[a.Key] = value(a.Value)
	}
	return out
}

func value(v *commonpb.AnyValue) any {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_IntValue:
		return v.IntValue
	case *commonpb.AnyValue_DoubleValue:
		return v.DoubleValue
	case *commonpb.AnyValue_BoolValue:
		return v.BoolValue
	case *commonpb.AnyValue_ArrayValue:
		var list []any
		for _, x := range v.ArrayValue.Values {
			list = append(list, value(x))
		}
		return list
	}
	return nil
}
