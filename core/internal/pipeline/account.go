package pipeline

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

// account counts a batch's frames, passes its messages on, and sets aside what
// could not be decoded. kept says that something in the epoch now aliases the
// batch.
//
// Frames before the record's position were accounted for before a restart: what
// they give now is what they gave then, and is dropped.
func (c *core) account(s *stream, j *job, r *wire.Result) (kept bool, err error) {
	rec := &s.record
	old := rec.Pos
	var frames []frame.Frame
	if j.batch != nil {
		frames = j.batch.Frames
	}
	bad := make(map[int]bool, len(r.Problems))
	for i := range r.Problems {
		if at, ok := j.index(r.Problems[i].Frame); ok {
			bad[at] = true
		}
	}
	upto := len(frames)
	if r.Failure != nil {
		upto, _ = j.index(r.Failure.Frame) // what follows was not decoded
	}
	for i := range frames[:upto] {
		if f := &frames[i]; f.End > old {
			c.count(s, f, bad[i])
			rec.Pos, rec.Read = f.End, max(rec.Read, f.At)
		}
	}
	last, nth, now := int64(-1), 0, time.Now()
	for i := range r.Messages {
		m := &r.Messages[i]
		f := &frame.Frame{Pos: rec.Pos, End: rec.Pos + 1, At: rec.Read} // of a flush without frames
		if at, ok := j.index(m.Frame); ok {
			if f = &frames[at]; f.End <= old {
				continue
			}
		}
		if nth++; f.Pos != last {
			last, nth = f.Pos, 0
		}
		took, err := c.message(s, m, f, nth, now, j)
		if err != nil {
			return kept, err
		}
		kept = kept || took
	}
	for i := range r.Problems {
		pr := &r.Problems[i]
		if at, ok := j.index(pr.Frame); ok && frames[at].End > old && !c.replaying(s, frames[at].End) {
			c.letter(s, &frames[at], "decode", pr.Reason, pr.Detail)
		}
	}
	if rec.Pos > old {
		c.touch(s)
		if rec.Replay != nil && rec.Pos >= rec.Replay.Until {
			rec.Replay = nil
		}
		c.reached(s)
	}
	return kept, nil
}

// replaying reports whether what ends there was accounted for before a link had
// the stream decoded again.
func (c *core) replaying(s *stream, end int64) bool {
	r := s.record.Replay
	return r != nil && end <= r.Until
}

// count accounts for a frame: law 1.
func (c *core) count(s *stream, f *frame.Frame, bad bool) {
	if c.replaying(s, f.End) {
		return
	}
	rec, n := &s.record, f.End-f.Pos
	c.p.progress.bytes.Add(n)
	c.p.progress.frames.Add(1)
	rec.Frames++
	s.format.advance(c.p)
	s.feed.counters.frames.Inc()
	switch {
	case f.Reason != "":
		rec.Dropped += f.Dropped
		rec.Quarantined += n - f.Dropped
		c.p.metrics.Bytes.WithLabelValues(s.feed.source, "dropped").Add(float64(f.Dropped))
		c.p.metrics.Bytes.WithLabelValues(s.feed.source, "quarantined").Add(float64(n - f.Dropped))
		stage := "read"
		if strings.HasPrefix(f.Reason, "decoder_") {
			stage = "decode"
		}
		c.letter(s, f, stage, f.Reason, "")
	case bad:
		rec.Quarantined += n
		c.p.metrics.Bytes.WithLabelValues(s.feed.source, "quarantined").Add(float64(n))
	default:
		s.format.condemned = 0
		rec.Decoded += n
		s.feed.counters.decoded.Add(float64(n))
	}
}

// message gives the nth message of a frame of the job, which may be a flush, its place
// and puts it into the epoch.
func (c *core) message(s *stream, m *msg.Message, f *frame.Frame, nth int, now time.Time, j *job) (kept bool, err error) {
	rec := &s.record
	if err := m.Validate(); err != nil {
		if !c.replaying(s, f.End) {
			c.letter(s, f, "decode", msg.ReasonInvalid, err.Error())
		}
		return false, nil
	}
	open := j.flush && j.end == nil
	c.date(s, m, f, open)
	if c.replaying(s, f.End) && !slices.Contains(rec.Replay.Runs, m.Run) {
		return false, nil
	}
	pos := f.Pos + int64(nth)
	m.Host = msg.Host{
		Tenant: s.feed.tenant, Source: s.feed.source, Format: s.format.name, Server: s.feed.server,
		Seq: uint64(pos), Ver: uint64(f.End), Observed: f.At, Origin: rec.Origin, Offset: f.Pos,
	}
	apply := c.assembler.Apply
	if open {
		apply = c.assembler.ApplyOpen
	}
	was, err := apply(m, s.name, s.format.info.Revision, now, alive(m, f, j.batch, now))
	if err != nil {
		return false, err
	}
	c.belongs(s, m)
	if was != 0 {
		gone := *m
		gone.Time, gone.Content, gone.Tool.Arguments, gone.Delegation.Task, gone.Host.Tombstone = was, msg.Text{}, msg.Text{}, msg.Text{}, true
		c.epoch.message(&gone)
	}
	c.epoch.message(m)
	if !c.replaying(s, f.End) {
		if m.Complete > msg.Partial { // how often an unfinished one is given is a matter of pauses
			rec.Messages++
		}
		c.p.progress.messages.Add(1)
		s.feed.said(m.Kind).Inc()
		if m.Kind == msg.Unknown {
			rec.Unknown++
			c.p.metrics.Unknown.WithLabelValues(s.format.name, label(m.Attr("type"))).Inc()
		}
	}
	c.touch(s)
	return true, nil
}

// maxSkew is by how much clocks are wrong: a time zone that is missing, not more. A
// transcript that is copied while Earshot listens is older.
const maxSkew = 24 * time.Hour

// alive is when the sender of a message was at work, as far as Earshot can know, Unix
// ns. What was written while Earshot listened was written when it came, whatever the
// sender's clock says. What was there before, or came as a whole document, is as old as
// it says, and at least as old as the last change of its file.
func alive(m *msg.Message, f *frame.Frame, b *frame.Batch, now time.Time) int64 {
	if b == nil { // a flush: nothing new came
		return min(m.Time, now.UnixNano())
	}
	if !b.Backlog && f.Kind != frame.Body && f.At-m.Time < int64(maxSkew) {
		return f.At
	}
	if b.Written != 0 {
		return min(m.Time, f.At, b.Written)
	}
	return min(m.Time, f.At)
}

// date gives a message a time if its protocol gives none.
func (c *core) date(s *stream, m *msg.Message, f *frame.Frame, open bool) {
	at, date := int64(0), Date
	if s.feed.journalled {
		at = f.At
	}
	if open {
		date = guess
	}
	if date(&s.record.Clock, m, at, s.record.Anchor) && !s.registered {
		s.registered = true
		c.register = append(c.register, s)
	}
}

// said is the counter of the source's messages of a kind.
func (f *Feed) said(k msg.Kind) prometheus.Counter {
	n := f.counters.messages[k]
	if n == nil {
		n = f.p.metrics.Messages.WithLabelValues(f.source, f.format.name, k.String())
		f.counters.messages[k] = n
	}
	return n
}

// belongs notes of which sessions the stream speaks.
func (c *core) belongs(s *stream, m *msg.Message) {
	s.speaksOf(m)
	if s.lastSession != m.Session {
		s.lastSession = strings.Clone(m.Session)
		s.sessions[assemble.RunRef{Tenant: s.feed.tenant, Format: s.format.name, Session: s.lastSession}] = struct{}{}
	}
}

// label bounds a metric label that comes from outside.
func label(s string) string {
	const most = 48
	s = strings.ToValidUTF8(s, "")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

// letter sets a frame aside.
func (c *core) letter(s *stream, f *frame.Frame, stage, reason, detail string) {
	s.record.Problems++
	c.p.progress.problems.Add(1)
	c.p.metrics.Problems.WithLabelValues(s.feed.source, stage, label(reason)).Inc()
	payload := f.Data[:min(len(f.Data), c.p.settings.MaxDeadLetter)]
	c.epoch.add()
	c.epoch.batch.DeadLetters = append(c.epoch.batch.DeadLetters, msg.DeadLetter{
		ID:     msg.NewDeadLetterID(s.feed.tenant, s.feed.source, stage, s.record.Key, strconv.FormatInt(f.Pos, 10)),
		Tenant: s.feed.tenant, Source: s.feed.source, Format: s.format.name, Session: s.lastSession,
		Stage: stage, Reason: strings.Clone(reason), Detail: strings.Clone(detail), Origin: s.record.Origin, Offset: f.Pos,
		Payload: slices.Clone(payload), Bytes: int64(len(f.Data)) + f.Dropped, Seen: f.At, Ver: uint64(s.format.info.Revision) + 1,
	})
}
