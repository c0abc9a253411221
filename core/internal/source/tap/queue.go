package tap

import (
	"slices"
	"sync"
	"time"
)

// pieceCost is the memory of a piece beside its bytes.
const pieceCost = 40

// Directions of a connection.
const (
	fromServer = iota
	fromClient
)

// piece is a run of bytes that were read at once, or a hole.
type piece struct {
	from int   // direction
	at   int64 // Unix ns
	n    int   // bytes of it in the buffer; 0: a hole
	lost int64 // bytes that were not kept
}

// queue carries the copy of one stream from the traffic to the goroutine that records it.
// put never waits: bytes without room leave a hole.
type queue struct {
	limit  int
	memory *memory
	more   chan struct{} // has a value when there may be something to take

	mu     sync.Mutex
	order  *order    // that exchange is in; nil: none yet
	of     *exchange // whose queue it is
	buf    []byte
	pieces []piece
	cost   int
	closed bool
	whole  bool // the stream ended by itself

	taken   int64     // pieces that take has returned
	idle    bool      // take waits: all of them are recorded
	settles []settles // of those who wait
}

// settles is closed when so many pieces are recorded.
type settles struct {
	pieces int64
	done   chan struct{}
}

// settled reports whether the pieces that were put so far are recorded, as far as they complete a
// frame; else done is closed once they are. Of a queue that is closed only the end of the recording shows
// it, and done is nil.
func (q *queue) settled() (done <-chan struct{}, already bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, false
	case q.idle && len(q.pieces) == 0:
		return nil, true
	}
	s := settles{q.taken + int64(len(q.pieces)), make(chan struct{})}
	q.settles = append(q.settles, s)
	q.wake()
	return s.done, false
}

// allow sets how many bytes may wait.
func (q *queue) allow(limit int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limit = limit
}

// enter has the order know from now on whether all that was put is recorded.
func (q *queue) enter(o *order, x *exchange) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.order, q.of = o, x
}

// mark reports to the order whether something is not recorded. The queue's mu is held.
func (q *queue) mark(behind bool) {
	if q.order != nil {
		q.order.mark(q.of, behind)
	}
}

func newQueue(limit int, m *memory) *queue {
	return &queue{limit: limit, memory: m, more: make(chan struct{}, 1)}
}

// put appends a copy of p. It does not wake the recording goroutine: the traffic does that
// once it has passed p on.
func (q *queue) put(from int, p []byte) {
	at := time.Now().UnixNano()
	q.mu.Lock()
	defer q.mu.Unlock()
	cost := len(p) + pieceCost
	if q.idle && len(q.pieces) == 0 && !q.closed {
		q.mark(true)
	}
	switch {
	case q.closed:
	case q.cost+cost > q.limit || !q.memory.reserve(cost):
		// Holes of the two directions may alternate.
		for i := len(q.pieces) - 1; i >= max(len(q.pieces)-2, 0) && q.pieces[i].n == 0; i-- {
			if q.pieces[i].from == from {
				q.pieces[i].lost += int64(len(p))
				return
			}
		}
		q.pieces = append(q.pieces, piece{from: from, at: at, lost: int64(len(p))})
	default:
		q.cost += cost
		q.buf = append(q.buf, p...)
		q.pieces = append(q.pieces, piece{from: from, at: at, n: len(p)})
	}
}

// wake wakes the recording goroutine.
func (q *queue) wake() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// end closes the queue; whole reports that the stream ended by itself. As put, it does not wake
// the recording goroutine.
func (q *queue) end(whole bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed, q.whole = true, whole
		q.mark(true)
	}
}

// close ends the queue, and wakes the recording goroutine.
func (q *queue) close(whole bool) {
	q.end(whole)
	q.wake()
}

// load is the content of a queue, as take returns it.
type load struct {
	buf    []byte
	pieces []piece
	cost   int
}

// keepLoad is how much memory a stream keeps between two bursts.
const keepLoad = 16 << 10

// take waits for pieces after those of the last call and swaps them with l, whose memory
// it releases. It returns false at the end.
func (q *queue) take(l *load) bool {
	q.memory.release(l.cost)
	l.cost = 0
	if cap(l.buf) > keepLoad {
		l.buf = nil
	}
	if cap(l.pieces) > keepLoad/32 {
		l.pieces = nil
	}
	l.buf, l.pieces = l.buf[:0], l.pieces[:0]
	q.wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pieces) == 0 {
		return false
	}
	q.taken += int64(len(q.pieces))
	q.buf, l.buf = l.buf, q.buf
	q.pieces, l.pieces = l.pieces, q.pieces
	q.cost, l.cost = 0, q.cost
	return true
}

// wait waits for pieces after those that take has returned, or the end. The pieces that it had returned are recorded.
func (q *queue) wait() {
	for {
		q.mu.Lock()
		q.settles = slices.DeleteFunc(q.settles, func(s settles) bool {
			if s.pieces <= q.taken {
				close(s.done)
			}
			return s.pieces <= q.taken
		})
		q.idle = len(q.pieces) == 0
		rests := q.idle && !q.closed
		if rests {
			q.mark(false)
		}
		q.mu.Unlock()
		if !rests {
			return
		}
		<-q.more
	}
}

// abandon drops the pieces in the queue and all later ones: no goroutine takes them.
func (q *queue) abandon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.memory.release(q.cost)
	q.closed, q.buf, q.pieces, q.cost = true, nil, nil, 0
}

func (q *queue) endedWhole() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.whole
}
