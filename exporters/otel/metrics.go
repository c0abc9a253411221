package otel

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	"google.golang.org/grpc/credentials"

	"github.com/earshot-dev/earshot/core/semconv"
)

// Metrics sends cumulative metrics: the next request contains the counts of a failed
// one, so nothing is queued and nothing is retried here.
type Metrics struct {
	metric.Exporter
	settings Settings
	idle     func() // closes the connections that the client leaves open
	failing  atomic.Bool
}

var _ metric.Exporter = (*Metrics)(nil)

// NewMetrics returns an exporter of metrics to the receiver of the spans. A receiver
// that is down is no error.
func NewMetrics(ctx context.Context, s Settings) (*Metrics, error) {
	u, err := s.check()
	if err != nil {
		return nil, fmt.Errorf("otel: metrics: %w", err)
	}
	m := &Metrics{settings: s}
	if s.Protocol == ProtocolGRPC {
		err = m.dialGRPC(ctx, u)
	} else {
		err = m.dialHTTP(ctx, u)
	}
	if err != nil {
		return nil, fmt.Errorf("otel: metrics: %s: %w", u.Redacted(), err)
	}
	return m, nil
}

func (m *Metrics) dialHTTP(ctx context.Context, u *url.URL) (err error) {
	t := m.settings.transport()
	m.idle = t.CloseIdleConnections
	compression := otlpmetrichttp.NoCompression
	if m.settings.Compression == CompressionGzip {
		compression = otlpmetrichttp.GzipCompression
	}
	m.Exporter, err = otlpmetrichttp.New(ctx,
		otlpmetrichttp.WithEndpointURL(signalURL(u, "/v1/metrics")),
		otlpmetrichttp.WithTLSClientConfig(nil), // it is the transport's
		otlpmetrichttp.WithHeaders(m.settings.Headers),
		otlpmetrichttp.WithCompression(compression),
		otlpmetrichttp.WithTimeout(m.settings.Timeout),
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}),
		otlpmetrichttp.WithHTTPClient(&http.Client{Transport: t, Timeout: m.settings.Timeout}),
		otlpmetrichttp.WithTemporalitySelector(cumulative),
		otlpmetrichttp.WithAggregationSelector(metric.DefaultAggregationSelector),
	)
	return err
}

func (m *Metrics) dialGRPC(ctx context.Context, u *url.URL) (err error) {
	m.idle = func() {}
	opts := []otlpmetricgrpc.Option{
		otlpmetricgrpc.WithEndpointURL((&url.URL{Scheme: u.Scheme, Host: u.Host}).String()),
		otlpmetricgrpc.WithHeaders(m.settings.Headers),
		otlpmetricgrpc.WithTimeout(m.settings.Timeout),
		otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{}),
		otlpmetricgrpc.WithDialOption(m.settings.reconnect()),
		otlpmetricgrpc.WithTemporalitySelector(cumulative),
		otlpmetricgrpc.WithAggregationSelector(metric.DefaultAggregationSelector),
	}
	if m.settings.Compression == CompressionGzip {
		opts = append(opts, otlpmetricgrpc.WithCompressor(CompressionGzip))
	}
	if u.Scheme == "https" {
		opts = append(opts, otlpmetricgrpc.WithTLSCredentials(credentials.NewTLS(m.settings.TLS)))
	}
	m.Exporter, err = otlpmetricgrpc.New(ctx, opts...)
	return err
}

func cumulative(metric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}

// Reader collects the metrics and sends them at that interval, and once more at the end.
func (m *Metrics) Reader(every time.Duration) metric.Reader {
	return metric.NewPeriodicReader(m, metric.WithInterval(every), metric.WithTimeout(m.settings.Timeout))
}

// Export sends one request for each source, because a resource is a source, as it is
// for spans. A failure is logged once, until an export succeeds.
func (m *Metrics) Export(ctx context.Context, rm *metricdata.ResourceMetrics) error {
	for _, source := range sources(rm) {
		if err := m.Exporter.Export(ctx, m.forSource(rm, source)); err != nil {
			if !m.failing.Swap(true) {
				m.settings.Logger.Warn("otel: metrics were not taken; the next ones contain them", "error", err)
			}
			return nil // the SDK would write it to its own logger
		}
	}
	if m.failing.Swap(false) {
		m.settings.Logger.Info("otel: metrics are taken again")
	}
	return nil
}

// Shutdown ends the connections.
func (m *Metrics) Shutdown(ctx context.Context) error {
	err := m.Exporter.Shutdown(ctx)
	m.idle()
	return err
}

// resource returns the resource of a source's metrics, as Exporter.resource does for spans.
func (m *Metrics) resource(source string) *resource.Resource {
	var attrs []attribute.KeyValue
	if _, given := m.settings.Resource[semconv.KeyService]; !given {
		attrs = append(attrs, attribute.String(semconv.KeyService, valid(source)))
	}
	for _, k := range slices.Sorted(maps.Keys(m.settings.Resource)) {
		attrs = append(attrs, attribute.String(k, valid(m.settings.Resource[k])))
	}
	return resource.NewSchemaless(attrs...)
}

// sources returns the sources that have data points, sorted.
func sources(rm *metricdata.ResourceMetrics) []string {
	seen := make(map[string]bool)
	for _, s := range rm.ScopeMetrics {
		for _, m := range s.Metrics {
			pointsWhere(m.Data, func(attrs attribute.Set) bool { seen[sourceOf(attrs)] = true; return false })
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func sourceOf(attrs attribute.Set) string {
	v, _ := attrs.Value(semconv.KeySource)
	return v.AsString()
}

// forSource returns the data points of one source.
func (m *Metrics) forSource(rm *metricdata.ResourceMetrics, source string) *metricdata.ResourceMetrics {
	out := &metricdata.ResourceMetrics{Resource: m.resource(source)}
	for _, s := range rm.ScopeMetrics {
		scope := metricdata.ScopeMetrics{Scope: s.Scope}
		for _, x := range s.Metrics {
			var n int
			if x.Data, n = pointsWhere(x.Data, func(attrs attribute.Set) bool { return sourceOf(attrs) == source }); n > 0 {
				scope.Metrics = append(scope.Metrics, x)
			}
		}
		out.ScopeMetrics = append(out.ScopeMetrics, scope)
	}
	return out
}

// pointsWhere returns an instrument with the data points to keep, and their number. The
// types are those of the instruments of semconv.Metrics.
func pointsWhere(data metricdata.Aggregation, keep func(attribute.Set) bool) (metricdata.Aggregation, int) {
	switch d := data.(type) {
	case metricdata.Histogram[float64]:
		d.DataPoints = filter(d.DataPoints, func(p metricdata.HistogramDataPoint[float64]) bool { return keep(p.Attributes) })
		return d, len(d.DataPoints)
	case metricdata.Histogram[int64]:
		d.DataPoints = filter(d.DataPoints, func(p metricdata.HistogramDataPoint[int64]) bool { return keep(p.Attributes) })
		return d, len(d.DataPoints)
	case metricdata.Sum[int64]:
		d.DataPoints = filter(d.DataPoints, func(p metricdata.DataPoint[int64]) bool { return keep(p.Attributes) })
		return d, len(d.DataPoints)
	}
	return data, 0
}

func filter[P any](points []P, keep func(P) bool) (out []P) {
	for _, p := range points {
		if keep(p) {
			out = append(out, p)
		}
	}
	return out
}
