package file

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// sched says where a file is on its way through a queue.
type sched uint8

const (
	idle sched = iota
	queued
	busy      // in a worker's hands
	busyAgain // and there is reason to take it up again
)

// verdict is what a worker says of a file it puts down.
type verdict struct {
	again bool          // there is more to do
	end   bool          // everything that is there was read
	after time.Duration // there may be more to do then
}

// queue holds the files that are to be read. It has two lanes, which take turns.
// What was there at the start is read one file after the other, and nothing before
// all above it in the directory tree is read, so that parents come before children
// and few streams are half read at a time. Files that grow are read in turns of one
// batch each, so that none starves the others.
type queue struct {
	cond    *sync.Cond
	fresh   fifo
	growing fifo
	turn    bool
	active  int // in hands
	level   int // depth of the fresh files in hands
	below   int // how many those are
}

// fifo is a queue that also takes back what was its first.
type fifo struct {
	files []*file
	head  int
}

func (q *fifo) len() int { return len(q.files) - q.head }

func (q *fifo) first() *file { return q.files[q.head] }

func (q *fifo) push(f *file) { q.files = append(q.files, f) }

func (q *fifo) pop() *file {
	f := q.files[q.head]
	q.files[q.head] = nil
	q.head++
	if q.head == len(q.files) || q.head > 1024 && q.head > len(q.files)/2 {
		q.files = slices.Delete(q.files, 0, q.head)
		q.head = 0
	}
	return f
}

func (q *fifo) unpop(f *file) {
	if q.head == 0 {
		q.files = append([]*file{f}, q.files...)
		return
	}
	q.head--
	q.files[q.head] = f
}

func (q *queue) len() int { return q.fresh.len() + q.growing.len() }

func (q *queue) put(f *file) {
	if f.fresh {
		q.fresh.push(f)
	} else {
		q.growing.push(f)
	}
	q.cond.Signal()
}

// take takes a file into hands, nil when there is none to be taken now.
func (q *queue) take() (f *file, fresh bool) {
	fresh = q.fresh.len() > 0 && (q.below == 0 || depth(q.fresh.first().path) == q.level)
	q.turn = !q.turn
	switch {
	case fresh && (q.turn || q.growing.len() == 0):
		f = q.fresh.pop()
		q.level = depth(f.path)
		q.below++
	case q.growing.len() > 0:
		f, fresh = q.growing.pop(), false
	default:
		return nil, false
	}
	q.active++
	return f, fresh
}

// done takes it out of hands.
func (q *queue) done(fresh bool) {
	q.active--
	if fresh {
		q.below--
		q.cond.Broadcast()
	}
}

func depth(path string) int { return strings.Count(path, "/") }

func (s *Source) queueOf(f *file) *queue {
	if f.kind == archive && !f.ghost {
		return &s.packed
	}
	return &s.plain
}

// push makes sure that a worker takes the file up after this. s.mu is held.
func (s *Source) push(f *file) {
	switch f.sched {
	case idle:
		f.sched = queued
		s.queueOf(f).put(f)
	case busy:
		f.sched = busyAgain
	}
}

// work takes files from a queue until ctx ends.
func (s *Source) work(ctx context.Context, q *queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ctx.Err() == nil {
		var f *file
		var fresh bool
		if !s.held {
			f, fresh = q.take()
		}
		if f == nil {
			q.cond.Wait()
			continue
		}
		s.takeUp(f)
		s.mu.Unlock()
		v := s.step(ctx, f)
		s.mu.Lock()
		s.putDown(f, v)
		q.done(fresh)
		if v.after > 0 {
			s.pushLater(ctx, f, v.after)
		}
	}
}

// takeUp gives a file into the hands of the caller. s.mu is held.
func (s *Source) takeUp(f *file) {
	f.sched = busy
	if f.place != nil {
		s.idle.Remove(f.place)
		f.place = nil
	}
}

// putDown takes it back. s.mu is held.
func (s *Source) putDown(f *file, v verdict) {
	again := v.again || f.sched == busyAgain
	if !again && v.after == 0 && !f.lost {
		s.settle(f)
	}
	f.sched = idle
	if f.fd != nil {
		f.place = s.idle.PushFront(f)
		s.closeIdle(s.MaxOpen)
	}
	switch {
	case again && f.fresh:
		f.sched = queued
		q := s.queueOf(f)
		q.fresh.unpop(f)
		q.cond.Signal()
	case again:
		s.push(f)
	}
}

// pushLater pushes a file in a while. s.mu is held.
func (s *Source) pushLater(ctx context.Context, f *file, after time.Duration) {
	s.delayed++
	time.AfterFunc(after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.delayed--
		if ctx.Err() == nil {
			s.push(f)
		}
	})
}

// closeIdle closes idle descriptors, those used longest ago first, until no more
// than keep are left. s.mu is held.
func (s *Source) closeIdle(keep int) {
	for s.idle.Len() > keep {
		f := s.idle.Remove(s.idle.Back()).(*file)
		f.place = nil
		f.close()
	}
}

func (f *file) close() {
	if f.fd != nil {
		f.fd.Close()
		f.fd = nil
	}
}
