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
// embedded store, of EARSHOT_TEST_BIN or built, unless EARSHOT_TEST_DSN names another server (whose databases
// test_* are then made and dropped).
var store = sync.OnceValues(startStore)

// stopStore ends the process that store has started.
var stopStore = func() {}

// storeProcess is that process; 0 for another server.
var storeProcess int

func TestMain(m *testing.M) {
	code := m.Run()
	stopStore()
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
		return dsn, nil
	}
	dir, err := os.MkdirTemp("", "earshot-clickhouse-test-")
	if err != nil {
		return "", err
	}
	stopStore = func() { _ = os.RemoveAll(dir) }
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
	stopStore = func() {
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

// exporter returns an exporter into a database of the test's own, and a Conn to
// read it.
func exporter(t testing.TB, set func(*Settings)) (*Exporter, *Conn) {
	t.Helper()
	_, conn := database(t)
	s := Settings{Conn: conn, CreateSchema: true, Logger: slog.New(slog.DiscardHandler)}
	if set != nil {
		set(&s)
	}
	x, err := New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := x.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	reader, err := Open(conn)
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
