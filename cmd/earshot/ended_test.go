package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/earshot-dev/earshot/core/app"
)

// TestStoresThatEnd: a reader that goes on, as that of the pages does, outlives the store that it has begun with, whether that was its
// own and was killed, or a sidecar's and ended with it.
func TestStoresThatEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the engine: make test runs it")
	}
	config, data := filepath.Join(t.TempDir(), "earshot.yaml"), filepath.Join(t.TempDir(), "data")
	x, stop, err := openHome(t.Context(), config, data)
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	defer func() {
		if !stopped {
			stop()
		}
	}()
	if err := x.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg, err := (&configFile{path: config}).load(false)
	if err != nil {
		t.Fatal(err)
	}
	r, err := openReader(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	answers := func(when string) {
		t.Helper()
		n := 0
		err := r.Each(t.Context(), "SELECT count() FROM messages", nil, func([]any) error { n++; return nil })
		if err != nil || n != 1 {
			t.Fatalf("%s: %d rows, %v", when, n, err)
		}
	}
	answers("beside a sidecar")
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	stopped = true
	answers("behind its end")

	pid := func() int {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(data, "store", "earshot-store.lock"))
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := syscall.Kill(pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	answers("when its own store was killed")

	// In the middle of an answer there are rows that were used: the reader is told, and the next question is answered.
	err = r.Each(t.Context(), "SELECT number FROM numbers(300000000)", nil, func(v []any) error {
		if v[0].(uint64) == 1000 {
			return syscall.Kill(pid(), syscall.SIGKILL)
		}
		return nil
	})
	if err == nil || !r.conn.CutOff(err) || !strings.Contains(err.Error(), "try again") {
		t.Errorf("in the middle of an answer: %v", err)
	}
	answers("behind that")

	store, err := app.OpenStore(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	store.Close()
	if err := store.Again(context.Background()); err == nil {
		t.Error("a store that was closed is started again")
	}
}
