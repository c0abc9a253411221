package config

// Config is a whole configuration file. The comments of the fields, here and in
// the structs below, are the comments of config.example.yaml.
type Config struct {
	// Where Earshot keeps what it must not forget: journal, spool, cursors and the
	// embedded store.
	DataDir string `yaml:"data_dir"`
	// Directory of third-party decoders. The name of an executable in it is the
	// name of the format that it decodes. Empty: only the bundled decoders.
	PluginDir string `yaml:"plugin_dir"`
	// How to run the decoder of a format, bundled or third-party. A format that is
	// not named here runs with the values shown.
	Plugins map[string]Plugin `yaml:"plugins"`
	// What to listen to.
	Sources []Source `yaml:"sources"`
	// Prices of models, for the cost of what was done: CSV with the columns model,
	// from, input, output, cache_read and cache_write, in US dollars for a million
	// tokens. Empty: the list prices that come with the program.
	Prices string `yaml:"prices"`
	// Where to deliver. ClickHouse is the embedded store unless a dsn is given.
	Exporters Exporters `yaml:"exporters"`
	// The embedded store. Not started when exporters.clickhouse is given.
	Store Store `yaml:"store"`
	// How messages travel to the exporters.
	Delivery Delivery `yaml:"delivery"`
	// When work that goes on is called silent, and when stuck.
	Now Now `yaml:"now"`
	// The journal of what cannot be read a second time: tap, sse, websocket, http
	// and poll sources. A file is its own journal.
	Journal Journal `yaml:"journal"`
	// What is taken out before anything reaches the disk.
	Redact Redact `yaml:"redact"`
	// Earshot's own metrics and health.
	Telemetry Telemetry `yaml:"telemetry"`
	// Earshot's own log, on stderr.
	Log Log `yaml:"log"`

	// The file and where its keys stand, for Problem.
	file string
	at   map[string]place
}

// Plugin is how the decoder process of one format runs.
type Plugin struct {
	// SHA-256 of the executable, 64 hex digits. Another file is not started.
	SHA256 string `yaml:"sha256"`
	// Names of the environment variables that the process may see. All others are
	// withheld.
	Env []string `yaml:"env"`
	// Memory at which the process is ended and started anew.
	MemoryLimit Size `yaml:"memory_limit"`
	// How long the process may take to start, and how long one call may take.
	Timeout Duration `yaml:"timeout"`
	// Mutual TLS between Earshot and the process. Their socket lies in a directory
	// that only Earshot's user can enter, so it guards against nothing but that user,
	// and it costs more than half of the throughput.
	AutoMTLS bool `yaml:"auto_mtls"`
}

// Exporters are the destinations.
type Exporters struct {
	// Version of OpenTelemetry's GenAI conventions, by which spans are named over OTLP
	// and in otel_traces, and metrics over OTLP and at /metrics: "1.41", the last
	// release, or genai-latest, as the conventions' new repository has them. Default:
	// genai-latest if OTEL_SEMCONV_STABILITY_OPT_IN has gen_ai_latest_experimental,
	// else "1.41".
	Semconv string `yaml:"semconv"`
	// A ClickHouse server or cluster, instead of the embedded store.
	ClickHouse *ClickHouse `yaml:"clickhouse"`
	// OTLP for spans and metrics. Leave it out for none; spans are in ClickHouse and
	// metrics at /metrics anyway.
	OTLP *OTLP `yaml:"otlp"`
}

// ClickHouse is a ClickHouse destination.
type ClickHouse struct {
	// clickhouse://user:password@host:9000/database, or http:// and https:// for the
	// HTTP interface. Several hosts are separated by commas. Never printed.
	DSN Secret `yaml:"dsn"`
	// Database of the tables. Default: the one in the dsn, else earshot.
	Database string `yaml:"database"`
	// Cluster for ON CLUSTER and replicated tables. Empty: a single server.
	Cluster string `yaml:"cluster"`
	// Create and migrate the tables at start. Without it they must be there.
	CreateSchema bool `yaml:"create_schema"`
	// Compression on the wire: lz4, zstd, none, or auto: lz4, unless the server is on
	// this machine.
	Compression string `yaml:"compression"`
	// How long one insert may take before it is tried again.
	Timeout Duration `yaml:"timeout"`
	// How long rows are kept. 0s keeps them for ever.
	TTL TTL `yaml:"ttl"`
}

// TTL is how long the rows of each kind of table are kept; 0 is for ever.
type TTL struct {
	// Contents of messages, tool arguments and results.
	Bodies Duration `yaml:"bodies"`
	// Messages without their contents, tool calls and delegations.
	Messages Duration `yaml:"messages"`
	// Spans and dead letters.
	Spans Duration `yaml:"spans"`
	// Hourly aggregates.
	Rollups Duration `yaml:"rollups"`
}

// Versions of the GenAI conventions; the names are those of the package semconv.
const (
	SemconvRelease = "1.41"
	SemconvLatest  = "genai-latest"
)

// OTLP protocols.
const (
	ProtocolHTTP = "http"
	ProtocolGRPC = "grpc"
)

// OTLP is an OpenTelemetry destination for spans and metrics.
type OTLP struct {
	// URL of the receiver, http:// or https://.
	Endpoint string `yaml:"endpoint"`
	// http or grpc. Default: grpc when the endpoint's port is 4317, else http.
	Protocol string `yaml:"protocol"`
	// Headers of every request. The values are never printed.
	Headers map[string]Secret `yaml:"headers"`
	// Compression of requests: gzip or none.
	Compression string `yaml:"compression"`
	// How long one request may take before it is tried again.
	Timeout Duration `yaml:"timeout"`
	// Largest request. Receivers refuse more than 4MiB unless told otherwise.
	MaxBatchBytes Size `yaml:"max_batch_bytes"`
	// Put contents on the spans, and send them as the log event
	// gen_ai.client.inference.operation.details of each response as well. Without it
	// spans carry a reference and a hash.
	Content bool `yaml:"content"`
	// How often the metrics are sent. 0s sends none.
	MetricsInterval Duration `yaml:"metrics_interval"`
	// Resource attributes to add to every span and metric.
	Resource map[string]string `yaml:"resource"`
	// TLS towards an https:// endpoint.
	TLS *ClientTLS `yaml:"tls"`
}

// Store is the embedded ClickHouse.
type Store struct {
	// Loopback address of its HTTP interface. Port 0 takes a free one.
	Listen string `yaml:"listen"`
	// Memory that queries and merges may take together.
	MaxMemory Size `yaml:"max_memory"`
	// The earshot-store executable. Empty: beside the earshot executable, else in
	// PATH.
	Binary string `yaml:"binary"`
}

// Delivery is how batches are made and retried.
type Delivery struct {
	// Age at which a batch is sent, however small it is.
	FlushInterval Duration `yaml:"flush_interval"`
	// Rows at which a batch is sent before its time.
	BatchRows int `yaml:"batch_rows"`
	// Bytes at which a batch is sent before its time.
	BatchBytes Size `yaml:"batch_bytes"`
	// Bytes between the sources and the spool. Sources wait at this limit.
	MaxInFlight Size `yaml:"max_in_flight"`
	// Pause after the first failed attempt. It doubles with each further one.
	RetryMin Duration `yaml:"retry_min"`
	// Longest pause between two attempts. They never end.
	RetryMax Duration `yaml:"retry_max"`
	// Batches kept on disk for exporters that are down. Sources wait at this limit.
	SpoolMax Size `yaml:"spool_max"`
	// Silence after which a run that never ended is closed. It counts from what the
	// records say, or from when they came, not from when Earshot read them.
	IdleClose Duration `yaml:"idle_close"`
	// The same for a call without a result, and for the run that waits for it.
	IdleCall Duration `yaml:"idle_call"`
}

// Now is when work that goes on is called what.
type Now struct {
	// Silence after which work that waits for nothing below it, and for no person, is
	// called silent.
	SilentAfter Duration `yaml:"silent_after"`
	// Silence after which it is called stuck: in top, on the page, on the boards and by
	// the alert.
	StuckAfter Duration `yaml:"stuck_after"`
}

// What the journal does when it is full.
const (
	WhenFullDropOldest   = "drop_oldest"
	WhenFullBackpressure = "backpressure"
)

// Journal bounds the journal.
type Journal struct {
	// Largest size on disk, all sources together.
	MaxSize Size `yaml:"max_size"`
	// Segments older than this are deleted, delivered or not; what was not is counted.
	MaxAge Duration `yaml:"max_age"`
	// How long what is delivered stays, while there is room, so that earshot backfill
	// can decode it again. Every recorded stream of that time has a place in the
	// checkpoint.
	Keep Duration `yaml:"keep"`
	// The journal counts as full when the disk has less than this left.
	MinFreeDisk Size `yaml:"min_free_disk"`
	// drop_oldest loses the oldest segments and counts them. backpressure makes the
	// sources wait, except a tap, whose traffic flows on unrecorded and is counted.
	WhenFull string `yaml:"when_full"`
	// Size at which a segment is closed and the next one begun.
	SegmentSize Size `yaml:"segment_size"`
	// How much time a power cut may cost.
	FsyncInterval Duration `yaml:"fsync_interval"`
}

// What takes the place of a redacted value.
const (
	RedactMask = "mask"
	RedactHash = "hash"
)

// Redact is what never reaches disk, log, span or table.
type Redact struct {
	// JSON keys whose values are redacted wherever they stand.
	Keys []string `yaml:"keys"`
	// Regular expressions (Go syntax); what they match is redacted.
	Patterns []Pattern `yaml:"patterns"`
	// The bundled patterns: API keys, tokens, private keys, credentials in URLs.
	Builtin bool `yaml:"builtin"`
	// Key of the hashes of mode hash. Keep it: with another one the same value
	// hashes differently.
	HashSalt Secret `yaml:"hash_salt"`
	// mask writes [redacted:name]; hash writes a keyed hash too, so that equal
	// values can still be joined.
	Mode string `yaml:"mode"`
}

// Pattern is a named regular expression.
type Pattern struct {
	// Name in the replacement text and in the metrics.
	Name string `yaml:"name"`
	// The expression. A literal $ before a { is written $$.
	Regex string `yaml:"regex"`
}

// Telemetry is Earshot's own HTTP endpoint.
type Telemetry struct {
	// Address of /metrics, /healthz and /readyz. Empty turns it off.
	Listen string `yaml:"listen"`
}

// Log is Earshot's own log.
type Log struct {
	// debug, info, warn or error.
	Level string `yaml:"level"`
	// text or json.
	Format string `yaml:"format"`
}
