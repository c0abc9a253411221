package otel

import (
	"context"
	"net/url"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/export"
)

// Config is the section exporters.otlp.
type Config struct {
	// URL of the receiver, http:// or https://.
	Endpoint string `yaml:"endpoint"`
	// http or grpc. Default: grpc when the endpoint's port is 4317, else http.
	Protocol string `yaml:"protocol"`
	// Headers of every request. The values are never printed.
	Headers spec.Headers `yaml:"headers"`
	// Compression of requests: gzip or none.
	Compression string `yaml:"compression"`
	// How long one request may take before it is retried.
	Timeout spec.Duration `yaml:"timeout"`
	// Largest request. By default receivers refuse more than 4MiB.
	MaxBatchBytes spec.Size `yaml:"max_batch_bytes"`
	// Put contents on the spans, and send them as the log event
	// gen_ai.client.inference.operation.details of each response as well. Without it
	// spans carry a reference and a hash.
	Content bool `yaml:"content"`
	// How often the metrics are sent. 0s sends none.
	MetricsInterval spec.Duration `yaml:"metrics_interval"`
	// Resource attributes to add to every span and metric.
	Resource map[string]string `yaml:"resource"`
	// TLS towards an https:// endpoint.
	TLS *spec.ClientTLS `yaml:"tls"`
}

// Type is the exporter otlp.
func Type() spec.Type {
	return spec.Type{
		Name: "otlp",
		Doc: `OTLP for spans and metrics. Leave it out for none; spans are in ClickHouse and
metrics at /metrics anyway.`,
		New: func() spec.Section {
			return &Config{Compression: CompressionGzip, Timeout: spec.Duration(10 * time.Second), MaxBatchBytes: 3 << 20, MetricsInterval: spec.Duration(time.Minute)}
		},
		Example: spec.Example{On: func(s spec.Section) {
			c := s.(*Config)
			c.Endpoint, c.Protocol = "https://collector.internal:4318", ProtocolHTTP
			c.Headers = spec.ExampleHeaders()
			c.Resource = map[string]string{"deployment.environment.name": "production"}
			c.TLS = &spec.ClientTLS{CAFile: "tls/collector.crt"}
		}},
	}
}

// Resolve implements spec.Resolver: the protocol follows from the port.
func (c *Config) Resolve() {
	if c.Protocol == "" {
		c.Protocol = protocolOf(c.Endpoint)
	}
}

// protocolOf is the protocol of an endpoint that has no other.
func protocolOf(endpoint string) string {
	if u, err := url.Parse(endpoint); err == nil && u.Port() == "4317" {
		return ProtocolGRPC
	}
	return ProtocolHTTP
}

// Validate implements spec.Section.
func (c *Config) Validate(check *spec.Check) {
	check.URL("endpoint", c.Endpoint, "http", "https")
	check.OneOf("protocol", c.Protocol, ProtocolHTTP, ProtocolGRPC)
	check.Headers("headers", c.Headers)
	check.OneOf("compression", c.Compression, CompressionGzip, CompressionNone)
	check.Positive("timeout", c.Timeout)
	check.PositiveSize("max_batch_bytes", c.MaxBatchBytes)
	check.NotNegative("metrics_interval", c.MetricsInterval)
	c.TLS.Validate(check.In("tls"), "endpoint", c.Endpoint)
}

func (c *Config) settings(env export.Env) (Settings, error) {
	tls, err := c.TLS.Load()
	return Settings{
		Endpoint: c.Endpoint, Protocol: c.Protocol, Headers: c.Headers.Reveal(), TLS: tls, Compression: c.Compression, Timeout: time.Duration(c.Timeout),
		MaxBytes: int(c.MaxBatchBytes), Content: c.Content, Resource: c.Resource, Profile: env.Profile, Logger: env.Logger,
	}, err
}

// NewExporter implements export.Config.
func (c *Config) NewExporter(ctx context.Context, env export.Env) (export.Exporter, error) {
	s, err := c.settings(env)
	if err != nil {
		return nil, err
	}
	return New(ctx, s)
}

// NewReader returns the reader that sends the metrics; nil when none are to be sent.
func (c *Config) NewReader(ctx context.Context, env export.Env) (sdkmetric.Reader, error) {
	if c.MetricsInterval == 0 {
		return nil, nil
	}
	s, err := c.settings(env)
	if err != nil {
		return nil, err
	}
	m, err := NewMetrics(ctx, s)
	if err != nil {
		return nil, err
	}
	return m.Reader(time.Duration(c.MetricsInterval)), nil
}

var _ export.Config = (*Config)(nil)
