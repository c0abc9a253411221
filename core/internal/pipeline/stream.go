package pipeline

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// stream is one stream as its source and its lane see it; the core's side is account.
type stream struct {
	id   uint64 // in this process; set by the core
	name uint64 // hash of source and key, the same in every process
	feed *Feed
	lane *lane // set by the core

	// order is held while a command is queued, also while the lane is full: two deliveries
	// cannot change places. The core never takes it, because a lane may wait for the core.
	order  sync.Mutex
	cursor cursor

	decoder decoderState // of the lane's sender
}

var _ source.Stream = (*stream)(nil)

// cursor is how far a stream was delivered, and from where its decoder begins. Source, lane
// and core share it under its mutex, which is never held while waiting.
type cursor struct {
	mu         sync.Mutex
	next       int64 // position of the next frame to be delivered
	high       int64 // up to where frames were ever delivered
	rewind     func(pos int64)
	closed     bool
	generation int // counts rewinds: frames read in an earlier generation are dropped
	resume     resume
	quarantine quarantine
}

// resume is where a decoder of the stream begins.
type resume struct {
	pos      int64
	snapshot []byte
	origin   string
}

// position returns the next position to be delivered, and the highest ever.
func (c *cursor) position() (next, high int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next, c.high
}

// onRewind sets the function that is called at a rewind, and returns the next position: an
// earlier rewind is in it.
func (c *cursor) onRewind(f func(pos int64)) (next int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rewind = f
	return c.next
}

// rewindTo begins a generation, and returns the function to call; it may be nil.
func (c *cursor) rewindTo(generation int, r resume) func(pos int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation, c.next, c.resume = generation, r.pos, r
	return c.rewind
}

func (c *cursor) setResume(r resume) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resume = r
}

func (c *cursor) setClosed(closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = closed
}

// setQuarantine changes the quarantine that the lane reads.
func (c *cursor) setQuarantine(change func(*quarantine)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.quarantine)
}

// view is the part of the cursor that the lane's sender needs.
type view struct {
	generation int
	resume     resume
	quarantine quarantine
}

func (c *cursor) view() view {
	c.mu.Lock()
	defer c.mu.Unlock()
	return view{c.generation, c.resume, c.quarantine}
}

// nameOf is a stream's name for the assembler, the same after a restart.
func nameOf(source, key string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(source + "\x00" + key))
	return h.Sum64()
}

// Deliver implements source.Stream.
func (s *stream) Deliver(ctx context.Context, b *frame.Batch) error {
	if len(b.Frames) == 0 {
		b.Done()
		return nil
	}
	if err := s.feed.format.ready(ctx); err != nil {
		b.Done()
		return err
	}
	b = shrink(b)
	held, err := newLease(ctx, int64(cap(b.Data))+int64(len(b.Frames))*frameCost, s.feed.format.undecoded, s.feed.inFlight)
	if err != nil {
		b.Done()
		return err
	}
	s.order.Lock()
	defer s.order.Unlock()
	at, ok := s.admit(b)
	if !ok {
		held.release()
		b.Done()
		return nil
	}
	s.feed.progress.delivered.Add(b.End() - b.Frames[0].Pos)
	return s.lane.put(ctx, &decode{ticket: at, batch: b, held: held})
}

// admit moves the cursor behind the batch, and marks the frames in quarantine. ok is false
// when the batch was read before a rewind that its source does not know of yet.
func (s *stream) admit(b *frame.Batch) (t ticket, ok bool) {
	c := &s.cursor
	c.mu.Lock()
	defer c.mu.Unlock()
	// A rewind may meet frames in flight that begin where it leads to: then the source
	// delivers some that are there already.
	b.Frames = behind(b.Frames, c.next)
	if c.closed || len(b.Frames) == 0 || b.Frames[0].Pos != c.next {
		return ticket{}, false
	}
	t = ticket{s, c.generation, c.next}
	c.next = b.End()
	c.high = max(c.high, c.next)
	c.quarantine.mark(b.Frames)
	return t, true
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
	s.feed.inbox.post(func(c *core) {
		if a := c.accounts.of[s]; a != nil {
			a.record.Origin, a.record.State = id.Origin, id.State
			c.commits.urgent = c.commits.urgent || id.Gone
			c.commits.touch(a)
		}
	})
}

// Mark implements source.Stream.
func (s *stream) Mark(pos int64, state []byte) {
	info, ok := source.ParseResponseInfo(state)
	if !ok {
		return // the listener's own memory
	}
	s.feed.inbox.post(func(c *core) {
		if a := c.accounts.of[s]; a != nil {
			a.marks = append(a.marks, mark{pos, info})
			c.accounting.applyMarks(a)
		}
	})
}

// Close implements source.Stream.
func (s *stream) Close(ctx context.Context, drop bool) (wait func() error) {
	s.order.Lock()
	defer s.order.Unlock()
	t, open, err := s.close()
	if err != nil || !open {
		return func() error { return err }
	}
	ended := make(chan error, 1)
	var last command = &end{ticket: t, result: ended}
	if drop {
		last = &forget{end{ticket: t, result: ended}}
	}
	_ = s.lane.put(ctx, last) // one that is not queued is discarded, with ErrRewound
	return func() error {
		select {
		case err := <-ended:
			if err != nil {
				s.cursor.setClosed(false)
			}
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-s.feed.inbox.stopped:
			return errStopped
		}
	}
}

// close has the cursor take no more frames; open is false when it did not before.
func (s *stream) close() (t ticket, open bool, err error) {
	c := &s.cursor
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ticket{}, false, nil
	}
	if c.next < c.high { // its source does not know of the rewind, or has more to deliver again
		return ticket{}, true, source.ErrRewound
	}
	c.closed = true
	return ticket{s, c.generation, c.next}, true, nil
}

// at calls f with the ticket of a command at pos, before another batch is admitted. It is not
// called when the stream is closed or not there.
func (s *stream) at(pos int64, f func(ticket)) {
	c := &s.cursor
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && c.next == pos {
		f(ticket{s, c.generation, c.next})
	}
}

const (
	// frameCost is the memory of a frame beside its bytes.
	frameCost = 96
	// largeBuffer is the size from which a badly filled buffer is replaced by one of the
	// batch's size.
	largeBuffer = 16 << 10
)

// shrink moves a batch that fills little of its buffer into a buffer of its size: it may
// have to be kept while an exporter is slow, and a thousand live files must not hold a
// thousand large buffers for a line each.
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
	if cap(b.Data) <= largeBuffer || to-from > cap(b.Data)/2 {
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

// decoderState is the stream's decoder as the lane's sender knows it.
type decoderState struct {
	conn       *connection // in which the decoder is open; nil when it is closed
	generation int         // in which it was opened
	unsnapped  int64       // bytes sent since a snapshot was last asked for
	asked      time.Time   // when a snapshot was last asked for
}

// openIn reports whether the decoder is open for commands of the generation.
func (d *decoderState) openIn(conn *connection, generation int) bool {
	return d.conn == conn && d.generation == generation
}

const (
	// snapEveryBytes is how much is decoded at most between two snapshots.
	snapEveryBytes = 4 << 20
	// A batch of up to smallBatch bytes of a file is followed by a snapshot as long as
	// snapshots are small. It rides on the batch and its checkpoint. A file can be gone
	// at the next start, and then the snapshot is all that there is; journalled frames
	// are there until they are committed.
	smallBatch    = 64 << 10
	smallSnapshot = 16 << 10
)

// snapshotDue notes that size bytes are sent, and reports whether a snapshot follows them.
func (s *stream) snapshotDue(size int, last []byte) bool {
	d := &s.decoder
	d.unsnapped += int64(size)
	small := !s.feed.journalled && size <= smallBatch && len(last) <= smallSnapshot
	return small || d.unsnapped >= snapEveryBytes || time.Since(d.asked) >= s.feed.snapEvery
}
