package pipeline

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/earshot-dev/earshot/core/frame"
)

// A process that dies takes with it what it was decoding, and what it was decoding
// may be why it died. To find the record to blame without blaming another:
//
//   - Each death puts what was sent and not answered under suspicion, as a range of
//     its stream; of a process that gives no answer, what it was asked first. A range
//     that is decoded after all is cleared.
//   - A stream that comes under suspicion twice for one range has that range decoded
//     frame by frame, each frame alone in the whole process.
//   - A frame with which alone the process died twice is set aside, and its position
//     is kept in the checkpoint, so that no later process sees it. A signal from
//     outside (kill -9, the kernel short of memory) proves less: then three times.
//
// Opening a decoder and having it give what it has open are treated like frames: a
// snapshot that kills is given up, and the stream decoded from its beginning; a
// decoder that dies when it is asked for what it has open is not asked any more.
//
// A decoder that dies whatever it is given is not the records' fault: one that dies
// when it is opened bare, or at record after record, has nothing more set aside. It
// gets nowhere, so that its circuit opens.

// step is what a process did when it died.
type step uint8

const (
	atFrames step = iota
	atOpen
	atFlush
)

// span is what a process had in its hands of one stream: positions of frames, and
// the one behind them for what was open.
type span struct {
	stream   *stream
	life     int
	step     step
	from, to int64
	alone    bool
}

// suspicion is one of a stream. Its range is of positions.
type suspicion struct {
	from, to int64
	deaths   int
	step     step // what was done alone last, when the process died
	at       int64
	alone    int // deaths with it
}

// provesAlone is how many deaths with a frame alone prove it guilty.
const (
	provesAlone  = 2
	provesKilled = 3
)

func (j *job) span(alone bool) span {
	s := span{stream: j.stream, life: j.life, alone: alone, from: j.pos, to: j.pos + 1}
	switch {
	case j.open:
		s.step = atOpen
	case j.batch == nil:
		s.step = atFlush
	default:
		s.from, s.to = j.batch.Frames[0].Pos, j.batch.End()
	}
	return s
}

// suspected returns the job in parts if its stream is to be decoded with care: what
// is under suspicion is decoded alone. It is nil otherwise.
func (j *job) suspected(s *session) []*job {
	st := j.stream
	st.mu.Lock()
	sus := st.suspect
	st.mu.Unlock()
	if sus.deaths < 2 {
		return nil
	}
	own := j.span(false)
	if own.to <= sus.from || own.from >= sus.to {
		return nil
	}
	var parts []*job
	if st.opened != s || st.openedLife != j.life {
		parts = append(parts, &job{stream: st, life: j.life, pos: own.from, open: true, alone: true})
		st.feed.p.outstanding.Add(1)
	}
	if own.step != atFrames {
		j.alone = true
		return append(parts, j)
	}
	return append(parts, j.split(sus.from, sus.to)...)
}

// split cuts a job so that each frame of the range is a job of its own.
func (j *job) split(from, to int64) []*job {
	var parts []*job
	frames := j.batch.Frames
	add := func(frames []frame.Frame, alone bool) {
		if len(frames) > 0 {
			parts = append(parts, &job{stream: j.stream, life: j.life, alone: alone, batch: &frame.Batch{
				Data: cover(j.batch.Data, frames), Frames: frames, Written: j.batch.Written, Backlog: j.batch.Backlog,
			}})
		}
	}
	first := slices.IndexFunc(frames, func(f frame.Frame) bool { return f.End > from })
	last := first
	for last < len(frames) && frames[last].Pos < to {
		last++
	}
	add(frames[:first], false)
	for i := first; i < last; i++ {
		add(frames[i:i+1], true)
	}
	add(frames[last:], false)

	var left atomic.Int32
	left.Store(int32(len(parts)))
	for _, part := range parts {
		part.batch.Release = func() {
			if left.Add(-1) == 0 {
				j.batch.Done()
			}
		}
	}
	parts[0].size = j.size
	j.stream.feed.p.outstanding.Add(int64(len(parts)) - 1)
	return parts
}

// cover is the part of the data in which the frames lie.
func cover(data []byte, frames []frame.Frame) []byte {
	from, to := len(data), 0
	for i := range frames {
		d := frames[i].Data
		if len(d) == 0 {
			continue
		}
		off, ok := frame.Offset(data, d)
		if !ok {
			return data
		}
		from, to = min(from, off), max(to, off+len(d))
	}
	if from >= to {
		return nil
	}
	return data[from:to]
}

// blame puts what a process held when it died under suspicion, or has it set aside.
func (c *core) blame(spans []span, d death) {
	for _, v := range joined(spans) {
		s := v.stream
		if c.streams[s.id] == nil || v.life != s.life {
			continue
		}
		sus := s.suspect
		switch {
		case v.alone:
			if sus.at != v.from || sus.step != v.step {
				sus.at, sus.step, sus.alone = v.from, v.step, 0
			}
			sus.alone++
			if sus.alone < provesAlone || d.killed && sus.alone < provesKilled {
				break
			}
			if c.condemn(s, v, d) {
				sus.alone = 0
				if v.step == atFrames {
					sus.from = v.to
				}
			}
		case sus.deaths > 0 && v.from < sus.to && sus.from < v.to:
			sus.from, sus.to = max(sus.from, v.from), min(sus.to, v.to)
			sus.deaths++
		default:
			sus = suspicion{from: v.from, to: v.to, deaths: 1}
		}
		s.suspectNow(sus)
	}
}

// joined makes one span of those of the same stream.
func joined(spans []span) []span {
	var out []span
	for _, v := range spans {
		i := slices.IndexFunc(out, func(o span) bool { return o.stream == v.stream && o.life == v.life })
		if i < 0 {
			out = append(out, v)
			continue
		}
		out[i].from, out[i].to = min(out[i].from, v.from), max(out[i].to, v.to)
	}
	return out
}

// clear ends the suspicion of what was decoded after all.
func (c *core) clear(s *stream, j *job) {
	past := s.at
	if j.batch == nil && !j.open {
		past = j.pos + 1
	}
	if s.suspect.deaths > 0 && past >= s.suspect.to {
		s.suspectNow(suspicion{})
	}
}

func (s *stream) suspectNow(sus suspicion) {
	s.mu.Lock()
	s.suspect = sus
	s.mu.Unlock()
}

// maxCondemned is how many records a format may have set aside in a row.
const maxCondemned = 64

// condemn has a stream go on without what kills its decoder, unless it is the
// decoder that is to blame.
func (c *core) condemn(s *stream, v span, d death) bool {
	f := s.format
	if f.condemned++; f.condemned > maxCondemned || v.step == atOpen && s.record.Snapshot == nil {
		return false
	}
	f.advance(c.p)
	log := c.p.log.With("format", f.name, "origin", s.record.Origin, "reason", d.reason, "error", d.err)
	switch v.step {
	case atFrames:
		log.Error("a record that ends its decoder is set aside", "offset", v.from)
		c.poison(s, v.from, d.reason)
	case atFlush:
		log.Error("a decoder that ends when it is asked for what it has open is not asked any more")
		s.mu.Lock()
		s.mute = true
		s.mu.Unlock()
		c.trouble(s.feed, s.record.Origin, d.reason, "asked for what it has open: "+d.err.Error())
	case atOpen:
		log.Error("a snapshot that ends its decoder is given up; the stream is decoded from its beginning")
		c.forgetSnapshot(s)
	}
	return true
}

// forgetSnapshot has a stream decoded from its beginning. What was accounted for
// stays so.
func (c *core) forgetSnapshot(s *stream) {
	s.record.SnapPos, s.record.Snapshot = 0, nil
	c.touch(s)
}

// maxPoison is how many frames of a stream are set aside before all of it is.
const maxPoison = 4096

// poison sets a frame aside from now on. A replay of the stream from any position
// is to leave out the same frames, so all of them are kept.
func (c *core) poison(s *stream, pos int64, reason string) {
	again := maps.Clone(s.record.Poison)
	if again == nil {
		again = make(map[int64]string)
	}
	again[pos] = reason
	s.record.Poison = again
	c.touch(s)
	s.mu.Lock()
	s.poison = again
	s.mu.Unlock()
	if len(again) >= maxPoison {
		s.refuse(reason)
	}
}

func (s *stream) refuse(reason string) {
	s.mu.Lock()
	s.refused = reason
	s.mu.Unlock()
}

// isRefused reports whether the stream's decoder is not to be opened any more.
func (s *stream) isRefused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused != ""
}
