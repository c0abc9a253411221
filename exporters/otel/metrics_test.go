package otel

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
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
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/earshot-dev/earshot/core/semconv"
)

// metricsReceiver takes metrics over both protocols, unless it is ill.
type metricsReceiver struct {
	colmetricspb.UnimplementedMetricsServiceServer
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
	if q.Header.Get("Content-Encoding") == "gzip" && err == nil {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(z)
		}
	}
	var in colmetricspb.ExportMetricsServiceRequest
	if r.ill || err != nil || q.URL.Path != "/base/v1/metrics" || proto.Unmarshal(body, &in) != nil {
		http.Error(w, "ill", http.StatusServiceUnavailable)
		return
	}
	r.header = q.Header
	r.take(&in)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Export implements the gRPC service.
func (r *metricsReceiver) Export(ctx context.Context, q *colmetricspb.ExportMetricsServiceRequest) (*colmetricspb.ExportMetricsServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ill {
		return nil, status.Error(codes.Unavailable, "ill")
	}
	md, _ := metadata.FromIncomingContext(ctx)
	r.header = http.Header{"X-Token": md.Get("x-token")}
	r.take(q)
	return &colmetricspb.ExportMetricsServiceResponse{}, nil
}

func (r *metricsReceiver) take(q *colmetricspb.ExportMetricsServiceRequest) {
	for _, rm := range q.ResourceMetrics {
		var attrs []string
		for _, a := range rm.Resource.Attributes {
			attrs = append(attrs, a.Value.GetStringValue())
		}
		service := strings.Join(attrs, " ")
		r.services = append(r.services, service)
		for _, p := range pointsOf(rm) {
			r.points = append(r.points, service+": "+p)
		}
	}
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
			if len(m.GetSum().GetDataPoints())+len(m.GetHistogram().GetDataPoints()) == 0 {
				out = append(out, m.Name+" without points")
			}
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
	for named, over := range map[string]*receiver{"": nil, "fleet": nil, "gzip": {}, "plain": {}, "secure": {}} {
		r := &metricsReceiver{ill: true}
		server := httptest.NewTLSServer(r)
		defer server.Close()
		roots := x509.NewCertPool()
		roots.AddCert(server.Certificate())
		var log bytes.Buffer
		s := Settings{Endpoint: server.URL + "/base", Protocol: ProtocolHTTP, TLS: &tls.Config{RootCAs: roots}, Compression: CompressionNone, Headers: map[string]string{"X-Token": "t"}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		if over != nil {
			var secure []grpc.ServerOption
			if named == "secure" {
				secure = append(secure, grpc.Creds(credentials.NewServerTLSFromCert(&server.TLS.Certificates[0])))
			}
			over.metrics = r
			if s.Endpoint, s.Protocol = over.overGRPC(t, secure...), ProtocolGRPC; secure != nil {
				s.Endpoint = strings.Replace(s.Endpoint, "http:", "https:", 1)
			}
		}
		if named == "gzip" || named == "fleet" {
			s.Compression = CompressionGzip
		}
		if s.Resource = map[string]string{"pod": "p7"}; named != "" {
			s.Resource[semconv.KeyService] = named
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
		turns, err := p.Meter("test").Int64Counter("turns")
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
		turns.Add(t.Context(), 1, metric.WithAttributes(attribute.String(semconv.KeySource, "quay")))
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
		want := []string{"p7 harbour", "p7 quay"}
		if named != "" {
			want = []string{"p7 " + named, "p7 " + named}
		}
		compression := r.header.Get("Content-Encoding")
		if over != nil {
			compression = over.compression
		}
		if (compression == "gzip") != (named == "gzip" || named == "fleet") {
			t.Errorf("%s: compression %q", named, compression)
		}
		if !slices.Equal(r.services, want) || r.header.Get("X-Token") != "t" {
			t.Errorf("services %q, token %q", r.services, r.header.Get("X-Token"))
		}
		points := []string{"harbour seconds 1", "harbour size 1", "harbour tokens 1", "quay seconds 2", "quay size 2", "quay tokens 2", "quay turns 1"}
		for i, p := range points {
			service := want[0]
			if strings.HasPrefix(p, "quay") {
				service = want[1]
			}
			points[i] = service + ": " + p
		}
		if slices.Sort(r.points); !slices.Equal(r.points, points) {
			t.Errorf("points %q", r.points)
		}
		if n := strings.Count(log.String(), "not taken"); n != 1 || !strings.Contains(log.String(), "taken again") {
			t.Errorf("log:\n%s", log.String())
		}
	}
}
