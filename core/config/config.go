package config

import (
	"encoding/json"
	"iter"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/attribution"
	"github.com/earshot-dev/earshot/core/config/spec"
)

// Config is a whole configuration file. The comments of the fields, here and in
// the structs below, are the comments of config.example.yaml, where TYPES are those of sources.
type Config struct {
	// Where Earshot keeps its journal, spool and checkpoint, and the embedded store.
	DataDir string `yaml:"data_dir" kind:"path"`
	// Directory of third-party decoders. The name of an executable in it is the
	// name of the format that it decodes. Empty: only the bundled decoders.
	PluginDir string `yaml:"plugin_dir" kind:"path"`
	// How to run the decoder of a format, bundled or third-party. A format that is
	// not named here runs with the values shown.
	Plugins map[string]Plugin `yaml:"plugins"`
	// The traffic to read.
	Sources []Source `yaml:"sources"`
	// Prices of models, for the cost of a run: CSV with the columns model, from, input,
	// output, cache_read, cache_write and, where they are there, cache_write_1h, tiers and long, in US
	// dollars for a million tokens (docs/tables.md). Empty: the list prices that are part of the program, checked on 2026-08-21
	// (core/price/prices.csv, from which a file of your own can begin).
	Prices string `yaml:"prices" kind:"path"`
	// Whose work a turn is: rules that derive team, ticket and other dimensions from the facts that are known of
	// the turn that began the work, in their order. User, host, project, repository, branch and
	// a ticket in the name of the branch are derived without one. See docs/who.md.
	Dimensions []attribution.Rule `yaml:"dimensions"`
	// Alerts when work costs too much, which the exporters of notifications send: budget_fast and budget_slow
	// when a budget will not last for its period, budget_spent when it is spent. See docs/who.md.
	Budgets []attribution.Budget `yaml:"budgets"`
	// Where to deliver. ClickHouse is the embedded store unless a dsn is set.
	Exporters Exporters `yaml:"exporters"`
	// The embedded store. Not started when exporters.clickhouse is set.
	Store Store `yaml:"store"`
	// How messages travel to the exporters.
	Delivery Delivery `yaml:"delivery"`
	// When unfinished work is called silent.
	Now Now `yaml:"now"`
	// The journal of everything that cannot be read a second time: of all sources but those
	// of type file. A file is its own journal.
	Journal Journal `yaml:"journal"`
	// Values that are taken out before anything reaches the disk.
	Redact Redact `yaml:"redact"`
	// Earshot's own metrics and health.
	Telemetry Telemetry `yaml:"telemetry"`
	// Earshot's own log, on stderr.
	Log Log `yaml:"log"`

	// The file, and where each of its values begins, for Problem.
	file string
	at   map[string]place
}

// Default returns the configuration of an empty file: everything but sources.
func Default() *Config {
	c := &Config{DataDir: "./earshot-data"}
	for _, section := range []spec.Defaults{&c.Store, &c.Delivery, &c.Now, &c.Journal, &c.Redact, &c.Telemetry, &c.Log} {
		section.SetDefaults()
	}
	return c
}

// validate reports everything that can be known from the file alone.
func (c *Config) validate(check *spec.Check) {
	check.Required("data_dir", c.DataDir)
	for name, p := range sorted(c.Plugins) {
		if !spec.IsFormat(name) {
			check.Report(spec.Join("plugins", name), "the name of a format is made of a-z, 0-9 and -", "")
		}
		p.validate(check.In(spec.Join("plugins", name)))
	}
	c.validateSources(check)
	for i := range c.Dimensions {
		c.Dimensions[i].Validate(check.In(spec.Index("dimensions", i)))
	}
	budgets := map[string]bool{}
	for i := range c.Budgets {
		b, at := &c.Budgets[i], check.In(spec.Index("budgets", i))
		if b.Validate(at); budgets[b.Name] {
			at.Report("name", at.Quote("name", b.Name)+" is the name of another budget", "")
		}
		budgets[b.Name] = true
	}
	check.OneOf("exporters.semconv", c.Exporters.Semconv, "", SemconvRelease, SemconvLatest)
	for name, section := range sorted(c.Exporters.Sections) {
		section.Validate(check.In("exporters." + name))
	}
	c.Store.validate(check.In("store"))
	c.Delivery.validate(check.In("delivery"))
	c.Now.validate(check.In("now"))
	c.Journal.validate(check.In("journal"))
	c.Redact.validate(check.In("redact"))
	for i := range c.Sources {
		if c.Sources[i].Privacy.Personal == PersonalToken && c.Redact.HashSalt.Reveal() == "" {
			check.In(spec.Index("sources", i)).In("privacy").Report("personal", "token needs redact.hash_salt", "without one a short value is found by trying")
		}
	}
	c.Telemetry.validate(check.In("telemetry"))
	c.Log.validate(check.In("log"))
	c.validateListeners(check)
}

// validateSources checks the names of the sources. The loader checks each source when it
// knows its type.
func (c *Config) validateSources(check *spec.Check) {
	if len(c.Sources) == 0 {
		check.Report("sources", "none configured", "")
	}
	names := map[string]string{}
	for i := range c.Sources {
		name, at := c.Sources[i].Name, spec.Index("sources", i)
		if other, taken := names[name]; taken && name != "" {
			check.Report(at+".name", check.Quote(at+".name", name)+" is already the name of "+other, "")
		}
		names[name] = at
	}
}

// Listener is an address that a run listens on.
type Listener struct{ Key, Address string }

// Listeners are the addresses of the sources and of Earshot itself.
func (c *Config) Listeners() []Listener {
	var out []Listener
	for i := range c.Sources {
		if s, ok := c.Sources[i].Section.(spec.Listening); ok {
			for key, address := range sorted(s.ListenAddresses()) {
				out = append(out, Listener{spec.Index("sources", i) + "." + key, address})
			}
		}
	}
	if c.Embedded() && c.Store.Listen != "" {
		out = append(out, Listener{"store.listen", c.Store.Listen})
	}
	return append(out, Listener{"telemetry.listen", c.Telemetry.Listen})
}

// DimensionNames are the names of all dimensions: the built-in ones first, then those of the rules.
func (c *Config) DimensionNames() []string { return attribution.Dimensions(c.Dimensions) }

// DidYouMean is a hint at the one of known that a word was probably meant to be; empty when none is near.
func DidYouMean(word string, known []string) string { return spec.DidYouMean(word, known) }

// validateListeners reports addresses that two listeners would share.
func (c *Config) validateListeners(check *spec.Check) {
	type listener struct{ key, host, port string }
	var before []listener
	for _, l := range c.Listeners() {
		host, port, err := net.SplitHostPort(l.Address)
		if err != nil || port == "0" {
			continue
		}
		same := slices.IndexFunc(before, func(b listener) bool {
			return b.port == port && (b.host == host || isWildcard(b.host) || isWildcard(host))
		})
		if same >= 0 {
			check.Report(l.Key, check.Quote(l.Key, l.Address)+" is already the address of "+before[same].key, "")
			continue
		}
		before = append(before, listener{l.Key, host, port})
	}
}

func isWildcard(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// Plugin is how the decoder process of one format runs.
type Plugin struct {
	// SHA-256 of the executable, 64 hex digits. Another file is not started.
	SHA256 string `yaml:"sha256"`
	// Names of the environment variables that the process may see. All others are
	// withheld.
	Env []string `yaml:"env"`
	// Memory at which the process is killed and restarted.
	MemoryLimit spec.Size `yaml:"memory_limit"`
	// How long the process may take to start, and how long one call may take.
	Timeout spec.Duration `yaml:"timeout"`
	// Mutual TLS between Earshot and the process. Their socket lies in a directory
	// that only Earshot's user can enter, so it guards against nothing but that user,
	// and it costs more than half of the throughput.
	AutoMTLS bool `yaml:"auto_mtls"`
	// The executable in plugin_dir is used although a bundled decoder has its name.
	ReplaceBundled bool `yaml:"replace_bundled"`
	// Rights of the process beside decoding. On Linux it runs in a sandbox: it reads its
	// executable and the system's libraries, serves its socket, and can do nothing else. A script
	// also reads and runs the software that the system has installed.
	Sandbox Sandbox `yaml:"sandbox"`
}

// Sandbox has the rights of a decoder process beside decoding.
type Sandbox struct {
	// Files and folders to read and to run, for example the modules of an interpreter.
	Read []string `yaml:"read" kind:"path"`
	// Files and folders to read and to change.
	Write []string `yaml:"write" kind:"path"`
	// Connections to any address, and to the sockets of this user's other programs.
	Network bool `yaml:"network"`
	// Other processes, of programs that it may run. They count for memory_limit, and end with it.
	Processes bool `yaml:"processes"`
	// No sandbox. "sandbox: off" is the same.
	Off bool `yaml:"off"`
}

// DefaultPlugin is how the decoder of a format runs that plugins does not name.
func DefaultPlugin() (p Plugin) {
	p.SetDefaults()
	return p
}

// SetDefaults implements spec.Defaults.
func (p *Plugin) SetDefaults() {
	*p = Plugin{MemoryLimit: 1 << 30, Timeout: spec.Duration(30 * time.Second)}
}

var sha256Hex = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

func (p *Plugin) validate(c *spec.Check) {
	if p.SHA256 != "" && !sha256Hex.MatchString(p.SHA256) {
		c.Report("sha256", "expected 64 hex digits, got "+c.Quote("sha256", p.SHA256), "")
	}
	for i, name := range p.Env {
		if at := spec.Index("env", i); !isVariable(name) {
			c.Report(at, "expected the name of a variable, got "+c.Quote(at, name), "")
		}
	}
	c.PositiveSize("memory_limit", p.MemoryLimit)
	c.Positive("timeout", p.Timeout)
}

// Source is one source: the keys that all types have, and those of its own type. In the
// file both are keys of one mapping.
type Source struct {
	// Unique name: letters a-z, digits, _ and -. It is part of the identity of the
	// stored rows: a renamed source is a new one.
	Name string `yaml:"name"`
	// TYPES.
	Type string `yaml:"type"`
	// Format of the traffic, which is the name of the decoder.
	Format string `yaml:"format"`
	// Tenant of everything that this source reads.
	Tenant string `yaml:"tenant"`
	// Settings of the decoder; `earshot plugin list` shows which it has.
	Options json.RawMessage `yaml:"options"`
	// What of its messages is kept beside secrets, which never are.
	Privacy Privacy `yaml:"privacy"`

	// The keys of the type; nil when Type is unknown.
	Section spec.Section
}

// SetDefaults implements spec.Defaults.
func (s *Source) SetDefaults() {
	*s = Source{Tenant: "default"}
	s.Privacy.SetDefaults()
}

// Formats are the formats of the source's traffic, its own first.
func (s *Source) Formats() []string {
	var out []string
	if s.Format != "" {
		out = append(out, s.Format)
	}
	if r, ok := s.Section.(spec.Routing); ok {
		for _, format := range r.RoutedFormats(s.Format) {
			if format != "" && !slices.Contains(out, format) {
				out = append(out, format)
			}
		}
	}
	return out
}

var sourceName = regexp.MustCompile(`^[a-z0-9_-]+$`)

// validate checks the source; types are those that there are.
func (s *Source) validate(c *spec.Check, types []string) {
	if c.Required("name", s.Name) && !sourceName.MatchString(s.Name) {
		c.Report("name", "a name is made of a-z, 0-9, _ and -, got "+c.Quote("name", s.Name), "")
	}
	c.Required("tenant", s.Tenant)
	s.Privacy.validate(c.In("privacy"))
	if s.Type == "" && !c.IsSet("type") {
		c.Report("type", "required", spec.Enumerate(types, "or"))
	} else {
		c.OneOf("type", s.Type, types...)
	}
	why := ""
	routing, routes := s.Section.(spec.Routing)
	if routes {
		why = "a " + s.Type + " without routes"
	}
	if !routes || len(routing.RoutedFormats(s.Format)) == 0 || s.Format != "" {
		c.Format("format", s.Format, why)
	}
}

// Exporters are the destinations.
type Exporters struct {
	// Version of OpenTelemetry's GenAI conventions, by which spans are named over OTLP
	// and in otel_traces, and metrics over OTLP and at /metrics: "1.41", the last
	// release, or genai-latest, as the conventions' new repository has them. Default:
	// genai-latest if OTEL_SEMCONV_STABILITY_OPT_IN has gen_ai_latest_experimental,
	// else "1.41".
	Semconv string `yaml:"semconv"`

	// The exporters that the file has, by name: the type, or the type with more behind a -.
	Sections map[string]spec.Section
}

// Of returns the names of the exporters of a type, sorted.
func (e *Exporters) Of(t spec.Type) (names []string) {
	for name := range sorted(e.Sections) {
		if isOf(name, t) {
			names = append(names, name)
		}
	}
	return names
}

// Versions of the GenAI conventions; the names are those of the package semconv.
const (
	SemconvRelease = "1.41"
	SemconvLatest  = "genai-latest"
)

// optedIn is the version of the conventions that the environment chooses, by the
// variable that they have for it; empty when it chooses none.
func optedIn(env func(string) (string, bool)) string {
	if env != nil {
		list, _ := env("OTEL_SEMCONV_STABILITY_OPT_IN")
		for value := range strings.SplitSeq(list, ",") {
			if strings.TrimSpace(value) == "gen_ai_latest_experimental" {
				return SemconvLatest
			}
		}
	}
	return ""
}

// StoreExporter is the type of the exporter that writes to the embedded store when the
// file has no such exporter.
const StoreExporter = "clickhouse"

// Embedded reports whether the rows go to the embedded store.
func (c *Config) Embedded() bool { return c.Exporters.Sections[StoreExporter] == nil }

// sorted goes through a map in the order of its keys.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
