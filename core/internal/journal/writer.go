package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/earshot-dev/earshot/core/retry"
)

// writer brings recorded bytes from memory to the segments, in groups: one write and one
// fsync for everything that was recorded meanwhile.
type writer struct {
	settings  Settings
	segments  *segments
	room      func(n int64) error // makes room for n more bytes
	recovered func()              // called when the disk works again; the lock is held
	wake      chan struct{}

	mu       *lock
	groups   []*group // oldest first
	writing  *group
	spare    [][]byte // buffers of groups that were written: for the one that is written next, and the one behind it
	pending  int64    // bytes of groups and writing
	appended int64    // bytes ever
	durable  int64    // bytes of them that are synced
	urgent   int64    // up to where a caller waits in Sync
	failing  error    // why nothing can be written now
	closed   bool
	aborted  bool // the journal was closed before everything could be written
	syncs    int64
	failures int64
}

// group is one write to one segment.
type group struct {
	segment *seg
	buf     []byte
}

// group returns the buffer of the newest segment. The lock is held.
func (w *writer) group(g *seg) *group {
	if n := len(w.groups); n > 0 && w.groups[n-1].segment == g {
		return w.groups[n-1]
	}
	b := &group{segment: g}
	if n := len(w.spare); n > 0 {
		b.buf, w.spare = w.spare[n-1][:0], w.spare[:n-1]
	}
	w.groups = append(w.groups, b)
	return b
}

// added counts n bytes that were added to a group. The lock is held.
func (w *writer) added(n int64) {
	w.pending += n
	w.appended += n
	w.hurry()
}

// crowded reports whether records beside frames have to wait too. The lock is held.
func (w *writer) crowded() bool { return w.failing != nil && w.pending > w.settings.MaxPending }

// hurry wakes run.
func (w *writer) hurry() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// sync returns when everything that was appended up to there is durable. The lock is held before and
// after.
func (w *writer) sync(ctx context.Context, upto int64) error {
	w.urgent = max(w.urgent, upto)
	w.hurry()
	for w.durable < upto {
		if w.aborted {
			return ErrClosed
		}
		if err := w.mu.await(ctx); err != nil {
			return fmt.Errorf("journal: sync: %w", err)
		}
	}
	return nil
}

// close has run write everything and end. It reports false when that was done before.
func (w *writer) close() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.closed = true
	w.mu.announce()
	w.hurry()
	return true
}

// lost returns an error when run ended with bytes that were not written.
func (w *writer) lost() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.aborted {
		return fmt.Errorf("journal: %d bytes are lost: %w", w.pending, w.failing)
	}
	return nil
}

// run writes the pending groups until the journal is closed.
func (w *writer) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last time.Time  // of a sync
	var until time.Time // nothing is written before, after a failure
	backoff := retry.Backoff{Min: w.settings.retry, Max: time.Second}
	var ending time.Time // when closing may take no longer
	var looked time.Time // when the disk's free space was
	for {
		w.mu.Lock()
		closed := w.closed
		due := w.due(last, until)
		if due == 0 {
			w.next()
		}
		nothing := w.pending == 0
		w.mu.Unlock()
		switch {
		case closed && nothing:
			w.segments.close()
			return
		case closed && ending.IsZero():
			ending = time.Now().Add(40 * w.settings.retry)
		case closed && time.Now().After(ending):
			w.mu.Lock()
			w.aborted = true
			w.mu.announce()
			w.mu.Unlock()
			w.segments.close()
			return
		}
		if due > 0 {
			timer.Reset(due)
			select {
			case <-w.wake:
			case <-timer.C:
			}
			continue
		}
		check := time.Since(looked) >= time.Second
		if check {
			looked = time.Now()
		}
		err := w.commit(w.writing, check)
		w.settled(err)
		if err != nil {
			until = time.Now().Add(backoff.Next())
			continue
		}
		backoff.Reset()
		last = time.Now()
		ending = time.Time{} // the time begins again with each group that is written
	}
}

// due returns how long the next write has to wait; a long time when there is
// nothing to write. The lock is held.
func (w *writer) due(last, until time.Time) time.Duration {
	if w.pending == 0 {
		return time.Hour
	}
	if w.failing != nil { // also when the journal is closed
		return max(time.Until(until), 0)
	}
	if w.closed || w.urgent > w.durable || len(w.groups) > 1 || w.pending >= w.settings.MaxPending/2 {
		return 0
	}
	return max(time.Until(last.Add(w.settings.FsyncInterval)), 0)
}

// next makes the oldest group the one that is being written, unless the one before is to be written again. Bytes are pending,
// and the lock is held.
func (w *writer) next() {
	if w.writing == nil {
		w.writing = w.groups[0]
		w.groups = w.groups[1:]
	}
}

// settled notes that the group was written, or why it was not.
func (w *writer) settled(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.mu.announce()
	if err != nil {
		w.failures++
		if w.failing == nil {
			w.settings.Logger.Error("journal cannot write", "error", err)
		}
		w.failing = err
		return
	}
	b := w.writing
	n := int64(len(b.buf))
	b.segment.size += n
	b.segment.version = b.segment.out.Copies()
	w.writing = nil
	w.pending -= n
	w.durable += n
	w.syncs++
	if cap(b.buf) <= int(w.settings.MaxPending) && len(w.spare) < 2 {
		w.spare = append(w.spare, b.buf)
	}
	if w.failing != nil {
		w.settings.Logger.Info("journal writes again")
		w.failing = nil
		w.recovered()
	}
}

// commit writes and syncs a group. It may be called again after an error.
func (w *writer) commit(b *group, check bool) error {
	g := b.segment
	if g.out == nil {
		if err := w.create(g); err != nil {
			return err
		}
	} else if check {
		if err := w.room(0); err != nil {
			return err
		}
	}
	if err := g.out.Append(b.buf); err != nil {
		return fmt.Errorf("segment %d: %w", g.id, err)
	}
	return nil
}

// create seals the segment before g and creates g's file.
func (w *writer) create(g *seg) error {
	if err := w.segments.sealBefore(g); err != nil {
		return err
	}
	if err := w.room(w.settings.SegmentSize); err != nil {
		return err
	}
	out, err := w.segments.dir.Create(g.id, extData)
	if err != nil {
		return err
	}
	g.out = out
	return nil
}
