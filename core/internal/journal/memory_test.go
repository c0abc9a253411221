package journal

import (
	"fmt"
	"runtime"
	"testing"
)

// TestOpeningTakesLittleMemory opens a journal with many ended streams: the memory grows with
// the open streams and the number of segments, not with their size or the ended streams.
func TestOpeningTakesLittleMemory(t *testing.T) {
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	held := func(streams int) (bytes int64, segments int) {
		s := still(t, t.TempDir())
		s.SegmentSize = 1 << 20
		j := open(t, s)
		data := fmt.Sprintf("%01000d", 0)
		for range streams {
			r := begin(t, j, "")
			put(t, r, data)
			closed(t, r)
		}
		last := begin(t, j, "open")
		put(t, last, data)
		sync_(t, last)
		j.mustClose(t)
		before := inUse()
		j = open(t, s)
		bytes = inUse() - before
		if n := j.Stats(); n.Streams != 1 || n.Bytes < int64(streams)*1000 {
			t.Errorf("%+v", n)
		}
		segments = j.Stats().Segments
		j.mustClose(t)
		return bytes, segments
	}
	few, small := held(1_000)
	many, large := held(40_000)
	if large < 20*small {
		t.Fatalf("%d and %d segments: nothing is compared", small, large)
	}
	t.Logf("%d KiB for %d segments, %d KiB for %d", few>>10, small, many>>10, large)
	if many > few+512<<10 {
		t.Error("it grows with what has ended")
	}
}
