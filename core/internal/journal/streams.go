package journal

import (
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// stream is one that has not ended. The journal's lock guards it.
type stream struct {
	entry        // to is the position of its next frame
	segment *seg // the newest that names it; nil: none ever did
	moved   bool // its origin is not recorded yet
	lost    gap  // a gap that is not recorded yet
	marked  bool // its state is not recorded yet
	ending  bool // it takes no more; its end may not be recorded yet
	dropped bool // frames were, since the last Sync
}

// streams are the open recordings of a journal. The lock guards its fields, and is held in
// all of its methods but restore, endUnnamed and reconcile.
type streams struct {
	settings Settings
	segments *segments
	writer   *writer

	mu          *lock
	open        map[uint64]*stream
	byKey       map[string]*stream // by streamKey
	full        map[string]*stream // by source and format: counts the dropped frames of streams that no segment names
	number      uint64             // of the next stream
	outstanding bool               // streams have something outstanding, because the disk failed
	refused     int64
}

func newStreams(settings Settings, mu *lock, segs *segments, w *writer) *streams {
	return &streams{
		settings: settings, segments: segs, writer: w, mu: mu,
		open: make(map[uint64]*stream), byKey: make(map[string]*stream), full: make(map[string]*stream),
		number: uint64(time.Now().UnixNano()), // greater than any number of a journal that was lost
	}
}

func streamKey(sourceName, key string) string { return sourceName + "\x00" + key }

// restore restores the streams that are open after a segment. Open calls it before anything
// else runs.
func (ss *streams) restore(g *seg, found contents) {
	for _, e := range found {
		ss.number = max(ss.number, e.number+1)
		if e.ended {
			if old := ss.open[e.number]; old != nil {
				ss.drop(old)
			}
			continue
		}
		s := &stream{entry: *e, segment: g}
		ss.open[e.number] = s
		if e.key != "" {
			ss.byKey[streamKey(e.source, e.key)] = s
		}
	}
}

// endUnnamed ends the streams without a key: their connections ended with their process.
func (ss *streams) endUnnamed() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.open {
		if s.key == "" {
			ss.end(s)
		}
	}
}

// reconcile ends streams that the checkpoint knows to be longer than they are: the end of
// the newest segment was lost although the disk had confirmed it. The next frames would be
// taken for the lost ones. A stream with a key continues as a new one.
func (ss *streams) reconcile(known []source.Known) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, k := range known {
		n, ok := numberOf(k.Key)
		s := ss.open[n]
		if !ok || s == nil || k.Pos <= s.to {
			continue
		}
		ss.settings.Logger.Error("journal lost the end of a stream that was delivered already", "stream", k.Key, "bytes", k.Pos-s.to)
		ss.end(s)
		if s.key != "" {
			next := ss.begin(s.source, s.format, source.ID{Key: s.key, Origin: s.origin})
			next.state, next.marked = s.state, s.state != nil
			ss.flush(next)
		}
	}
}

// begin makes a stream.
func (ss *streams) begin(sourceName, format string, id source.ID) *stream {
	if id.Anchor == 0 {
		id.Anchor = time.Now().UnixNano()
	}
	s := &stream{entry: entry{number: ss.number, source: sourceName, format: format, key: id.Key, origin: id.Origin, anchor: id.Anchor}}
	ss.number++
	ss.open[s.number] = s
	if s.key != "" {
		ss.byKey[streamKey(sourceName, s.key)] = s
	}
	return s
}

// drop forgets a stream that has ended.
func (ss *streams) drop(s *stream) {
	delete(ss.open, s.number)
	if k := streamKey(s.source, s.key); ss.byKey[k] == s {
		delete(ss.byKey, k)
	}
}

// dropUnknown ends a stream that no segment names. Its frames, all of them dropped, are counted
// in one stream for all such, so that an outage of the disk takes no memory for each
// connection that begins and ends meanwhile.
func (ss *streams) dropUnknown(s *stream) {
	ss.drop(s)
	if s.lost.none() {
		return
	}
	k := streamKey(s.source, s.format)
	all := ss.full[k]
	if all == nil {
		all = ss.begin(s.source, s.format, source.ID{Origin: s.origin})
		ss.full[k] = all
	}
	all.lost.add(s.lost.reason, s.lost.bytes) // it is outstanding, as that of the stream was
}

// flush records the outstanding gap, mark and end of a stream.
func (ss *streams) flush(s *stream) {
	if !s.lost.none() {
		g := s.lost
		s.lost = gap{}
		ss.append(s, headSize, func(dst []byte, seed uint32, now int64) []byte {
			dst, s.to = appendGap(dst, seed, s.number, s.to, now, &g)
			return dst
		})
	}
	if s.marked {
		s.marked = false
		ss.append(s, headSize+int64(len(s.state)), func(dst []byte, seed uint32, now int64) []byte {
			return appendRecord(dst, seed, &record{kind: kindMark, stream: s.number, pos: s.to, at: now, payload: s.state})
		})
	}
	if s.ending {
		ss.end(s)
	}
}

// end records the end of a stream.
func (ss *streams) end(s *stream) {
	ss.append(s, headSize, func(dst []byte, seed uint32, now int64) []byte {
		return appendRecord(dst, seed, &record{kind: kindEnd, stream: s.number, pos: s.to, at: now})
	})
	s.segment.contents[s.number].ended = true
	s.ending = true
	ss.drop(s)
}

// flushAll flushes all streams, when the disk works again.
func (ss *streams) flushAll() {
	if !ss.outstanding {
		return
	}
	ss.outstanding = false
	for _, s := range ss.open {
		ss.flush(s)
	}
}

func (ss *streams) record(s *stream, f *frame.Frame, need int64) {
	ss.append(s, need, func(dst []byte, seed uint32, _ int64) []byte {
		dst, s.to = appendFrame(dst, seed, s.number, s.to, f)
		return dst
	})
}

// append appends a record of a stream to the newest segment, behind one that names the stream
// if the segment does not yet.
func (ss *streams) append(s *stream, need int64, add func(dst []byte, seed uint32, now int64) []byte) {
	now := time.Now().UnixNano()
	g := ss.segments.newest()
	if g.planned > 0 && g.planned+need > ss.settings.SegmentSize {
		g = ss.segments.roll()
	}
	b := ss.writer.group(g)
	before := len(b.buf)
	if s.segment != g || s.moved {
		b.buf = appendEntry(b.buf, kindBegin, g.seed, &s.entry, now)
		s.segment, s.moved = g, false
		e := s.entry
		g.contents[s.number] = &e
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
	ss.writer.added(n)
}

// carry names again the open streams that no segment behind g names, so that g can be
// removed.
func (ss *streams) carry(g *seg) {
	for _, s := range ss.open {
		if s.segment == g {
			ss.append(s, headSize, func(dst []byte, _ uint32, _ int64) []byte { return dst })
		}
	}
}

// carrySize is how many bytes carry would write.
func (ss *streams) carrySize(g *seg) (n int64) {
	for _, s := range ss.open {
		if s.segment == g {
			n += int64(len(appendEntry(nil, kindBegin, g.seed, &s.entry, 0)))
		}
	}
	return n
}
