package clickhouse

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/export"
)

// configFile notes the problems that a check reports.
type configFile struct {
	set      []string
	problems []string
}

func (f *configFile) Report(path, message, _ string) {
	f.problems = append(f.problems, path+": "+message)
}
func (f *configFile) IsSet(path string) bool       { return slices.Contains(f.set, path) }
func (f *configFile) Quote(_, value string) string { return spec.Quote(value) }

func TestConfig(t *testing.T) {
	const name = "the name of a database is made of letters, digits and _"
	for _, c := range []struct {
		what     string
		set      func(*Config)
		keys     string // that the file has beside the dsn
		database string
		problems []string
	}{
		{"no dsn", func(c *Config) { c.DSN = spec.Secret{} }, "", "earshot", []string{"dsn: exporters.clickhouse is given without a dsn"}},
		{"an empty dsn", func(c *Config) { c.DSN = spec.Secret{} }, "dsn", "earshot", []string{"dsn: must not be empty"}},
		{"a dsn", func(*Config) {}, "", "earshot", nil},
		{"a database in the dsn", func(c *Config) { c.DSN = spec.NewSecret("clickhouse://u:p@a:1,b:2/agents/") }, "", "agents", nil},
		{"in its query", func(c *Config) { c.DSN = spec.NewSecret("https://h/other?database=agents") }, "", "agents", nil},
		{"in that of a socket", func(c *Config) { c.DSN = spec.NewSecret("http+unix://%2Frun%2Fs/agents") }, "", "agents", nil},
		{"a key", func(c *Config) { c.Database = "own" }, "database", "own", nil},
		{"both", func(c *Config) { c.DSN, c.Database = spec.NewSecret("http://h/own"), "own" }, "database", "own", nil},
		{"two", func(c *Config) { c.DSN, c.Database = spec.NewSecret("http://h/agents"), "own" }, "database", "own", []string{"database: the dsn names another database"}},
		{"a name with a dash", func(c *Config) { c.Database = "a-b" }, "database", "a-b", []string{"database: " + name}},
		{"in the dsn", func(c *Config) { c.DSN = spec.NewSecret("http://h/a-b") }, "", "a-b", []string{"dsn: " + name}},
		{"no scheme", func(c *Config) { c.DSN = spec.NewSecret("h:9000") }, "", "earshot", []string{"dsn: " + errDSN.Error()}},
		{"another scheme", func(c *Config) { c.DSN = spec.NewSecret("mysql://h") }, "", "earshot", []string{"dsn: " + errDSNScheme.Error()}},
		{"no socket", func(c *Config) { c.DSN = spec.NewSecret("http+unix://run") }, "", "earshot", []string{"dsn: " + errDSN.Error()}},
		{"a second host without a name", func(c *Config) { c.DSN = spec.NewSecret("http://h:1,:2/d") }, "", "earshot", []string{"dsn: " + errDSN.Error()}},
		{"a host with a wrong port", func(c *Config) { c.DSN = spec.NewSecret("http://h:port") }, "", "earshot", []string{"dsn: " + errDSN.Error()}},
		{"a cluster", func(c *Config) { c.Cluster = "{cluster}" }, "cluster", "earshot", nil},
		{"a cluster with a blank", func(c *Config) { c.Cluster = "a b" }, "cluster", "earshot", []string{"cluster: the name of a cluster is made of letters, digits, _ . - { and }"}},
		{"no quorum", func(c *Config) { c.InsertQuorum = "" }, "", "earshot", nil},
		{"a quorum of none", func(c *Config) { c.InsertQuorum = "0" }, "", "earshot", nil},
		{"of two", func(c *Config) { c.InsertQuorum = "2" }, "", "earshot", nil},
		{"of less than none", func(c *Config) { c.InsertQuorum = "-1" }, "", "earshot", []string{"insert_quorum: expected auto or a number of replicas"}},
		{"of most", func(c *Config) { c.InsertQuorum = "most" }, "", "earshot", []string{"insert_quorum: expected auto or a number of replicas"}},
		{"a volume", func(c *Config) { c.Move.Volume = "cold" }, "", "earshot", []string{"move.volume: a volume is part of a storage policy"}},
		{"a volume of a policy", func(c *Config) { c.Move.Volume, c.StoragePolicy = "cold", "tiers" }, "", "earshot", nil},
		{"times", func(c *Config) {
			c.Compression, c.Timeout, c.Move.After, c.TTL = "rar", 0, 0, Retention{-1, -1, -1, -1}
		}, "", "earshot", []string{
			`compression: expected`, "timeout: ", "move.after: ", "ttl.bodies: ", "ttl.messages: ", "ttl.spans: ", "ttl.rollups: ",
		}},
		{"for ever", func(c *Config) { c.TTL = Retention{} }, "", "earshot", nil},
	} {
		config := Type().New().(*Config)
		config.DSN = spec.NewSecret("http://h")
		c.set(config)
		config.Resolve()
		f := &configFile{set: strings.Fields(c.keys)}
		config.Validate(spec.NewCheck(f, "", ""))
		if config.Database != c.database {
			t.Errorf("%s: database %q, want %q", c.what, config.Database, c.database)
		}
		if !slices.EqualFunc(c.problems, f.problems, func(want, got string) bool { return strings.HasPrefix(got, want) }) {
			t.Errorf("%s: %q, want %q", c.what, f.problems, c.problems)
		}
	}
}

// TestExporterOfAConfig: a server has the tables that the section names, the embedded store those of the section store.
func TestExporterOfAConfig(t *testing.T) {
	env := export.Env{StoreDSN: "http+unix://default@%2Frun%2Fs/", StoreMaxAge: testDay, StoreMaxSize: 1 << 30, SilentAfter: time.Hour, TempDir: t.TempDir()}
	server := &Config{DSN: spec.NewSecret("http://h/agents"), Database: "agents", Cluster: "c", InsertQuorum: "2", CreateSchema: true, Timeout: spec.Duration(time.Second), Sync: true, StoragePolicy: "tiers",
		Move: Move{"cold", days}, TTL: Retention{2 * days, 3 * days, 4 * days, 5 * days}}
	for _, c := range []struct {
		config  *Config
		schema  Schema
		quorum  string
		size    int64
		timeout time.Duration
	}{
		{server, Schema{Database: "agents", Cluster: "c", Sync: true, StoragePolicy: "tiers", TTL: TTL{2 * testDay, 3 * testDay, 4 * testDay, 5 * testDay, "cold", testDay}}, "2", 0, time.Second},
		{&Config{}, Schema{Database: DefaultDatabase, Sync: true, TTL: TTL{Messages: testDay, Spans: testDay, Rollups: testDay}}, "", 1 << 30, 30 * time.Second},
	} {
		made, err := c.config.NewExporter(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		x := made.(*Exporter)
		if d := cmp.Diff(c.schema, x.schema, cmp.AllowUnexported(Schema{})); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		s := x.settings
		if s.Quorum != c.quorum || s.MaxSize != c.size || s.Timeout != c.timeout || !s.CreateSchema || s.SilentAfter != time.Hour || s.TempDir != env.TempDir ||
			s.ConversationsEvery != conversationsEvery || s.MaxInsertBytes != 64<<20 || s.Logger == nil || s.Profile == nil || s.Prices == nil {
			t.Errorf("settings %+v", s)
		}
		if err := x.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
