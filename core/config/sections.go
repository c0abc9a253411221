package config

import (
	"regexp"
	"regexp/syntax"
	"time"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/loopback"
)

// Store is the embedded ClickHouse.
type Store struct {
	// Loopback address of ClickHouse's HTTP interface, for Grafana, curl and drivers. Empty: only
	// the Unix socket in data_dir, which earshot itself uses.
	Listen string `yaml:"listen"`
	// Password of the user reader at that address. Empty: a random one for each start, which is in
	// data_dir/store/token while it holds.
	Token spec.Secret `yaml:"token"`
	// Password of the user default at that address, who also writes. Empty: the user does not exist there.
	WriterToken spec.Secret `yaml:"writer_token"`
	// Memory that queries and merges may take together.
	MaxMemory spec.Size `yaml:"max_memory"`
	// How long its rows are kept, from when they were stored. 0s keeps them for ever.
	MaxAge spec.Duration `yaml:"max_age"`
	// Size of its tables at which the oldest rows go. 0 keeps them all.
	MaxSize spec.Size `yaml:"max_size"`
	// How long rows wait for the store while it has no reader. A statement that reads, of earshot,
	// Grafana or any other program, has them sent and waits for it, a quarter of a second at most;
	// then delivery.flush_interval holds, until ten seconds after the last. With another exporter
	// beside the store it always does. What silence makes, such as verdicts, waits for ten minutes.
	FlushUnread spec.Duration `yaml:"flush_unread"`
	// After how long without a reader's statement the store closes its engine, which takes memory and a little of the
	// processor while it idles; behind rows that were stored it waits for 75 seconds at most. The next statement opens it, in
	// a quarter of a second of processor time. 0s keeps it open.
	Standby spec.Duration `yaml:"standby"`
	// The earshot-store executable. Empty: beside the earshot executable, else in
	// PATH.
	Binary string `yaml:"binary" kind:"path"`
	// The engine: its library, the library's folder, or a clickhouse executable, which is then run as a
	// server on loopback. Empty: the library of this machine; where it is missing and cannot be fetched,
	// clickhouse in PATH.
	Engine string `yaml:"engine" kind:"path"`
	// Whether earshot up, run and demo fetch the engine from npm's registry, once, when it is not on this
	// machine. It is announced with its size.
	Fetch bool `yaml:"fetch"`
}

// SetDefaults implements spec.Defaults.
func (s *Store) SetDefaults() {
	*s = Store{Fetch: true, MaxMemory: 2 << 30, MaxAge: spec.Duration(90 * 24 * time.Hour), MaxSize: 10e9, FlushUnread: spec.Duration(time.Minute), Standby: spec.Duration(2 * time.Minute)}
}

func (s *Store) validate(c *spec.Check) {
	if s.Listen != "" && c.Address("listen", s.Listen) && !loopback.Is(s.Listen) {
		c.Report("listen", "the embedded store listens on loopback only, got "+c.Quote("listen", s.Listen), "use 127.0.0.1")
	}
	c.PositiveSize("max_memory", s.MaxMemory)
	c.NotNegative("max_age", s.MaxAge)
	c.NotNegative("flush_unread", s.FlushUnread)
	c.NotNegative("standby", s.Standby)
}

// Delivery is how batches are made and retried.
type Delivery struct {
	// Age at which a row is sent, however few there are. After a pause it is a fifth of that.
	FlushInterval spec.Duration `yaml:"flush_interval"`
	// Rows at which a batch is sent before its time.
	BatchRows int `yaml:"batch_rows"`
	// Bytes at which a batch is sent before its time.
	BatchBytes spec.Size `yaml:"batch_bytes"`
	// Bytes between the sources and the spool. Sources wait at this limit.
	MaxInFlight spec.Size `yaml:"max_in_flight"`
	// Pause after the first failed attempt. It doubles with each further one.
	RetryMin spec.Duration `yaml:"retry_min"`
	// Longest pause between two attempts. They never end.
	RetryMax spec.Duration `yaml:"retry_max"`
	// Batches kept on disk for exporters that are down. Sources wait at this limit.
	SpoolMax spec.Size `yaml:"spool_max"`
	// Silence after which a run that never ended is closed. It counts from the
	// times in the records, or from their arrival, not from when Earshot read them.
	IdleClose spec.Duration `yaml:"idle_close"`
	// The same for a call without a result, and for the run that waits for it.
	IdleCall spec.Duration `yaml:"idle_call"`
}

// SetDefaults implements spec.Defaults.
func (d *Delivery) SetDefaults() {
	*d = Delivery{
		FlushInterval: spec.Duration(time.Second),
		BatchRows:     50_000,
		BatchBytes:    8 << 20,
		MaxInFlight:   8 << 20,
		RetryMin:      spec.Duration(200 * time.Millisecond),
		RetryMax:      spec.Duration(30 * time.Second),
		SpoolMax:      4 << 30,
		IdleClose:     spec.Duration(10 * time.Minute),
		IdleCall:      spec.Duration(6 * time.Hour),
	}
}

func (d *Delivery) validate(c *spec.Check) {
	c.Positive("flush_interval", d.FlushInterval)
	if d.BatchRows <= 0 {
		c.Report("batch_rows", "must be greater than 0", "")
	}
	c.PositiveSize("batch_bytes", d.BatchBytes)
	if c.PositiveSize("max_in_flight", d.MaxInFlight) && d.MaxInFlight < d.BatchBytes {
		c.Report("max_in_flight", "is smaller than batch_bytes, so no batch could fill", "")
	}
	c.Positive("retry_min", d.RetryMin)
	if c.Positive("retry_max", d.RetryMax) && d.RetryMax < d.RetryMin {
		c.Report("retry_max", "is less than retry_min", "")
	}
	if c.PositiveSize("spool_max", d.SpoolMax) && d.SpoolMax < d.BatchBytes {
		c.Report("spool_max", "is smaller than batch_bytes, so no batch would fit", "")
	}
	c.Positive("idle_close", d.IdleClose)
	c.Positive("idle_call", d.IdleCall)
}

// Now is the silence after which unfinished work has another name. What is stuck follows from
// verdicts.
type Now struct {
	// Silence after which work that waits for nothing below it, and for no person, is
	// called silent.
	SilentAfter spec.Duration `yaml:"silent_after"`
}

// SetDefaults implements spec.Defaults.
func (n *Now) SetDefaults() {
	*n = Now{SilentAfter: spec.Duration(time.Minute)}
}

func (n *Now) validate(c *spec.Check) {
	c.Positive("silent_after", n.SilentAfter)
}

// How the journal behaves when it is full.
const (
	WhenFullDropOldest   = "drop_oldest"
	WhenFullBackpressure = "backpressure"
)

// Journal bounds the journal.
type Journal struct {
	// Largest size on disk, all sources together.
	MaxSize spec.Size `yaml:"max_size"`
	// Segments older than this are deleted, delivered or not; undelivered bytes are counted.
	MaxAge spec.Duration `yaml:"max_age"`
	// How long delivered segments stay, while there is room, so that earshot backfill
	// can decode it again. Every recorded stream of that time has a place in the
	// checkpoint.
	Keep spec.Duration `yaml:"keep"`
	// The journal counts as full when the disk has less than this left.
	MinFreeDisk spec.Size `yaml:"min_free_disk"`
	// drop_oldest loses the oldest segments and counts them. backpressure makes the
	// sources wait, except a tap, whose traffic flows on unrecorded and is counted.
	WhenFull string `yaml:"when_full"`
	// Size at which a segment is closed and the next one begun.
	SegmentSize spec.Size `yaml:"segment_size"`
	// How much time a power cut may cost.
	FsyncInterval spec.Duration `yaml:"fsync_interval"`
}

// SetDefaults implements spec.Defaults.
func (j *Journal) SetDefaults() {
	*j = Journal{
		MaxSize:       4 << 30,
		MaxAge:        spec.Duration(168 * time.Hour),
		MinFreeDisk:   1 << 30,
		WhenFull:      WhenFullDropOldest,
		SegmentSize:   64 << 20,
		FsyncInterval: spec.Duration(100 * time.Millisecond),
	}
}

func (j *Journal) validate(c *spec.Check) {
	c.PositiveSize("max_size", j.MaxSize)
	if c.Positive("max_age", j.MaxAge) && j.Keep >= j.MaxAge {
		c.Report("keep", "must be shorter than max_age", "")
	}
	c.NotNegative("keep", j.Keep)
	c.OneOf("when_full", j.WhenFull, WhenFullDropOldest, WhenFullBackpressure)
	if c.PositiveSize("segment_size", j.SegmentSize) && j.SegmentSize > j.MaxSize {
		c.Report("segment_size", "is larger than max_size", "")
	}
	c.Positive("fsync_interval", j.FsyncInterval)
}

// How a redacted value is replaced.
const (
	RedactMask = "mask"
	RedactHash = "hash"
)

// Redact describes the values that never reach disk, log, span or table.
type Redact struct {
	// JSON keys whose values are redacted wherever they stand.
	Keys []string `yaml:"keys"`
	// Regular expressions (Go syntax) whose matches are redacted.
	Patterns []Pattern `yaml:"patterns"`
	// The bundled kinds: keys and tokens of some 150 services, private keys, credentials in
	// URLs, headers, cookies and command lines, and values of keys such as password.
	Builtin bool `yaml:"builtin"`
	// Key of the hashes of mode hash, and of the tokens of sources' privacy. Keep it: with another one the same value
	// hashes differently.
	HashSalt spec.Secret `yaml:"hash_salt"`
	// mask writes [redacted:name]; hash writes a keyed hash too, so that equal
	// values can still be joined.
	Mode string `yaml:"mode"`
}

// SetDefaults implements spec.Defaults.
func (r *Redact) SetDefaults() { *r = Redact{Builtin: true, Mode: RedactMask} }

func (r *Redact) validate(c *spec.Check) {
	for i, key := range r.Keys {
		c.Required(spec.Index("keys", i), key)
	}
	validatePatterns(c, r.Patterns)
	c.OneOf("mode", r.Mode, RedactMask, RedactHash)
	if r.Mode == RedactHash && r.HashSalt.Reveal() == "" {
		c.Report("hash_salt", "required by mode hash", "without one a short secret is found by trying")
	}
}

func validatePatterns(c *spec.Check, patterns []Pattern) {
	for i, p := range patterns {
		at := c.In(spec.Index("patterns", i))
		at.Required("name", p.Name)
		if !at.Required("regex", p.Regex) {
			continue
		}
		if _, err := regexp.Compile(p.Regex); err != nil {
			reason := "it cannot be compiled"
			if e, ok := err.(*syntax.Error); ok {
				reason = e.Code.String()
			}
			at.Report("regex", "not a regular expression: "+reason, "")
		}
	}
}

// Pattern is a named regular expression.
type Pattern struct {
	// Name in the replacement text and in the metrics.
	Name string `yaml:"name"`
	// The expression. A literal $ before a { is written $$.
	Regex string `yaml:"regex"`
}

// What becomes of personal data, and of the content of messages.
const (
	PersonalKeep  = "keep"
	PersonalDrop  = "drop"
	PersonalMask  = "mask"
	PersonalToken = "token"

	ContentFull     = "full"
	ContentMetadata = "metadata"
	ContentNone     = "none"
)

// PersonalKinds are the kinds of personal data that are known.
func PersonalKinds() []string { return []string{"email", "iban", "card", "national_id", "ip", "phone"} }

// Privacy is what of a source's messages reaches the exporters. The journal and earshot tail have
// the frames as they were read.
type Privacy struct {
	// Personal data in texts, names and attributes: keep; drop it; mask writes
	// [personal:kind]; token writes a keyed hash too, by which equal values can still be
	// joined. Its key is redact.hash_salt.
	Personal string `yaml:"personal"`
	// Which: email, iban, card, national_id (of ten countries), ip, phone. Empty: all.
	Kinds []string `yaml:"kinds"`
	// Words that are personal data too, such as names, in any letter case.
	Words []string `yaml:"words"`
	// Regular expressions (Go syntax) whose matches are personal data too.
	Patterns []Pattern `yaml:"patterns"`
	// Texts, arguments, results and tasks: full; metadata keeps their lengths and hashes; none
	// keeps nothing.
	Content string `yaml:"content"`
}

// SetDefaults implements spec.Defaults.
func (p *Privacy) SetDefaults() { *p = Privacy{Personal: PersonalKeep, Content: ContentFull} }

func (p *Privacy) validate(c *spec.Check) {
	c.OneOf("personal", p.Personal, PersonalKeep, PersonalDrop, PersonalMask, PersonalToken)
	c.OneOf("content", p.Content, ContentFull, ContentMetadata, ContentNone)
	for i, k := range p.Kinds {
		c.OneOf(spec.Index("kinds", i), k, PersonalKinds()...)
	}
	for i, w := range p.Words {
		c.Required(spec.Index("words", i), w)
	}
	validatePatterns(c, p.Patterns)
}

// Telemetry is Earshot's own HTTP endpoint.
type Telemetry struct {
	// Address of /metrics, /healthz and /readyz. Empty turns it off.
	Listen string `yaml:"listen"`
	// Serves /debug/pprof at that address: stacks, memory and profiles of this process.
	Pprof bool `yaml:"pprof"`
}

// SetDefaults implements spec.Defaults.
func (t *Telemetry) SetDefaults() { *t = Telemetry{Listen: "127.0.0.1:9464"} }

func (t *Telemetry) validate(c *spec.Check) {
	if t.Listen != "" {
		c.Address("listen", t.Listen)
	}
}

// Log is Earshot's own log.
type Log struct {
	// debug, info, warn or error.
	Level string `yaml:"level"`
	// text or json.
	Format string `yaml:"format"`
}

// SetDefaults implements spec.Defaults.
func (l *Log) SetDefaults() { *l = Log{Level: "info", Format: "text"} }

func (l *Log) validate(c *spec.Check) {
	c.OneOf("level", l.Level, "debug", "info", "warn", "error")
	c.OneOf("format", l.Format, "text", "json")
}
