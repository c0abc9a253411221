package clickhouse

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"
)

func TestDSN(t *testing.T) {
	for _, c := range []struct{ dsn, database, want, err string }{
		{"http://u:p@h:8123/db", "", "http://h:8123/db", ""},
		{"http://h:8123", "", "http://h:8123/earshot", ""},
		{"http://h:8123/db", "other", "http://h:8123/other", ""},
		{"https://u:p@h:8443/db", "", "https://h:8443/db", ""},
		{"https://h:8443/db?secure=true", "", "https://h:8443/db", ""},
		{"https://h:8443/db?skip_verify=true", "", "https://h:8443/db", ""},
		{"clickhouse://u:p@a:9000,b:9000/db", "", "clickhouse://a:9000,b:9000/db", ""},
		{"clickhouse://h:9440/db?secure=true", "", "clickhouse://h:9440/db", ""},
		{" tcp://h:9000\n", "", "clickhouse://h:9000/earshot", ""},
		{"http+unix://u:p@%2Frun%2Fstore.sock/db", "", "unix:/run/store.sock/db", ""},
		{"http+unix://%2Frun%2Fstore.sock", "", "unix:/run/store.sock/earshot", ""},
		{"http+unix://run/db", "", "", "path of a socket"},
		{"h:9000/db", "", "", "no scheme"},
		{"", "", "", "no scheme"},
		{"mysql://h/db", "", "", `scheme "mysql"`},
		{"http://u:se%zzcret@h/db", "", "", "dsn"},
		{"clickhouse://h:9000/db?dial_timeout=x", "", "", "dial timeout"},
	} {
		conn, err := Open(ConnSettings{DSN: c.dsn, Database: c.database})
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(err.Error(), "clickhouse: ") {
				t.Errorf("%q: error %v, want one with %q", c.dsn, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.dsn, err)
			continue
		}
		if conn.String() != c.want {
			t.Errorf("%q: %s, want %s", c.dsn, conn, c.want)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := Open(ConnSettings{DSN: "http://h", Compression: "rar"}); err == nil || !strings.Contains(err.Error(), `compression "rar"`) {
		t.Errorf("error %v", err)
	}
}

// TestThePasswordIsNotPrinted looks for it in everything that a log may get.
func TestThePasswordIsNotPrinted(t *testing.T) {
	const secret = "s3cr3t"
	for _, dsn := range []string{
		"http://user:" + secret + "@127.0.0.1:1/db",
		"clickhouse://user:" + secret + "@127.0.0.1:1/db",
		"https://user:" + secret + "@127.0.0.1:1/db",
		"http://user:" + secret + "%zz@127.0.0.1:1/db",
		"http://user:" + secret + "@[::1/db",
		"clickhouse://127.0.0.1:1/db?username=user&password=" + secret,
		"clickhouse://127.0.0.1:1/db?password=" + secret + "&dial_timeout=x",
		"nosuch://user:" + secret + "@h/db",
		"user:" + secret + "@h/db",
	} {
		settings := Settings{Conn: ConnSettings{DSN: dsn, DialTimeout: time.Second}, CreateSchema: true}
		says := fmt.Sprintf("%v %+v %#v %s", settings, settings, settings, settings.Conn)
		x, err := New(t.Context(), settings)
		if err == nil {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			says += x.conn.String() + fmt.Sprint(x.Prepare(ctx))
			cancel()
			if err := x.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if says += fmt.Sprint(err); strings.Contains(says, secret) {
			t.Errorf("%s is in: %s", secret, says)
		}
	}
}

func TestCompressionIsForTheNetwork(t *testing.T) {
	for _, c := range []struct{ dsn, compression, want string }{
		{"http://127.0.0.1:8123/db", CompressionAuto, "none"},
		{"http://localhost:8123/db", CompressionAuto, "none"},
		{"http://[::1]:8123/db", CompressionAuto, "none"},
		{"clickhouse://127.0.0.1:9000,h:9000/db", CompressionAuto, "lz4"},
		{"http://h:8123/db", CompressionAuto, "lz4"},
		{"http://h:8123/db?compress=zstd", CompressionAuto, "zstd"},
		{"http://127.0.0.1:8123/db?compress=lz4", CompressionAuto, "lz4"},
		{"http://h:8123/db", "", "none"},
		{"http://127.0.0.1:8123/db", CompressionLZ4, "lz4"},
	} {
		o, err := options(ConnSettings{DSN: c.dsn, Compression: c.compression})
		if err != nil {
			t.Fatal(err)
		}
		got := "none"
		if o.Compression != nil {
			got = o.Compression.Method.String()
		}
		if got != c.want {
			t.Errorf("%s with %q: %s, want %s", c.dsn, c.compression, got, c.want)
		}
	}
}

// TestOptions: the settings of a connection as options of the driver.
func TestOptions(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, c := range []struct {
		name string
		set  ConnSettings
		want chgo.Options
	}{
		{"none", ConnSettings{DSN: "http://u:p@h:1/d"}, chgo.Options{DialTimeout: 10 * time.Second}},
		{"of the dsn", ConnSettings{DSN: "http://u:p@h:1/d?dial_timeout=3s&compress=zstd&max_threads=2"}, chgo.Options{
			DialTimeout: 3 * time.Second, Compression: &chgo.Compression{Method: chgo.CompressionZSTD, Level: 3}, Settings: chgo.Settings{"max_threads": 2},
		}},
		{"all", ConnSettings{DSN: "http://u:p@h:1/d?compress=lz4", Compression: CompressionZSTD, Final: true, ReadOnly: true, Writer: true, MaxTime: 90 * time.Second, DialTimeout: time.Second, Logger: log}, chgo.Options{
			DialTimeout: time.Second, Compression: &chgo.Compression{Method: chgo.CompressionZSTD, Level: 1}, HttpHeaders: map[string]string{"X-Earshot-Writer": "1"},
			Settings: chgo.Settings{"final": 1, "do_not_merge_across_partitions_select_final": 1, "readonly": 1, "max_execution_time": 90}, Logger: log,
		}},
		{"no compression", ConnSettings{DSN: "http://u:p@h:1/d?compress=lz4", Compression: CompressionNone}, chgo.Options{DialTimeout: 10 * time.Second}},
	} {
		got, err := options(c.set)
		if err != nil {
			t.Fatal(err)
		}
		type some struct {
			auth        chgo.Auth
			dial        time.Duration
			compression *chgo.Compression
			headers     map[string]string
			settings    chgo.Settings
			logger      *slog.Logger
		}
		of := func(o *chgo.Options) some {
			settings := chgo.Settings{}
			maps.Copy(settings, o.Settings)
			return some{o.Auth, o.DialTimeout, o.Compression, o.HttpHeaders, settings, o.Logger}
		}
		c.want.Auth = chgo.Auth{Username: "u", Password: "p", Database: "d"}
		if d := cmp.Diff(of(&c.want), of(got), cmp.AllowUnexported(some{}), cmp.Comparer(func(a, b *slog.Logger) bool { return a == b })); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		if p := got.ClientInfo.Products; len(p) == 0 || p[len(p)-1].Name != "earshot" {
			t.Errorf("%s: the server is not told who asks: %v", c.name, p)
		}
	}
}

// TestWhatAConnIs: the embedded store is the one on a socket, and the one for whose statements nothing is flushed is that of who stores rows.
func TestWhatAConnIs(t *testing.T) {
	for dsn, want := range map[string]*Conn{
		"http+unix://u:p@%2Frun%2Fs/db": {http: true, database: "db", redacted: "unix:/run/s/db", embedded: true, standby: standby{socket: "/run/s"}},
		"http://u:p@h:1/db":             {http: true, database: "db", redacted: "http://h:1/db"},
		"clickhouse://u:p@h:1/db":       {database: "db", redacted: "clickhouse://h:1/db"},
	} {
		x, err := New(t.Context(), Settings{Conn: ConnSettings{DSN: dsn}})
		if err != nil {
			t.Fatal(err)
		}
		c := x.conn
		if c.http != want.http || c.Database() != want.database || c.String() != want.redacted || c.embedded != want.embedded || c.standby.socket != want.standby.socket || (c.standby.stored != nil) != want.embedded {
			t.Errorf("%s: %s", dsn, c)
		}
		s := x.settings
		if !s.Conn.Writer || s.Timeout != 30*time.Second || s.MaxInsertBytes != 64<<20 || s.SilentAfter != time.Minute || s.Logger != slog.Default() || s.Profile == nil || len(s.Prices.Rows()) == 0 {
			t.Errorf("%s: settings %+v", dsn, s)
		}
		if x.keeper.opened != c.standby.stored {
			t.Errorf("%s: the engine is not known to be open when rows are stored", dsn)
		}
		if alone := attributorOf(x).catchUp != nil; alone != want.embedded {
			t.Errorf("%s: other programs store rows: %t", dsn, !alone)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestServerAsksToBeSpared: how long a server, or a proxy before it, asks to be spared is kept until the next error is reported.
func TestServerAsksToBeSpared(t *testing.T) {
	for status, want := range map[int]time.Duration{http.StatusTooManyRequests: 7 * time.Second, http.StatusServiceUnavailable: 7 * time.Second, http.StatusInternalServerError: 0} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
		}))
		c, err := Open(ConnSettings{DSN: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Ping(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "clickhouse: "+server.URL+"/earshot: ping: ") {
			t.Errorf("status %d: %v", status, err)
		}
		if got := c.throttle.take(); got != want || c.throttle.take() != 0 {
			t.Errorf("status %d: spared for %s", status, got)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	}
}
