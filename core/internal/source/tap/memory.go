package tap

import "sync/atomic"

// memory limits the bytes of the copies of all streams.
type memory struct{ free atomic.Int64 }

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
