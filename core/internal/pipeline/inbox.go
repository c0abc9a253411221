package pipeline

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/earshot-dev/earshot/core/internal/wire"
)

var errStopped = errors.New("pipeline stopped")

// inbox is the way of every other goroutine to the core.
type inbox struct {
	results chan result
	calls   chan func(*core)
	stopped chan struct{} // closed when the core has ended
	early   earlyCalls
	pending atomic.Int64 // commands that were queued and neither taken by the core nor discarded
}

// result is a command with the decoder's answer.
type result struct {
	command command
	decoded *wire.Result
}

func newInbox() *inbox {
	return &inbox{results: make(chan result, 2*laneDepth), calls: make(chan func(*core)), stopped: make(chan struct{})}
}

// earlyCalls are posted while the sources are made, before the core runs.
type earlyCalls struct {
	mu      sync.Mutex
	list    []func(*core)
	started bool
}

// keep keeps f for the core, unless it runs.
func (e *earlyCalls) keep(f func(*core)) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.started {
		e.list = append(e.list, f)
	}
	return !e.started
}

// take returns the calls that were kept, and keeps no more.
func (e *earlyCalls) take() []func(*core) {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.list
	e.list, e.started = nil, true
	return list
}

// post has the core run f, and returns when the core has begun to. Before the core runs it
// returns at once, and f is the first that the core does.
func (b *inbox) post(f func(*core)) { b.postWithin(context.Background(), f) }

// postWithin is post until ctx ends: the core may be waiting for an exporter.
func (b *inbox) postWithin(ctx context.Context, f func(*core)) {
	if b.early.keep(f) {
		return
	}
	select {
	case b.calls <- f:
	case <-b.stopped:
	case <-ctx.Done():
	}
}

// call has the core run f, and returns when the core has.
func (b *inbox) call(ctx context.Context, f func(*core)) error {
	done := make(chan struct{})
	select {
	case b.calls <- func(c *core) { f(c); close(done) }:
	case <-b.stopped:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-b.stopped:
		return errStopped
	}
}

// wait returns when done is closed, which the core has done.
func (b *inbox) wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-b.stopped:
		return errStopped
	}
}

// discard ends a command that the core will not apply.
func (b *inbox) discard(commands ...command) {
	for _, c := range commands {
		b.pending.Add(-1)
		c.discard()
	}
}

// resultPool keeps decoded results for reuse. A sync.Pool would lose them in every other
// garbage collection, and there are many.
type resultPool chan *wire.Result

func (p resultPool) get() *wire.Result {
	select {
	case r := <-p:
		return r
	default:
		return new(wire.Result)
	}
}

func (p resultPool) put(r *wire.Result) {
	select {
	case p <- r:
	default:
	}
}

// handover are records of other components, which wait for the next commit batch.
type handover[T any] struct {
	mu   sync.Mutex
	list []T
}

func (d *handover[T]) add(records ...T) {
	d.mu.Lock()
	d.list = append(d.list, records...)
	d.mu.Unlock()
}

func (d *handover[T]) take() []T {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.list
	d.list = nil
	return list
}
