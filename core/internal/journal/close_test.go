package journal

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/internal/segment"
)

// slowDisk needs 20 ms for every sync, and never fails.
type slowDisk struct{ lazyDisk }

func (d slowDisk) Open(path string) (segment.File, error) {
	f, err := d.lazyDisk.Open(path)
	return slowFile{f}, err
}

type slowFile struct{ segment.File }

func (slowFile) Sync() error {
	time.Sleep(20 * time.Millisecond)
	return nil
}

// TestCloseWaitsForASlowDisk closes a journal with a long backlog: Close aborts when the disk
// fails, not when it is slow.
func TestCloseWaitsForASlowDisk(t *testing.T) {
	const frames = 150 // a segment each
	s := still(t, t.TempDir())
	s.SegmentSize, s.disk = 4<<10, slowDisk{}
	j := open(t, s)
	r := begin(t, j, "a")
	for range frames {
		put(t, r, strings.Repeat("x", 4<<10))
	}
	closed(t, r)
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	k := newSink(t)
	s.disk = lazyDisk{}
	drain(t, open(t, s), k)
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.streams[k.names("a")[0]].frames); n != frames {
		t.Errorf("%d frames of %d", n, frames)
	}
}

// TestStreamThatIsAwaited has a stream that cannot be closed yet: it is closed again later,
// blocks no other stream meanwhile, and can be delivered again; its segments stay until it
// is closed.
func TestStreamThatIsAwaited(t *testing.T) {
	s := small(t, t.TempDir())
	s.reclose, s.SegmentSize = 20*time.Millisecond, 1<<10
	j := open(t, s)
	a := begin(t, j, "a")
	put(t, a, "one")
	put(t, a, "two")
	closed(t, a)
	k := newSink(t)
	k.awaits = 1 << 20
	r, stop := follow(t, j, k)
	defer stop()
	poll(t, "drained, although it is not closed", r.Drained)
	b := begin(t, j, "b") // another segment
	put(t, b, strings.Repeat("x", 2<<10))
	k.until("a second try", func() bool { return k.awaits < 1<<20-2 })
	if n := len(files(t, s.Dir, "seg")); n < 2 {
		t.Errorf("%d segments: what may be delivered again is gone", n)
	}
	k.mu.Lock()
	of := k.streams[k.names("a")[0]]
	of.frames, of.next, of.again = nil, 0, true
	k.safe[of.id.Key] = taken{}
	k.mu.Unlock()
	of.rewind(0)
	k.until("delivered again", func() bool { return len(of.frames) == 2 && !of.closed })
	k.mu.Lock()
	k.awaits = 0
	k.mu.Unlock()
	k.until("closed", func() bool {
		return of.closed && slices.Equal([]string{"one", "two"}, []string{string(of.frames[0].Data), string(of.frames[1].Data)})
	})
}
