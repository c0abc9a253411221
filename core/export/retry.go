package export

import (
	"net/http"
	"strconv"
	"time"
)

// ParseRetryAfter reads the header of that name in its two forms, seconds and a
// date; 0 when it says neither.
func ParseRetryAfter(header string, now time.Time) time.Duration {
	if n, err := strconv.ParseInt(header, 10, 32); err == nil {
		return max(time.Duration(n)*time.Second, 0)
	}
	if t, err := http.ParseTime(header); err == nil {
		return max(t.Sub(now), 0)
	}
	return 0
}
