// Package retry says how long to wait before trying again.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff doubles the pause with every failure, up to a limit, and draws the pause
// from the upper half of it, so that many clients of one server do not come back
// at once. There is no last attempt. It is not safe for concurrent use.
type Backoff struct {
	Min time.Duration // of the first pause
	Max time.Duration

	failures int
}

// Next returns the pause after one more failure.
func (b *Backoff) Next() time.Duration {
	pause := b.Min
	for range min(b.failures, 62) {
		if pause >= b.Max/2 {
			pause = b.Max
			break
		}
		pause *= 2
	}
	b.failures++
	pause = min(pause, b.Max)
	return pause - rand.N(pause/2+1)
}

// Reset begins anew after a success.
func (b *Backoff) Reset() { b.failures = 0 }

// Failures since the last success.
func (b *Backoff) Failures() int { return b.failures }

// Wait waits for d. It reports whether ctx is still running.
func Wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return ctx.Err() == nil
	}
}
