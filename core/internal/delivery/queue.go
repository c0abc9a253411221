package delivery

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/spool"
	"github.com/earshot-dev/earshot/core/retry"
)

// queue has the batches of one exporter: first the spool's records, then those that are gathered, then those in memory.
type queue struct {
	Target
	gatherer export.Gatherer // the exporter
	spool    *spool.Queue
	wake     chan struct{} // has a value when there is something to export

	mu      sync.Mutex
	memory  []*inFlight
	behind  bool          // new batches go to the spool
	changed chan struct{} // closed, and another one made, when there may be room
	full    time.Time     // when a record without room was logged
	// gathered are the batches that the exporter has gathered. Only the goroutine of the
	// queue changes it, with mu held.
	gathered []*inFlight
	parted   *parted // the first of them, which the exporter has set apart; nil: none. The queue's goroutine alone uses it
}

// parted is gathered batches that the exporter stores while it gathers others.
type parted struct {
	n      int
	store  func(context.Context) error
	done   chan error // nil while it does not run
	failed error      // of the last time
}

// gathers are the batches of gathered that are not being stored.
func (q *queue) gathers() []*inFlight {
	if q.storing() != nil {
		return q.gathered[q.parted.n:]
	}
	return q.gathered
}

// storing is ready when parted batches are stored, or could not be; nil: none are being stored.
func (q *queue) storing() <-chan error {
	if q.parted != nil {
		return q.parted.done
	}
	return nil
}

func (q *queue) settled() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.behind && len(q.memory) == 0 && len(q.gathered) == 0
}

// announce wakes enqueue. mu is held.
func (q *queue) announce() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *queue) wakeUp() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// enqueue adds a batch to a queue. One that is behind has no room while its spool is full, or while batches
// that came before are not in its spool.
func (d *Delivery) enqueue(ctx context.Context, q *queue, p *inFlight) error {
	var record []byte
	for {
		q.mu.Lock()
		changed := q.changed
		switch {
		case q.behind && len(q.gathered)+len(q.memory) == 0:
			if record == nil {
				var err error
				if record, err = encode(p.batch, p.sealed); err != nil {
					q.mu.Unlock()
					return err
				}
			}
			if d.spill(q, record) {
				q.mu.Unlock()
				p.accepted(1)
				q.wakeUp()
				return nil
			}
		case !q.behind:
			q.memory = append(q.memory, p)
			q.mu.Unlock()
			q.wakeUp()
			return nil
		}
		q.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(time.Second): // another queue's spool, or the disk, may have room
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// enqueuePart writes the part of a batch that an exporter needs to its spool, and waits until
// there is room.
func (d *Delivery) enqueuePart(ctx context.Context, q *queue, p *inFlight) error {
	part := q.Exporter.(export.Selector).Select(p.batch)
	if part.Len() == 0 {
		p.accepted(1)
		return nil
	}
	record, err := encode(part, p.sealed)
	if err != nil {
		return err
	}
	for {
		q.mu.Lock()
		spilled := d.spill(q, record)
		q.behind = q.behind || spilled
		changed := q.changed
		q.mu.Unlock()
		if spilled {
			p.accepted(1)
			q.wakeUp()
			return nil
		}
		select {
		case <-changed:
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// spill appends a record to a spool if there is room. An error of the disk is logged, and
// the caller tries again. mu is held.
func (d *Delivery) spill(q *queue, record []byte) bool {
	if n := d.spoolBytes(); n > 0 && n+int64(len(record)) > d.settings.SpoolMax {
		if time.Since(q.full) > time.Minute {
			d.warn(q, "the spools are full; the sources wait", "limit", d.settings.SpoolMax)
			q.full = time.Now()
		}
		return false
	}
	if err := q.spool.Append(record); err != nil {
		d.warn(q, "not spooled, trying again", "error", err)
		return false
	}
	d.settings.Metrics.SpoolBytes.With(q.Name).Set(float64(q.spool.Size()))
	return true
}

func (d *Delivery) warn(q *queue, text string, args ...any) {
	d.settings.Logger.Warn(text, append([]any{"exporter", q.Name}, args...)...)
}

// turn is the next work of a queue; without a batch it is to store the gathered ones.
type turn struct {
	batch   *export.Batch
	p       *inFlight // of a batch in memory
	sealed  time.Time
	spooled bool
}

// export sends the batches of a queue to its exporter.
func (d *Delivery) export(ctx context.Context, q *queue) {
	defer func() { _ = d.awaitParted(q) }()
	backoff, logged := retry.Backoff{Min: d.settings.RetryMin, Max: d.settings.RetryMax}, time.Time{}
	for {
		t, err := d.next(ctx, q)
		if err != nil {
			return
		}
		if err = d.deliver(ctx, q, t); ctx.Err() != nil {
			return
		}
		if err == nil {
			backoff.Reset()
			logged = time.Time{}
			continue
		}
		if time.Since(logged) > time.Minute {
			d.settings.Logger.Warn("not delivered; batches are spooled until the exporter accepts them", "to", q.Name, "error", err)
			logged = time.Now()
		}
		if d.ungather(q) {
			d.spillMemory(q)
		}
		if !retry.Wait(ctx, max(backoff.Next(), asked(err))) {
			return
		}
	}
}

// deliver delivers the batch of a turn, and those that are gathered before it: one of the spool is tried for ever, the others once.
func (d *Delivery) deliver(ctx context.Context, q *queue, t turn) error {
	taken := d.gather(ctx, q, t.p)
	if taken && t.p.more {
		return nil
	}
	if t.batch == nil && q.parted == nil { // batches that come meanwhile are gathered
		d.storeParted(ctx, q)
		return nil
	}
	if err := d.ready(ctx); err != nil {
		return err
	}
	if !t.spooled {
		if err := d.storeGathered(ctx, q); err != nil {
			return err
		}
	}
	if taken || t.batch == nil {
		return nil
	}
	if err := d.send(ctx, q, t.batch, t.sealed, !t.spooled); err != nil {
		return err
	}
	d.remove(ctx, q, t)
	return nil
}

// gather has the exporter gather a batch that another follows, or that follows others, if it can. The memory of the
// batch is free then. Where the exporter has enough of them, it stores those while it gathers the next.
func (d *Delivery) gather(ctx context.Context, q *queue, p *inFlight) bool {
	if p == nil || !p.more && len(q.gathered) == 0 || q.parted != nil && q.storing() == nil {
		return false
	}
	room := len(q.gathers()) < maxGathered && q.gatheredFor() <= d.settings.GatherFor
	if (!room || !q.gatherer.Gather(p.batch)) && !(d.part(ctx, q) && q.gatherer.Gather(p.batch)) {
		return false
	}
	q.mu.Lock()
	q.memory = append(q.memory[:0:0], q.memory[1:]...)
	q.gathered = append(q.gathered, p)
	q.mu.Unlock()
	p.used.sub(1)
	return true
}

// gatheredFor is for how long batches have been gathered that are not being stored.
func (q *queue) gatheredFor() time.Duration {
	list := q.gathers()
	if len(list) == 0 {
		return 0
	}
	return time.Since(list[0].sealed)
}

// part has the exporter store the gathered batches beside the gathering, once it has stored those that were parted before. False: there are
// none, or that failed.
func (d *Delivery) part(ctx context.Context, q *queue) bool {
	if len(q.gathers()) == 0 || d.awaitParted(q) != nil {
		return false
	}
	d.storeParted(ctx, q)
	return true
}

// storeParted has the exporter store the gathered batches: those that are parted, else all.
func (d *Delivery) storeParted(ctx context.Context, q *queue) {
	if q.parted == nil {
		q.parted = &parted{n: len(q.gathered), store: q.gatherer.Part()}
	}
	m, sealed, store, done := d.settings.Metrics, q.gathered[0].sealed, q.parted.store, make(chan error, 1)
	q.parted.done = done
	go func() {
		if err := d.ready(ctx); err != nil {
			done <- err
			return
		}
		m.ExporterLag.With(q.Name).Set(time.Since(sealed).Seconds())
		began := time.Now()
		err := store(ctx)
		if err == nil {
			m.BatchSeconds.With(q.Name).Observe(time.Since(began).Seconds())
			m.Batches.With(q.Name, "ok").Inc()
		} else {
			m.Batches.With(q.Name, "retry").Inc()
		}
		done <- err
	}()
}

// storeGathered stores all gathered batches. Those that could not be stored beside the gathering are tried once more.
func (d *Delivery) storeGathered(ctx context.Context, q *queue) error {
	if err := d.awaitParted(q); err != nil && !retry.Wait(ctx, max(d.settings.RetryMin, asked(err))) {
		return ctx.Err()
	}
	for len(q.gathered) > 0 {
		d.storeParted(ctx, q)
		if err := d.awaitParted(q); err != nil {
			return err
		}
	}
	return nil
}

// awaitParted waits for the batches that are being stored. The error is that of those that could not be.
func (d *Delivery) awaitParted(q *queue) error {
	switch {
	case q.parted == nil:
		return nil
	case q.storing() == nil:
		return q.parted.failed
	}
	return d.endParted(q, <-q.parted.done)
}

func (d *Delivery) endParted(q *queue, err error) error {
	if err != nil {
		q.parted.done, q.parted.failed = nil, err
		return err
	}
	n := q.parted.n
	q.parted = nil
	for _, p := range q.gathered[:n] {
		d.settings.Metrics.Records.With(q.Name).Add(int64(p.records))
	}
	q.acceptGathered(n)
	d.settings.Metrics.ExporterLag.With(q.Name).Set(0)
	return nil
}

// acceptGathered accepts the first n gathered batches.
func (q *queue) acceptGathered(n int) {
	accepted := q.gathered[:n]
	q.mu.Lock()
	q.gathered = append(q.gathered[:0:0], q.gathered[n:]...)
	q.announce()
	q.mu.Unlock()
	for _, p := range accepted {
		p.pending.sub(1)
	}
}

// ungather moves the batches that the exporter has gathered to the spool, and reports whether all have room.
func (d *Delivery) ungather(q *queue) bool {
	if len(q.gathered) == 0 {
		return true
	}
	moved := 0
	q.mu.Lock()
	err := q.gatherer.Ungather(func(b *export.Batch) error {
		record, err := encode(b, q.gathered[moved].sealed)
		if err != nil {
			return err
		}
		if !d.spill(q, record) {
			return errNoRoom
		}
		q.behind = true
		moved++
		return nil
	})
	q.mu.Unlock()
	if q.parted != nil {
		if q.parted.n -= moved; q.parted.n <= 0 {
			q.parted = nil
		}
	}
	q.acceptGathered(moved)
	if err != nil {
		d.warn(q, "gathered batches are not spooled, trying again", "error", err)
	}
	return err == nil
}

var errNoRoom = errors.New("no room in the spools")

// next waits for the first batch of a queue, or until the gathered ones are to be stored: none has come for a moment, or
// those that were parted could not be. The error is ctx's.
func (d *Delivery) next(ctx context.Context, q *queue) (turn, error) {
	for {
		select {
		case err := <-q.storing():
			if d.endParted(q, err) != nil {
				return turn{}, nil
			}
		default:
		}
		q.mu.Lock()
		record, err := q.spool.Peek()
		if errors.Is(err, spool.ErrEmpty) {
			if q.behind {
				q.behind = false
				q.announce()
			}
			if len(q.memory) > 0 {
				p := q.memory[0]
				q.mu.Unlock()
				return turn{batch: p.batch, p: p, sealed: p.sealed}, nil
			}
		}
		q.mu.Unlock()
		var after <-chan time.Time
		switch {
		case err == nil:
			b, sealed, err := decode(record)
			if err == nil {
				return turn{batch: b, sealed: sealed, spooled: true}, nil
			}
			d.damaged(q, err)
			d.remove(ctx, q, turn{spooled: true})
			continue
		case errors.Is(err, spool.ErrDamaged):
			d.damaged(q, err)
			continue
		case !errors.Is(err, spool.ErrEmpty):
			d.warn(q, "the spool cannot be read, trying again", "error", err)
			after = time.After(d.settings.RetryMin)
		case len(q.gathers()) > 0 && q.storing() == nil:
			after = time.After(min(d.settings.GatherFor-q.gatheredFor(), time.Second))
		}
		select {
		case <-q.wake:
		case <-after:
			if errors.Is(err, spool.ErrEmpty) {
				return turn{}, nil
			}
		case err := <-q.storing():
			if d.endParted(q, err) != nil {
				return turn{}, nil
			}
		case <-ctx.Done():
			return turn{}, ctx.Err()
		}
	}
}

// damaged reports spooled batches that cannot be read.
func (d *Delivery) damaged(q *queue, err error) {
	d.lost.Add(1)
	if d.settings.Damaged != nil {
		d.settings.Damaged(q.Name, err)
	}
	d.settings.Metrics.SpoolLost.With(q.Name).Inc()
	d.settings.Logger.Error("spooled batches are lost; earshot backfill restores the rows of files that are still there", "exporter", q.Name, "error", err)
}

// remove removes the batch of a turn, which the exporter has accepted.
func (d *Delivery) remove(ctx context.Context, q *queue, t turn) {
	d.settings.Metrics.ExporterLag.With(q.Name).Set(0)
	switch {
	case t.spooled:
		if d.retry(ctx, "spool", q.spool.Take) != nil {
			return
		}
		d.settings.Metrics.SpoolBytes.With(q.Name).Set(float64(q.spool.Size()))
		q.mu.Lock()
		q.announce()
		q.mu.Unlock()
	case t.p != nil:
		q.mu.Lock()
		q.memory = append(q.memory[:0:0], q.memory[1:]...)
		q.mu.Unlock()
		t.p.accepted(1)
	}
}

// spillMemory moves the batches in memory to the spool. Those that find no room stay in
// memory, behind the spool.
func (d *Delivery) spillMemory(q *queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.memory) > 0 {
		p := q.memory[0]
		record, err := encode(p.batch, p.sealed)
		if err != nil {
			d.warn(q, "not spooled", "error", err)
			return
		}
		if !d.spill(q, record) {
			return
		}
		q.behind = true
		q.memory = append(q.memory[:0:0], q.memory[1:]...)
		p.accepted(1)
	}
}

// encode returns the spool's record of a batch: the time of its sealing, and the batch.
func encode(batch *export.Batch, sealed time.Time) ([]byte, error) {
	b, err := batch.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("delivery: %w", err)
	}
	return append(binary.BigEndian.AppendUint64(nil, uint64(sealed.UnixNano())), b...), nil
}

func decode(record []byte) (*export.Batch, time.Time, error) {
	if len(record) < 8 {
		return nil, time.Time{}, errors.New("delivery: a record is too short for a batch")
	}
	b := new(export.Batch)
	err := b.UnmarshalBinary(record[8:])
	return b, time.Unix(0, int64(binary.BigEndian.Uint64(record))), err
}
