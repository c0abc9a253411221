package app

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/pipeline"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

// Heard is a frame with the stream in which it came and when that was.
type Heard struct {
	Stream  int
	Origin  string
	At      time.Time
	Backlog bool      // it was there before Earshot listened
	Written time.Time // of backlog: the last change of its file
	Live    bool      // read from a connection, which shows its bytes
	Frame   frame.Frame
}

// Rehearsed receives the results of a rehearsal; a nil function: that result is not wanted.
type Rehearsed struct {
	Asleep  [2]time.Time                       // the machine sleeps from the one to the other
	Verdict func(now time.Time, v msg.Verdict) // one that is made or resolved
	Span    func(*msg.Span)                    // each version, and tombstones
	Message func(*msg.Message)                 // likewise
}

// Rehearse passes recorded traffic through a decoder and the assembler, at the times at which it
// came. No real time passes: the clock is looked at once a second, as the sidecar does.
func Rehearse(f decoder.Factory, heard []Heard, until time.Time, out Rehearsed) error {
	if len(heard) == 0 {
		return nil
	}
	heard = slices.Clone(heard)
	slices.SortStableFunc(heard, func(a, b Heard) int { return a.At.Compare(b.At) })
	r := &rehearsal{factory: f, format: f.Info().Name, streams: make(map[uint64]*rehearsed), groups: make(map[string][]byte), out: out}
	r.assembler = assemble.New(assemble.Settings{
		LocalIDs: func(string) bool { return f.Info().LocalIDs }, LastBytes: r.lastBytes, View: view, Reconciles: reconciled(nil), ShowsDelegates: semconv.ShowsDelegates, Serves: semconv.Serves,
	}, r, r)
	last := heard[0].At
	for r.now = last; !r.now.After(until); r.now = r.now.Add(time.Second) {
		if !r.now.Before(out.Asleep[0]) && r.now.Before(out.Asleep[1]) {
			r.now = out.Asleep[1]
		}
		for len(heard) > 0 && !heard[0].At.After(r.now) {
			if err := r.take(heard[0]); err != nil {
				return fmt.Errorf("%s: %w", heard[0].Origin, err)
			}
			heard, last = heard[1:], r.now
		}
		if err := r.tick(); err != nil {
			return err
		}
		if len(heard) > 0 && heard[0].At.Sub(r.now) > time.Hour && r.now.Sub(last) > time.Hour { // nothing new is found between history and now
			r.now = heard[0].At.Add(-time.Second)
		}
	}
	return nil
}

type rehearsal struct {
	factory   decoder.Factory
	format    string
	assembler *assemble.Assembler
	streams   map[uint64]*rehearsed
	replays   []replayed
	groups    map[string][]byte
	now       time.Time
	out       Rehearsed
}

type rehearsed struct {
	id       uint64
	origin   string
	decoder  decoder.Decoder
	clock    checkpoint.Clock
	pos      int64
	last     int64
	live     bool
	flushed  bool
	sessions map[string]bool
	heard    []Heard
}

type replayed struct {
	stream uint64
	run    assemble.RunRef
}

func (r *rehearsal) open(h Heard) (*rehearsed, error) {
	id := uint64(h.Stream + 1)
	if s := r.streams[id]; s != nil {
		return s, nil
	}
	d, err := r.factory.New(decoder.Stream{Origin: h.Origin, Source: "rehearsal"})
	if err != nil {
		return nil, err
	}
	s := &rehearsed{id: id, origin: h.Origin, decoder: d, live: h.Live, flushed: true, sessions: make(map[string]bool)}
	r.streams[id] = s
	return s, nil
}

func (r *rehearsal) take(h Heard) error {
	s, err := r.open(h)
	if err != nil {
		return err
	}
	h.Frame.At, h.Frame.Pos = h.At.UnixNano(), s.pos
	s.pos += int64(len(h.Frame.Data)) + 1
	h.Frame.End, s.last, s.flushed = s.pos, h.Frame.At, false
	s.heard = append(s.heard, h)
	if err := r.decode(s, s.decoder, h, ""); err != nil {
		return err
	}
	if h.Frame.Kind == frame.Close {
		s.flushed = true
		var refs []assemble.RunRef
		for id := range s.sessions {
			refs = append(refs, assemble.RunRef{Tenant: "default", Format: r.format, Session: id})
		}
		if err := r.assembler.CloseStream(s.id, refs); err != nil {
			return err
		}
	}
	for len(r.replays) > 0 {
		next := r.replays[0]
		r.replays = r.replays[1:]
		if err := r.replay(next); err != nil {
			return err
		}
	}
	return nil
}

// replay decodes a stream again for a run whose trace has changed.
func (r *rehearsal) replay(p replayed) error {
	s := r.streams[p.stream]
	if err := r.assembler.ResetRun(p.run); err != nil || s == nil {
		return err
	}
	again, err := r.factory.New(decoder.Stream{Origin: s.origin, Source: "rehearsal"})
	if err != nil {
		return err
	}
	for _, h := range s.heard {
		if err := r.decode(s, again, h, p.run.Run); err != nil {
			return err
		}
	}
	return nil
}

func (r *rehearsal) decode(s *rehearsed, d decoder.Decoder, h Heard, run string) error {
	var out decoder.Output
	out.Begin(0)
	if err := d.Decode(&h.Frame, &out); err != nil {
		return err
	}
	for _, p := range out.Problems {
		return fmt.Errorf("%s: %s", p.Reason, p.Detail)
	}
	b := &frame.Batch{Backlog: h.Backlog}
	if h.Backlog {
		b.Written = cmp.Or(h.Written, h.At).UnixNano()
	}
	for i := range out.Messages {
		m := &out.Messages[i]
		if run != "" && m.Run != run {
			continue
		}
		if err := r.message(s, m, &h.Frame, int64(i), b, r.assembler.Apply); err != nil {
			return err
		}
	}
	return nil
}

type apply func(m *msg.Message, stream uint64, revision uint32, now time.Time, alive int64) (int64, error)

func (r *rehearsal) message(s *rehearsed, m *msg.Message, f *frame.Frame, nth int64, b *frame.Batch, to apply) error {
	if err := m.Validate(); err != nil {
		return err
	}
	at := int64(0)
	if s.live {
		at = f.At
	}
	pipeline.Date(&s.clock, m, at, f.At)
	m.Host = msg.Host{Tenant: "default", Source: "rehearsal", Format: r.format, Seq: uint64(f.Pos + nth), Ver: uint64(f.End), Observed: f.At, Origin: s.origin, Offset: f.Pos}
	s.sessions[m.Session] = true
	_, err := to(m, s.id, 1, r.now, pipeline.Alive(m, f, b, r.now))
	if err == nil {
		r.Message(*m)
	}
	return err
}

// tick does the sidecar's work of each second.
func (r *rehearsal) tick() error {
	for _, s := range r.streams {
		if s.flushed || r.now.UnixNano()-s.last < int64(2*time.Second) {
			continue
		}
		s.flushed = true
		var out decoder.Output
		if err := s.decoder.Flush(&out); err != nil {
			return err
		}
		f := frame.Frame{Pos: s.pos, End: s.pos + 1, At: s.last}
		for i := range out.Messages {
			if err := r.message(s, &out.Messages[i], &f, int64(i), nil, r.assembler.ApplyOpen); err != nil {
				return err
			}
		}
	}
	r.assembler.Looks(r.now)
	if err := r.assembler.Idle(r.now, 0); err != nil {
		return err
	}
	return r.assembler.Commit(func(key string, _ bool, state []byte) { r.groups[key] = state })
}

func (r *rehearsal) lastBytes(stream uint64) int64 {
	if s := r.streams[stream]; s != nil && s.live {
		return s.last
	}
	return 0
}

// Group implements assemble.Store.
func (r *rehearsal) Group(key string) ([]byte, error) { return r.groups[key], nil }

// Span implements assemble.Emitter.
func (r *rehearsal) Span(s msg.Span) {
	if r.out.Span != nil {
		r.out.Span(&s)
	}
}

// Message implements assemble.Emitter.
func (r *rehearsal) Message(m msg.Message) {
	if r.out.Message != nil {
		r.out.Message(&m)
	}
}

// Finding implements assemble.Emitter.
func (r *rehearsal) Finding(string, string) {}

// Flush implements assemble.Emitter.
func (r *rehearsal) Flush(stream uint64) {
	if s := r.streams[stream]; s != nil {
		s.flushed = false
	}
}

// Replayable implements assemble.Emitter.
func (r *rehearsal) Replayable(stream uint64) bool { return r.streams[stream] != nil }

// ReplayChildren implements assemble.Emitter.
func (r *rehearsal) ReplayChildren(stream uint64, run assemble.RunRef) {
	r.replays = append(r.replays, replayed{stream, run})
}

// Verdict implements assemble.Emitter.
func (r *rehearsal) Verdict(v msg.Verdict) {
	if r.out.Verdict != nil {
		r.out.Verdict(r.now, v)
	}
}
