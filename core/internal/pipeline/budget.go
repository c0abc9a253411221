package pipeline

import (
	"context"
	"sync"
)

// lease is the share of a batch of frames in the memory budgets: in the format's until it is
// decoded, in the pipeline's until its rows are committed.
type lease struct {
	bytes               int64
	undecoded, inFlight *budget
}

// newLease waits until both budgets have room.
func newLease(ctx context.Context, bytes int64, undecoded, inFlight *budget) (lease, error) {
	if err := undecoded.acquire(ctx, bytes); err != nil {
		return lease{}, err
	}
	if err := inFlight.acquire(ctx, bytes); err != nil {
		undecoded.release(bytes)
		return lease{}, err
	}
	return lease{bytes, undecoded, inFlight}, nil
}

func (l *lease) release() {
	l.undecoded.release(l.bytes)
	l.inFlight.release(l.bytes)
}

// budget bounds the bytes in flight. A request that is larger than the whole budget is
// granted when nothing else is in flight, so that no line is too long to pass.
type budget struct {
	mu      sync.Mutex
	limit   int64
	used    int64
	waiters []*waiter // first come, first served
}

type waiter struct {
	n     int64
	ready chan struct{}
}

func newBudget(limit int64) *budget { return &budget{limit: limit} }

func (b *budget) acquire(ctx context.Context, n int64) error {
	b.mu.Lock()
	if len(b.waiters) == 0 && b.fits(n) {
		b.used += n
		b.mu.Unlock()
		return nil
	}
	w := &waiter{n, make(chan struct{})}
	b.waiters = append(b.waiters, w)
	b.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, x := range b.waiters {
		if x == w {
			b.waiters = append(b.waiters[:i], b.waiters[i+1:]...)
			b.wake() // the next one may be smaller
			return ctx.Err()
		}
	}
	b.used -= n // it was granted meanwhile
	b.wake()
	return ctx.Err()
}

func (b *budget) release(n int64) {
	b.mu.Lock()
	b.used -= n
	b.wake()
	b.mu.Unlock()
}

func (b *budget) fits(n int64) bool { return b.used+n <= b.limit || b.used == 0 }

func (b *budget) wake() {
	for len(b.waiters) > 0 && b.fits(b.waiters[0].n) {
		w := b.waiters[0]
		b.waiters = b.waiters[1:]
		b.used += w.n
		close(w.ready)
	}
}

// exhausted reports whether a request waits.
func (b *budget) exhausted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiters) > 0
}

// inUse returns the bytes in flight.
func (b *budget) inUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
