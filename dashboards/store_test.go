package dashboards

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/bench/gen"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

// world is a store that traffic has gone into through the whole sidecar: the
// binaries, the decoder processes, the embedded engine.
type world struct {
	dir    string
	bin    string // the directory of the executables: EARSHOT_TEST_BIN, or they are built
	began  time.Time
	oracle *gen.Oracle // of the Legion sessions
	turn   string      // trace id of the last turn of the transcript
	socket string      // of the running store
	stop   func() error
	asked  []asked // every query, once they have been read
}

// shared is made when the first test needs it.
var shared = sync.OnceValues(newWorld)

// cleanup stops the processes of newWorld.
var cleanup = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	cleanup()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines left behind:", err)
		code = 1
	}
	os.Exit(code)
}

func theWorld(t *testing.T) *world {
	t.Helper()
	w, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func newWorld() (_ *world, err error) {
	dir, err := os.MkdirTemp("", "earshot-dashboards-test-")
	if err != nil {
		return nil, err
	}
	w := &world{dir: dir, bin: os.Getenv("EARSHOT_TEST_BIN"), began: time.Now().UTC(), stop: func() error { return nil }}
	cleanup = func() {
		_ = w.stop()
		_ = os.RemoveAll(dir)
	}
	if w.bin == "" {
		w.bin = filepath.Join(dir, "bin")
		build := exec.Command("go", "build", "-o", w.bin+string(filepath.Separator),
			"github.com/earshot-dev/earshot/cmd/earshot", "github.com/earshot-dev/earshot/cmd/earshot-store")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build: %w\n%s", err, out)
		}
	}
	w.oracle, err = gen.Legion(gen.Options{
		Sessions: 8, Bytes: 2_400_000, Seed: 7, MaxContent: 4000, Broken: 0.01, Start: w.began.Add(-100 * time.Minute),
	}).Write(filepath.Join(dir, "legion"))
	if err != nil {
		return nil, err
	}
	if err := writeTranscripts(filepath.Join(dir, "claude"), w.began.Add(-25*time.Minute)); err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`data_dir: %[1]s/data
sources:
  - {name: legion, type: file, format: legion, paths: ["%[1]s/legion/sessions/*/messages.jsonl"]}
  - {name: claude, type: file, format: claude-code, paths: ["%[1]s/claude/**/*.jsonl"]}
telemetry: {listen: ""}
log: {level: warn}
`, dir)
	if err := os.WriteFile(w.config(), []byte(config), 0o600); err != nil {
		return nil, err
	}
	if err := w.read(); err != nil {
		return nil, err
	}
	if err := w.start(); err != nil {
		return nil, err
	}
	w.turn = msg.NewTraceID("default", "claude-code", lighthouse, lastPrompt).String()
	return w, w.seed()
}

func (w *world) config() string { return filepath.Join(w.dir, "earshot.yaml") }

// read runs the sidecar until it has read everything.
func (w *world) read() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(w.bin, "earshot"), "run", "-c", w.config(), "--until-idle", "2s")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("earshot run: %w (without the engine: make engine)\n%s", err, out)
	}
	return nil
}

// start starts the store that the sidecar has left.
func (w *world) start() error {
	cmd := exec.Command(filepath.Join(w.bin, "earshot"), "store", "-c", w.config())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	w.stop = func() error {
		w.stop = func() error { return nil }
		return errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait())
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	socket, ok := strings.CutPrefix(strings.TrimSpace(line), "unix:")
	if err != nil || !ok {
		return fmt.Errorf("earshot store did not come up: %q %w", line, err)
	}
	w.socket = socket
	return nil
}

// dsn is the address of the store for a user, without a database.
func (w *world) dsn(user string) string {
	return "http+unix://" + user + "@" + url.PathEscape(w.socket)
}

// reader returns a connection as Grafana has one.
func (w *world) reader(t *testing.T) *clickhouse.Conn {
	t.Helper()
	c, err := clickhouse.Open(clickhouse.ConnSettings{DSN: w.dsn("reader") + "/earshot"})
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
