package journal

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/internal/segment"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/retry"
)

// Reader replays the streams of one source and format into the pipeline, and
// follows them as they grow.
type Reader struct {
	j      *Journal
	source string
	format string
	sink   source.Sink

	inbox *inbox // of reports by other goroutines

	// Of Run.
	tails   map[uint64]*tail
	known   checkpoint // as it was when the reader was made
	at      *seg
	in      segment.File
	version int               // of the segment's file
	here    map[uint64]*entry // streams that the segment has named so far; nil: another reader's
	window  window
	names   interned
	touched []*tail
	closers sync.WaitGroup
	slots   chan struct{}
	errors  int // consecutive ones of reading
}

// place is one in the journal; the zero value is none.
type place struct {
	segment uint64
	off     int64
}

var _ source.Source = (*Reader)(nil)

// closersAtOnce bounds the streams that are being closed: the pipeline decodes
// the rest of one before its Close returns.
const closersAtOnce = 256

// Reader returns a reader of a source's streams of one format. known are the streams of the
// source in the checkpoint. There must be one reader of each pair at a time, made before the
// source's listener runs.
func (j *Journal) Reader(sourceName, format string, known []source.Known) *Reader {
	j.streams.reconcile(known)
	r := &Reader{
		j: j, source: sourceName, format: format,
		inbox: newInbox(),
		tails: make(map[uint64]*tail),
		known: make(checkpoint),
		here:  make(map[uint64]*entry),
		names: make(interned),
		slots: make(chan struct{}, closersAtOnce),
	}
	r.known.add(known)
	return r
}

// Drained implements source.Source.
func (r *Reader) Drained() bool {
	at, busy := r.inbox.at()
	return !busy && r.j.drained(at)
}

// Run implements source.Source.
func (r *Reader) Run(ctx context.Context, sink source.Sink) error {
	r.sink = sink
	ctx, cancel := context.WithCancel(ctx)
	defer r.closers.Wait()
	defer cancel()
	r.j.retention.add(r)
	defer func() {
		r.j.retention.remove(r)
		if r.in != nil {
			_ = r.in.Close()
		}
	}()
	err := r.start(ctx)
	for err == nil && ctx.Err() == nil {
		err = r.step(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// start opens the streams that are open in the checkpoint and in the journal, and has the
// checkpoint forget the streams that the journal does not have any more.
func (r *Reader) start(ctx context.Context) error {
	absent := maps.Clone(r.known)
	if err := r.j.segments.each(func(e *entry) { delete(absent, e.number) }); err != nil {
		return err
	}
	if len(absent) > 0 {
		r.forget(absent)
	}
	// A stream that is still being recorded is opened at once, so that the pipeline does not
	// take its decoder's open messages for abandoned.
	var open []entry
	r.j.mu.Lock()
	for _, s := range r.j.streams.open {
		if k, ok := r.known[s.number]; ok && !k.Closed && s.source == r.source && s.format == r.format {
			open = append(open, s.entry)
		}
	}
	r.j.mu.Unlock()
	for i := range open {
		t, err := r.tail(ctx, &open[i])
		if err != nil {
			return err
		}
		t.mark(open[i].to, open[i].state)
	}
	return r.enter(r.j.segments.from(0))
}

// forget has the checkpoint forget streams that the journal does not have, and reports those that are lost. With a
// reader of another format they may have ended since this one was made.
func (r *Reader) forget(absent checkpoint) {
	now := make(checkpoint)
	now.add(r.sink.Known())
	for n := range absent {
		k, ok := now[n]
		if !ok {
			continue
		}
		if !k.Closed {
			r.sink.Trouble(k.Origin, "journal_lost", "the checkpoint knows stream "+k.Key+" and the journal does not")
		}
		r.sink.Forget(k.Key)
	}
}

// step delivers the next part of the segments, or waits until there is one.
func (r *Reader) step(ctx context.Context) error {
	if err := r.rewind(ctx); err != nil {
		return err
	}
	if err := r.retryCloses(ctx); err != nil {
		return err
	}
	j, g := r.j, r.at
	j.mu.Lock()
	limit, sealed, gone, version, changed := g.size, g.sealed, g.gone, g.version, j.mu.changed
	j.mu.Unlock()
	switch {
	case !gone && r.window.off < limit:
		return r.read(ctx, limit, version)
	case sealed || gone:
		if err := r.deliverIndexed(ctx, gone); err != nil {
			return err
		}
		return r.enter(r.j.segments.from(g.id + 1))
	}
	r.inbox.rest(place{g.id, limit})
	select {
	case <-changed:
	case <-r.inbox.wake:
	case <-ctx.Done():
	}
	return nil
}

// enter begins to read a segment, or the first after it with records that are needed: behind one that is sealed there is another.
func (r *Reader) enter(g *seg) error {
	for r.j.segments.isSealed(g) {
		needed := false
		if err := r.j.segments.entries(g, func(e *entry) { needed = needed || r.needs(e) }); err != nil && !missing(err) {
			return err
		}
		if needed {
			break
		}
		g = r.j.segments.from(g.id + 1)
	}
	r.at = g
	r.inbox.forget(g.id)
	if r.in != nil {
		_ = r.in.Close()
		r.in = nil
	}
	r.window.seek(nil, g.seed, 0)
	clear(r.here)
	return nil
}

// needs reports whether a stream of a segment has frames or an end to be delivered.
func (r *Reader) needs(e *entry) bool {
	if e.source != r.source || e.format != r.format || r.inbox.isFinished(e.number) {
		return false
	}
	if t := r.tails[e.number]; t != nil {
		return t.next < e.to || e.ended && t.closing == nil
	}
	if k, ok := r.known[e.number]; ok {
		return !e.safe(k, true)
	}
	return e.to > 0 || e.ended
}

// read delivers the next part of the segment: a buffer of records.
func (r *Reader) read(ctx context.Context, limit int64, version int) error {
	if r.in == nil || r.version != version {
		off := r.window.off
		in, err := r.j.segments.dir.Disk.Read(r.path())
		if err != nil {
			return r.unreadable(ctx, err, limit)
		}
		if r.in != nil {
			_ = r.in.Close()
		}
		r.in, r.version = in, version
		r.window.seek(in, r.at.seed, off)
	}
	var rec record
	from := r.window.off
	ok, err := r.window.next(&rec, limit, true)
	for ok && err == nil {
		if n := r.window.lost; n > 0 {
			r.reportDamage(r.window.at-n, n)
		}
		if err := r.take(ctx, &rec); err != nil {
			return err
		}
		ok, err = r.window.next(&rec, limit, false)
	}
	if derr := r.deliver(ctx); derr != nil {
		return derr
	}
	if err != nil {
		return r.unreadable(ctx, err, limit)
	}
	r.errors = 0
	if n := r.window.lost; n > 0 && r.window.off >= limit {
		r.reportDamage(limit-n, n)
	}
	if r.window.off == from && r.window.off < limit {
		return fmt.Errorf("journal: segment %d: no progress at %d", r.at.id, from)
	}
	return nil
}

// unreadable waits after an error of the disk. A part that cannot be read several times is
// skipped as damaged.
func (r *Reader) unreadable(ctx context.Context, err error, limit int64) error {
	if r.j.segments.isGone(r.at) || ctx.Err() != nil {
		return nil
	}
	const patience, hop = 5, 64 << 10
	r.sink.Trouble(filepath.Base(r.path()), "journal_unreadable", err.Error())
	if r.errors++; r.errors > patience && r.in != nil {
		r.errors = 0
		from, to := r.window.off-r.window.lost, min(r.window.off+hop, limit)
		r.window.seek(r.in, r.at.seed, to)
		r.reportDamage(from, to-from)
		return nil
	}
	if r.errors > patience && r.j.segments.isSealed(r.at) { // the file is not there
		r.j.mu.Lock()
		r.at.gone = true
		r.j.mu.Unlock()
		return nil
	}
	retry.Wait(ctx, time.Duration(min(r.errors, 10))*2*r.j.settings.retry)
	return nil
}

// reportDamage reports bytes in which no record was found.
func (r *Reader) reportDamage(off, n int64) {
	r.window.lost = 0
	r.j.segments.addDamage(r.at, off, n)
	r.sink.Trouble(filepath.Base(r.path()), ReasonCorrupt, fmt.Sprintf("%d bytes at offset %d", n, off))
}

func (r *Reader) path() string { return r.j.segments.dir.File(r.at.id, extData) }
