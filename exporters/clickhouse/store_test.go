package clickhouse

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// storeDSN is where the tests' ClickHouse is. It is the embedded store, built
// and started once, unless EARSHOT_TEST_DSN names another server (whose databases
// test_* are then made and dropped).
var storeDSN string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	storeDSN = os.Getenv("EARSHOT_TEST_DSN")
	if storeDSN == "" {
		stop, err := startStore()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer stop()
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines left behind:", err)
		return 1
	}
	return code
}

// startStore starts the embedded store in a process that ends with this one.
func startStore() (stop func(), err error) {
	dir, err := os.MkdirTemp("", "earshot-clickhouse-test-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	bin := os.Getenv("EARSHOT_STORE")
	if bin == "" {
		bin = filepath.Join(dir, "earshot-store")
		build := exec.Command("go", "build", "-o", bin, "github.com/earshot-dev/earshot/cmd/earshot-store")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build earshot-store: %w\n%s", err, out)
		}
	}
	cmd := exec.Command(bin, "--path", filepath.Join(dir, "data"), "--watch-stdin")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start earshot-store: %w", err)
	}
	stop = func() {
		_ = stdin.Close()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		stop()
		return nil, fmt.Errorf("earshot-store did not come up: if it misses the engine, type make engine: %w", err)
	}
	storeDSN = strings.TrimSpace(line[strings.Index(line, "http://"):])
	return stop, nil
}

// database returns a Conn and the settings for a database of the test's own.
func database(t *testing.T) (*Conn, ConnSettings) {
	t.Helper()
	name := "test_" + strings.ToLower(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, t.Name()))
	s := ConnSettings{DSN: storeDSN, Database: name}
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
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
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
func exporter(t *testing.T, set func(*Settings)) (*Exporter, *Conn) {
	t.Helper()
	_, conn := database(t)
	s := Settings{Conn: conn, CreateSchema: true}
	if set != nil {
		set(&s)
	}
	x, err := New(s)
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
