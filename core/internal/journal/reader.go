package journal

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// Reader replays the streams of one source and format into the pipeline, and
// follows them as they grow.
type Reader struct {
	j      *Journal
	source string
	format string
	sink   source.Sink

	mu         sync.Mutex
	rewinds    map[uint64]int64
	finished   map[uint64]bool // streams that were closed, until their segments are gone
	retiring   []ending        // those of them whose segments are gone
	shut       []uint64        // those of them whose tails are still there
	unfinished map[uint64]bool // streams whose end was read and that are not closed yet
	retries    []uint64        // streams that are to be closed again
	resting    place           // where Run waits for more
	wake       chan struct{}

	// Of Run.
	tails   map[uint64]*tail
	known   map[uint64]source.Known // as the checkpoint was when Run began
	at      *segment
	in      file
	version int               // of the segment's file
	here    map[uint64]*entry // streams that the segment has named so far; nil: another reader's
	window  window
	names   interned
	touched []*tail
	closers sync.WaitGroup
	slots   chan struct{}
	errors  int // of reading, in a row
}

// ending is where a stream ended.
type ending struct{ number, segment uint64 }

// place is one in the journal; the zero value is none.
type place struct {
	segment uint64
	off     int64
}

var _ source.Source = (*Reader)(nil)

// closersAtOnce bounds the streams that are being closed: the pipeline decodes
// the rest of one before its Close returns.
const closersAtOnce = 256

// Reader returns a reader of a source's streams of one format. known is what the
// checkpoint remembers of the source. There is to be one reader of each pair at a
// time, made before the source's listener runs.
func (j *Journal) Reader(sourceName, format string, known []source.Known) *Reader {
	j.reconcile(known)
	r := &Reader{
		j: j, source: sourceName, format: format,
		rewinds:    make(map[uint64]int64),
		finished:   make(map[uint64]bool),
		unfinished: make(map[uint64]bool),
		wake:       make(chan struct{}, 1),
		tails:      make(map[uint64]*tail),
		known:      make(map[uint64]source.Known),
		here:       make(map[uint64]*entry),
		names:      make(interned),
		slots:      make(chan struct{}, closersAtOnce),
	}
	for _, k := range known {
		if n, ok := numberOf(k.Key); ok {
			k.State = nil
			r.known[n] = k
		}
	}
	return r
}

// reconcile ends streams that the checkpoint knows to be longer than they are:
// the end of the newest segment was lost although the disk had claimed to have
// it. What comes next would be taken for what was there. A stream with a key goes
// on as a new one.
func (j *Journal) reconcile(known []source.Known) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, k := range known {
		n, ok := numberOf(k.Key)
		s := j.open[n]
		if !ok || s == nil || k.Pos <= s.to {
			continue
		}
		j.settings.Logger.Error("journal lost the end of a stream that was delivered already", "stream", k.Key, "bytes", k.Pos-s.to)
		j.end(s)
		if s.key != "" {
			again := j.begin(s.source, s.format, source.ID{Key: s.key, Origin: s.origin})
			again.state, again.marked = s.state, s.state != nil
			j.settle(again)
		}
	}
}

// Drained implements source.Source.
func (r *Reader) Drained() bool {
	r.mu.Lock()
	at, busy := r.resting, len(r.rewinds)+len(r.unfinished) > 0
	r.mu.Unlock()
	if busy || at == (place{}) {
		return false
	}
	r.j.mu.Lock()
	defer r.j.mu.Unlock()
	g := r.j.segments[len(r.j.segments)-1]
	return r.j.pending == 0 && !r.j.unsettled && at == place{g.id, g.size}
}

// Run implements source.Source.
func (r *Reader) Run(ctx context.Context, sink source.Sink) error {
	r.sink = sink
	ctx, cancel := context.WithCancel(ctx)
	defer r.closers.Wait()
	defer cancel()
	r.j.mu.Lock()
	r.j.readers = append(r.j.readers, r)
	r.j.mu.Unlock()
	defer r.leave()
	err := r.start(ctx)
	for err == nil && ctx.Err() == nil {
		err = r.step(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (r *Reader) leave() {
	r.j.mu.Lock()
	for i, x := range r.j.readers {
		if x == r {
			r.j.readers = append(r.j.readers[:i:i], r.j.readers[i+1:]...)
			break
		}
	}
	r.j.mu.Unlock()
	if r.in != nil {
		_ = r.in.Close()
	}
}

// start takes up what the checkpoint remembers, and has it forget what the
// journal has no more.
func (r *Reader) start(ctx context.Context) error {
	absent := maps.Clone(r.known)
	if err := r.j.each(func(_ *segment, e *entry) { delete(absent, e.number) }); err != nil {
		return err
	}
	for _, k := range absent {
		if !k.Closed {
			r.sink.Trouble(k.Origin, "journal_lost", "the checkpoint knows stream "+k.Key+" and the journal does not")
		}
		r.sink.Forget(k.Key)
	}
	// What was going on goes on, so that what its decoder has open is not forgotten.
	var open []entry
	r.j.mu.Lock()
	for _, s := range r.j.open {
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
	return r.enter(r.j.list()[0])
}

// step reads some more, or waits for it.
func (r *Reader) step(ctx context.Context) error {
	if err := r.goBack(ctx); err != nil {
		return err
	}
	if err := r.closeLate(ctx); err != nil {
		return err
	}
	j, g := r.j, r.at
	j.mu.Lock()
	limit, sealed, gone, version, changed := g.size, g.sealed, g.gone, g.version, j.changed
	j.mu.Unlock()
	switch {
	case !gone && r.window.off < limit:
		r.rest(place{})
		return r.read(ctx, limit, version)
	case sealed || gone:
		r.rest(place{})
		if err := r.settle(ctx, gone); err != nil {
			return err
		}
		return r.enter(r.after(g))
	}
	r.rest(place{g.id, limit})
	select {
	case <-changed:
	case <-r.wake:
	case <-ctx.Done():
	}
	return nil
}

func (r *Reader) rest(at place) {
	r.mu.Lock()
	r.resting = at
	r.mu.Unlock()
}

// after returns the segment after g, which may have been removed.
func (r *Reader) after(g *segment) *segment { return r.from(g.id + 1) }

// from returns the oldest segment that has at least that number.
func (r *Reader) from(id uint64) *segment {
	list := r.j.list()
	for _, g := range list {
		if g.id >= id {
			return g
		}
	}
	return list[len(list)-1]
}

// enter begins to read a segment, or the first after it of which something is
// needed.
func (r *Reader) enter(g *segment) error {
	for r.j.isSealed(g) {
		needed := false
		if err := r.j.entries(g, func(e *entry) { needed = needed || r.needs(e) }); err != nil && !missing(err) {
			return err
		}
		if needed {
			break
		}
		g = r.after(g)
	}
	r.at = g
	r.forget(g.id)
	if r.in != nil {
		_ = r.in.Close()
		r.in = nil
	}
	r.window.seek(nil, g.seed, 0)
	clear(r.here)
	return nil
}

// needs reports whether what a segment has of a stream is still to be delivered.
func (r *Reader) needs(e *entry) bool {
	if e.source != r.source || e.format != r.format || r.isFinished(e.number) {
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

func (r *Reader) isFinished(n uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.finished[n]
}

// retired is told that a stream's last segment is gone. That it is finished is
// forgotten when Run is past that segment: it may be in it again after a rewind.
func (r *Reader) retired(n, segment uint64) {
	r.mu.Lock()
	r.retiring = append(r.retiring, ending{n, segment})
	r.mu.Unlock()
}

// forget forgets the streams that ended before a segment that Run is in.
func (r *Reader) forget(segment uint64) {
	r.mu.Lock()
	r.retiring = slices.DeleteFunc(r.retiring, func(e ending) bool {
		if e.segment < segment {
			delete(r.finished, e.number)
		}
		return e.segment < segment
	})
	r.mu.Unlock()
}

// read delivers what is in the next part of the segment.
func (r *Reader) read(ctx context.Context, limit int64, version int) error {
	if r.in == nil || r.version != version {
		off := r.window.off
		in, err := r.j.settings.disk.read(r.at.path)
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
			r.damaged(r.window.at-n, n)
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
		r.damaged(limit-n, n)
	}
	if r.window.off == from && r.window.off < limit {
		return fmt.Errorf("journal: segment %d: no progress at %d", r.at.id, from)
	}
	return nil
}

// unreadable waits after an error of the disk. What cannot be read for long is
// treated as damaged.
func (r *Reader) unreadable(ctx context.Context, err error, limit int64) error {
	r.j.mu.Lock()
	gone := r.at.gone
	r.j.mu.Unlock()
	if gone || ctx.Err() != nil {
		return nil
	}
	const patience, hop = 5, 64 << 10
	r.sink.Trouble(filepath.Base(r.at.path), "journal_unreadable", err.Error())
	if r.errors++; r.errors > patience && r.in != nil {
		r.errors = 0
		n := min(hop, limit-r.window.off)
		lost := r.window.lost + n
		r.window.seek(r.in, r.at.seed, r.window.off+n)
		r.window.lost = lost
		return nil
	}
	if r.errors > patience && r.j.isSealed(r.at) { // the file is not there
		r.j.mu.Lock()
		r.at.gone = true
		r.j.mu.Unlock()
		return nil
	}
	select {
	case <-time.After(time.Duration(min(r.errors, 10)) * 100 * time.Millisecond):
	case <-ctx.Done():
	}
	return nil
}

// damaged tells of bytes that no record was found in.
func (r *Reader) damaged(off, n int64) {
	r.window.lost = 0
	j := r.j
	j.mu.Lock()
	first := off >= r.at.damaged
	if first {
		r.at.damaged = off + n
		j.stats.Corrupt += n
	}
	j.mu.Unlock()
	r.sink.Trouble(filepath.Base(r.at.path), ReasonCorrupt, fmt.Sprintf("%d bytes at offset %d", n, off))
	if first {
		j.settings.Logger.Error("journal is damaged", "segment", r.at.id, "offset", off, "bytes", n)
	}
}
