package otel

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/earshot-dev/earshot/core/semconv"
)

// metricsReceiver takes metrics over HTTP, unless it is ill.
type metricsReceiver struct {
	mu       sync.Mutex
	ill      bool
	header   http.Header
	services []string
	points   []string // of the last request of each service
}

func (r *metricsReceiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := io.ReadAll(q.Body)
	var in colmetricspb.ExportMetricsServiceRequest
	if r.ill || err != nil || q.URL.Path != "/base/v1/metrics" || proto.Unmarshal(body, &in) != nil {
		http.Error(w, "ill", http.StatusServiceUnavailable)
		return
	}
	r.header = q.Header
	for _, rm := range in.ResourceMetrics {
		for _, a := range rm.Resource.Attributes {
			if a.Key == semconv.KeyService {
				r.services = append(r.services, a.Value.GetStringValue())
				r.points = append(r.points, pointsOf(rm)...)
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// pointsOf are the data points of a resource: the source, the instrument and the count.
func pointsOf(rm *metricspb.ResourceMetrics) (out []string) {
	add := func(m *metricspb.Metric, attrs []*commonpb.KeyValue, n any) {
		for _, a := range attrs {
			if a.Key == semconv.KeySource {
				out = append(out, fmt.Sprint(a.Value.GetStringValue(), " ", m.Name, " ", n))
			}
		}
	}
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			for _, p := range m.GetSum().GetDataPoints() {
				add(m, p.Attributes, p.GetAsInt())
			}
			for _, p := range m.GetHistogram().GetDataPoints() {
				add(m, p.Attributes, p.Count)
			}
		}
	}
	return out
}

// TestMetricsAreOfTheirSource: a resource is a source, and a service.name of the settings
// replaces all. A receiver that is down is logged once, and has lost nothing when it is
// back.
func TestMetricsAreOfTheirSource(t *testing.T) {
	for _, named := range []string{"", "fleet"} {
		r := &metricsReceiver{ill: true}
		server := httptest.NewServer(r)
		defer server.Close()
		var log bytes.Buffer
		s := Settings{Endpoint: server.URL + "/base", Compression: CompressionNone, Headers: map[string]string{"X-Token": "t"}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		if named != "" {
			s.Resource = map[string]string{semconv.KeyService: named}
		}
		m, err := NewMetrics(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		p := sdk.NewMeterProvider(sdk.WithReader(m.Reader(time.Hour)))
		c, err := p.Meter("test").Int64Counter("tokens")
		if err != nil {
			t.Fatal(err)
		}
		seconds, err := p.Meter("test").Float64Histogram("seconds")
		if err != nil {
			t.Fatal(err)
		}
		size, err := p.Meter("test").Int64Histogram("size")
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range []string{"quay", "harbour", "quay"} {
			of := metric.WithAttributes(attribute.String(semconv.KeySource, source))
			c.Add(t.Context(), 1, of)
			seconds.Record(t.Context(), 0.5, of)
			size.Record(t.Context(), 7, of)
		}
		for range 3 {
			if err := p.ForceFlush(t.Context()); err != nil {
				t.Error(err)
			}
		}
		r.mu.Lock()
		r.ill = false
		r.mu.Unlock()
		if err := p.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		want := []string{"harbour", "quay"}
		if named != "" {
			want = []string{named, named}
		}
		if !slices.Equal(r.services, want) || r.header.Get("X-Token") != "t" {
			t.Errorf("services %q, token %q", r.services, r.header.Get("X-Token"))
		}
		points := []string{"harbour seconds 1", "harbour size 1", "harbour tokens 1", "quay seconds 2", "quay size 2", "quay tokens 2"}
		if slices.Sort(r.points); !slices.Equal(r.points, points) {
			t.Errorf("points %q", r.points)
		}
		if n := strings.Count(log.String(), "not taken"); n != 1 || !strings.Contains(log.String(), "taken again") {
			t.Errorf("log:\n%s", log.String())
		}
	}
}
