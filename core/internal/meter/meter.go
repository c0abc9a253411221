package meter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/otlptranslator"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

// Meter is described in the package comment. One goroutine records.
type Meter struct {
	provider *sdk.MeterProvider
	labels   labels
	ended    recent[struct{}]   // spans
	answered recent[struct{}]   // responses whose tokens are in the histogram
	spent    recent[msg.Tokens] // usage messages, and what was counted of each
	last     map[msg.SpanID]int // of a batch: where a span is told last

	chat, first, run, tool, delegation          metric.Float64Histogram
	tokens                                      metric.Int64Histogram // nil where the counters replace it
	classes                                     metric.Int64Counter
	input, output, cacheRead, write, reasonings metric.Int64Counter // nil where tokens stand for them
}

// New returns a meter whose figures are in the registry and with the readers.
func New(p *semconv.Profile, registry prometheus.Registerer, readers ...sdk.Reader) (*Meter, error) {
	scrape, err := otelprometheus.New(
		otelprometheus.WithRegisterer(registry), otelprometheus.WithoutTargetInfo(), otelprometheus.WithoutScopeInfo(),
		otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
	)
	if err != nil {
		return nil, fmt.Errorf("meter: %w", err)
	}
	// Every option is given, so that the OTEL_* of the environment, which are the
	// agent's as often as not, change nothing.
	options := []sdk.Option{
		sdk.WithResource(resource.Empty()), sdk.WithExemplarFilter(exemplar.TraceBasedFilter), sdk.WithCardinalityLimit(2000), sdk.WithReader(scrape),
	}
	for _, r := range readers {
		options = append(options, sdk.WithReader(r))
	}
	m := &Meter{provider: sdk.NewMeterProvider(options...), labels: newLabels(), last: make(map[msg.SpanID]int)}
	make := instruments{meter: m.provider.Meter(semconv.Scope, metric.WithSchemaURL(p.SchemaURL()))}
	names := p.Metrics()
	m.chat, m.first, m.run = make.seconds(names.Chat), make.seconds(names.FirstChunk), make.seconds(names.Run)
	m.tool, m.delegation = make.seconds(names.Tool), make.seconds(names.Delegation)
	m.tokens, m.classes = make.tokens(names.Tokens), make.counter(names.Classes)
	m.input, m.output = make.counter(names.Input), make.counter(names.Output)
	m.cacheRead, m.write, m.reasonings = make.counter(names.CacheRead), make.counter(names.CacheWrite), make.counter(names.Reasoning)
	if make.err != nil {
		return nil, fmt.Errorf("meter: %w", make.err)
	}
	return m, nil
}

// Close gives the readers what they have not read, and ends them.
func (m *Meter) Close(ctx context.Context) error {
	if err := m.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("meter: close: %w", err)
	}
	return nil
}

// instruments makes instruments and keeps the errors. Those without a name are
// nil.
type instruments struct {
	meter metric.Meter
	err   error
}

func (i *instruments) note(err error) { i.err = errors.Join(i.err, err) }

func (i *instruments) seconds(d semconv.Metric) metric.Float64Histogram {
	h, err := i.meter.Float64Histogram(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description), metric.WithExplicitBucketBoundaries(d.Bounds...))
	i.note(err)
	return h
}

func (i *instruments) tokens(d semconv.Metric) metric.Int64Histogram {
	if d.Name == "" {
		return nil
	}
	h, err := i.meter.Int64Histogram(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description), metric.WithExplicitBucketBoundaries(d.Bounds...))
	i.note(err)
	return h
}

func (i *instruments) counter(d semconv.Metric) metric.Int64Counter {
	if d.Name == "" {
		return nil
	}
	c, err := i.meter.Int64Counter(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description))
	i.note(err)
	return c
}

// Record counts a batch that is committed.
func (m *Meter) Record(b *export.Batch) {
	clear(m.last)
	for i := range b.Spans {
		if s := &b.Spans[i]; s.State != msg.SpanOpen && !s.Deleted && !s.Amends {
			m.last[s.ID] = i
		}
	}
	for i := range b.Spans {
		if s := &b.Spans[i]; s.State != msg.SpanOpen && !s.Deleted && !s.Amends && m.last[s.ID] == i {
			m.span(s)
		}
	}
	for i := range b.Messages {
		if u := &b.Messages[i]; u.Kind == msg.Usage && !u.Host.Deleted && !u.Usage.IsZero() {
			m.usage(u)
		}
	}
}

// within is a context of the span, which exemplars point to.
func within(t msg.TraceID, s msg.SpanID) context.Context {
	return trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(t), SpanID: trace.SpanID(s), TraceFlags: trace.FlagsSampled,
	}))
}

func (m *Meter) span(s *msg.Span) {
	id := binary.BigEndian.Uint64(s.ID[:])
	if s.Kind == msg.SpanChat && !s.Usage.IsZero() && m.answered.add(id, struct{}{}) {
		m.response(within(s.TraceID, s.ID), m.labels.usage(usageOf(s)), s.Usage)
	}
	if !m.ended.add(id, struct{}{}) {
		return
	}
	ctx, with := within(s.TraceID, s.ID), m.labels.span(s)
	d := float64(max(s.End-s.Start, 0)) / 1e9
	switch s.Kind {
	case msg.SpanChat:
		m.chat.Record(ctx, d, with)
		if s.FirstToken > s.Start {
			m.first.Record(ctx, float64(s.FirstToken-s.Start)/1e9, with)
		}
	case msg.SpanTool:
		m.tool.Record(ctx, d, with)
	case msg.SpanDelegation:
		m.delegation.Record(ctx, d, with)
	default:
		m.run.Record(ctx, d, with)
	}
}

// response notes the tokens of a response in the histogram.
func (m *Meter) response(ctx context.Context, with *usageSets, t msg.Tokens) {
	if m.tokens != nil {
		m.tokens.Record(ctx, int64(input(t)), with.in)
		m.tokens.Record(ctx, int64(output(t)), with.out)
	}
}

// usage counts what a usage message says beyond what its last version has said.
func (m *Meter) usage(u *msg.Message) {
	id := binary.BigEndian.Uint64(u.Host.ID[:])
	was, told := m.spent.get(id)
	if told && u.Usage == was {
		return
	}
	m.spent.set(id, u.Usage)
	ctx, with := within(u.Host.TraceID, u.Host.SpanID), m.labels.usage(usageBy(u))
	if u.ResponseID == "" && !told { // of a run as a whole: no response has it
		m.response(ctx, with, u.Usage)
	}
	add := func(c metric.Int64Counter, now, before uint64, o metric.MeasurementOption) {
		if c != nil && now > before {
			c.Add(ctx, int64(now-before), o)
		}
	}
	t := u.Usage
	add(m.input, input(t), input(was), with.all)
	add(m.output, output(t), output(was), with.all)
	add(m.cacheRead, t.CacheRead, was.CacheRead, with.all)
	add(m.write, t.CacheWrite, was.CacheWrite, with.all)
	add(m.reasonings, t.Reasoning, was.Reasoning, with.all)
	for i, n := range [...][2]uint64{{t.Input, was.Input}, {t.Output, was.Output}, {t.CacheRead, was.CacheRead}, {t.CacheWrite, was.CacheWrite}, {t.Reasoning, was.Reasoning}} {
		add(m.classes, n[0], n[1], with.classes[i])
	}
}

// input and output are tokens as the convention has them.
func input(t msg.Tokens) uint64  { return t.Input + t.CacheRead + t.CacheWrite }
func output(t msg.Tokens) uint64 { return t.Output + t.Reasoning }
