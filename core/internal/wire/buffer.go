package wire

import (
	"slices"
	"sync"

	"google.golang.org/grpc/mem"
)

// keep is the size of buffer that is used again for the next message. Requests are
// of 1 MiB, about; one line may have 64 MiB, and such a buffer is let go.
const keep = 4 << 20

// buffer holds one message after another. gRPC's own pool has buffers up to 1 MiB
// and, for larger ones, a heap of any sizes that grows for as long as messages
// differ.
type buffer []byte

// fill makes b a copy of in.
func (b *buffer) fill(in mem.BufferSlice) {
	n := in.Len()
	*b = slices.Grow((*b)[:0], n)[:n]
	in.CopyTo(*b)
}

// trim empties b and lets go of a large one.
func (b *buffer) trim() {
	if cap(*b) > keep {
		*b = nil
	}
	*b = (*b)[:0]
}

// sent are the buffers of responses that gRPC has sent.
type sent struct{ pool sync.Pool }

var _ mem.BufferPool = (*sent)(nil)

// Get implements mem.BufferPool.
func (s *sent) Get(length int) *[]byte {
	b, ok := s.pool.Get().(*[]byte)
	if !ok {
		b = new([]byte)
	}
	*b = slices.Grow((*b)[:0], length)[:length]
	return b
}

// Put implements mem.BufferPool.
func (s *sent) Put(b *[]byte) {
	if cap(*b) <= keep {
		s.pool.Put(b)
	}
}
