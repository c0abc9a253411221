package tap

import (
	"io"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// flush records the frames of the batch and empties it.
func (s *stream) flush() {
	if len(s.batch.Frames) == 0 {
		return
	}
	defer s.tap.memory.oneByOne(len(s.batch.Data))()
	for i := range s.batch.Frames {
		s.record(&s.batch.Frames[i])
	}
	if s.batch.Reset(); cap(s.batch.Data) > keepLoad {
		s.batch.Data = nil
	}
}

// record records a frame. A frame that the recorder refuses is a hole.
func (s *stream) record(f *frame.Frame) {
	if !s.begin() {
		s.tap.counts.lost.Add(int64(len(f.Data)) + f.Dropped)
		return
	}
	s.recordHole()
	s.remember(f)
	if err := s.recording.Record(s.tap.keep, f); err != nil {
		if s.why != source.ReasonRefused { // once for all of a run
			s.tap.Logger.Warn("frames are not recorded", "origin", s.origin, "error", err)
		}
		s.addHole(source.ReasonRefused, int64(len(f.Data))+f.Dropped)
	}
}

// begin begins the recording unless it has begun.
func (s *stream) begin() bool {
	if s.recording != nil {
		return true
	}
	if s.refused {
		return false
	}
	id := source.ID{Origin: s.origin, Anchor: s.started}
	recording, err := s.tap.rec.Begin(s.tap.keep, s.format, id)
	if err != nil {
		s.refused = true
		s.tap.Logger.Warn("a response is not recorded", "origin", s.origin, "error", err)
		return false
	}
	s.recording = recording
	if s.facts.Traceparent != "" {
		if err := recording.Mark(s.facts.Marshal()); err != nil {
			s.tap.Logger.Warn("the traceparent of a request is not recorded", "origin", s.origin, "error", err)
		}
	}
	return true
}

// addHole adds to the hole in progress.
func (s *stream) addHole(reason string, n int64) {
	if n == 0 {
		return
	}
	if s.why != reason {
		s.recordHole()
	}
	s.why = reason
	s.missing += n
}

// recordHole records the hole in progress.
func (s *stream) recordHole() {
	n := s.missing
	if n == 0 {
		return
	}
	s.missing = 0
	s.tap.counts.lost.Add(n)
	if s.begin() {
		s.recording.Gap(s.why, 0, n)
	}
}

// pieceReader reads the pieces of a queue as one body, up to the first hole.
type pieceReader struct {
	s      *stream
	at     int64 // of the last piece that was read from
	next   int   // piece
	off    int   // in the buffer
	inside int   // bytes of the next piece that were read
	read   int64 // bytes that have completed no frame yet
	failed error
}

type holeError struct{}

func (holeError) Error() string { return "tap: bytes are missing" }

func (r *pieceReader) Read(p []byte) (int, error) {
	if r.failed != nil {
		return 0, r.failed
	}
	if !r.fill() {
		return 0, io.EOF
	}
	piece := &r.s.load.pieces[r.next]
	r.at = piece.at
	if piece.n == 0 {
		r.failed = holeError{}
		return 0, r.failed
	}
	if r.inside == 0 {
		r.s.meter.Chunk(piece.at, piece.n, 0)
	}
	n := copy(p, r.s.load.buf[r.off:r.off+piece.n-r.inside])
	r.off += n
	r.read += int64(n)
	if r.inside += n; r.inside == piece.n {
		r.next, r.inside = r.next+1, 0
	}
	return n, nil
}

// fill makes sure that there is a next piece.
func (r *pieceReader) fill() bool {
	if r.next < len(r.s.load.pieces) {
		return true
	}
	r.next, r.off, r.inside = 0, 0, 0
	return r.s.queue.take(&r.s.load)
}

// skip passes over the rest and returns how many bytes it had, encoded as they are.
func (r *pieceReader) skip() (n int64) {
	for r.fill() {
		piece := &r.s.load.pieces[r.next]
		r.at = max(r.at, piece.at)
		n += piece.lost + int64(piece.n-r.inside)
		r.off += piece.n - r.inside
		r.next, r.inside = r.next+1, 0
	}
	return n
}
