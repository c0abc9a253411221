package journal

import (
	"strings"
	"testing"
	"time"
)

// slowDisk takes its time for every sync, and fails at none.
type slowDisk struct{ lazyDisk }

func (d slowDisk) open(path string) (file, error) {
	f, err := d.lazyDisk.open(path)
	return slowFile{f}, err
}

type slowFile struct{ file }

func (slowFile) Sync() error {
	time.Sleep(20 * time.Millisecond)
	return nil
}

// A journal that is closed gives up on a disk that fails, not on one that is slow.
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
