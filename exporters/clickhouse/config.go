package clickhouse

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/export"
)

// Config is the section exporters.clickhouse.
type Config struct {
	// clickhouse://user:password@host:9000/database, or http:// and https:// for the
	// HTTP interface. Several hosts are separated by commas. Never printed.
	DSN spec.Secret `yaml:"dsn"`
	// Database of the tables. Default: the one in the dsn, else earshot.
	Database string `yaml:"database"`
	// Cluster for ON CLUSTER and replicated tables. Empty: a single server.
	Cluster string `yaml:"cluster"`
	// Replicas of a cluster that have the rows before an insert is answered: a number, or auto
	// for most of them. Empty: the server's default.
	InsertQuorum string `yaml:"insert_quorum"`
	// Create and migrate the tables at start. Without it they must be there.
	CreateSchema bool `yaml:"create_schema"`
	// Compression on the wire: lz4, zstd, none, or auto: lz4, unless the server is on
	// this machine.
	Compression string `yaml:"compression"`
	// How long one insert may take before it is retried.
	Timeout spec.Duration `yaml:"timeout"`
	// Answer an insert when its rows survive a power cut of the server.
	Sync bool `yaml:"sync"`
	// Storage policy of the tables. Empty: the server's default.
	StoragePolicy string `yaml:"storage_policy"`
	// Move rows to a volume of the storage policy when they are old.
	Move Move `yaml:"move"`
	// How long rows are kept. 0s keeps them for ever.
	TTL Retention `yaml:"ttl"`
}

// Move is when rows go to another volume.
type Move struct {
	// Volume of the storage policy. Empty: rows stay where they are.
	Volume string `yaml:"volume"`
	// Age of the rows, from when they were stored.
	After spec.Duration `yaml:"after"`
}

// Retention is how long the rows of each kind of table are kept; 0 is for ever.
type Retention struct {
	// Contents of messages, tool arguments and results.
	Bodies spec.Duration `yaml:"bodies"`
	// Messages without their contents. Spans, tool calls and delegations are one table, which
	// is kept for the longer of messages and spans.
	Messages spec.Duration `yaml:"messages"`
	// Spans, those that agents send themselves, and dead letters.
	Spans spec.Duration `yaml:"spans"`
	// Hourly aggregates.
	Rollups spec.Duration `yaml:"rollups"`
}

const days = spec.Duration(24 * time.Hour)

// Type is the exporter clickhouse.
func Type() spec.Type {
	return spec.Type{
		Name: "clickhouse",
		Doc:  "A ClickHouse server or cluster, instead of the embedded store.",
		New: func() spec.Section {
			return &Config{
				CreateSchema: true, Sync: true, InsertQuorum: "auto", Move: Move{After: 7 * days}, Compression: CompressionAuto, Timeout: spec.Duration(30 * time.Second),
				TTL: Retention{Bodies: 90 * days, Messages: 180 * days, Spans: 30 * days, Rollups: 730 * days},
			}
		},
		Example: spec.Example{On: func(s spec.Section) {
			c := s.(*Config)
			c.DSN = spec.NewSecret("clickhouse://earshot:${CLICKHOUSE_PASSWORD:-}@clickhouse:9000/earshot")
			c.Database = DefaultDatabase
		}},
	}
}

// Resolve implements spec.Resolver: the database is the one in the dsn unless it is a key.
func (c *Config) Resolve() {
	if c.Database != "" {
		return
	}
	c.Database = DefaultDatabase
	if u, err := parseDSN(c.DSN); err == nil && databaseOf(u) != "" {
		c.Database = databaseOf(u)
	}
}

var (
	databaseName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	clusterName  = regexp.MustCompile(`^[A-Za-z0-9_.{}-]+$`)
)

// Validate implements spec.Section.
func (c *Config) Validate(check *spec.Check) {
	if c.DSN.Reveal() == "" {
		if check.IsSet("dsn") {
			check.Report("dsn", "must not be empty", "leave exporters.clickhouse out for the embedded store")
		} else {
			check.Report("dsn", "exporters.clickhouse is given without a dsn", "leave it out for the embedded store")
		}
	} else if u, err := parseDSN(c.DSN); err != nil {
		check.Report("dsn", err.Error(), "")
	} else if d := databaseOf(u); d != "" && d != c.Database {
		check.Report("database", "the dsn names another database", "")
	}
	if !databaseName.MatchString(c.Database) {
		at := "dsn"
		if check.IsSet("database") {
			at = "database"
		}
		check.Report(at, "the name of a database is made of letters, digits and _", "")
	}
	if c.Cluster != "" && !clusterName.MatchString(c.Cluster) {
		check.Report("cluster", "the name of a cluster is made of letters, digits, _ . - { and }", "")
	}
	if q := c.InsertQuorum; q != "" && q != "auto" {
		if n, err := strconv.Atoi(q); err != nil || n < 0 {
			check.Report("insert_quorum", "expected auto or a number of replicas", "")
		}
	}
	check.OneOf("compression", c.Compression, CompressionAuto, CompressionLZ4, CompressionZSTD, CompressionNone)
	check.Positive("timeout", c.Timeout)
	check.Positive("move.after", c.Move.After)
	if c.Move.Volume != "" && c.StoragePolicy == "" {
		check.Report("move.volume", "a volume is part of a storage policy", "set storage_policy")
	}
	check.NotNegative("ttl.bodies", c.TTL.Bodies)
	check.NotNegative("ttl.messages", c.TTL.Messages)
	check.NotNegative("ttl.spans", c.TTL.Spans)
	check.NotNegative("ttl.rollups", c.TTL.Rollups)
}

var (
	errDSN       = errors.New(`expected a dsn like "clickhouse://user:password@host:9000/earshot", its password percent-encoded`)
	errDSNScheme = errors.New("expected scheme clickhouse, tcp, native, http or https")
)

// parseDSN parses the parts of a DSN that the configuration needs. The driver takes several
// hosts, which net/url refuses in http URLs, so all but the first are checked one by one
// and cut out. Its errors never hold the DSN.
func parseDSN(dsn spec.Secret) (*url.URL, error) {
	scheme, rest, ok := strings.Cut(dsn.Reveal(), "://")
	if !ok {
		return nil, errDSN
	}
	if scheme == "http+unix" {
		inner, _, err := unixDSN(rest)
		if err != nil {
			return nil, errDSN
		}
		return url.Parse(inner)
	}
	if !slices.Contains([]string{"clickhouse", "tcp", "native", "http", "https"}, scheme) {
		return nil, errDSNScheme
	}
	end := strings.IndexAny(rest+"/", "/?#")
	authority, tail := rest[:end], rest[end:]
	at := strings.LastIndexByte(authority, '@') + 1
	user, authority := authority[:at], authority[at:]
	var first *url.URL
	for host := range strings.SplitSeq(authority, ",") {
		u, err := url.Parse(scheme + "://" + user + host + tail)
		if err != nil || u.Hostname() == "" {
			return nil, errDSN
		}
		if first == nil {
			first = u
		}
	}
	return first, nil
}

// databaseOf returns the database that a DSN names, or "".
func databaseOf(dsn *url.URL) string {
	if d := dsn.Query().Get("database"); d != "" {
		return d
	}
	return strings.Trim(dsn.Path, "/")
}

// Conn are the settings of a connection.
func (c *Config) Conn(log *slog.Logger) ConnSettings {
	return ConnSettings{DSN: c.DSN.Reveal(), Database: c.Database, Compression: c.Compression, Logger: log}
}

// Schema is the schema of the tables.
func (c *Config) Schema() Schema {
	return Schema{Database: c.Database, Cluster: c.Cluster, Sync: c.Sync, StoragePolicy: c.StoragePolicy, TTL: TTL{
		Volume: c.Move.Volume, MoveAfter: time.Duration(c.Move.After),
		Bodies: time.Duration(c.TTL.Bodies), Messages: time.Duration(c.TTL.Messages),
		Spans: time.Duration(c.TTL.Spans), Rollups: time.Duration(c.TTL.Rollups),
	}}
}

// EmbeddedSchema is the schema of the embedded store, which keeps its rows for a time; 0: for ever.
func EmbeddedSchema(age time.Duration) Schema {
	return Schema{Database: DefaultDatabase, Sync: true, TTL: TTL{Messages: age, Spans: age, Rollups: age}}
}

// NewExporter implements export.Config. Without a dsn it exports to the embedded store,
// which keeps rows as the section store has it.
func (c *Config) NewExporter(ctx context.Context, env export.Env) (export.Exporter, error) {
	schema, size := c.Schema(), int64(0)
	if c.DSN.Reveal() == "" {
		c = &Config{DSN: spec.NewSecret(env.StoreDSN), CreateSchema: true}
		schema, size = EmbeddedSchema(env.StoreMaxAge), env.StoreMaxSize
	}
	x, err := New(ctx, Settings{
		Conn: c.Conn(env.Logger), Cluster: schema.Cluster, TTL: schema.TTL, Sync: schema.Sync, StoragePolicy: schema.StoragePolicy, CreateSchema: c.CreateSchema, Timeout: time.Duration(c.Timeout),
		Prices: env.Prices, Dimensions: env.Dimensions, Budgets: env.Budgets, SilentAfter: env.SilentAfter, Profile: env.Profile, MaxSize: size, ConversationsEvery: conversationsEvery, Quorum: c.InsertQuorum, TempDir: env.TempDir, Logger: env.Logger,
	})
	if err != nil {
		return nil, err
	}
	return x, nil
}

var _ export.Config = (*Config)(nil)
