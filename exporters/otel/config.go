package otel

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
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
	// Signals to send: traces, metrics, logs. Logs are the event of each response, and
	// need content.
	Signals []string `yaml:"signals"`
	// Put contents on the spans, and send them as the log event
	// gen_ai.client.inference.operation.details of each response as well. Without it
	// spans carry a reference and a hash.
	Content bool `yaml:"content"`
	// Conversations whose spans and events are sent, chosen by how they went. Leave it out
	// for all. The store and the metrics have all of them anyway.
	Sample *Sample `yaml:"sample"`
	// How often the metrics are sent. 0s sends none.
	MetricsInterval spec.Duration `yaml:"metrics_interval"`
	// Resource attributes to add to every span and metric.
	Resource map[string]string `yaml:"resource"`
	// TLS towards an https:// endpoint.
	TLS *spec.ClientTLS `yaml:"tls"`
}

// Sample is which conversations are sent: those of which one of errors, slow, stuck and share is
// true.
type Sample struct {
	// With a span that failed.
	Errors bool `yaml:"errors"`
	// With a span that took longer. 0s: the time does not count.
	Slow spec.Duration `yaml:"slow"`
	// With a verdict that work hangs; see docs/verdicts.md. A wait for a person is none.
	Stuck bool `yaml:"stuck"`
	// Share of the others, by a hash of the conversation's id: the same ones in every receiver.
	Share spec.Share `yaml:"share"`
	// How long a conversation is quiet before it is dropped.
	Wait spec.Duration `yaml:"wait"`
	// Most bytes that undecided conversations may take, in memory and as a file in data_dir.
	// Beyond it the one that was quiet for longest is dropped.
	MaxSize spec.Size `yaml:"max_size"`
}

// SetDefaults implements spec.Defaults.
func (s *Sample) SetDefaults() {
	*s = Sample{Errors: true, Stuck: true, Wait: spec.Duration(10 * time.Minute), MaxSize: 64 << 20}
}

func (s *Sample) validate(check *spec.Check) {
	check.NotNegative("slow", s.Slow)
	check.Positive("wait", s.Wait)
	check.PositiveSize("max_size", s.MaxSize)
	if !s.Errors && !s.Stuck && s.Slow == 0 && s.Share == 0 {
		check.Report("", "chooses nothing", "set errors, slow, stuck or share")
	}
}

// The signals.
const (
	signalTraces  = "traces"
	signalMetrics = "metrics"
	signalLogs    = "logs"
)

// Type is the exporter otlp.
func Type() spec.Type {
	return spec.Type{
		Name: "otlp", Several: true,
		Doc: `OTLP for spans and metrics. Leave it out for none; spans are in ClickHouse and
metrics at /metrics anyway. otlp-NAME, for any name, is another receiver with the
same keys; each has a queue of its own.`,
		New: func() spec.Section {
			return &Config{Signals: []string{signalTraces, signalMetrics, signalLogs}, Compression: CompressionGzip, Timeout: spec.Duration(10 * time.Second), MaxBatchBytes: 3 << 20, MetricsInterval: spec.Duration(time.Minute)}
		},
		Example: spec.Example{On: func(s spec.Section) {
			c := s.(*Config)
			c.Endpoint, c.Protocol = "https://collector.internal:4318", ProtocolHTTP
			c.Headers = spec.ExampleHeaders()
			c.Resource = map[string]string{"deployment.environment.name": "production"}
			c.TLS = &spec.ClientTLS{CAFile: "tls/collector.crt"}
			c.Sample = &Sample{}
			c.Sample.SetDefaults()
			c.Sample.Slow, c.Sample.Share = spec.Duration(30*time.Second), 0.1
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
	for i, s := range c.Signals {
		check.OneOf(spec.Index("signals", i), s, signalTraces, signalMetrics, signalLogs)
	}
	switch {
	case len(c.Signals) == 0:
		check.Report("signals", "names none", "")
	case len(c.Signals) == 1 && c.Signals[0] == signalLogs && !c.Content:
		check.Report("signals", "logs need content", "set content: true")
	}
	if c.Sample != nil {
		c.Sample.validate(check.In("sample"))
	}
	c.TLS.Validate(check.In("tls"), "endpoint", c.Endpoint)
}

func (c *Config) settings(env export.Env) (Settings, error) {
	tls, err := c.TLS.Load()
	return Settings{
		Endpoint: c.Endpoint, Protocol: c.Protocol, Headers: c.Headers.Reveal(), TLS: tls, Compression: c.Compression, Timeout: time.Duration(c.Timeout),
		MaxBytes: int(c.MaxBatchBytes), Content: c.Content, NoTraces: !slices.Contains(c.Signals, signalTraces), NoLogs: !slices.Contains(c.Signals, signalLogs), Resource: c.Resource, Profile: env.Profile, Logger: env.Logger,
	}, err
}

// NewExporter implements export.Config.
func (c *Config) NewExporter(ctx context.Context, env export.Env) (export.Exporter, error) {
	s, err := c.settings(env)
	if err != nil {
		return nil, err
	}
	x, err := New(ctx, s)
	if err != nil {
		return nil, err
	}
	file := ""
	if env.StateDir != "" {
		file = filepath.Join(env.StateDir, "sample", env.Name+".jsonl")
	}
	if c.Sample == nil || env.Chosen {
		if file != "" && os.Remove(file) == nil {
			env.Logger.Warn("otel: conversations that were undecided are not sent, because sample is gone", "exporter", env.Name)
		}
		return x, nil
	}
	return newSampler(x, *c.Sample, file, c.Content, time.Now, env.Logger)
}

// NewReader returns the reader that sends the metrics; nil when none are to be sent.
func (c *Config) NewReader(ctx context.Context, env export.Env) (sdkmetric.Reader, error) {
	if c.MetricsInterval == 0 || !slices.Contains(c.Signals, signalMetrics) {
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
