package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// stream is one that has not ended. It is guarded by Journal.mu.
type stream struct {
	entry            // to is the position of its next frame
	segment *segment // the newest that knows it; nil: none ever did
	moved   bool     // its origin is not recorded yet
	lost    gap      // not recorded yet
	marked  bool     // its state is not recorded yet
	ending  bool     // its end is not recorded yet
	gone    bool     // it has ended
	givenUp bool     // frames were, since the last Sync
}

type recorder struct {
	j      *Journal
	source string
}

// Begin implements source.Recorder.
func (r *recorder) Begin(_ context.Context, format string, id source.ID) (source.Recording, error) {
	j := r.j
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, ErrClosed
	}
	if id.Key != "" {
		if s := j.byKey[streamKey(r.source, id.Key)]; s != nil && !s.ending {
			if s.format != format {
				return nil, fmt.Errorf("journal: recording %s of format %s is continued as %s", id.Key, s.format, format)
			}
			if s.origin != id.Origin {
				s.origin, s.moved = id.Origin, true
			}
			return &recording{j, s}, nil
		}
	}
	return &recording{j, j.begin(r.source, format, id)}, nil
}

// begin makes a stream. mu is held.
func (j *Journal) begin(sourceName, format string, id source.ID) *stream {
	if id.Anchor == 0 {
		id.Anchor = time.Now().UnixNano()
	}
	s := &stream{entry: entry{number: j.number, source: sourceName, format: format, key: id.Key, origin: id.Origin, anchor: id.Anchor}}
	j.number++
	j.open[s.number] = s
	if s.key != "" {
		j.byKey[streamKey(sourceName, s.key)] = s
	}
	return s
}

// drop forgets a stream that has ended. mu is held.
func (j *Journal) drop(s *stream) {
	s.gone = true
	delete(j.open, s.number)
	if k := streamKey(s.source, s.key); j.byKey[k] == s {
		delete(j.byKey, k)
	}
}

type recording struct {
	j *Journal
	s *stream
}

// Record implements source.Recording.
func (r *recording) Record(ctx context.Context, f *frame.Frame) error {
	j, s := r.j, r.s
	need := sizeOf(f)
	j.mu.Lock()
	defer j.mu.Unlock()
	for {
		switch {
		case j.closed || s.gone || s.ending:
			return ErrClosed
		case j.pending+need <= j.settings.MaxPending || j.pending == 0 && j.failing == nil:
			// Also when the disk fails: it may be back before memory is full.
			j.settle(s)
			j.record(s, f, need)
			return nil
		case j.failing != nil && j.settings.WhenFull == DropOldest:
			n := int64(len(f.Data)) + f.Dropped + 1
			s.lost.add(ReasonFull, 1, n)
			s.givenUp, j.unsettled = true, true
			j.stats.Refused += n
			return nil
		}
		if err := j.await(ctx); err != nil {
			return fmt.Errorf("journal: record: %w", err)
		}
	}
}

// await waits for a change. mu is held before and after, not meanwhile.
func (j *Journal) await(ctx context.Context) error {
	changed := j.changed
	j.mu.Unlock()
	defer j.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Gap implements source.Recording.
func (r *recording) Gap(reason string, frames, bytes int64) {
	if reason == "" {
		reason = "gap"
	}
	r.control(func(s *stream) { s.lost.add(reason, frames, bytes) })
}

// Mark implements source.Recording.
func (r *recording) Mark(state []byte) error {
	if len(state) > maxString {
		return fmt.Errorf("journal: mark: %d bytes, more than %d", len(state), maxString)
	}
	state = bytes.Clone(state)
	return r.control(func(s *stream) { s.state, s.marked = state, true })
}

// Close implements source.Recording.
func (r *recording) Close() error {
	err := r.control(func(s *stream) { s.ending = true })
	if errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

// control changes a stream in a way that takes little room: it waits for none.
func (r *recording) control(change func(*stream)) error {
	j, s := r.j, r.s
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed || s.gone || s.ending {
		return ErrClosed
	}
	change(s)
	if s.ending && s.segment == nil {
		j.dropUnknown(s)
		return nil
	}
	if j.failing != nil && j.pending > j.settings.MaxPending {
		j.unsettled = true
		return nil
	}
	j.settle(s)
	return nil
}

// dropUnknown ends a stream that the disk never knew. What was given up of it is
// counted in a stream that stands for all such, so that an outage of the disk
// takes no memory for each connection that comes and goes meanwhile. mu is held.
func (j *Journal) dropUnknown(s *stream) {
	j.drop(s)
	if s.lost.none() {
		return
	}
	k := streamKey(s.source, s.format)
	all := j.full[k]
	if all == nil || all.gone {
		all = j.begin(s.source, s.format, source.ID{Origin: s.origin})
		j.full[k] = all
	}
	all.lost.add(s.lost.reason, s.lost.frames, s.lost.bytes)
	if j.failing != nil && j.pending > j.settings.MaxPending {
		j.unsettled = true
		return
	}
	j.settle(all)
}

// State implements source.Recording.
func (r *recording) State() []byte {
	r.j.mu.Lock()
	defer r.j.mu.Unlock()
	return bytes.Clone(r.s.state)
}

// Sync implements source.Recording.
func (r *recording) Sync(ctx context.Context) error {
	j, s := r.j, r.s
	j.mu.Lock()
	defer j.mu.Unlock()
	upto := j.appended
	j.urgent = max(j.urgent, upto)
	j.hurry()
	for j.durable < upto {
		if j.lost {
			return ErrClosed
		}
		if err := j.await(ctx); err != nil {
			return fmt.Errorf("journal: sync: %w", err)
		}
	}
	if s.givenUp {
		s.givenUp = false
		return ErrGivenUp
	}
	return nil
}

// settle records what is outstanding of a stream. mu is held.
func (j *Journal) settle(s *stream) {
	if !s.lost.none() {
		g := s.lost
		s.lost = gap{}
		j.put(s, headSize+int64(len(g.reason))+32, func(dst []byte, seed uint32, now int64) []byte {
			dst, s.to = appendGap(dst, seed, s.number, s.to, now, &g)
			return dst
		})
	}
	if s.marked {
		s.marked = false
		j.put(s, headSize+int64(len(s.state)), func(dst []byte, seed uint32, now int64) []byte {
			from := len(dst)
			dst = append(beginRecord(dst), s.state...)
			endRecord(dst, from, seed, &record{kind: kindMark, stream: s.number, pos: s.to, at: now})
			return dst
		})
	}
	if s.ending {
		j.end(s)
	}
}

// end records the end of a stream. mu is held.
func (j *Journal) end(s *stream) {
	j.put(s, headSize, func(dst []byte, seed uint32, now int64) []byte {
		from := len(dst)
		dst = beginRecord(dst)
		endRecord(dst, from, seed, &record{kind: kindEnd, stream: s.number, pos: s.to, at: now})
		return dst
	})
	s.segment.contents[s.number].ended = true
	j.drop(s)
}

// settleAll is for when the disk works again. mu is held.
func (j *Journal) settleAll() {
	if !j.unsettled {
		return
	}
	j.unsettled = false
	for _, s := range j.open {
		j.settle(s)
	}
}

func (j *Journal) record(s *stream, f *frame.Frame, need int64) {
	j.put(s, need, func(dst []byte, seed uint32, _ int64) []byte {
		dst, s.to = appendFrame(dst, seed, s.number, s.to, f)
		return dst
	})
}

// put appends a record of a stream to the newest segment, which gets to know the
// stream first. mu is held.
func (j *Journal) put(s *stream, need int64, add func(dst []byte, seed uint32, now int64) []byte) {
	now := time.Now().UnixNano()
	g := j.segments[len(j.segments)-1]
	if g.planned > 0 && g.planned+need > j.settings.SegmentSize {
		g = j.roll()
	}
	b := j.group(g)
	before := len(b.buf)
	if s.segment != g || s.moved {
		b.buf = appendEntry(b.buf, kindBegin, g.seed, &s.entry, now)
		s.segment, s.moved = g, false
		if e := g.contents[s.number]; e != nil {
			e.origin = s.origin
		} else {
			e := s.entry
			e.from, e.ended = s.to, false
			g.contents[s.number] = &e
		}
	}
	b.buf = add(b.buf, g.seed, now)
	e := g.contents[s.number]
	e.to, e.state = s.to, s.state
	n := int64(len(b.buf) - before)
	g.planned += n
	if g.first == 0 {
		g.first = now
	}
	g.last = now
	j.pending += n
	j.appended += n
	j.hurry()
}

// roll begins a new segment. mu is held.
func (j *Journal) roll() *segment {
	g := j.newSegment(j.segments[len(j.segments)-1].id + 1)
	j.segments = append(j.segments, g)
	return g
}

// group returns the buffer of a segment. mu is held.
func (j *Journal) group(g *segment) *group {
	if n := len(j.groups); n > 0 && j.groups[n-1].segment == g {
		return j.groups[n-1]
	}
	b := &group{segment: g, buf: j.spare[:0]}
	j.spare = nil
	j.groups = append(j.groups, b)
	return b
}
