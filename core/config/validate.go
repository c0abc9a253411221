package config

import (
	"maps"
	"net"
	"net/netip"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
)

// report adds a problem at a path, unless it has one: a value that could not be
// read is not also missing.
func (l *loader) report(path, message, hint string) {
	if l.bad[path] {
		return
	}
	l.bad[path] = true
	at := find(l.at, path)
	l.problems = append(l.problems, Problem{
		File: l.file, Line: at.line, Col: at.col, Path: path, Message: message, Hint: hint,
	})
}

// validate checks everything that can be known without asking anyone.
func (l *loader) validate(c *Config) {
	l.required("data_dir", c.DataDir, "")
	for _, name := range slices.Sorted(maps.Keys(c.Plugins)) {
		l.plugin(join("plugins", name), name, c.Plugins[name])
	}
	if len(c.Sources) == 0 {
		l.report("sources", "none configured", "")
	}
	names := map[string]string{}
	for i := range c.Sources {
		path, s := "sources["+strconv.Itoa(i)+"]", &c.Sources[i]
		if l.bad[path] {
			continue
		}
		l.validateSource(path, s)
		if other, taken := names[s.Name]; taken && s.Name != "" {
			l.report(path+".name", l.shown(path+".name", s.Name)+" is already the name of "+other, "")
		}
		names[s.Name] = path
	}
	l.oneOf("exporters.semconv", c.Exporters.Semconv, "", SemconvRelease, SemconvLatest)
	l.clickhouse("exporters.clickhouse", c.Exporters.ClickHouse)
	l.otlp("exporters.otlp", c.Exporters.OTLP)
	l.store("store", &c.Store)
	l.delivery("delivery", &c.Delivery)
	l.now("now", &c.Now)
	l.journal("journal", &c.Journal)
	l.redact("redact", &c.Redact)
	if c.Telemetry.Listen != "" {
		l.address("telemetry.listen", c.Telemetry.Listen)
	}
	l.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	l.oneOf("log.format", c.Log.Format, "text", "json")
	l.listeners(c)
}

var (
	sha256Hex    = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
	databaseName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	clusterName  = regexp.MustCompile(`^[A-Za-z0-9_.{}-]+$`)
)

func (l *loader) plugin(path, name string, p Plugin) {
	if !formatName.MatchString(name) {
		l.report(path, "the name of a format is made of a-z, 0-9 and -", "")
	}
	if p.SHA256 != "" && !sha256Hex.MatchString(p.SHA256) {
		l.report(path+".sha256", "expected 64 hex digits, got "+l.shown(path+".sha256", p.SHA256), "")
	}
	for i, name := range p.Env {
		if at := path + ".env[" + strconv.Itoa(i) + "]"; !isVariable(name) {
			l.report(at, "expected the name of a variable, got "+l.shown(at, name), "")
		}
	}
	l.positiveSize(path+".memory_limit", p.MemoryLimit)
	l.positive(path+".timeout", p.Timeout)
}

func (l *loader) clickhouse(path string, ch *ClickHouse) {
	if ch == nil {
		return
	}
	at := path + ".dsn"
	if ch.DSN.Reveal() == "" {
		if _, given := l.at[at]; given {
			l.report(at, "must not be empty", "leave exporters.clickhouse out for the embedded store")
		} else {
			l.report(at, "exporters.clickhouse is given without a dsn", "leave it out for the embedded store")
		}
	} else if u, err := parseDSN(ch.DSN); err != nil {
		l.report(at, err.Error(), "")
	} else if d := databaseOf(u); d != "" && d != ch.Database {
		l.report(path+".database", "the dsn names another database", "")
	}
	if !databaseName.MatchString(ch.Database) {
		if _, given := l.at[path+".database"]; given {
			at = path + ".database"
		}
		l.report(at, "the name of a database is made of letters, digits and _", "")
	}
	if ch.Cluster != "" && !clusterName.MatchString(ch.Cluster) {
		l.report(path+".cluster", "the name of a cluster is made of letters, digits, _ . - { and }", "")
	}
	l.oneOf(path+".compression", ch.Compression, "auto", "lz4", "zstd", "none")
	l.positive(path+".timeout", ch.Timeout)
	l.notNegative(path+".ttl.bodies", ch.TTL.Bodies)
	l.notNegative(path+".ttl.messages", ch.TTL.Messages)
	l.notNegative(path+".ttl.spans", ch.TTL.Spans)
	l.notNegative(path+".ttl.rollups", ch.TTL.Rollups)
}

func (l *loader) otlp(path string, o *OTLP) {
	if o == nil {
		return
	}
	l.requiredURL(path+".endpoint", o.Endpoint, "", "http", "https")
	l.oneOf(path+".protocol", o.Protocol, ProtocolHTTP, ProtocolGRPC)
	l.headers(path+".headers", o.Headers)
	l.oneOf(path+".compression", o.Compression, "gzip", "none")
	l.positive(path+".timeout", o.Timeout)
	l.positiveSize(path+".max_batch_bytes", o.MaxBatchBytes)
	l.notNegative(path+".metrics_interval", o.MetricsInterval)
	l.checkClientTLS(path+".tls", o.TLS, "endpoint", o.Endpoint)
}

func (l *loader) store(path string, s *Store) {
	at := path + ".listen"
	if l.required(at, s.Listen, "") && l.address(at, s.Listen) {
		host, _, _ := net.SplitHostPort(s.Listen)
		ip, err := netip.ParseAddr(host)
		if host != "localhost" && (err != nil || !ip.IsLoopback()) {
			l.report(at, "the embedded store listens on loopback only, got "+l.shown(at, s.Listen), "use 127.0.0.1")
		}
	}
	l.positiveSize(path+".max_memory", s.MaxMemory)
}

func (l *loader) delivery(path string, d *Delivery) {
	l.positive(path+".flush_interval", d.FlushInterval)
	if at := path + ".batch_rows"; d.BatchRows <= 0 {
		l.report(at, "must be greater than 0", "")
	}
	l.positiveSize(path+".batch_bytes", d.BatchBytes)
	if l.positiveSize(path+".max_in_flight", d.MaxInFlight) && d.MaxInFlight < d.BatchBytes {
		l.report(path+".max_in_flight", "is smaller than batch_bytes, so no batch could fill", "")
	}
	l.positive(path+".retry_min", d.RetryMin)
	if l.positive(path+".retry_max", d.RetryMax) && d.RetryMax < d.RetryMin {
		l.report(path+".retry_max", "is less than retry_min", "")
	}
	if l.positiveSize(path+".spool_max", d.SpoolMax) && d.SpoolMax < d.BatchBytes {
		l.report(path+".spool_max", "is smaller than batch_bytes, so no batch would fit", "")
	}
	l.positive(path+".idle_close", d.IdleClose)
	l.positive(path+".idle_call", d.IdleCall)
}

func (l *loader) now(path string, n *Now) {
	l.positive(path+".silent_after", n.SilentAfter)
	if l.positive(path+".stuck_after", n.StuckAfter) && n.StuckAfter < n.SilentAfter {
		l.report(path+".stuck_after", "is less than silent_after", "")
	}
}

func (l *loader) journal(path string, j *Journal) {
	l.positiveSize(path+".max_size", j.MaxSize)
	if l.positive(path+".max_age", j.MaxAge) && j.Keep >= j.MaxAge {
		l.report(path+".keep", "must be shorter than max_age", "")
	}
	if j.Keep < 0 {
		l.report(path+".keep", "must not be negative", "")
	}
	l.oneOf(path+".when_full", j.WhenFull, WhenFullDropOldest, WhenFullBackpressure)
	if l.positiveSize(path+".segment_size", j.SegmentSize) && j.SegmentSize > j.MaxSize {
		l.report(path+".segment_size", "is larger than max_size", "")
	}
	l.positive(path+".fsync_interval", j.FsyncInterval)
}

func (l *loader) redact(path string, r *Redact) {
	for i, key := range r.Keys {
		l.required(path+".keys["+strconv.Itoa(i)+"]", key, "")
	}
	for i, p := range r.Patterns {
		at := path + ".patterns[" + strconv.Itoa(i) + "]"
		l.required(at+".name", p.Name, "")
		if !l.required(at+".regex", p.Regex, "") {
			continue
		}
		if _, err := regexp.Compile(p.Regex); err != nil {
			l.report(at+".regex", "not a regular expression: "+reasonOf(err), "")
		}
	}
	l.oneOf(path+".mode", r.Mode, RedactMask, RedactHash)
	if r.Mode == RedactHash && r.HashSalt.Reveal() == "" {
		l.report(path+".hash_salt", "required by mode hash", "without one a short secret is found by trying")
	}
}

func reasonOf(err error) string {
	if e, ok := err.(*syntax.Error); ok {
		return e.Code.String()
	}
	return "it cannot be compiled"
}
