package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/earshot-dev/earshot/core/loopback"
)

// The names of compressions on the wire. Auto is LZ4, unless the server is on this
// machine: there it costs more than it saves.
const (
	CompressionAuto = "auto"
	CompressionNone = "none"
	CompressionLZ4  = "lz4"
	CompressionZSTD = "zstd"
)

// ConnSettings are the address of a ClickHouse and how to connect to it.
type ConnSettings struct {
	// DSN names the server and the way there: http://user:pass@host:8123/db and
	// https:// for the HTTP interface, clickhouse://user:pass@host:9000/db for the
	// native one (?secure=true for TLS). Several hosts are separated by commas. Its
	// password is never printed. http+unix://user@%2Fpath%2Fof%2Fsocket/db is the HTTP interface
	// on a Unix socket, which the embedded store has.
	DSN string
	// Database is where the tables are; the DSN's when empty, else DefaultDatabase.
	Database string
	// Compression on the wire: auto, lz4, zstd or none, which is also the default. With
	// auto, the DSN has precedence.
	Compression string
	// Final reads only the last of several versions of a row.
	Final bool
	// ReadOnly lets the server refuse everything but reads, and changes of settings: readonly = 1. It is
	// an error where the user has another readonly.
	ReadOnly bool
	// Writer is set for a program that stores rows: the embedded store has nothing flushed for
	// its statements.
	Writer bool
	// MaxTime of a statement, in whole seconds; the server's bound when zero.
	MaxTime time.Duration
	// Timeout of a connection being made; 10 s when zero.
	DialTimeout time.Duration
	Logger      *slog.Logger // of the driver, at level debug; none when nil
	_           struct{}
}

// String is the settings without the DSN, which has a password.
func (s ConnSettings) String() string {
	return fmt.Sprintf("{DSN:[redacted] Database:%s Compression:%s DialTimeout:%s}", s.Database, s.Compression, s.DialTimeout)
}

// GoString keeps the DSN out of %#v.
func (s ConnSettings) GoString() string { return "clickhouse.ConnSettings" + s.String() }

// LogValue keeps the DSN out of logs.
func (s ConnSettings) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Conn is a pool of connections to one ClickHouse. It may be used by several
// goroutines.
type Conn struct {
	db       driver.Conn
	http     bool
	method   chgo.CompressionMethod
	database string
	redacted string
	embedded bool // on a socket of this machine: no other program changes its tables
	standby  standby
	throttle *throttle
	deriving sync.Mutex // held by derive, and while rows are erased
}

// Open returns a Conn for reading, in the database of the settings. Nothing is
// dialed yet.
func Open(s ConnSettings) (*Conn, error) { return open(s, true) }

// OpenServer is Open for a server whose database may not be there yet.
func OpenServer(s ConnSettings) (*Conn, error) { return open(s, false) }

// open leaves the database out of the connection on request: a server refuses
// one that is not there yet.
func open(s ConnSettings, inDatabase bool) (*Conn, error) {
	opts, err := options(s)
	if err != nil {
		return nil, fmt.Errorf("clickhouse: dsn: %w", err)
	}
	c := &Conn{http: opts.Protocol == chgo.HTTP, database: opts.Auth.Database, throttle: &throttle{}}
	c.redacted = describe(opts)
	if rest, unix := strings.CutPrefix(strings.TrimSpace(s.DSN), "http+unix://"); unix {
		_, socket, _ := unixDSN(rest) // which options has read
		c.redacted, c.embedded, c.standby = "unix:"+socket+"/"+c.database, true, standby{socket: socket, stored: new(bell)}
	}
	if opts.Compression != nil {
		c.method = opts.Compression.Method
	}
	if !inDatabase {
		opts.Auth.Database = ""
	}
	opts.TransportFunc = c.throttle.wrap
	if c.db, err = chgo.Open(opts); err != nil {
		return nil, fmt.Errorf("clickhouse: %s: %w", c.redacted, err)
	}
	return c, nil
}

func options(s ConnSettings) (*chgo.Options, error) {
	dsn := strings.TrimSpace(s.DSN)
	scheme, rest, ok := strings.Cut(dsn, "://")
	if !ok {
		return nil, errors.New("no scheme: want http://, https:// or clickhouse://")
	}
	socket := ""
	switch scheme {
	case "http", "clickhouse", "tcp":
	case "http+unix":
		var err error
		if dsn, socket, err = unixDSN(rest); err != nil {
			return nil, err
		}
	case "https": // the driver wants it twice
		if _, query, _ := strings.Cut(rest, "?"); !strings.Contains("&"+query, "&secure=") {
			sep := "?"
			if strings.Contains(rest, "?") {
				sep = "&"
			}
			dsn += sep + "secure=true"
		}
	default:
		return nil, fmt.Errorf("scheme %q: want http, https or clickhouse", scheme)
	}
	opts, err := chgo.ParseDSN(dsn)
	if err != nil {
		var u *url.Error // its text has the whole DSN
		if errors.As(err, &u) {
			err = u.Err
		}
		return nil, err
	}
	if socket != "" {
		opts.DialContext = func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	switch {
	case s.Database != "":
		opts.Auth.Database = s.Database
	case opts.Auth.Database == "":
		opts.Auth.Database = DefaultDatabase
	}
	switch s.Compression {
	case "":
	case CompressionAuto:
		if opts.Compression == nil && slices.ContainsFunc(opts.Addr, func(host string) bool { return !loopback.Is(host) }) {
			opts.Compression = &chgo.Compression{Method: chgo.CompressionLZ4}
		}
	case CompressionNone:
		opts.Compression = nil
	case CompressionLZ4:
		opts.Compression = &chgo.Compression{Method: chgo.CompressionLZ4}
	case CompressionZSTD:
		opts.Compression = &chgo.Compression{Method: chgo.CompressionZSTD, Level: 1}
	default:
		return nil, fmt.Errorf("compression %q: want auto, lz4, zstd or none", s.Compression)
	}
	if opts.DialTimeout == 0 {
		opts.DialTimeout = 10 * time.Second
	}
	if s.DialTimeout > 0 {
		opts.DialTimeout = s.DialTimeout
	}
	if s.Final {
		opts.Settings["final"] = 1
		opts.Settings["do_not_merge_across_partitions_select_final"] = 1 // all versions of a row are in one partition
	}
	if s.ReadOnly {
		opts.Settings["readonly"] = 1
	}
	if s.Writer {
		opts.HttpHeaders = map[string]string{"X-Earshot-Writer": "1"}
	}
	if s.MaxTime > 0 {
		opts.Settings["max_execution_time"] = int(s.MaxTime / time.Second)
	}
	opts.Logger = s.Logger
	opts.ClientInfo.Products = append(opts.ClientInfo.Products, struct{ Name, Version string }{"earshot", "1"})
	return opts, nil
}

// unixDSN splits the address of a Unix socket, user@%2Fpath/db, into that of the same interface
// on this machine and the path.
func unixDSN(rest string) (dsn, socket string, err error) {
	user, address, ok := strings.Cut(rest, "@")
	if !ok {
		user, address = "default", rest
	}
	host, path, _ := strings.Cut(address, "/")
	if socket, err = url.PathUnescape(host); err != nil || !strings.HasPrefix(socket, "/") {
		return "", "", errors.New("http+unix:// wants the path of a socket, with %2F for each /")
	}
	return "http://" + user + "@localhost/" + path, socket, nil
}

// describe is the destination without its credentials.
func describe(o *chgo.Options) string {
	scheme := "clickhouse"
	switch {
	case o.Protocol == chgo.HTTP && o.TLS != nil:
		scheme = "https"
	case o.Protocol == chgo.HTTP:
		scheme = "http"
	}
	return scheme + "://" + strings.Join(o.Addr, ",") + "/" + o.Auth.Database
}

// String is where the connection leads, without credentials.
func (c *Conn) String() string { return c.redacted }

// Database is where the tables are.
func (c *Conn) Database() string { return c.database }

// Ping reports whether a server answers.
func (c *Conn) Ping(ctx context.Context) error {
	if err := c.db.Ping(ctx); err != nil {
		return fmt.Errorf("clickhouse: %s: ping: %w", c.redacted, err)
	}
	return nil
}

// Exec runs a statement that has no result.
func (c *Conn) Exec(ctx context.Context, sql string) error {
	if err := c.db.Exec(ctx, sql); err != nil {
		return fmt.Errorf("clickhouse: %w", c.plain(err))
	}
	return nil
}

// derive runs a statement that writes rows that it reads from other tables. None runs while rows are erased: it
// would write the erased rows again.
func (c *Conn) derive(ctx context.Context, sql string) error {
	c.deriving.Lock()
	defer c.deriving.Unlock()
	return c.Exec(ctx, sql)
}

// Close ends the connections. Nothing may be running.
func (c *Conn) Close() error {
	if err := c.db.Close(); err != nil {
		return fmt.Errorf("clickhouse: close: %w", err)
	}
	return nil
}
