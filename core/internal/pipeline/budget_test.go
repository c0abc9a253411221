package pipeline

import (
	"context"
	"errors"
	"testing"
	"time"
)

// waiting waits until n requests wait for the budget.
func (b *budget) waiting(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		b.mu.Lock()
		waiting := len(b.waiters)
		b.mu.Unlock()
		if waiting == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d requests wait, want %d", waiting, n)
		}
	}
}

// TestBudget: requests are granted in their order, one that is larger than the budget alone, and one that ends early leaves its place to the next.
func TestBudget(t *testing.T) {
	b := newBudget(10)
	if err := b.acquire(t.Context(), 6); err != nil || b.exhausted() {
		t.Errorf("a free budget: %v, exhausted %t", err, b.exhausted())
	}
	ask := func(ctx context.Context, n int64) chan error {
		granted := make(chan error, 1)
		go func() { granted <- b.acquire(ctx, n) }()
		return granted
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := ask(ctx, 25)
	b.waiting(t, 1)
	second := ask(t.Context(), 4) // would fit
	b.waiting(t, 2)
	if !b.exhausted() || b.inUse() != 6 {
		t.Errorf("%d in use, exhausted %t", b.inUse(), b.exhausted())
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if err := <-second; err != nil || b.inUse() != 10 {
		t.Errorf("the next: %v, %d in use", err, b.inUse())
	}
	large := ask(t.Context(), 25)
	b.waiting(t, 1)
	b.release(4)
	b.waiting(t, 1)
	b.release(6)
	if err := <-large; err != nil || b.inUse() != 25 {
		t.Errorf("one that is larger than the budget: %v, %d in use", err, b.inUse())
	}
	if b.release(25); b.inUse() != 0 || b.exhausted() {
		t.Errorf("in the end %d are in use", b.inUse())
	}
}

// TestBudgetGivenUpAsItIsGranted has a request end in the moment in which it is granted: it holds all of it, or nothing.
func TestBudgetGivenUpAsItIsGranted(t *testing.T) {
	for range 50 {
		b := newBudget(10)
		b.used = 10
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- b.acquire(ctx, 4) }()
		b.waiting(t, 1)
		b.mu.Lock()
		cancel()
		b.used = 0
		b.wake()
		b.mu.Unlock()
		want := int64(4)
		if <-done != nil {
			want = 0
		}
		if n := b.inUse(); n != want {
			t.Fatalf("%d in use, want %d", n, want)
		}
	}
}

// TestLease: frames hold their bytes in both budgets or in none.
func TestLease(t *testing.T) {
	undecoded, inFlight := newBudget(10), newBudget(10)
	held, err := newLease(t.Context(), 6, undecoded, inFlight)
	if err != nil || undecoded.inUse() != 6 || inFlight.inUse() != 6 {
		t.Errorf("%v, %d and %d bytes", err, undecoded.inUse(), inFlight.inUse())
	}
	undecoded.release(6) // decoded, and not with the exporters
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, n := range []int64{6, 11} { // the second budget has no room
		if _, err := newLease(ended, n, undecoded, inFlight); !errors.Is(err, context.Canceled) || undecoded.inUse() != 0 || inFlight.inUse() != 6 {
			t.Errorf("%v, %d and %d bytes", err, undecoded.inUse(), inFlight.inUse())
		}
	}
	undecoded.used = 6
	if _, err := newLease(ended, 6, undecoded, inFlight); !errors.Is(err, context.Canceled) || inFlight.inUse() != 6 {
		t.Errorf("%v, %d bytes", err, inFlight.inUse())
	}
	if held.release(); undecoded.inUse() != 0 || inFlight.inUse() != 0 {
		t.Errorf("in the end %d and %d bytes are held", undecoded.inUse(), inFlight.inUse())
	}
}
