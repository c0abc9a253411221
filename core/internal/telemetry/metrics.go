// Package telemetry has the sidecar's own metrics and the server of /metrics, /healthz,
// /readyz and pprof. The components count, a scrape reads. Labels are bounded: names of
// formats, sources, stages, reasons and exporters, never a path, a session or a text from
// the traffic.
package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are the sidecar's own metrics.
type Metrics struct {
	registry *prometheus.Registry

	Bytes    *prometheus.CounterVec // source, fate: decoded, quarantined, dropped
	Frames   *prometheus.CounterVec // source
	Messages *prometheus.CounterVec // source, format, kind
	Unknown  *prometheus.CounterVec // format, type
	Problems *prometheus.CounterVec // source, stage, reason
	Spans    *prometheus.CounterVec // format, kind, outcome

	Findings *prometheus.CounterVec // format, kind

	Verdicts     *prometheus.GaugeVec   // verdict; that hold
	VerdictsMade *prometheus.CounterVec // format, verdict

	// Of responses that were read live; source, format.
	Responses  *prometheus.CounterVec
	Buffered   *prometheus.CounterVec
	FirstByte  *prometheus.HistogramVec
	FirstEvent *prometheus.HistogramVec
	Gap        *prometheus.HistogramVec
	Stall      *prometheus.HistogramVec

	DecoderRestarts *prometheus.CounterVec // format
	DecoderFailures *prometheus.CounterVec // format
	DecoderCircuit  *prometheus.GaugeVec   // format; 1 while its decoder crashes without progress

	Redacted        *prometheus.CounterVec // rule
	Erased          *prometheus.CounterVec // source
	DeadLettersLost prometheus.Counter
	SpoolBytes      *prometheus.GaugeVec     // exporter
	SpoolLost       *prometheus.CounterVec   // exporter
	Batches         *prometheus.CounterVec   // exporter, outcome: ok, retry, refused
	BatchSeconds    *prometheus.HistogramVec // exporter
	Records         *prometheus.CounterVec   // exporter
	ExporterLag     *prometheus.GaugeVec     // exporter; age of its oldest waiting batch in seconds
	StoreBehind     *prometheus.GaugeVec     // exporter; streams of which the store has lost rows
	Streams         *prometheus.GaugeVec     // source
	InFlight        prometheus.Gauge         // bytes
	Commits         prometheus.Counter
}

// New returns metrics in a registry of their own.
func New() *Metrics {
	const namespace = "earshot"
	registry := prometheus.NewRegistry()
	register := promauto.With(registry)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return register.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return register.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	seconds := func(name, help string, doublings int, labels ...string) *prometheus.HistogramVec { // from a millisecond
		return register.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 2, doublings),
		}, labels)
	}
	pace := func(name, help string) *prometheus.HistogramVec { return seconds(name, help, 19, "source", "format") } // to four minutes
	return &Metrics{
		registry:        registry,
		Bytes:           counter("source_bytes_total", "Bytes that were read, by their fate: decoded, quarantined or dropped.", "source", "fate"),
		Frames:          counter("source_frames_total", "Frames that were read.", "source"),
		Messages:        counter("messages_total", "Normalized messages.", "source", "format", "kind"),
		Unknown:         counter("unknown_total", "Messages of a type that their decoder does not know, by type.", "format", "type"),
		Problems:        counter("problems_total", "Dead letters: input that could not be read, decoded or stored.", "source", "stage", "reason"),
		Spans:           counter("spans_total", "Spans that ended.", "format", "kind", "outcome"),
		Verdicts:        gauge("verdicts", "Verdicts on open work that hold, other than healthy.", "verdict"),
		VerdictsMade:    counter("verdicts_made_total", "Verdicts on open work that were made, other than healthy.", "format", "verdict"),
		Findings:        counter("findings_total", "Loops, error storms, fan-outs and silences that were detected in runs.", "format", "kind"),
		Responses:       counter("responses_total", "Responses and connections that were read to their end.", "source", "format"),
		Buffered:        counter("responses_buffered_total", "Responses whose events a proxy on the way seems to have buffered.", "source", "format"),
		FirstByte:       pace("response_first_byte_seconds", "Time from a request to the head of its response."),
		FirstEvent:      pace("response_first_event_seconds", "Time from a request to the first event of its response."),
		Gap:             pace("response_gap_seconds", "Pause between two chunks that 95 % of a response's pauses do not exceed."),
		Stall:           pace("response_stall_seconds", "Longest pause between two chunks of a response."),
		DecoderRestarts: counter("decoder_restarts_total", "Decoder processes that crashed and were started again.", "format"),
		DecoderFailures: counter("decoder_failures_total", "Failures of a stream's decoder, which was opened again.", "format"),
		Erased:          counter("erased_total", "Messages and problems of erased sessions that were refused.", "source"),
		Redacted:        counter("redacted_total", "Secrets that were redacted, by the rule that found them.", "rule"),
		DecoderCircuit:  gauge("decoder_circuit_open", "1 while a format waits because its decoder crashes again and again.", "format"),
		Batches:         counter("export_batches_total", "Batches offered to an exporter, by outcome.", "exporter", "outcome"),
		Records:         counter("export_records_total", "Rows that an exporter has accepted.", "exporter"),
		BatchSeconds:    seconds("export_batch_seconds", "Time in which an exporter accepted a batch.", 15, "exporter"),
		ExporterLag:     gauge("export_lag_seconds", "Age of the oldest batch that an exporter has not accepted.", "exporter"),
		StoreBehind:     gauge("store_behind_streams", "Streams of which the store does not have what it had accepted, since the start: it was emptied, replaced or restored.", "exporter"),
		Streams:         gauge("streams", "Streams that are open.", "source"),
		InFlight:        gauge("in_flight_bytes", "Bytes of frames between sources and exporters.").WithLabelValues(),
		SpoolBytes:      gauge("spool_bytes", "Bytes spooled on the disk for an exporter that is behind.", "exporter"),
		SpoolLost:       counter("spool_lost_total", "Times that spooled batches could not be read.", "exporter"),
		DeadLettersLost: counter("dead_letters_rotated_total", "Refused rows that rotation removed from the local file.").WithLabelValues(),
		Commits:         counter("checkpoint_commits_total", "Checkpoints that were committed.").WithLabelValues(),
	}
}

// Watch adds a gauge whose value is computed when the metrics are read.
func (m *Metrics) Watch(name, help string, labels map[string]string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "earshot", Name: name, Help: help, ConstLabels: labels}, value))
}

// Count adds a counter with labels whose value is computed when the metrics are read. It
// replaces the counter of a source's former configuration.
func (m *Metrics) Count(name, help string, labels map[string]string, value func() int64) {
	c := prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "earshot", Name: name, Help: help, ConstLabels: labels}, func() float64 { return float64(value()) })
	m.registry.Unregister(c)
	m.registry.MustRegister(c)
}

// Registry returns the registry with all metrics.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }
