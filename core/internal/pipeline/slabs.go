package pipeline

import "sync"

// slabSize is how many records a slab has: of messages and of spans some 120 and 150 KiB, in whole pages.
const slabSize = 128

// slabs keeps the memory of the messages or spans of committed batches for the next ones, in pieces of one size.
// Batches share the bytes in flight, so all together have as many records as fit in there, however they are
// divided. One list for each batch has to be made for the largest, and once more while two batches are with the
// exporters: such lists were a third of the heap that lives and a quarter of what was allocated, on pages that
// the limit of memory had returned.
type slabs[T any] struct {
	mu     sync.Mutex
	free   [][]T
	recent int // slabs of a batch, at most, of late
}

// records are the messages or spans of one batch, in slabs of which all but the last are full.
type records[T any] struct{ slabs [][]T }

// add keeps a copy of a record, and returns it.
func (r *records[T]) add(from *slabs[T], v *T) *T {
	if n := len(r.slabs); n == 0 || len(r.slabs[n-1]) == slabSize {
		r.slabs = append(r.slabs, from.take())
	}
	last := &r.slabs[len(r.slabs)-1]
	*last = append(*last, *v)
	return &(*last)[len(*last)-1]
}

// take returns an empty slab.
func (p *slabs[T]) take() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.free)
	if n == 0 {
		return make([]T, 0, slabSize)
	}
	s := p.free[n-1]
	p.free = p.free[:n-1]
	return s
}

// put takes the slabs of a committed batch. Their records are cleared: they keep frames and responses alive.
// Those of a backlog are let go when some dozen small batches have followed: they are tens of megabytes,
// and next to nothing would be in them.
func (p *slabs[T]) put(r *records[T]) {
	for _, s := range r.slabs {
		clear(s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range r.slabs {
		p.free = append(p.free, s[:0])
	}
	p.recent = max(len(r.slabs), p.recent*7/8)
	p.keep(2 * p.recent)
	r.slabs = nil
}

// drop lets go of the slabs when there was no batch for a while.
func (p *slabs[T]) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recent = 0
	p.keep(0)
}

// keep lets go of all free slabs beyond n.
func (p *slabs[T]) keep(n int) {
	if len(p.free) > n {
		clear(p.free[n:])
		p.free = p.free[:n]
	}
}
