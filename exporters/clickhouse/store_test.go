package clickhouse

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// store starts the tests' ClickHouse when the first test needs it. It is the
// embedded store, of EARSHOT_TEST_BIN or built, unless EARSHOT_TEST_DSN names another server, whose databases test_* are then
// made and dropped, but for those of test_emptied_*, which are for the next run.
var store = sync.OnceValues(startStore)

// stopStore ends the process that store has started, or leaves another server to the next run.
var stopStore = func(passed bool) {}

// storeProcess is that process; 0 for another server.
var storeProcess int

func TestMain(m *testing.M) {
	code := m.Run()
	stopStore(code == 0)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines left behind:", err)
		code = 1
	}
	os.Exit(code)
}

// storeDSN returns the DSN of the tests' ClickHouse. The unit tier (-short) has no engine.
func storeDSN(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the engine: make test runs it")
	}
	dsn, err := store()
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// startStore starts the embedded store in a process that ends with this one.
func startStore() (dsn string, err error) {
	if dsn := os.Getenv("EARSHOT_TEST_DSN"); dsn != "" {
		stopStore = func(passed bool) { emptied.leave(dsn, passed) }
		return dsn, nil
	}
	dir, err := os.MkdirTemp("", "earshot-clickhouse-test-")
	if err != nil {
		return "", err
	}
	stopStore = func(bool) { _ = os.RemoveAll(dir) }
	bin := filepath.Join(os.Getenv("EARSHOT_TEST_BIN"), "earshot-store")
	if !filepath.IsAbs(bin) {
		bin = filepath.Join(dir, "earshot-store")
		build := exec.Command("go", "build", "-o", bin, "github.com/earshot-dev/earshot/cmd/earshot-store")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build earshot-store: %w\n%s", err, out)
		}
	}
	cmd := exec.Command(bin, "--path", filepath.Join(dir, "data"), "--watch-stdin")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start earshot-store: %w", err)
	}
	storeProcess = cmd.Process.Pid
	stopStore = func(bool) {
		_ = stdin.Close()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	socket, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on unix:")
	if err != nil || !ok {
		return "", fmt.Errorf("earshot-store did not come up (without the engine: make engine): %q %v", line, err)
	}
	return "http+unix://default@" + url.PathEscape(socket) + "/", nil
}

// database returns a Conn and the settings for a database of the test's own.
func database(t testing.TB) (*Conn, ConnSettings) {
	t.Helper()
	name := "test_" + strings.ToLower(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, t.Name()))
	s := ConnSettings{DSN: storeDSN(t), Database: name}
	admin, err := open(s, false)
	if err != nil {
		t.Fatal(err)
	}
	drop := func(ctx context.Context) error {
		return admin.Exec(ctx, "DROP DATABASE IF EXISTS "+quoteName(name)+" SYNC")
	}
	if err := drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := drop(ctx); err != nil {
			t.Error(err)
		}
		if err := admin.Close(); err != nil {
			t.Error(err)
		}
	})
	return admin, s
}

// exporter returns an exporter into a database that has no rows but the test's, and a Conn to read it. Its tables are
// those of an earlier test, emptied, unless the settings ask for other ones: the engine works a second to make them.
func exporter(t testing.TB, set func(*Settings)) (*Exporter, *Conn) {
	t.Helper()
	s := Settings{Conn: ConnSettings{DSN: storeDSN(t)}, Logger: slog.New(slog.DiscardHandler), CreateSchema: true}
	if set != nil {
		set(&s)
	}
	if s.TTL != (TTL{}) {
		return ownExporter(t, set)
	}
	s.Conn.Database = emptied.take(t)
	x, c := exporterInto(t, s)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.prepared(t.Context(), true)
	return x, c
}

// ownExporter is exporter with tables that the exporter makes, for a test of these, or of their parts.
func ownExporter(t testing.TB, set func(*Settings)) (*Exporter, *Conn) {
	t.Helper()
	_, conn := database(t)
	s := Settings{Conn: conn, CreateSchema: true, Logger: slog.New(slog.DiscardHandler)}
	if set != nil {
		set(&s)
	}
	x, c := exporterInto(t, s)
	if err := x.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return x, c
}

func exporterInto(t testing.TB, s Settings) (*Exporter, *Conn) {
	t.Helper()
	x, err := New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	reader, err := Open(s.Conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	})
	return x, reader
}

// emptied are databases with the tables of a new store and no rows, which tests take one after the other. On another server they are
// there for the next run of the same program: a comment of the database marks it as empty, and has the hash of its tables.
var emptied databases

type databases struct {
	free   []string
	made   int
	tables string // of each; see tablesOf
}

// take returns the name of a database until the test ends. Where the test has changed its tables it is not used again.
func (d *databases) take(t testing.TB) (name string) {
	t.Helper()
	c, err := open(ConnSettings{DSN: storeDSN(t)}, false)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(d.free); n > 0 {
		name, d.free = d.free[n-1], d.free[:n-1]
	} else if name, err = d.create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := d.put(ctx, c, name); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return name
}

// create makes another database, or finds the one that an earlier run has left.
func (d *databases) create(ctx context.Context, c *Conn) (name string, err error) {
	s := Schema{byDay: c.embedded}
	migrations, err := s.Migrations()
	if err != nil {
		return "", err
	}
	d.made++
	name = fmt.Sprintf("test_emptied_%.8s_%d", checksum([]byte(fmt.Sprint(migrations))), d.made)
	var left string
	if err := c.db.QueryRow(ctx, "SELECT any(comment) FROM system.databases WHERE name = "+quoteText(name)).Scan(&left); err != nil {
		return "", err
	}
	if left != "" {
		if d.tables, err = tablesOf(ctx, c, name); err == nil && d.tables == left {
			return name, d.comment(ctx, c, name, "")
		}
	}
	if err := c.Exec(ctx, "DROP DATABASE IF EXISTS "+quoteName(name)+" SYNC"); err != nil {
		return "", err
	}
	s.Database = name
	if _, err := s.Apply(ctx, c); err != nil {
		return "", err
	}
	d.tables, err = tablesOf(ctx, c, name)
	return name, err
}

func (d *databases) comment(ctx context.Context, c *Conn, name, text string) error {
	return c.Exec(ctx, "ALTER DATABASE "+quoteName(name)+" MODIFY COMMENT "+quoteText(text))
}

// put removes all rows but those that a new store has, or the database if its tables are other ones.
func (d *databases) put(ctx context.Context, c *Conn, name string) error {
	tables, err := tablesOf(ctx, c, name)
	if err != nil || tables != d.tables {
		return c.Exec(ctx, "DROP DATABASE IF EXISTS "+quoteName(name)+" SYNC")
	}
	filled, err := c.Query(ctx, "SELECT name FROM system.tables WHERE total_rows > 0 AND name NOT IN ('schema_migrations', 'thresholds') AND database = "+quoteText(name), nil)
	if err != nil {
		return err
	}
	defer filled.Close()
	for filled.Next() {
		if err := c.Exec(ctx, fmt.Sprintf("TRUNCATE TABLE %s.%s", quoteName(name), quoteName(fmt.Sprint(filled.Values()[0])))); err != nil {
			return err
		}
	}
	d.free = append(d.free, name)
	return filled.Err()
}

// leave leaves the databases that no test has to the next run, or drops them when a test has failed.
func (d *databases) leave(dsn string, passed bool) {
	c, err := open(ConnSettings{DSN: dsn}, false)
	if err != nil {
		return
	}
	defer c.Close()
	for _, name := range d.free {
		if passed {
			_ = d.comment(context.Background(), c, name, d.tables)
		} else {
			_ = c.Exec(context.Background(), "DROP DATABASE IF EXISTS "+quoteName(name)+" SYNC")
		}
	}
}

// tablesOf is a hash of the tables and views of a database, and of the notes of its migrations.
func tablesOf(ctx context.Context, c *Conn, database string) (hash string, err error) {
	is := quoteText(database)
	err = c.db.QueryRow(ctx, "SELECT concat(toString(groupBitXor(cityHash64(name, replaceAll(create_table_query, "+is+", '')))), ' ', (SELECT toString(groupBitXor(cityHash64(version, checksum))) FROM "+
		quoteName(database)+".schema_migrations FINAL)) FROM system.tables WHERE database = "+is).Scan(&hash)
	return hash, err
}
