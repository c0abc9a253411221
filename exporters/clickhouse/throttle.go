package clickhouse

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/retry"
)

// throttle remembers for how long a server, or a proxy before it, last asked to
// be spared. The driver's errors do not have it.
type throttle struct{ wait atomic.Int64 }

// take returns the wait and forgets it.
func (t *throttle) take() time.Duration { return time.Duration(t.wait.Swap(0)) }

// writeBuffer is the size at which a connection writes. With net/http's 4 KiB
// every 32 KiB of rows took two system calls.
const writeBuffer = 128 << 10

func (t *throttle) wrap(next *http.Transport) (http.RoundTripper, error) {
	next.WriteBufferSize = writeBuffer
	return &throttled{next: next, throttle: t}, nil
}

type throttled struct {
	next     *http.Transport
	throttle *throttle
}

// CloseIdleConnections is called by http.Client.
func (t *throttled) CloseIdleConnections() { t.next.CloseIdleConnections() }

func (t *throttled) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable {
		t.throttle.wait.Store(int64(retry.ParseAfter(res.Header.Get("Retry-After"), time.Now())))
	}
	return res, nil
}
