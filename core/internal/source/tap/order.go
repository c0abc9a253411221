package tap

import (
	"slices"
	"sync"
	"time"
)

// order has the responses of a tap recorded in the order in which clients received them. Each has a
// goroutine of its own, which may still wait for a processor when the agent has read the response,
// run the tool, and sent the result in its next request. Recorded before the call, the
// result would be taken for the beginning of a run.
type order struct {
	mu   sync.Mutex
	open []*exchange // that are being recorded, first the one that was answered first
}

// patience is how long an exchange waits for all that came before it: longer, it would lose bytes
// of its own.
const patience = time.Second

// enter adds an exchange that is about to be recorded.
func (o *order) enter(x *exchange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = append(o.open, x)
}

// leave removes an exchange, of which nothing more is recorded.
func (o *order) leave(x *exchange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.Index(o.open, x); i >= 0 {
		o.open = slices.Delete(o.open, i, i+1)
	}
	close(x.recorded)
}

// await waits until what had arrived of each exchange that was answered before x is recorded. It is
// called before anything of x is recorded, so that no two exchanges wait for each other.
func (o *order) await(x *exchange) {
	o.mu.Lock()
	earlier := slices.Clone(o.open[:slices.Index(o.open, x)])
	o.mu.Unlock()
	var timeout <-chan time.Time
	for _, e := range earlier {
		var arrived <-chan struct{}
		if e.queue != nil {
			var rests bool
			if arrived, rests = e.queue.settled(); rests {
				continue
			}
		}
		if timeout == nil {
			timer := time.NewTimer(patience)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-arrived:
		case <-e.recorded:
		case <-timeout:
			return
		}
	}
}
