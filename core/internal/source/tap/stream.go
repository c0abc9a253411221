package tap

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/body"
	"github.com/earshot-dev/earshot/core/msg"
)

// stream records one response: it takes from the queue, cuts and records.
type stream struct {
	*exchange
	recording source.Recording // nil until there is something to record
	refused   bool             // the recorder does not take this stream
	batch     frame.Batch
	load      load
	held      int   // bytes of memory reserved for incomplete frames
	missing   int64 // bytes of the hole in progress
	why       string
	resume    *source.Resume // how a run of the format is resumed; nil: it is not
	past      *history       // of the run that its events name, while it may be resumed
	probes    int            // events that did not name it
}

// run records until the response has ended.
func (s *stream) run() {
	s.tap.order.await(s.exchange)
	s.resume = s.tap.resume[s.format]
	if s.early {
		if s.resume != nil {
			s.past = new(history)
		}
		s.recordRequest()
		s.queue.wait() // for the head, or that there is none
		if s.recordID(); s.shape != body.Events || s.none {
			s.past = nil
		}
	}
	if s.facts.Status = s.status; !s.early {
		if s.resume != nil && s.shape == body.Events && !s.none {
			s.replay()
			s.past = new(history)
		}
		s.recordRequest()
	}
	switch {
	case s.none:
	case s.socket[fromServer] != nil:
		s.messages()
	case body.Plain(s.encoding):
		s.plain()
	default:
		s.encoded()
	}
	s.recordHole()
	s.facts.Timing = new(s.meter.Pace())
	s.facts.Failure, s.facts.Reason = s.failure, s.reason
	if s.recording == nil {
		return
	}
	if err := s.recording.Mark(s.facts.Marshal()); err != nil {
		s.tap.Logger.Warn("the response info of a stream is not recorded", "origin", s.origin, "error", err)
	}
	if err := s.recording.Close(); err != nil {
		s.tap.Logger.Warn("a recording is not closed", "origin", s.origin, "error", err)
	}
}

// release releases all memory of the stream.
func (s *stream) release() {
	if s.queue != nil {
		s.queue.abandon()
	}
	s.tap.memory.release(s.load.cost + s.held)
	s.request.release()
}

// recordRequest records the request's body.
func (s *stream) recordRequest() {
	patience := time.NewTimer(requestTimeout)
	defer patience.Stop()
	select {
	case <-s.request.ended:
	case <-patience.C:
	}
	data, dropped, reason := s.request.content()
	defer s.request.release()
	if s.request.bare && len(data) == 0 && dropped == 0 {
		return
	}
	f := frame.Frame{Kind: frame.Request, Name: s.request.name, ID: s.request.ids, FromClient: true, At: s.started, Data: data, Dropped: dropped, Reason: reason}
	if reason == "" && !body.Plain(s.request.encoding) {
		s.recordUnpacked(&f)
		return
	}
	s.record(&f)
}

// recordID records the provider's own id of a request that is recorded already.
func (s *stream) recordID() {
	if s.id != "" {
		s.record(&frame.Frame{Kind: frame.Request, Name: s.request.name, ID: s.id, FromClient: true, At: time.Now().UnixNano()})
	}
}

// recordUnpacked records a request whose content encoding is undone. A few bytes may stand for
// many, so how many is found out first: they are taken from the memory before they are there.
// A request that cannot be unpacked, or not now, is recorded as it came, with the reason.
func (s *stream) recordUnpacked(f *frame.Frame) {
	cost := body.Cost(s.request.encoding)
	if !s.tap.memory.reserve(cost) {
		f.Reason = source.ReasonFull
		s.record(f)
		return
	}
	defer s.tap.memory.release(cost)
	size, err := s.unpack(f.Data, io.Discard)
	if err != nil {
		f.Reason = source.ReasonEncoding
		s.record(f)
		return
	}
	n := min(size, s.mostUnpacked(f.Data))
	defer s.tap.memory.oneByOne(n)()
	if !s.tap.memory.reserve(n) {
		f.Reason = source.ReasonFull
		s.record(f)
		return
	}
	defer s.tap.memory.release(n)
	out := bytes.NewBuffer(make([]byte, 0, n))
	if _, err := s.unpack(f.Data, out); err != nil {
		f.Reason = source.ReasonEncoding
		s.record(f)
		return
	}
	if f.Data = out.Bytes(); size > n {
		f.Dropped, f.Reason = 1, msg.ReasonTooLong // how much more is not worth finding out
	}
	s.record(f)
}

// mostUnpacked is how much of a request is unpacked: text does not become a hundredth of its size,
// so a request that does is made to be large.
func (s *stream) mostUnpacked(data []byte) int {
	return min(int(s.tap.MaxBody), max(largeFrames, 100*len(data)))
}

// unpack writes at most mostUnpacked bytes of a request to w, and returns how many there are,
// or that there is one more.
func (s *stream) unpack(data []byte, w io.Writer) (n int, err error) {
	r, err := body.Decode(s.request.encoding, bytes.NewReader(data))
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Close() }()
	most := int64(s.mostUnpacked(data))
	if had, err := io.Copy(w, io.LimitReader(r, most)); err != nil || had < most {
		return int(had), err
	}
	switch _, err = io.ReadFull(r, make([]byte, 1)); {
	case err == io.EOF:
		return int(most), nil
	case err != nil:
		return 0, err
	}
	return int(most) + 1, nil
}

// plain records a body without content encoding.
func (s *stream) plain() {
	c := body.New(s.shape, int(s.tap.MaxBody))
	last := s.started
	for s.queue.take(&s.load) {
		off := 0
		for _, p := range s.load.pieces {
			last = p.at
			if p.n == 0 {
				s.meter.Chunk(p.at, int(p.lost), 0)
				c.Lost(&s.batch, p.at, source.ReasonFull)
				s.flush()
				s.addHole(source.ReasonFull, p.lost)
				continue
			}
			c.Feed(&s.batch, s.load.buf[off:off+p.n], p.at)
			off += p.n
			s.fed(c, p.at, p.n)
		}
		s.recordHole()
	}
	s.finish(c, last)
}

// encoded records a body whose encoding is undone first.
func (s *stream) encoded() {
	pieces := &pieceReader{s: s, at: s.started}
	c := body.New(s.shape, int(s.tap.MaxBody))
	cost := body.Cost(s.encoding)
	if !s.queue.memory.reserve(cost) {
		s.addHole(source.ReasonFull, pieces.skip())
		return
	}
	defer s.queue.memory.release(cost)
	in, err := body.Decode(s.encoding, pieces)
	if err == nil {
		defer func() { _ = in.Close() }()
		buf := make([]byte, bufferSize)
		for n := 0; err == nil; {
			n, err = in.Read(buf)
			c.Feed(&s.batch, buf[:n], pieces.at)
			if events := s.fed(c, pieces.at, 0); events > 0 {
				s.meter.Events(pieces.at, events)
				pieces.read = 0
			}
			s.recordHole()
		}
	}
	if errors.Is(err, io.EOF) && pieces.failed == nil {
		pieces.skip() // bytes behind the end of the encoded body
		s.finish(c, pieces.at)
		return
	}
	reason := source.ReasonEncoding
	switch {
	case pieces.failed != nil:
		reason = source.ReasonFull
	case errors.Is(err, io.ErrUnexpectedEOF) && !s.queue.endedWhole():
		reason = source.ReasonBroken
	}
	c.Lost(&s.batch, pieces.at, reason)
	c.Finish(&s.batch, pieces.at, false)
	s.flush()
	s.addHole(reason, pieces.read+pieces.skip())
}

// messages records the messages of a WebSocket.
func (s *stream) messages() {
	last := s.started
	broken := [2]string{}
	for s.queue.take(&s.load) {
		off := 0
		for _, p := range s.load.pieces {
			last = p.at
			a := s.socket[p.from]
			data := s.load.buf[off : off+p.n]
			off += p.n
			events := len(s.batch.Frames)
			switch {
			case broken[p.from] != "":
			case p.n == 0:
				a.Abandon(&s.batch, p.at, source.ReasonFull)
				broken[p.from] = source.ReasonFull
			default:
				if err := a.Feed(&s.batch, data, p.at); err != nil {
					s.tap.Logger.Warn("a WebSocket cannot be read on", "origin", s.origin, "error", err)
					a.Abandon(&s.batch, p.at, source.ReasonProtocol)
					broken[p.from] = source.ReasonProtocol
				}
			}
			if p.from == fromServer {
				s.meter.Chunk(p.at, p.n+int(p.lost), len(s.batch.Frames)-events)
			}
			if broken[p.from] != "" {
				s.flush()
				s.addHole(broken[p.from], p.lost+int64(len(data)))
				continue
			}
			if !s.hold(s.socket[fromServer].Held() + s.socket[fromClient].Held()) {
				a.Abandon(&s.batch, p.at, source.ReasonFull)
				broken[p.from] = source.ReasonFull
			}
			s.flush()
		}
		s.recordHole()
	}
	for _, a := range s.socket {
		a.Abandon(&s.batch, last, source.ReasonBroken)
	}
	if s.socket[fromServer].Closed() || s.socket[fromClient].Closed() {
		s.batch.Append(frame.Frame{Kind: frame.Close, At: last}, nil)
	}
	s.flush()
}

// fed accounts for the bytes that a cutter holds and records the frames that it cut. It
// returns the number of frames.
func (s *stream) fed(c *body.Cutter, at int64, n int) int {
	events := len(s.batch.Frames)
	if n > 0 {
		s.meter.Chunk(at, n, events)
	}
	if !s.hold(c.Held()) {
		held := c.Held()
		c.Lost(&s.batch, at, source.ReasonFull)
		s.flush()
		s.addHole(source.ReasonFull, int64(held))
		s.hold(c.Held())
	}
	s.flush()
	s.addHole(source.ReasonFull, c.Skipped())
	return events
}

// finish ends a body.
func (s *stream) finish(c *body.Cutter, at int64) {
	whole := s.queue.endedWhole()
	events := len(s.batch.Frames)
	c.Finish(&s.batch, at, whole)
	if n := len(s.batch.Frames) - events; n > 0 {
		s.meter.Events(at, n)
	}
	if whole && (len(s.batch.Frames) > 0 || s.recording != nil) {
		s.batch.Append(frame.Frame{Kind: frame.Close, At: at}, nil)
	}
	s.flush()
	s.addHole(source.ReasonFull, c.Skipped())
}

// hold accounts for the memory of incomplete frames, which grow by being copied. It reports
// false when there is none left.
func (s *stream) hold(n int) bool {
	n *= 2
	if n > s.held && !s.queue.memory.reserve(n-s.held) {
		return false
	}
	if n < s.held {
		s.queue.memory.release(s.held - n)
	}
	s.held = n
	return true
}
