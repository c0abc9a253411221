package telemetry

import (
	"context"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Counters, Gauges and Histograms are metrics by the values of their labels.
type (
	Counters   = family[*Counter]
	Gauges     = family[*Gauge]
	Histograms = family[*Histogram]
)

// family has the series of a metric.
type family[S any] struct {
	labels []string
	names  *Names // of the last label; nil: the configuration or the program bounds it
	create func(labels metric.MeasurementOption) S

	mu     sync.RWMutex
	series map[string]S // by the values of the labels, each behind its end
}

func newFamily[S any](labels []string, create func(metric.MeasurementOption) S) *family[S] {
	return &family[S]{labels: labels, create: create, series: make(map[string]S)}
}

// fromTraffic has the values of the last label bounded.
func (f *family[S]) fromTraffic() *family[S] {
	f.names = NewNames()
	return f
}

// With returns the series of these values of the labels.
func (f *family[S]) With(values ...string) S {
	var buf [128]byte
	key := f.key(buf[:0], values)
	f.mu.RLock()
	s, ok := f.series[string(key)]
	f.mu.RUnlock()
	if ok {
		return s
	}
	return f.add(values)
}

// key appends the values, the last one no longer than a name.
func (f *family[S]) key(b []byte, values []string) []byte {
	for i, v := range values {
		if f.names != nil && i == len(values)-1 {
			v = Clip(v)
		}
		b = append(append(b, v...), 0xff)
	}
	return b
}

// add makes the series. A series of a name beyond the bound is that of the other names.
func (f *family[S]) add(values []string) S {
	set := make([]attribute.KeyValue, len(f.labels))
	if last := len(values) - 1; f.names != nil {
		scope := f.key(nil, values[:last])
		values = append(values[:last:last], f.names.Bound(string(scope), values[last]))
	}
	for i, l := range f.labels {
		set[i] = attribute.String(l, strings.Clone(values[i])) // the caller's may lie in a batch
	}
	key := string(f.key(nil, values))
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.series[key]
	if !ok {
		s = f.create(metric.WithAttributeSet(attribute.NewSet(set...)))
		f.series[key] = s
	}
	return s
}

// each calls do for each series.
func (f *family[S]) each(do func(S)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, s := range f.series {
		do(s)
	}
}

// Counter is a number that grows. Frames and messages are counted one by one, so it is an
// atomic that a scrape reads; the SDK's own takes twenty times as long.
type Counter struct {
	n      atomic.Int64
	read   atomic.Pointer[func() int64]
	labels metric.MeasurementOption
}

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Add adds n.
func (c *Counter) Add(n int64) { c.n.Add(n) }

// Read has a scrape call the function for the value.
func (c *Counter) Read(value func() int64) { c.read.Store(&value) }

func (c *Counter) value() int64 {
	if read := c.read.Load(); read != nil {
		return (*read)()
	}
	return c.n.Load()
}

// Gauge is a number that rises and falls.
type Gauge struct {
	bits   atomic.Uint64
	read   atomic.Pointer[func() int64]
	labels metric.MeasurementOption
}

// Set sets it.
func (g *Gauge) Set(v float64) { g.bits.Store(math.Float64bits(v)) }

// Add adds v.
func (g *Gauge) Add(v float64) {
	for {
		was := g.bits.Load()
		if g.bits.CompareAndSwap(was, math.Float64bits(math.Float64frombits(was)+v)) {
			return
		}
	}
}

// Inc adds one.
func (g *Gauge) Inc() { g.Add(1) }

// Dec subtracts one.
func (g *Gauge) Dec() { g.Add(-1) }

// Read has a scrape call the function for the value.
func (g *Gauge) Read(value func() int64) { g.read.Store(&value) }

func (g *Gauge) value() float64 {
	if read := g.read.Load(); read != nil {
		return float64((*read)())
	}
	return math.Float64frombits(g.bits.Load())
}

// Histogram is how often values were, by buckets.
type Histogram struct {
	of     metric.Float64Histogram
	labels []metric.RecordOption
}

// Observe counts a value.
func (h *Histogram) Observe(v float64) { h.of.Record(context.Background(), v, h.labels...) }
