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

// depth is how many batches wait in memory for an exporter that keeps up, the one
// that it is given included.
const depth = 2

// line is an exporter with what waits for it: the spool's records first, then the
// parcels in memory.
type line struct {
	Target
	spool *spool.Queue
	wake  chan struct{} // something to deliver

	mu      sync.Mutex
	memory  []*parcel
	behind  bool          // what comes goes to the spool
	changed chan struct{} // closed, and another one made, when there may be room
}

func (l *line) settled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.behind && len(l.memory) == 0
}

// notify tells those who wait for room. mu is held.
func (l *line) notify() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *line) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// offer puts a parcel into a line, and waits until there is room.
func (d *Delivery) offer(ctx context.Context, l *line, p *parcel) error {
	var record []byte
	for {
		l.mu.Lock()
		changed := l.changed
		switch {
		case l.behind && len(l.memory) == 0:
			if record == nil {
				var err error
				if record, err = encode(p); err != nil {
					l.mu.Unlock()
					return err
				}
			}
			if d.keep(l, record) {
				l.mu.Unlock()
				p.taken(1)
				l.wakeUp()
				return nil
			}
		case !l.behind && len(l.memory) < depth:
			l.memory = append(l.memory, p)
			l.mu.Unlock()
			l.wakeUp()
			return nil
		}
		l.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(time.Second): // another line's spool, or the disk, may have room
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// keep appends a record to a spool, if there is room. A disk that does not take it
// is told of, and tried again by the caller.
func (d *Delivery) keep(l *line, record []byte) bool {
	if n := d.spooled(); n > 0 && n+int64(len(record)) > d.settings.SpoolMax {
		d.tell(l, "the spools are full; the sources wait", "limit", d.settings.SpoolMax)
		return false
	}
	if err := l.spool.Append(record); err != nil {
		d.tell(l, "not spooled, trying again", "error", err)
		return false
	}
	d.settings.Metrics.SpoolBytes.WithLabelValues(l.Name).Set(float64(l.spool.Size()))
	return true
}

func (d *Delivery) tell(l *line, what string, args ...any) {
	d.settings.Logger.Warn(what, append([]any{"exporter", l.Name}, args...)...)
}

// serve takes batches to one exporter.
func (d *Delivery) serve(ctx context.Context, l *line) {
	for {
		p, b, sealed, err := d.head(ctx, l)
		if err != nil {
			return
		}
		err = d.deliver(ctx, l, b, sealed, p != nil)
		if ctx.Err() != nil {
			return
		}
		if err != nil { // of a parcel in memory
			d.settings.Logger.Warn("not delivered; what comes is spooled until it is", "to", l.Name, "error", err)
			if !d.fallBehind(l) && d.deliver(ctx, l, b, sealed, false) == nil {
				d.done(ctx, l, p)
				continue
			}
			first := retry.Backoff{Min: d.settings.RetryMin, Max: d.settings.RetryMin}
			if !retry.Wait(ctx, max(first.Next(), asked(err))) {
				return
			}
			continue
		}
		d.done(ctx, l, p)
	}
}

// head waits for the next batch of a line. Its parcel is nil when it is from the
// spool. The error is ctx's.
func (d *Delivery) head(ctx context.Context, l *line) (*parcel, *export.Batch, time.Time, error) {
	for {
		l.mu.Lock()
		record, err := l.spool.Peek()
		if errors.Is(err, spool.ErrEmpty) {
			if l.behind {
				l.behind = false
				l.notify()
			}
			if len(l.memory) > 0 {
				p := l.memory[0]
				l.mu.Unlock()
				return p, p.batch, p.sealed, nil
			}
		}
		l.mu.Unlock()
		var after <-chan time.Time
		switch {
		case err == nil:
			b, sealed, err := decode(record)
			if err == nil {
				return nil, b, sealed, nil
			}
			d.damaged(l, err)
			d.done(ctx, l, nil)
			continue
		case errors.Is(err, spool.ErrDamaged):
			d.damaged(l, err)
			continue
		case !errors.Is(err, spool.ErrEmpty):
			d.tell(l, "the spool cannot be read, trying again", "error", err)
			after = time.After(d.settings.RetryMin)
		}
		select {
		case <-l.wake:
		case <-after:
		case <-ctx.Done():
			return nil, nil, time.Time{}, ctx.Err()
		}
	}
}

// damaged reports spooled batches that cannot be read.
func (d *Delivery) damaged(l *line, err error) {
	d.lost.Add(1)
	if d.settings.Damaged != nil {
		d.settings.Damaged(l.Name, err)
	}
	d.settings.Metrics.SpoolLost.WithLabelValues(l.Name).Inc()
	d.settings.Logger.Error("spooled batches are lost; earshot backfill brings back what the sources still have", "exporter", l.Name, "error", err)
}

// done removes the head of a line.
func (d *Delivery) done(ctx context.Context, l *line, p *parcel) {
	d.settings.Metrics.ExporterLag.WithLabelValues(l.Name).Set(0)
	if p == nil {
		if d.retry(ctx, "spool", l.spool.Take) != nil {
			return
		}
		d.settings.Metrics.SpoolBytes.WithLabelValues(l.Name).Set(float64(l.spool.Size()))
	}
	l.mu.Lock()
	if p != nil {
		l.memory = append(l.memory[:0:0], l.memory[1:]...)
	}
	l.notify()
	l.mu.Unlock()
	if p != nil {
		p.taken(1)
	}
}

// fallBehind moves what a line has in memory to its spool. What finds no room stays
// where it is, behind the spool; false when that is all of it.
func (d *Delivery) fallBehind(l *line) bool {
	moved := false
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.memory) > 0 {
		p := l.memory[0]
		record, err := encode(p)
		if err != nil {
			d.tell(l, "not spooled", "error", err)
			return moved
		}
		if !d.keep(l, record) {
			return moved
		}
		l.behind, moved = true, true
		l.memory = append(l.memory[:0:0], l.memory[1:]...)
		l.notify()
		p.taken(1)
	}
	return true
}

// encode makes a spool's record of a parcel: when it was sealed, and its batch.
func encode(p *parcel) ([]byte, error) {
	b, err := p.batch.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("delivery: %w", err)
	}
	return append(binary.BigEndian.AppendUint64(nil, uint64(p.sealed.UnixNano())), b...), nil
}

func decode(record []byte) (*export.Batch, time.Time, error) {
	if len(record) < 8 {
		return nil, time.Time{}, errors.New("delivery: a record that is no batch")
	}
	b := new(export.Batch)
	err := b.UnmarshalBinary(record[8:])
	return b, time.Unix(0, int64(binary.BigEndian.Uint64(record))), err
}
