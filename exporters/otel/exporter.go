package otel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"

	"github.com/earshot-dev/earshot/core/export"
)

// Exporter uploads spans. One goroutine exports.
type Exporter struct {
	settings Settings
	client   otlptrace.Client
	idle     func() // closes the connections that the client leaves open
	response response
	sources  map[string]*tracepb.ResourceSpans // the head of a request's spans, by source

	logs  logs
	cache contentCache

	batch    string // the last one that was offered
	accepted int    // of its requests
	stats    struct{ sent, rejected, trimmed atomic.Int64 }
}

var _ export.Exporter = (*Exporter)(nil)

// Stats count spans since the start.
type Stats struct {
	Sent     int64 // accepted by the receiver, rejected ones among them
	Rejected int64 // rejected by it in a partial success; they are lost
	Trimmed  int64 // cut to fit a request
}

// Stats may be called from any goroutine.
func (x *Exporter) Stats() Stats {
	return Stats{x.stats.sent.Load(), x.stats.rejected.Load(), x.stats.trimmed.Load()}
}

// New returns an exporter. A receiver that is down is no error here: the first Export
// returns it.
func New(ctx context.Context, s Settings) (*Exporter, error) {
	u, err := s.check()
	if err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	x := &Exporter{settings: s, sources: make(map[string]*tracepb.ResourceSpans)}
	if s.Protocol == ProtocolGRPC {
		x.dialGRPC(u)
		err = x.dialLogsGRPC(u)
	} else {
		x.dialLogsHTTP(u, x.dialHTTP(u))
	}
	if err != nil {
		return nil, fmt.Errorf("otel: %s: %w", u.Redacted(), err)
	}
	if err := x.client.Start(ctx); err != nil {
		return nil, fmt.Errorf("otel: %s: %w", u.Redacted(), err)
	}
	return x, nil
}

func (x *Exporter) dialHTTP(u *url.URL) *transport {
	t := &transport{response: &x.response, Transport: x.settings.transport()}
	x.idle = t.CloseIdleConnections
	compression := otlptracehttp.NoCompression
	if x.settings.Compression == CompressionGzip {
		compression = otlptracehttp.GzipCompression
	}
	// Every option is set, so that OTEL_EXPORTER_OTLP_* in the environment change
	// nothing: often they are the agent's.
	x.client = otlptracehttp.NewClient(
		otlptracehttp.WithEndpointURL(signalURL(u, "/v1/traces")),
		otlptracehttp.WithTLSClientConfig(nil), // it is the transport's
		otlptracehttp.WithHeaders(x.settings.Headers),
		otlptracehttp.WithCompression(compression),
		otlptracehttp.WithTimeout(x.settings.Timeout),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}),
		otlptracehttp.WithHTTPClient(&http.Client{Transport: t, Timeout: x.settings.Timeout}),
	)
	return t
}

// signalURL is where a signal goes over HTTP: the endpoint with the signal's path,
// unless the endpoint has the path of one already.
func signalURL(u *url.URL, path string) string {
	base := strings.TrimSuffix(u.Path, "/")
	for _, known := range []string{"/v1/traces", "/v1/metrics", "/v1/logs"} {
		base = strings.TrimSuffix(base, known)
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: base + path}).String()
}

// transport is one of its own: the client's is shared by the whole process and
// never closed.
func (s *Settings) transport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: s.TLS, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 1, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
	}
}

// reconnect: after an outage of hours gRPC would wait two minutes before it looks
// again.
func (s *Settings) reconnect() grpc.DialOption {
	p := grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: s.Timeout}
	p.Backoff.MaxDelay = 10 * time.Second
	return grpc.WithConnectParams(p)
}

func (x *Exporter) dialGRPC(u *url.URL) {
	opts := []otlptracegrpc.Option{
		otlptracegrpc.WithEndpointURL((&url.URL{Scheme: u.Scheme, Host: u.Host}).String()),
		otlptracegrpc.WithHeaders(x.settings.Headers),
		otlptracegrpc.WithTimeout(x.settings.Timeout),
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{}),
		otlptracegrpc.WithDialOption(grpc.WithUnaryInterceptor(x.response.intercept), x.settings.reconnect()),
	}
	if x.settings.Compression == CompressionGzip {
		opts = append(opts, otlptracegrpc.WithCompressor(CompressionGzip))
	}
	if u.Scheme == "https" {
		opts = append(opts, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(x.settings.TLS)))
	}
	x.client, x.idle = otlptracegrpc.NewClient(opts...), func() {}
}

// Export uploads the spans of a batch that have ended and, where contents are asked
// for, an event for each response of a model.
func (x *Exporter) Export(ctx context.Context, b *export.Batch) error {
	if b.ID != x.batch {
		x.batch, x.accepted = b.ID, 0
		if x.settings.Content {
			x.cache.evict()
			x.cache.record(b.Messages)
		}
	}
	n := 0 // uploads of this batch, in an order that is the same each time
	for r := range x.requests(b.Spans) {
		if !x.settings.NoTraces {
			if n++; n > x.accepted {
				if err := x.upload(ctx, r.spans, func() error { return x.client.UploadTraces(ctx, r.resources) }); err != nil {
					return fmt.Errorf("otel: upload %d spans: %w", r.spans, err)
				}
				x.stats.sent.Add(int64(r.spans))
			}
		}
		if !x.settings.Content || x.settings.NoLogs {
			continue
		}
		for _, q := range x.records(r.resources) {
			if n++; n > x.accepted {
				if err := x.upload(ctx, 0, func() error { return x.uploadLogs(ctx, q) }); err != nil {
					return fmt.Errorf("otel: upload log records: %w", err)
				}
			}
		}
	}
	return nil
}

// upload does one upload and notes that it was accepted.
func (x *Exporter) upload(ctx context.Context, spans int, upload func() error) error {
	x.response = response{}
	if err := x.response.error(ctx, upload()); err != nil {
		return err
	}
	x.accepted++
	x.logPartial(spans)
	return nil
}

// uploadLogs uploads log records, unless the receiver takes none.
func (x *Exporter) uploadLogs(ctx context.Context, q *collogspb.ExportLogsServiceRequest) error {
	if x.logs.refused {
		return nil
	}
	err := x.logs.upload(ctx, q)
	if none := (errNoLogs{}); errors.As(err, &none) {
		x.logs.refused, x.response = true, response{}
		x.settings.Logger.Warn("otel: receiver takes no logs; contents are on the spans alone", "error", none.error)
		return nil
	}
	return err
}

// logPartial notes a partial success, of log records when there are no spans.
func (x *Exporter) logPartial(spans int) {
	a := x.response
	if a.rejected == 0 && a.message == "" {
		return
	}
	if spans > 0 {
		x.stats.rejected.Add(a.rejected)
	}
	x.settings.Logger.Warn("otel: receiver did not take all of it", "rejected", a.rejected, "spans", spans, "message", a.message)
}

// Close ends the connections.
func (x *Exporter) Close(ctx context.Context) error {
	err := errors.Join(x.client.Stop(ctx), x.logs.close())
	x.idle()
	if err != nil {
		return fmt.Errorf("otel: close: %w", err)
	}
	return nil
}
