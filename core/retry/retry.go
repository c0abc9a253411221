// Package retry computes how long to wait before the next attempt. The loops are the
// callers': they decide which errors to retry, log them, and end.
package retry

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
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

// Reset makes the next pause the first one again.
func (b *Backoff) Reset() { b.failures = 0 }

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

// ParseAfter parses the header Retry-After in its two forms, seconds and a date. It
// returns 0 for a time in the past and for anything else.
func ParseAfter(header string, now time.Time) time.Duration {
	if n, err := strconv.ParseInt(header, 10, 32); err == nil {
		return max(time.Duration(n)*time.Second, 0)
	}
	if t, err := http.ParseTime(header); err == nil {
		return max(t.Sub(now), 0)
	}
	return 0
}
