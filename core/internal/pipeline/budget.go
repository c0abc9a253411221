package pipeline

import (
	"context"
	"sync"
)

// budget bounds the bytes that are on their way. One that is larger than the
// whole budget may go when it is alone, so that no line is too long to pass.
type budget struct {
	mu      sync.Mutex
	most    int64
	used    int64
	waiters []*waiter // in the order in which they came
}

type waiter struct {
	n     int64
	ready chan struct{}
}

func newBudget(most int64) *budget { return &budget{most: most} }

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

func (b *budget) fits(n int64) bool { return b.used+n <= b.most || b.used == 0 }

func (b *budget) wake() {
	for len(b.waiters) > 0 && b.fits(b.waiters[0].n) {
		w := b.waiters[0]
		b.waiters = b.waiters[1:]
		b.used += w.n
		close(w.ready)
	}
}

// wanted reports whether somebody waits.
func (b *budget) wanted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiters) > 0
}

// held returns the bytes that are on their way.
func (b *budget) held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
