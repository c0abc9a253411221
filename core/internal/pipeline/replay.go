package pipeline

import (
	"slices"

	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

type relink struct {
	stream uint64
	run    assemble.RunRef
}

// failed has a stream begin again, without the frame at which its decoder gave
// up.
func (c *core) failed(s *stream, j *job, f *wire.Failure) {
	c.p.log.Error("decoder gave up", "format", s.format.name, "origin", s.record.Origin, "error", f.Error, "permanent", f.Permanent)
	c.p.metrics.DecoderFailures.WithLabelValues(s.format.name).Inc()
	i, ok := j.index(f.Frame)
	if !ok && s.record.Snapshot != nil { // of another version of the decoder, perhaps
		c.forgetSnapshot(s)
		c.rewind(s)
		return
	}
	if !ok { // it does not even begin: a replay would not help
		s.stalled = true
		c.trouble(s.feed, s.record.Origin, msg.ReasonDecoderFailed, f.Error)
		return
	}
	c.poison(s, j.batch.Frames[i].Pos, msg.ReasonDecoderFailed)
	c.rewind(s)
}

// index turns a decoder's index of a frame into the batch's.
func (j *job) index(i int32) (int, bool) {
	if j.batch == nil || i < 0 {
		return 0, false
	}
	if j.sent != nil {
		if int(i) >= len(j.sent) {
			return 0, false
		}
		i = j.sent[i]
	}
	return int(i), int(i) < len(j.batch.Frames)
}

// rewind has the source deliver again from the decoder's last snapshot.
func (c *core) rewind(s *stream) {
	s.mu.Lock()
	s.next, s.at = s.record.SnapPos, s.record.SnapPos
	s.life++
	s.resume = resume{s.record.SnapPos, s.record.Snapshot, s.record.Origin}
	pos, call := s.next, s.rewind
	s.mu.Unlock()
	if call != nil {
		go call(pos)
	}
}

// restart has the streams of a format begin again after its process died.
func (c *core) restart(f *format) {
	for _, s := range c.streams {
		if s.format == f {
			c.rewind(s)
		}
	}
}

// Relink implements assemble.Emitter; it is done after the batch at hand.
func (c *core) ReplayChildren(stream uint64, r assemble.RunRef) {
	c.relinks = append(c.relinks, relink{stream, r})
}

// Replayable implements assemble.Emitter.
func (c *core) Replayable(stream uint64) bool { return c.names[stream] != nil }

// Flush implements assemble.Emitter.
func (c *core) Flush(stream uint64) {
	if s := c.names[stream]; s != nil {
		s.record.FlushPos = -1
		c.touch(s)
	}
}

// relink has streams decoded again for the sake of runs whose trace has changed.
func (c *core) relink() error {
	for _, r := range c.relinks {
		if err := c.assembler.ResetRun(r.run); err != nil {
			return err
		}
		s := c.names[r.stream]
		if s == nil {
			c.p.log.Warn("a link came too late: its stream is gone", "session", r.run.Session, "run", r.run.Run)
			continue
		}
		rec := &s.record
		if rec.Replay == nil {
			rec.Replay = &checkpoint.Replay{}
		}
		again := *rec.Replay
		again.Runs = append(slices.Clone(again.Runs), r.run.Run)
		again.Until = max(again.Until, rec.Pos)
		rec.Replay = &again
		rec.Pos, rec.SnapPos, rec.Snapshot, rec.Clock, rec.FlushPos = 0, 0, nil, checkpoint.Clock{}, 0
		c.touch(s)
		c.rewind(s)
	}
	c.relinks = c.relinks[:0]
	return nil
}
