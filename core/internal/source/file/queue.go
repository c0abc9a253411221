package file

import (
	"container/list"
	"strings"
	"sync"
	"time"
)

// queueState is where a file is on its way through a queue.
type queueState uint8

const (
	idle queueState = iota
	queued
	processing      // by a worker
	processingAgain // and to be processed once more after that
)

// result is the result of processing a file.
type result struct {
	again bool          // there is more to do
	eof   bool          // everything that is there was read
	after time.Duration // there may be more to do then
}

// schedule decides which file is processed next, and which files keep their descriptor
// open. The fileset's mu guards it.
type schedule struct {
	plain   queue
	packed  queue // archives, which take longer
	delayed int   // files that a timer will push
	paused  bool
	open    descriptors // idle ones
}

func newSchedule(mu sync.Locker, maxOpen int) schedule {
	return schedule{
		plain: queue{cond: sync.NewCond(mu)}, packed: queue{cond: sync.NewCond(mu)},
		paused: true, open: descriptors{max: maxOpen},
	}
}

func (s *schedule) queueOf(f *file) *queue {
	if f.kind == archive && f.orphan == nil {
		return &s.packed
	}
	return &s.plain
}

// push makes sure that a worker processes the file from now on, once more if one is at it.
func (s *schedule) push(f *file) {
	switch f.queued {
	case idle:
		f.queued = queued
		s.queueOf(f).put(f)
	case processing:
		f.queued = processingAgain
	}
}

// claim makes the caller the one that processes f, until it calls release.
func (s *schedule) claim(f *file) {
	f.queued = processing
	s.open.remove(f)
}

func (s *schedule) release(f *file, again bool) {
	f.queued = idle
	if f.fd != nil {
		s.open.add(f)
	}
	switch {
	case again && f.initial:
		f.queued = queued
		q := s.queueOf(f)
		q.initial.PushFront(f)
		q.cond.Signal()
	case again:
		s.push(f)
	}
}

// empty reports whether there is nothing to process now or later.
func (s *schedule) empty() bool {
	return !s.paused && s.delayed == 0 && s.plain.len()+s.plain.active+s.packed.len()+s.packed.active == 0
}

func (s *schedule) wakeAll() {
	s.plain.cond.Broadcast()
	s.packed.cond.Broadcast()
}

// queue holds files to process, in two lists that take turns. Files that were there at
// the start are read one after the other, and none before those above it in the
// directory tree are read: parents come before children, and few streams are half read
// at a time. Files that grow are read one batch at a time, so that none starves the
// others.
type queue struct {
	cond    *sync.Cond
	initial list.List
	growing list.List
	turn    bool
	active  int // files being processed
	depth   int // of the initial files being processed
	atDepth int // the number of those
}

func (q *queue) len() int { return q.initial.Len() + q.growing.Len() }

func (q *queue) put(f *file) {
	if f.initial {
		q.initial.PushBack(f)
	} else {
		q.growing.PushBack(f)
	}
	q.cond.Signal()
}

func (q *queue) take() (f *file, initial bool) {
	first := q.initial.Front()
	initial = first != nil && (q.atDepth == 0 || depth(first.Value.(*file).path) == q.depth)
	q.turn = !q.turn
	switch {
	case initial && (q.turn || q.growing.Len() == 0):
		f = q.initial.Remove(first).(*file)
		q.depth = depth(f.path)
		q.atDepth++
	case q.growing.Len() > 0:
		f, initial = q.growing.Remove(q.growing.Front()).(*file), false
	default:
		return nil, false
	}
	q.active++
	return f, initial
}

func (q *queue) done(initial bool) {
	q.active--
	if initial {
		q.atDepth--
		q.cond.Broadcast()
	}
}

func depth(path string) int { return strings.Count(path, "/") }

// descriptors are the open files that no worker processes, the last used first.
type descriptors struct {
	max int
	lru list.List
}

// add keeps the descriptor of f open, and closes those over the maximum.
func (d *descriptors) add(f *file) {
	f.element = d.lru.PushFront(f)
	d.trim(d.max)
}

func (d *descriptors) remove(f *file) {
	if f.element != nil {
		d.lru.Remove(f.element)
		f.element = nil
	}
}

// trim closes the descriptors that were used longest ago, until n are left.
func (d *descriptors) trim(n int) {
	for d.lru.Len() > n {
		f := d.lru.Remove(d.lru.Back()).(*file)
		f.element = nil
		f.close()
	}
}
