package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/msg"
)

// epoch is what is collected between two checkpoints.
type epoch struct {
	batch *export.Batch
	shelf *shelf // has the lists of the batch until the first record comes
	jobs  []*job // whose buffers the batch's texts lie in
	bytes int64
	began time.Time
}

func newEpoch(s *shelf) *epoch { return &epoch{batch: &export.Batch{}, shelf: s} }

// shelf keeps the lists of epochs that are done for those to come. A message takes
// 750 bytes beside its text: lists that grew anew in every epoch were more than half
// of all that a sidecar allocated.
type shelf struct {
	mu sync.Mutex
	// spare is what one epoch had; nil lists when there is none. Epochs share what may be
	// in flight: while one that is full is with the exporters, little more than nothing is
	// in the one behind it, and lists that wait for it are as large as full ones.
	spare lists
	// What epochs had lately, and an eighth: lists that are made are made for as much,
	// because growing to a size leaves four times of it behind.
	messages, spans int
}

// take returns empty lists.
func (s *shelf) take() lists {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spare.messages == nil {
		return lists{make([]msg.Message, 0, s.messages), make([]msg.Span, 0, s.spans)}
	}
	l := s.spare
	s.spare = lists{}
	return l
}

type lists struct {
	messages []msg.Message
	spans    []msg.Span
}

// note notes how large an epoch was.
func (s *shelf) note(b *export.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = max(len(b.Messages)*9/8, s.messages*7/8)
	s.spans = max(len(b.Spans)*9/8, s.spans*7/8)
}

// give takes the lists of a batch that nobody looks at any more. What they hold is
// cleared: it keeps frames and responses alive.
func (s *shelf) give(b *export.Batch) {
	clear(b.Messages)
	clear(b.Spans)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spare.messages == nil {
		s.spare = lists{b.Messages[:0], b.Spans[:0]}
	}
}

func (e *epoch) empty() bool { return e.began.IsZero() }

// add notes that a record is being added.
func (e *epoch) add() {
	if !e.empty() {
		return
	}
	e.began = time.Now()
	l := e.shelf.take()
	e.batch.Messages, e.batch.Spans = l.messages, l.spans
}

func (e *epoch) message(m *msg.Message) {
	e.add()
	e.batch.Messages = append(e.batch.Messages, *m)
}

// keep holds a job's buffer until the epoch is with the exporters.
func (e *epoch) keep(j *job) {
	e.jobs = append(e.jobs, j)
	e.bytes += j.size
}

func (e *epoch) full(s *Settings) bool {
	return e.bytes >= s.BatchBytes || e.batch.Len() >= s.BatchRows
}

// starved reports whether the epoch is all that is on its way, and sources wait for
// what it holds: it will not become larger.
func (c *core) starved() bool {
	return !c.epoch.empty() && c.sealed.Load() == 0 && c.p.outstanding.Load() == 0 && c.p.inFlight.wanted()
}

// seal ends the epoch: its records and the checkpoint that holds when they are
// with the exporters go to delivery, together. then is called when that is so.
func (c *core) seal(ctx context.Context, then func()) error {
	var d checkpoint.Delta
	err := c.assembler.Commit(func(key string, open bool, state []byte) {
		d.Groups = append(d.Groups, checkpoint.Group{Key: key, Open: open, State: state})
	})
	if err != nil {
		return err
	}
	if err := c.anchor(); err != nil {
		return err
	}
	e := c.epoch
	c.shelf.note(e.batch)
	c.epoch = newEpoch(&c.shelf)
	now := time.Now().UnixNano()
	for s := range c.changed {
		d.Streams = append(d.Streams, s.record)
		e.batch.Ledger = append(e.batch.Ledger, s.ledger(now, c.began.UnixNano()))
	}
	clear(c.changed)
	c.drawn = time.Now()
	d.Forget = append(d.Forget, c.forget...)
	c.forget = nil
	e.batch.ID = identity(e.batch)
	c.sealed.Add(1)
	c.p.metrics.InFlight.Set(float64(c.p.inFlight.held()))
	return c.p.outlet.Submit(ctx, e.batch, d, func() {
		c.p.progress.committed.Add(int64(e.batch.Len()))
		// Before room is made, so that what comes finds the lists.
		c.shelf.give(e.batch)
		for _, j := range e.jobs {
			c.free(j)
		}
		c.sealed.Add(-1)
		if then != nil {
			then()
		}
	})
}

// anchor makes the anchors durable that stand in for times in this epoch, before
// any row with such a time is anywhere: after a crash the file may have another
// modification time, and the row would have another place.
func (c *core) anchor() error {
	if len(c.register) == 0 {
		return nil
	}
	var d checkpoint.Delta
	for _, s := range c.register {
		r := &s.record
		d.Streams = append(d.Streams, checkpoint.Stream{Source: r.Source, Key: r.Key, Origin: r.Origin, Anchor: r.Anchor, State: r.State})
	}
	c.register = nil
	return c.p.check.Commit(d)
}

// ledger is the stream's account.
func (s *stream) ledger(now, since int64) msg.Ledger {
	r := &s.record
	read := r.Pos
	if r.Replay != nil {
		read = max(read, r.Replay.Until)
	}
	return msg.Ledger{
		Tenant: s.feed.tenant, Source: r.Source, Format: s.format.name, Stream: r.Key, Origin: r.Origin,
		Read: read, Decoded: r.Decoded, Quarantined: r.Quarantined, Dropped: r.Dropped,
		Frames: r.Frames, Messages: r.Messages, Unknown: r.Unknown, Problems: r.Problems,
		Seen: now, Since: since, Ver: uint64(read),
	}
}

// identity names a batch by what is in it.
func identity(b *export.Batch) string {
	h := sha256.New()
	buf := make([]byte, 0, 64)
	row := func(id []byte, ver uint64) {
		buf = binary.BigEndian.AppendUint64(append(buf[:0], id...), ver)
		h.Write(buf)
	}
	for i := range b.Messages {
		row(b.Messages[i].Host.ID[:], b.Messages[i].Host.Ver)
	}
	for i := range b.Spans {
		s := &b.Spans[i]
		h.Write(s.TraceID[:])
		row(s.ID[:], s.Ver)
	}
	for i := range b.DeadLetters {
		row(b.DeadLetters[i].ID[:], b.DeadLetters[i].Ver)
	}
	for i := range b.Streams {
		r := &b.Streams[i]
		row(append([]byte(r.Stream), strconv.FormatInt(r.Pace.Start, 10)...), r.Ver)
	}
	for i := range b.Ledger {
		row([]byte(b.Ledger[i].Stream), b.Ledger[i].Ver)
		if len(b.Ledger) == b.Len() { // it says only that Earshot lives, and when
			row(nil, uint64(b.Ledger[i].Seen))
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
