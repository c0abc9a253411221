package clickhouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"
)

// refusing is a proxy of the store that refuses some statements of a migration with an exception of the server.
type refusing struct {
	mu      sync.Mutex
	asked   map[string]int // how often each statement came
	refuses func(sql string, asked int) (code int)
}

// through returns a Conn to a database by the proxy.
func (p *refusing) through(t *testing.T, database string) *Conn {
	t.Helper()
	opts, err := options(ConnSettings{DSN: storeDSN(t)})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	if opts.DialContext != nil { // a socket
		transport.DialContext = func(ctx context.Context, _, addr string) (net.Conn, error) { return opts.DialContext(ctx, addr) }
	}
	store := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", opts.Addr[0]
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		sql := string(body)
		p.mu.Lock()
		p.asked[sql]++
		code := p.refuses(sql, p.asked[sql])
		p.mu.Unlock()
		if code != 0 {
			w.Header().Set("X-ClickHouse-Exception-Code", fmt.Sprint(code))
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, "Code: %d. DB::Exception: Not now\n", code)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.Close(); transport.CloseIdleConnections() })
	c, err := open(ConnSettings{DSN: strings.Replace(server.URL, "//", "//default@", 1), Database: database}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestMigrationBesideAnother: a statement of a migration that meets a table which another program replaces in that moment is run again,
// unless that program has ended the migration; one that the server refuses is not.
func TestMigrationBesideAnother(t *testing.T) {
	x, c := exporter(t, nil)
	x.keeper.stop()
	const last = 87 // which drops views that are not there
	again := func() {
		t.Helper()
		if err := x.conn.Exec(t.Context(), fmt.Sprintf("ALTER TABLE %s DELETE WHERE version = %d SETTINGS mutations_sync = 2", x.schema.name("schema_migrations"), last)); err != nil {
			t.Fatal(err)
		}
	}
	drop := "DROP VIEW IF EXISTS " + x.schema.name("sessions_mv") + " SYNC"
	for _, k := range []struct {
		name  string
		code  int
		ended bool // by the other program
		asked int
		fails bool
	}{
		{"it was replaced", 60, false, 2, false},
		{"the other has ended the migration", 60, true, 1, false},
		{"the server refuses it", 497, false, 1, true},
	} {
		again()
		p := &refusing{asked: make(map[string]int)}
		p.refuses = func(sql string, asked int) int {
			if sql != drop || asked > 1 {
				return 0
			}
			if k.ended {
				migrations, err := x.schema.Migrations()
				if err == nil {
					err = x.conn.Exec(t.Context(), x.schema.record(migrations[len(migrations)-1]))
				}
				if err != nil {
					t.Error(err)
				}
			}
			return k.code
		}
		done, err := x.schema.Apply(t.Context(), p.through(t, x.schema.Database))
		if (err != nil) != k.fails || k.fails && (!errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), drop)) {
			t.Errorf("%s: %v", k.name, err)
		}
		if len(done.Pending) != 1 || done.Pending[0].Version != last {
			t.Errorf("%s: pending are %v", k.name, done.Pending)
		}
		if p.asked[drop] != k.asked {
			t.Errorf("%s: it was run %d times", k.name, p.asked[drop])
		}
		if got := count(t, c, fmt.Sprintf("SELECT count() FROM schema_migrations FINAL WHERE version = %d", last)); (got == "1") == k.fails {
			t.Errorf("%s: %s are noted", k.name, got)
		}
	}
	if _, err := x.schema.Apply(t.Context(), x.conn); err != nil {
		t.Fatal(err)
	}
}
