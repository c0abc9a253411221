package file

import (
	"math/bits"
	"sync"

	"github.com/earshot-dev/earshot/core/frame"
)

// chunk is a buffer and the frames cut from it. It travels as a batch and comes
// back when that is released. An append of a few bytes takes a small one: a batch
// may wait in the pipeline for long, and its buffer with it.
type chunk struct {
	buf     []byte
	frames  []frame.Frame
	release func() // gives the chunk back to its pool
}

// batch returns the chunk as a batch. From then on it belongs to the receiver.
func (c *chunk) batch() *frame.Batch {
	return &frame.Batch{Data: c.buf, Frames: c.frames, Release: c.release}
}

// buffers are pools of chunks by the size of the buffer: minRead, twice as much,
// and so on up to max. What is larger is made for the one line that needs it and
// not kept.
type buffers struct {
	max   int
	pools []sync.Pool
}

func newBuffers(max int) *buffers {
	return &buffers{max: max, pools: make([]sync.Pool, class(max)+1)}
}

func class(n int) int {
	return bits.Len(uint(max(n, minRead)-1)) - bits.Len(uint(minRead-1))
}

// get returns a chunk with a buffer of n bytes and no frames.
func (p *buffers) get(n int) *chunk {
	if n > p.max {
		return &chunk{buf: make([]byte, n), release: func() {}}
	}
	pool := &p.pools[class(n)]
	c, ok := pool.Get().(*chunk)
	if !ok {
		c = &chunk{buf: make([]byte, minRead<<class(n))}
		c.release = func() { pool.Put(c) }
	}
	c.buf, c.frames = c.buf[:n], c.frames[:0]
	return c
}
