package tap

import "sync/atomic"

// memory is what the copies of all streams may take.
type memory struct{ free atomic.Int64 }

// take takes n bytes if they are free.
func (m *memory) take(n int) bool {
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

func (m *memory) give(n int) { m.free.Add(int64(n)) }
