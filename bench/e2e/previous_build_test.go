//go:build upgrade

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/bench/gen"
)

// TestPreviousBuild has a build of before read a part of the traffic and be killed, in the folder
// EARSHOT_PREVIOUS, and this build go on in its data directory: nothing is lost and nothing is there twice.
// make upgrade-test builds both.
func TestPreviousBuild(t *testing.T) {
	previous := os.Getenv("EARSHOT_PREVIOUS")
	if previous == "" {
		t.Fatal("EARSHOT_PREVIOUS names no build: type make upgrade-test")
	}
	h, want := legion(t, gen.Options{Sessions: 20, Bytes: 2e6, Seed: 4, Broken: 0.02, Repeated: 0.002})
	paths, err := filepath.Glob(h.path("sessions/*/messages.jsonl"))
	h.must(err)
	if len(paths) < 6 {
		t.Fatalf("%d files", len(paths))
	}
	// A third of the files the earlier build sees whole, a third to the middle of a line, a third not at all.
	whole := make(map[string][]byte)
	for i, path := range paths {
		text, err := os.ReadFile(path)
		h.must(err)
		switch i % 3 {
		case 1:
			h.must(os.Truncate(path, int64(len(text)/2)))
		case 2:
			h.must(os.Remove(path))
		}
		whole[path] = text
	}
	current := bin
	t.Cleanup(func() { bin = current })
	bin = previous
	p := h.fresh().start("run") // its own tables: those of this build may be newer than it knows
	h.until("rows of the earlier build", func() bool {
		rows := h.tryQuery("SELECT count() > 300 FROM earshot.messages")
		return len(rows) == 1 && rows[0] == "1"
	})
	time.Sleep(100 * time.Millisecond) // into its work
	p.kill()
	bin = current
	for path, text := range whole {
		have, _ := os.ReadFile(path)
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		h.must(err)
		_, err = f.Write(text[len(have):])
		h.must(err)
		h.must(f.Close())
	}
	h.drain()
	h.wantOracle(want)
	if out := h.waitExit(h.start("doctor")); strings.Contains(out, "fail") {
		t.Errorf("doctor:\n%s", out)
	}
}
