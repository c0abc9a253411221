package tap

import (
	"sync"
	"sync/atomic"
)

// memory limits the bytes of the copies of all streams.
type memory struct {
	free  atomic.Int64
	large sync.Mutex
}

// largeFrames is the size from which frames are recorded one by one: on its way into the journal
// a frame is in memory as it was read, redacted and as a record.
const largeFrames = 1 << 20

// oneByOne waits until no other stream records large frames, before n bytes of them are. Only
// recording goroutines call it, never the traffic.
func (m *memory) oneByOne(n int) (done func()) {
	if n < largeFrames {
		return func() {}
	}
	m.large.Lock()
	return m.large.Unlock
}

// reserve reserves n bytes if they are free.
func (m *memory) reserve(n int) bool {
	for {
		free := m.free.Load()
		if free < int64(n) {
			return false
		}
		if m.free.CompareAndSwap(free, free-int64(n)) {
			return true
		}
	}
}

func (m *memory) release(n int) { m.free.Add(int64(n)) }
