package journal

import (
	"slices"
	"sync"
)

// inbox holds the reports of other goroutines to a Reader: rewinds of the pipeline, streams
// that were closed, segments that were removed.
type inbox struct {
	wake chan struct{} // has a value when Run has something to do

	mu         sync.Mutex
	rewinds    map[uint64]int64
	finished   map[uint64]bool // streams that were closed, until their segments are gone
	retiring   []ending        // those of them whose segments are gone
	shut       []uint64        // those of them whose tails are still there
	unfinished map[uint64]bool // streams whose end was read and that are not closed yet
	retries    []uint64        // streams that are to be closed again
	resting    place           // where Run waits for more
}

// ending is where a stream ended.
type ending struct{ number, segment uint64 }

func newInbox() *inbox {
	return &inbox{
		wake: make(chan struct{}, 1), rewinds: make(map[uint64]int64), finished: make(map[uint64]bool), unfinished: make(map[uint64]bool),
	}
}

// update changes the inbox, and wakes Run.
func (b *inbox) update(change func()) {
	b.mu.Lock()
	change()
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// rewind has a stream delivered again from a position.
func (b *inbox) rewind(n uint64, pos int64) { b.update(func() { b.rewinds[n] = pos }) }

// retry has a stream closed that could not be closed yet.
func (b *inbox) retry(n uint64) { b.update(func() { b.retries = append(b.retries, n) }) }

// ended notes that the end of a stream was read.
func (b *inbox) ended(n uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unfinished[n] = true
}

// retired notes that a stream's last segment is gone. That the stream is finished is kept
// until Run is past that segment: it may be in it again after a rewind.
func (b *inbox) retired(n, segment uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retiring = append(b.retiring, ending{n, segment})
}

// forget forgets the streams that ended before a segment that Run is in.
func (b *inbox) forget(segment uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retiring = slices.DeleteFunc(b.retiring, func(e ending) bool {
		if e.segment < segment {
			delete(b.finished, e.number)
		}
		return e.segment < segment
	})
}

func (b *inbox) isFinished(n uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.finished[n]
}

// rest notes where Run waits for more; the zero value: it does not.
func (b *inbox) rest(at place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resting = at
}

// at returns where Run waits, and whether it has still something to do.
func (b *inbox) at() (at place, busy bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.resting, len(b.rewinds)+len(b.unfinished) > 0
}

// takeRetries returns the streams that are to be closed again.
func (b *inbox) takeRetries() []uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.retries
	b.retries = nil
	return list
}

// takeRewinds returns the positions from which streams are to be delivered again, and the
// streams that were closed meanwhile.
func (b *inbox) takeRewinds() (rewinds map[uint64]int64, shut []uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.rewinds) > 0 {
		rewinds, b.rewinds = b.rewinds, make(map[uint64]int64)
		b.resting = place{} // Run is not back there yet, and nothing else shows that
	}
	shut, b.shut = b.shut, nil
	return rewinds, shut
}
