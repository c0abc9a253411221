package pipeline

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/msg"
)

// stream is one stream on its way. Its parts belong to different goroutines and
// are grouped so.
type stream struct {
	id     uint64 // in this process
	name   uint64 // in all of them
	feed   *Feed
	format *format
	lane   *lane

	// order is held by whoever queues jobs, while the lane may be full: two deliveries
	// cannot change places. The core never takes it, because a lane may wait for the
	// core.
	order sync.Mutex

	// Between the source and its lane, under mu, which nobody holds while waiting.
	mu     sync.Mutex
	next   int64 // position of the next frame to be delivered
	high   int64 // up to where frames were ever delivered
	rewind func(pos int64)
	closed bool
	life   int // counts rewinds: what was read in an earlier life is dropped
	resume resume
	poison map[int64]string // frames, by position, that are not for the decoder, and why; it is replaced, never changed
	// refused is why no frame of the stream is for the decoder; empty when they are.
	refused string
	mute    bool      // the decoder is not asked for what it has open
	suspect suspicion // written by the core

	// Of the lane's sender.
	opened     *session // the decoder session in which the decoder is open; nil when it is not
	openedLife int
	unsnapped  int64 // bytes sent since a snapshot was last asked for
	asked      time.Time

	// Of the core.
	record      checkpoint.Stream
	sessions    map[assemble.RunRef]struct{}
	lastSession string
	at          int64      // up to where its decoder has come
	registered  bool       // its anchor is durable
	stalled     bool       // its decoder does not begin
	touched     time.Time  // when frames last came
	flushing    bool       // what is open is being given
	parked      bool       // its decoder is closed, or being closed
	marks       []mark     // not reached yet
	last        msg.Stream // the response of which a row was given last
}

var _ source.Stream = (*stream)(nil)

// Deliver implements source.Stream.
func (s *stream) Deliver(ctx context.Context, b *frame.Batch) error {
	if len(b.Frames) == 0 {
		b.Done()
		return nil
	}
	if err := s.format.ready(ctx); err != nil {
		b.Done()
		return err
	}
	b = shrink(b)
	size := int64(cap(b.Data)) + int64(len(b.Frames))*frameCost
	if err := s.format.undecoded.acquire(ctx, size); err != nil {
		b.Done()
		return err
	}
	if err := s.feed.p.inFlight.acquire(ctx, size); err != nil {
		s.format.undecoded.release(size)
		b.Done()
		return err
	}
	s.order.Lock()
	defer s.order.Unlock()
	s.mu.Lock()
	// A rewind may meet frames on their way that begin where it leads to: then some
	// are there already when the source begins again.
	b.Frames = behind(b.Frames, s.next)
	if s.closed || len(b.Frames) == 0 || b.Frames[0].Pos != s.next {
		// Read before a rewind that it does not know of yet.
		s.mu.Unlock()
		s.format.undecoded.release(size)
		s.feed.p.inFlight.release(size)
		b.Done()
		return nil
	}
	s.next = b.End()
	s.high = max(s.high, s.next)
	for i := range b.Frames {
		if why, bad := s.poison[b.Frames[i].Pos]; bad {
			b.Frames[i].Reason = why
		} else if s.refused != "" && b.Frames[i].Reason == "" {
			b.Frames[i].Reason = s.refused
		}
	}
	j := &job{stream: s, batch: b, size: size, life: s.life}
	s.feed.p.outstanding.Add(1)
	s.feed.p.progress.delivered.Add(b.End() - b.Frames[0].Pos)
	s.mu.Unlock()
	err := s.lane.put(ctx, j)
	if err != nil {
		s.feed.p.drop(j)
	}
	return err
}

// behind returns the frames without those that end at pos or before.
func behind(frames []frame.Frame, pos int64) []frame.Frame {
	for len(frames) > 0 && frames[0].End <= pos {
		frames = frames[1:]
	}
	return frames
}

// Save implements source.Stream.
func (s *stream) Save(id source.ID) {
	s.feed.p.tell(func() {
		s.record.Origin, s.record.State = id.Origin, id.State
		s.feed.p.core.touch(s)
	})
}

// Close implements source.Stream.
func (s *stream) Close(ctx context.Context, forget bool) error {
	s.order.Lock()
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		s.order.Unlock()
		return nil
	case s.next < s.high: // its source does not know yet, or has more to deliver again
		s.mu.Unlock()
		s.order.Unlock()
		return source.ErrRewound
	}
	s.closed = true
	done := make(chan error, 1)
	j := &job{stream: s, flush: true, snapshot: true, close: true, end: done, forget: forget, life: s.life, pos: s.next}
	s.feed.p.outstanding.Add(1)
	s.mu.Unlock()
	err := s.lane.put(ctx, j)
	s.order.Unlock()
	if err != nil {
		s.feed.p.drop(j)
	}
	select {
	case err = <-done:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.feed.p.stopped:
		return errStopped
	}
	if err != nil {
		s.mu.Lock()
		s.closed = false
		s.mu.Unlock()
	}
	return err
}

// resume is where a decoder of the stream begins.
type resume struct {
	pos      int64
	snapshot []byte
	origin   string
}

const (
	// frameCost is what a frame takes beside its bytes.
	frameCost = 96
	// roomy is the size of buffer from which a batch that fills it badly is moved
	// to one of its own.
	roomy = 16 << 10
)

// shrink moves a batch that fills little of its buffer into a buffer of its size:
// it may have to be kept while an exporter is slow, and a thousand live files
// must not hold a thousand large buffers for a line each.
func shrink(b *frame.Batch) *frame.Batch {
	from, to := -1, 0
	for i := range b.Frames {
		if off, ok := frame.Offset(b.Data, b.Frames[i].Data); ok && len(b.Frames[i].Data) > 0 {
			if from < 0 {
				from = off
			}
			to = off + len(b.Frames[i].Data)
		}
	}
	if from < 0 {
		from = 0
	}
	if cap(b.Data) <= roomy || to-from > cap(b.Data)/2 {
		return b
	}
	data := make([]byte, to-from)
	copy(data, b.Data[from:to])
	frames := make([]frame.Frame, len(b.Frames))
	copy(frames, b.Frames)
	for i := range frames {
		if off, ok := frame.Offset(b.Data, frames[i].Data); ok && len(frames[i].Data) > 0 {
			frames[i].Data = data[off-from : off-from+len(frames[i].Data)]
		}
	}
	b.Done()
	return &frame.Batch{Data: data, Frames: frames, Written: b.Written, Backlog: b.Backlog}
}

// nameOf is a stream's name for the assembler, the same after a restart.
func nameOf(source, key string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(source + "\x00" + key))
	return h.Sum64()
}

// job is a batch of a stream, or something to do after the batches before it.
type job struct {
	stream   *stream
	batch    *frame.Batch // nil when there is none
	size     int64        // what it holds of the in-flight budget
	life     int          // the stream's when it was queued
	pos      int64        // behind the frames before it
	sent     []int32      // indexes of the batch's frames that the decoder gets; nil: all
	alone    bool         // nothing else is decoded beside it
	open     bool         // the decoder is opened, and that is all
	flush    bool
	snapshot bool
	close    bool       // the decoder is closed; it may be opened again from its snapshot
	end      chan error // the stream ends; takes nil when it has, ErrRewound when it has not
	forget   bool
	waits    *sync.WaitGroup // done when the job has been taken or dropped
}
