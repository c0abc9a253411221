// Package telemetry has the sidecar's own metrics, and the server of /metrics, /healthz,
// /readyz and pprof. The components count, a scrape reads.
//
// All metrics are OpenTelemetry's: those of this list, and those of the GenAI convention in
// package meter, which leave over OTLP too. This package alone knows Prometheus: the SDK's
// exporter translates both to the page (docs/decisions/0012).
//
// Labels are bounded. Sources, formats and exporters are those of the configuration; fates, stages
// and kinds are words of the program; names from the traffic are bounded by Names. A path, a
// session or a text is never a label.
package telemetry

import (
	"context"
	"fmt"
	"math"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/otlptranslator"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
)

// Metrics are the sidecar's own metrics, each with its labels.
type Metrics struct {
	registry *prometheus.Registry

	Bytes    *Counters // source, fate: decoded, quarantined, dropped
	Frames   *Counters // source
	Messages *Counters // source, format, kind
	Unknown  *Counters // format, type
	Problems *Counters // source, stage, reason
	Spans    *Counters // format, kind, outcome

	Findings *Counters // format, kind

	Verdicts     *Gauges   // verdict; that hold
	VerdictsMade *Counters // format, verdict

	// Of responses that were read live; source, format.
	Responses  *Counters
	Buffered   *Counters
	FirstByte  *Histograms
	FirstEvent *Histograms
	Gap        *Histograms
	Stall      *Histograms

	DecoderRestarts *Counters // format
	DecoderFailures *Counters // format
	DecoderCircuit  *Gauges   // format; 1 while its decoder crashes without progress

	Redacted        *Counters // rule
	Erased          *Counters // source
	DeadLettersLost *Counter
	SpoolBytes      *Gauges     // exporter
	SpoolLost       *Counters   // exporter
	Batches         *Counters   // exporter, outcome: ok, retry, refused
	BatchSeconds    *Histograms // exporter
	Records         *Counters   // exporter
	ExporterLag     *Gauges     // exporter; age of its oldest waiting batch in seconds
	StoreBehind     *Gauges     // exporter; streams of which the store has lost rows
	Streams         *Gauges     // source
	Failing         *Gauges     // source; 1 if its server did not answer as it should when it was last asked
	InFlight        *Gauge      // bytes
	Commits         *Counter

	JournalBytes, JournalPending, JournalStreams, JournalFailures, JournalEvicted, JournalRefused, JournalCorrupt *Gauges // without labels

	TapRequests, TapRecorded, TapFailed, TapLost *Counters // source

	Sampled    *Counters // exporter, fate: kept, dropped
	SampleHeld *Gauges   // exporter
}

// New returns metrics in a registry of their own.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	// Their labels are bounded where they are added up, so the SDK has no limit here: of a
	// configuration with hundreds of sources it would count the last ones together.
	provider, err := m.Provider(0)
	if err != nil {
		panic(err) // the registry is new
	}
	define := maker{provider.Meter("github.com/earshot-dev/earshot/core/internal/telemetry")}
	counter, gauge, seconds := define.counters, define.gauges, define.seconds
	pace := func(name, help string) *Histograms { return seconds(name, help, 19, "source", "format") } // to four minutes

	m.Bytes = counter("source_bytes_total", "Bytes that were read, by their fate: decoded, quarantined or dropped.", "source", "fate")
	m.Frames = counter("source_frames_total", "Frames that were read.", "source")
	m.Messages = counter("messages_total", "Normalized messages.", "source", "format", "kind")
	m.Unknown = counter("unknown_total", "Messages of a type that their decoder does not know, by type.", "format", "type").fromTraffic()
	m.Problems = counter("problems_total", "Dead letters: input that could not be read, decoded or stored.", "source", "stage", "reason").fromTraffic()
	m.Spans = counter("spans_total", "Spans that ended.", "format", "kind", "outcome")
	m.Verdicts = gauge("verdicts", "Verdicts on open work that hold, other than healthy.", "verdict")
	m.VerdictsMade = counter("verdicts_made_total", "Verdicts on open work that were made, other than healthy.", "format", "verdict")
	m.Findings = counter("findings_total", "Loops, error storms, fan-outs and silences that were detected in runs.", "format", "kind")
	m.Responses = counter("responses_total", "Responses and connections that were read to their end.", "source", "format")
	m.Buffered = counter("responses_buffered_total", "Responses whose events a proxy on the way seems to have buffered.", "source", "format")
	m.FirstByte = pace("response_first_byte_seconds", "Time from a request to the head of its response.")
	m.FirstEvent = pace("response_first_event_seconds", "Time from a request to the first event of its response.")
	m.Gap = pace("response_gap_seconds", "Pause between two chunks that 95 % of a response's pauses do not exceed.")
	m.Stall = pace("response_stall_seconds", "Longest pause between two chunks of a response.")
	m.DecoderRestarts = counter("decoder_restarts_total", "Decoder processes that crashed and were started again.", "format")
	m.DecoderFailures = counter("decoder_failures_total", "Failures of a stream's decoder, which was opened again.", "format")
	m.Erased = counter("erased_total", "Messages and problems of erased sessions that were refused.", "source")
	m.Redacted = counter("redacted_total", "Secrets that were redacted, by the rule that found them.", "rule")
	m.DecoderCircuit = gauge("decoder_circuit_open", "1 while a format waits because its decoder crashes again and again.", "format")
	m.Batches = counter("export_batches_total", "Batches offered to an exporter, by outcome.", "exporter", "outcome")
	m.Records = counter("export_records_total", "Rows that an exporter has accepted.", "exporter")
	m.BatchSeconds = seconds("export_batch_seconds", "Time in which an exporter accepted a batch.", 15, "exporter")
	m.ExporterLag = gauge("export_lag_seconds", "Age of the oldest batch that an exporter has not accepted.", "exporter")
	m.StoreBehind = gauge("store_behind_streams", "Streams of which the store does not have what it had accepted, since the start: it was emptied, replaced or restored.", "exporter")
	m.Streams = gauge("streams", "Streams that are open.", "source")
	m.Failing = gauge("source_failing", "1 if the server of a source did not answer when it was last asked, or not as it should.", "source")
	m.InFlight = gauge("in_flight_bytes", "Bytes of frames between sources and exporters.").With()
	m.SpoolBytes = gauge("spool_bytes", "Bytes spooled on the disk for an exporter that is behind.", "exporter")
	m.SpoolLost = counter("spool_lost_total", "Times that spooled batches could not be read.", "exporter")
	m.DeadLettersLost = counter("dead_letters_rotated_total", "Refused rows that rotation removed from the local file.").With()
	m.Commits = counter("checkpoint_commits_total", "Checkpoints that were committed.").With()
	m.JournalBytes = gauge("journal_bytes", "Bytes of the journal on disk.")
	m.JournalPending = gauge("journal_pending_bytes", "Bytes that are not on disk yet.")
	m.JournalStreams = gauge("journal_streams", "Recordings that are open.")
	m.JournalFailures = gauge("journal_failures", "Writes and syncs that failed.")
	m.JournalEvicted = gauge("journal_evicted_bytes", "Bytes of segments that were removed before everything in them was safe.")
	m.JournalRefused = gauge("journal_refused_bytes", "Bytes of frames that there was no room for.")
	m.JournalCorrupt = gauge("journal_corrupt_bytes", "Damaged bytes that were skipped.")
	m.TapRequests = counter("tap_requests_total", "Requests that a tap passed on.", "source")
	m.TapRecorded = counter("tap_recorded_total", "Requests whose response a tap recorded.", "source")
	m.TapFailed = counter("tap_failed_total", "Requests for which the upstream gave no response.", "source")
	m.TapLost = counter("tap_lost_bytes_total", "Bytes that a tap passed on and should have recorded, but did not.", "source")
	m.Sampled = counter("sampled_spans_total", "Spans of decided conversations.", "exporter", "fate")
	m.SampleHeld = gauge("sample_held_spans", "Spans of undecided conversations.", "exporter")
	return m
}

// Provider returns a provider of OpenTelemetry metrics that are on the page too, and with the
// readers. It has at most limit series of a metric; 0: no limit.
//
// Every option is set, so that the OTEL_* of the environment, which are the agent's as often as
// not, change nothing.
func (m *Metrics) Provider(limit int, readers ...sdk.Reader) (*sdk.MeterProvider, error) {
	page, err := otelprometheus.New(
		otelprometheus.WithRegisterer(m.registry), otelprometheus.WithoutTargetInfo(), otelprometheus.WithoutScopeInfo(),
		otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
	)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	options := []sdk.Option{
		sdk.WithResource(resource.Empty()), sdk.WithExemplarFilter(exemplar.TraceBasedFilter), sdk.WithCardinalityLimit(limit), sdk.WithReader(page),
	}
	for _, r := range readers {
		options = append(options, sdk.WithReader(r))
	}
	return sdk.NewMeterProvider(options...), nil
}

// Handler serves the page, with exemplars to who reads OpenMetrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Gather returns the metrics as they are on the page.
func (m *Metrics) Gather() ([]*dto.MetricFamily, error) { return m.registry.Gather() }

// maker makes the metrics of the list. Their names are written as they are on the page, where
// the unit is a part of the name.
type maker struct{ meter metric.Meter }

const namespace = "earshot_"

func (m maker) counters(name, help string, labels ...string) *Counters {
	f := newFamily(labels, func(of metric.MeasurementOption) *Counter { return &Counter{labels: of} })
	_, err := m.meter.Int64ObservableCounter(namespace+name, metric.WithDescription(help), metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
		f.each(func(c *Counter) { o.Observe(c.value(), c.labels) })
		return nil
	}))
	must(err)
	return f
}

func (m maker) gauges(name, help string, labels ...string) *Gauges {
	f := newFamily(labels, func(of metric.MeasurementOption) *Gauge { return &Gauge{labels: of} })
	_, err := m.meter.Float64ObservableGauge(namespace+name, metric.WithDescription(help), metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
		f.each(func(g *Gauge) { o.Observe(g.value(), g.labels) })
		return nil
	}))
	must(err)
	return f
}

// seconds makes histograms of durations whose bounds double from a millisecond.
func (m maker) seconds(name, help string, bounds int, labels ...string) *Histograms {
	doubling := make([]float64, bounds)
	for i := range doubling {
		doubling[i] = math.Ldexp(0.001, i)
	}
	h, err := m.meter.Float64Histogram(namespace+name, metric.WithDescription(help), metric.WithExplicitBucketBoundaries(doubling...))
	must(err)
	return newFamily(labels, func(of metric.MeasurementOption) *Histogram { return &Histogram{h, []metric.RecordOption{of}} })
}

// must: the names are those of the list.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
