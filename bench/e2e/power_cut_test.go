//go:build linux

package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/bench/chaos/trace"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

// TestPowerCut: when an export is accepted, every file of the parts that hold its rows, and the
// part's directory, has been synced since it was written. The checkpoint moves after that
// (delivery TestCommitFollows), so a power cut takes no row that is not read again.
func TestPowerCut(t *testing.T) {
	h := newHome(t)
	synced := &inodes{seen: make(map[uint64]bool)}
	socket := h.traced(synced)
	x, err := clickhouse.New(t.Context(), clickhouse.Settings{
		Conn: clickhouse.ConnSettings{DSN: "http+unix://default@" + url.PathEscape(socket) + "/earshot"}, CreateSchema: true, Sync: true, TempDir: h.path("tmp"),
		Timeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
	})
	h.must(err)
	defer func() { h.must(x.Close(context.Background())) }()
	h.must(x.Prepare(t.Context()))
	batches := exporttest.Batches(3, 40)
	h.must(x.Export(t.Context(), batches[0]))
	if !x.Gather(batches[1]) {
		t.Error("nothing is gathered")
	}
	h.must(x.Part()(t.Context()))
	h.must(x.Export(t.Context(), batches[2]))

	at := synced.copy() // and a power cut takes all else
	files, parts := 0, strings.Fields(h.ask(socket, "SELECT path FROM system.parts WHERE database = 'earshot' AND active AND rows > 0 AND level = 0 AND table NOT IN ('schema_migrations', 'model_prices', 'thresholds')"))
	for _, part := range parts {
		err := filepath.WalkDir(part, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			files++
			if !at[info.Sys().(*syscall.Stat_t).Ino] {
				return fmt.Errorf("%s is not on the disk", path[max(0, len(path)-70):])
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if len(parts) < 8 || files < 8*len(parts) {
		t.Errorf("%d files of %d parts", files, len(parts))
	}
}

// inodes are those of the files that were synced.
type inodes struct {
	mu   sync.Mutex
	seen map[uint64]bool
}

// see notes a file when its sync ends.
func (s *inodes) see(_ int, c trace.Call) bool {
	if c.Name != "sync" || !c.After {
		return false
	}
	var st syscall.Stat_t
	if syscall.Stat(c.File, &st) == nil {
		s.mu.Lock()
		s.seen[st.Ino] = true
		s.mu.Unlock()
	}
	return false
}

func (s *inodes) copy() map[uint64]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[uint64]bool, len(s.seen))
	for k := range s.seen {
		out[k] = true
	}
	return out
}

// traced starts a store whose system calls are seen, and returns its address.
func (h *home) traced(s *inodes) string {
	h.Helper()
	out, err := os.Create(h.path("store.log"))
	h.must(err)
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := trace.Run(trace.Program{
			Path: filepath.Join(bin, "earshot-store"), Args: []string{"--path", h.path("store")}, Output: out, See: s.see, Stop: stop,
		})
		done <- err
	}()
	h.Cleanup(func() {
		close(stop)
		<-done
		_ = out.Close()
	})
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		b, _ := os.ReadFile(h.path("store.log"))
		if m := regexp.MustCompile(`listening on unix:(\S+)`).FindSubmatch(b); m != nil {
			return string(m[1])
		}
	}
	h.Fatal("the store does not start")
	return ""
}
