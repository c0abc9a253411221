package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

// testDir holds the files that all tests share: the program of the embedded store, and its tables.
var testDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "earshot-cmd-test-") })

// storeBinary is the embedded store of EARSHOT_TEST_BIN, or builds it once.
var storeBinary = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("EARSHOT_TEST_BIN"); bin != "" {
		return filepath.Join(bin, "earshot-store"), nil
	}
	dir, err := testDir()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "earshot-store")
	build := exec.Command("go", "build", "-o", bin, "github.com/earshot-dev/earshot/cmd/earshot-store")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build earshot-store: %w\n%s", err, out)
	}
	return bin, nil
})

// sharedStore starts the store of all homes, which has no rows when one begins: to open an engine takes a second of
// processor time, and to make the tables another.
var sharedStore = sync.OnceValues(func() (dataDir string, err error) {
	dir, err := testDir()
	if err != nil {
		return "", err
	}
	dataDir = filepath.Join(dir, "data")
	x, stop, err := openHome(context.Background(), filepath.Join(dir, "earshot.yaml"), dataDir)
	if err != nil {
		return "", err
	}
	stopStore = stop
	return dataDir, errors.Join(x.Prepare(context.Background()), x.Close(context.Background()))
})

// stopStore ends the store that sharedStore has started.
var stopStore = func() {}

// openHome writes the configuration of a data directory and starts its store, if none runs.
func openHome(ctx context.Context, config, dataDir string) (x *clickhouse.Exporter, stop func(), err error) {
	bin, err := storeBinary()
	if err != nil {
		return nil, nil, err
	}
	text := fmt.Sprintf("data_dir: %s\nstore: {binary: %q}\ntelemetry: {listen: \"\"}\nsources:\n  - {name: none, type: file, format: legion, paths: [%q]}\nbudgets:\n  - {name: quay, tokens: 100, per: month}\n", dataDir, bin, filepath.Dir(config)+"/none/*.jsonl")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, nil, err
	}
	cfg, err := (&configFile{path: config}).load(false)
	if err != nil {
		return nil, nil, err
	}
	log := slog.New(slog.DiscardHandler)
	store, err := app.OpenStoreToWrite(ctx, cfg, log)
	if err != nil {
		return nil, nil, fmt.Errorf("%w (without the engine: make engine)", err)
	}
	list, err := newExporters(ctx, cfg, store.DSN, log)
	if err != nil {
		store.Close()
		return nil, nil, err
	}
	return list[0].Exporter.(*clickhouse.Exporter), store.Close, nil
}

// asEarshot in the environment makes the executable of the tests that of the program.
const asEarshot = "EARSHOT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if serves() {
		return
	}
	if os.Getenv(asEarshot) != "" {
		os.Exit(run())
	}
	code := m.Run()
	stopStore()
	if dir, err := testDir(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// home is a configuration whose store runs, and has no rows but the test's.
type home struct {
	*testing.T
	config string
	x      *clickhouse.Exporter
	n      int
}

func newHome(t *testing.T) *home {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the engine: make test runs it")
	}
	dataDir, err := sharedStore()
	if err != nil {
		t.Fatal(err)
	}
	h := &home{T: t, config: filepath.Join(t.TempDir(), "earshot.yaml")}
	x, stop, err := openHome(t.Context(), h.config, dataDir)
	if err != nil {
		t.Fatal(err)
	}
	h.x = x
	t.Cleanup(stop)
	t.Cleanup(func() {
		if err := errors.Join(h.x.Close(context.Background()), h.empty()); err != nil {
			t.Error(err)
		}
	})
	if err := h.x.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

// empty removes all rows but those that a new store has.
func (h *home) empty() error {
	ctx := context.Background()
	cfg, err := (&configFile{path: h.config}).load(false)
	if err != nil {
		return err
	}
	store, err := app.OpenStoreToWrite(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer store.Close()
	c, err := clickhouse.Open(clickhouse.ConnSettings{DSN: store.DSN})
	if err != nil {
		return err
	}
	defer c.Close()
	filled, err := c.Query(ctx, "SELECT name FROM system.tables WHERE database = currentDatabase() AND total_rows > 0 AND name NOT IN ('schema_migrations', 'thresholds', 'model_prices', 'attribution_rules')", nil)
	if err != nil {
		return err
	}
	defer filled.Close()
	for filled.Next() {
		if err := c.Exec(ctx, "TRUNCATE TABLE "+filled.Values()[0].(string)); err != nil {
			return err
		}
	}
	return filled.Err()
}

// export stores a batch, and derives what a reader sees of it as before its first question to a sidecar's store.
func (h *home) export(b export.Batch) {
	h.Helper()
	h.n++
	b.ID = msg.HashKey(h.Name(), fmt.Sprint(h.n))
	if err := h.x.Export(h.Context(), &b); err != nil {
		h.Fatal(err)
	}
	h.x.Unread(h.Context(), false)
}

// run runs earshot on the home.
func (h *home) run(args ...string) (stdout, stderr string) {
	h.Helper()
	stdout, stderr, err := h.try(args...)
	if err != nil {
		h.Fatalf("earshot %v: %v\n%s", args, err, stderr)
	}
	return stdout, stderr
}

func (h *home) try(args ...string) (stdout, stderr string, err error) {
	return h.within(h.Context(), args...)
}

func (h *home) within(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	c := newRoot()
	c.SetArgs(append(args, "-c", h.config))
	c.SetOut(&out)
	c.SetErr(&errs)
	err = c.ExecuteContext(ctx)
	return out.String(), errs.String(), err
}

// json runs earshot with -o json and decodes its output.
func (h *home) json(to any, args ...string) {
	h.Helper()
	out, _ := h.run(append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), to); err != nil {
		h.Fatalf("earshot %v: %v in %s", args, err, out)
	}
}

func isUsage(err error) bool {
	var usage usageError
	return errors.As(err, &usage)
}
