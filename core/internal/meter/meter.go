package meter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/bounded"
	"github.com/earshot-dev/earshot/core/semconv"
)

// remembered is how many spans, responses and usage messages are known to be counted.
const remembered = 1 << 15

// memory is which rows were counted, by the first half of their ids.
type memory struct {
	spans     *bounded.Map[uint64, struct{}]
	responses *bounded.Map[uint64, struct{}]   // whose tokens are in the histogram
	models    *bounded.Map[uint64, models]     // of spans
	usage     *bounded.Map[uint64, msg.Tokens] // of usage messages, as they were counted
	observed  *bounded.Map[uint64, *spanSet]   // spans of responses from an observed server
	pauses    *bounded.Map[uint64, struct{}]   // spans whose pauses were counted
}

func newMemory() memory {
	return memory{
		bounded.NewMap[uint64, struct{}](remembered), bounded.NewMap[uint64, struct{}](remembered), bounded.NewMap[uint64, models](remembered),
		bounded.NewMap[uint64, msg.Tokens](remembered), bounded.NewMap[uint64, *spanSet](remembered), bounded.NewMap[uint64, struct{}](remembered),
	}
}

// Meter is described in the package comment. One goroutine records.
type Meter struct {
	provider *sdk.MeterProvider
	labels   labels
	counted  memory       // the recent past
	batch    uint64       // how many were recorded
	grown    []*usageSets // of a batch: whose counters grow

	chat, first, run, tool, delegation          metric.Float64Histogram
	perChunk                                    metric.Float64Histogram
	workflow                                    metric.Float64Histogram // nil where a workflow counts as a run
	tokens                                      metric.Int64Histogram   // nil where the counters replace it
	classes                                     metric.Int64Counter
	input, output, cacheRead, write, reasonings metric.Int64Counter // nil where tokens stand for them
}

// maxSeries is how many series a metric has at the most. Each name in them is one of a hundred,
// but they could meet in any combination.
const maxSeries = 2000

// New returns a meter whose figures are among the metrics and with the readers.
func New(p *semconv.Profile, metrics *telemetry.Metrics, readers ...sdk.Reader) (*Meter, error) {
	provider, err := metrics.Provider(maxSeries, readers...)
	if err != nil {
		return nil, fmt.Errorf("meter: %w", err)
	}
	m := &Meter{provider: provider, labels: newLabels(p), counted: newMemory()}
	make := instruments{meter: m.provider.Meter(semconv.Scope, metric.WithSchemaURL(p.SchemaURL()))}
	names := p.Metrics()
	m.chat, m.first, m.run = make.seconds(names.Chat), make.seconds(names.FirstChunk), make.seconds(names.Run)
	m.workflow, m.perChunk = make.seconds(names.Workflow), make.seconds(names.PerChunk)
	m.tool, m.delegation = make.seconds(names.Tool), make.seconds(names.Delegation)
	m.tokens, m.classes = make.tokens(names.Tokens), make.counter(names.Classes)
	m.input, m.output = make.counter(names.Input), make.counter(names.Output)
	m.cacheRead, m.write, m.reasonings = make.counter(names.CacheRead), make.counter(names.CacheWrite), make.counter(names.Reasoning)
	if make.err != nil {
		return nil, fmt.Errorf("meter: %w", make.err)
	}
	return m, nil
}

// Close has the readers read for the last time, and ends them.
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
	if d.Name == "" {
		return nil
	}
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
	m.batch++
	// A span that is in the batch more than once counts as it is in its last row.
	for i := len(b.Spans) - 1; i >= 0; i-- {
		if s := b.Spans[i]; s.State != msg.SpanOpen && !s.Tombstone && !s.Amends {
			m.span(s)
		}
	}
	for i := range b.Streams {
		m.pauses(&b.Streams[i])
	}
	for i := range b.Messages {
		if u := b.Messages[i]; u.Kind == msg.Usage && !u.Host.Tombstone && !u.Usage.IsZero() {
			m.usage(u)
		}
	}
	for _, with := range m.grown {
		m.count(with)
	}
	m.grown = m.grown[:0]
}

// within is a context of the span, which exemplars point to.
func within(t msg.TraceID, s msg.SpanID) context.Context {
	return trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(t), SpanID: trace.SpanID(s), TraceFlags: trace.FlagsSampled,
	}))
}

// exemplars chooses the spans that a histogram names: of a batch, those that exceed all before
// them. To offer every span took more time than to count it.
type exemplars struct {
	batch uint64
	most  float64
}

// of returns the context in which a value of the span is recorded.
func (e *exemplars) of(batch uint64, v float64, t msg.TraceID, s msg.SpanID) context.Context {
	if e.batch == batch && v <= e.most {
		return context.Background()
	}
	e.batch, e.most = batch, v
	return within(t, s)
}

func (m *Meter) span(s *msg.Span) {
	id := binary.BigEndian.Uint64(s.ID[:])
	if s.Kind != msg.SpanTool && s.Kind != msg.SpanDelegation { // no usage message is of a call
		names := modelsOf(s)
		if known, _ := m.counted.models.Get(id); known != names {
			m.counted.models.Set(id, models{strings.Clone(names.requested), strings.Clone(names.responded)})
		}
		if s.Kind == msg.SpanChat && !s.Usage.IsZero() && m.counted.responses.Add(id, struct{}{}) {
			m.response(s.TraceID, s.ID, m.labels.usage(m.labels.usageKey(s, names)), s.Usage)
		}
	}
	if !m.counted.spans.Add(id, struct{}{}) {
		return
	}
	d := float64(max(s.End-s.Start, 0)) / 1e9
	with := m.labels.span(s)
	if s.Kind == msg.SpanChat && s.Server != "" {
		m.counted.observed.Set(id, with)
	}
	ctx := with.slowest.of(m.batch, d, s.TraceID, s.ID)
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
		if s.Kind == msg.SpanWorkflow && m.workflow != nil {
			m.workflow.Record(ctx, d, with)
			return
		}
		m.run.Record(ctx, d, with)
	}
}

// pauses counts the pauses between the chunks of a response that was a stream of its own, once.
func (m *Meter) pauses(s *msg.Stream) {
	if s.Chat.IsZero() || s.Pace.Gaps == "" {
		return
	}
	id := binary.BigEndian.Uint64(s.Chat[:])
	with, ok := m.counted.observed.Get(id)
	if !ok || !m.counted.pauses.Add(id, struct{}{}) {
		return
	}
	s.Pace.EachGap(func(length int64, count int) {
		for range count {
			m.perChunk.Record(context.Background(), float64(length)/1e9, with)
		}
	})
}

// response adds the tokens of a response to the histogram.
func (m *Meter) response(trace msg.TraceID, span msg.SpanID, with *usageSets, t msg.Tokens) {
	if m.tokens != nil {
		ctx := with.largest.of(m.batch, float64(t.Total()), trace, span)
		m.tokens.Record(ctx, int64(input(t)), with.in)
		m.tokens.Record(ctx, int64(output(t)), with.out)
	}
}

// usage adds the tokens of a usage message beyond those of its last version.
func (m *Meter) usage(u *msg.Message) {
	id := binary.BigEndian.Uint64(u.Host.ID[:])
	was, counted := m.counted.usage.Get(id)
	if counted && u.Usage == was {
		return
	}
	m.counted.usage.Set(id, u.Usage)
	known, _ := m.counted.models.Get(binary.BigEndian.Uint64(u.Host.SpanID[:]))
	with := m.labels.usage(m.labels.usageBy(u, known))
	if u.ResponseID == "" && !counted { // of a run as a whole: no response has it
		m.response(u.Host.TraceID, u.Host.SpanID, with, u.Usage)
	}
	if with.batch != m.batch {
		with.batch, with.added = m.batch, growth{}
		m.grown = append(m.grown, with)
	}
	with.trace, with.span = u.Host.TraceID, u.Host.SpanID
	now, before := figures(u.Usage), figures(was)
	for i, n := range now {
		if n > before[i] {
			with.added[i] += n - before[i]
		}
	}
}

// growth is the tokens by which the counters grow: the named ones, then those by class.
type growth [2 * len(classes)]uint64

func figures(t msg.Tokens) growth {
	return growth{
		input(t), output(t), t.CacheRead, t.CacheWrite, t.Reasoning,
		t.Input, t.Output, t.CacheRead, t.CacheWrite, t.Reasoning,
	}
}

// count adds the tokens of the messages of a batch; the exemplar is the span of the last.
func (m *Meter) count(with *usageSets) {
	ctx := within(with.trace, with.span)
	add := func(c metric.Int64Counter, n uint64, o metric.MeasurementOption) {
		if c != nil && n > 0 {
			c.Add(ctx, int64(n), o)
		}
	}
	for i, c := range [...]metric.Int64Counter{m.input, m.output, m.cacheRead, m.write, m.reasonings} {
		add(c, with.added[i], with.all)
	}
	for i := range classes {
		add(m.classes, with.added[len(classes)+i], with.classes[i])
	}
}

// input and output are tokens as the convention has them.
func input(t msg.Tokens) uint64  { return t.Input + t.CacheRead + t.CacheWrite }
func output(t msg.Tokens) uint64 { return t.Output + t.Reasoning }
