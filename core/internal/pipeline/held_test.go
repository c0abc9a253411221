package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/source/file"
)

// keeper is a sink that commits the checkpoint of each batch and drops its rows.
type keeper struct{ check *checkpoint.Store }

func (k keeper) Submit(_ context.Context, _ *export.Batch, d checkpoint.Delta, _ bool, released, committed func()) error {
	released()
	defer committed()
	return k.check.Commit(d)
}

// heldMost bounds the memory of a file with a session that is silent, in bytes: the source's record of it,
// the stream, its account with the snapshot, and when its session is due.
const heldMost = 3 << 10

// TestSilentSessionsAreSmall: files that were read hold no decoder, no session and no buffer. With all of
// these 50,000 transcripts took more than a gigabyte.
func TestSilentSessionsAreSmall(t *testing.T) {
	const files = 5000
	dir := t.TempDir()
	for i := range files {
		at := filepath.Join(dir, fmt.Sprintf("session-%05d", i))
		text := `{"type":"user","content":"How many pears?","timestamp":1790000000.5}` + "\n" +
			`{"type":"assistant","content":"Twelve, and a basket of plums beside them.","timestamp":1790000001.5}` + "\n"
		if err := errors.Join(os.Mkdir(at, 0o755), os.WriteFile(filepath.Join(at, "messages.jsonl"), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	check, err := checkpoint.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer check.Close()
	before := liveMemory()
	ctx, cancel := context.WithCancel(t.Context())
	p := New(Settings{MaxInFlight: 4 << 20, BatchRows: 500, FlushIdle: 100 * time.Millisecond, CloseIdle: 100 * time.Millisecond}, check, keeper{check})
	_, ended := inThisProcess(ctx, nil, p)
	feed, err := p.AddFeed("legion", "default", "legion", "", false)
	if err != nil {
		t.Fatal(err)
	}
	src, err := file.New(file.Settings{Name: "legion", Paths: []string{filepath.Join(dir, "*/messages.jsonl")}})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.runCore(ctx); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() {
		if err := src.Run(ctx, feed); err != nil {
			t.Error(err)
		}
	})
	held := int64(0)
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		open, awake := 0, 0
		_ = p.inbox.call(ctx, func(c *core) { open, awake = len(c.accounts.of), len(c.accounts.awake) })
		if open == files && awake == 0 && p.Drained(t.Context()) {
			if held = (liveMemory() - before) / files; held <= heldMost {
				break
			}
		}
		if time.Now().After(end) {
			t.Errorf("%d streams, %d with a decoder, %d bytes each, want at most %d", open, awake, held, heldMost)
			break
		}
	}
	t.Logf("%d bytes of each file", held)
	cancel()
	running.Wait()
	ended()
}
