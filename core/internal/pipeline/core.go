package pipeline

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

// core is the one goroutine that keeps accounts, assembles and seals epochs.
type core struct {
	p         *Pipeline
	assembler *assemble.Assembler
	streams   map[uint64]*stream
	names     map[uint64]*stream
	register  []*stream            // whose anchor was used and is not durable yet
	changed   map[*stream]struct{} // since the last seal
	forget    []checkpoint.Stream
	epoch     *epoch
	shelf     shelf
	relinks   []relink
	troubles  map[string]bool
	sealed    atomic.Int32 // epochs that are not committed yet
}

type relink struct {
	stream uint64
	run    assemble.RunRef
}

func (c *core) init(p *Pipeline) {
	c.p = p
	c.streams = make(map[uint64]*stream)
	c.names = make(map[uint64]*stream)
	c.changed = make(map[*stream]struct{})
	c.troubles = make(map[string]bool)
	rules := p.settings.Assemble
	rules.Again = !p.check.Fresh()
	c.assembler = assemble.New(rules, p.check, c)
	c.epoch = newEpoch(&c.shelf)
}

// run is the core's loop.
func (c *core) run(ctx context.Context) error {
	keys, err := c.p.check.OpenGroups()
	if err != nil {
		return err
	}
	now := time.Now()
	for _, k := range keys {
		if err := c.assembler.Resume(k, now); err != nil {
			return err
		}
	}
	tick := time.NewTicker(max(c.p.settings.FlushInterval/5, 10*time.Millisecond))
	defer tick.Stop()
	slow := time.NewTicker(time.Second)
	defer slow.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case d := <-c.p.decoded:
			err = c.take(d)
			c.p.results.Put(d.result)
		case f := <-c.p.mailbox:
			f()
		case now := <-tick.C:
			c.collect()
			if c.due(now) {
				err = c.seal(ctx, nil)
			}
		case now := <-slow.C:
			c.idle(now)
		}
		if err == nil && (c.epoch.full(&c.p.settings) || c.starved()) {
			err = c.seal(ctx, nil)
		}
		if err == nil && len(c.relinks) > 0 {
			err = c.relink()
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// due reports whether the epoch is to be sealed although it is not full. While one is
// with the exporters the next would only wait behind it: it goes on being filled, so
// that a store that is slow gets fewer and larger batches.
func (c *core) due(now time.Time) bool {
	if c.sealed.Load() > 0 {
		return false
	}
	if c.epoch.empty() {
		return len(c.changed) > 0 || len(c.forget) > 0
	}
	return now.Sub(c.epoch.began) >= c.p.settings.FlushInterval
}

// collect takes the letters of others into the epoch.
func (c *core) collect() {
	p := c.p
	p.lettersMu.Lock()
	letters := p.letters
	p.letters = nil
	p.lettersMu.Unlock()
	for i := range letters {
		c.epoch.add()
		c.epoch.batch.Letters = append(c.epoch.batch.Letters, letters[i])
		p.metrics.Problems.WithLabelValues(letters[i].Source, letters[i].Stage, letters[i].Reason).Inc()
	}
}

// open begins or resumes a stream.
func (c *core) open(s *stream) error {
	if c.names[s.name] != nil {
		return fmt.Errorf("pipeline: stream %s is open already", s.record.Key)
	}
	known, ok, err := c.p.check.Stream(s.record.Source, s.record.Key)
	if err != nil {
		return err
	}
	if ok {
		origin, state := s.record.Origin, s.record.State
		s.record, s.registered = known, true
		s.record.Origin = origin
		s.poison = known.Poison
		if state != nil {
			s.record.State = state
		}
		s.record.Closed = false
		if known.Session != "" {
			s.sessions[assemble.RunRef{Tenant: s.feed.tenant, Format: s.format.name, Session: known.Session}] = struct{}{}
		}
	}
	c.names[s.name] = s
	s.next, s.at = s.record.SnapPos, s.record.SnapPos
	s.resume = resume{s.record.SnapPos, s.record.Snapshot, s.record.Origin}
	s.touched, s.parked = time.Now(), true
	c.streams[s.id] = s
	c.touch(s)
	return nil
}

func (c *core) touch(s *stream) { c.changed[s] = struct{}{} }

// take takes the result of a job.
func (c *core) take(d decoded) error {
	j, s := d.job, d.job.stream
	c.p.outstanding.Add(-1)
	s.format.undecoded.release(j.size)
	defer func() {
		if j.waits != nil {
			j.waits.Done()
		}
	}()
	if c.streams[s.id] == nil || j.life != s.life { // it has ended, or begun again
		c.free(j)
		if j.end != nil {
			j.end <- source.ErrRewound
		}
		return nil
	}
	kept, err := c.account(s, j, d.result)
	if err != nil {
		return err
	}
	if j.batch != nil {
		s.at = j.batch.End()
	}
	c.clear(s, j)
	if d.result.HasSnapshot && d.result.Failure == nil {
		c.snapshot(s, d.result.Snapshot)
	}
	if kept {
		c.epoch.keep(j)
	} else {
		c.free(j)
	}
	if f := d.result.Failure; f != nil {
		c.failed(s, j, f)
	}
	if j.batch != nil {
		s.touched, s.parked = time.Now(), false
	}
	if j.flush {
		s.flushing, s.record.FlushPos = false, s.record.Pos
		c.touch(s)
	}
	if j.end != nil {
		return c.end(s, j)
	}
	return nil
}

// free gives a job's buffer back.
func (c *core) free(j *job) {
	if j.batch != nil {
		j.batch.Done()
	}
	c.p.inFlight.release(j.size)
}

// snapshot notes a decoder's state, at the position that the decoder has come to:
// after a restart it lies behind the record's.
func (c *core) snapshot(s *stream, snap []byte) {
	s.record.SnapPos, s.record.Snapshot = s.at, snap
	s.mu.Lock()
	s.resume = resume{s.record.SnapPos, snap, s.record.Origin}
	s.mu.Unlock()
	c.touch(s)
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

// end closes a stream.
func (c *core) end(s *stream, j *job) error {
	c.heardOut(s)
	sessions := make([]assemble.RunRef, 0, len(s.sessions))
	for ref := range s.sessions {
		sessions = append(sessions, ref)
	}
	if err := c.assembler.CloseStream(s.name, sessions); err != nil {
		j.end <- err
		return err
	}
	if j.forget {
		c.forget = append(c.forget, s.record)
		delete(c.changed, s)
	} else {
		s.record.Closed = true
		c.touch(s)
	}
	delete(c.streams, s.id)
	delete(c.names, s.name)
	j.end <- nil
	return nil
}

// settled reports whether nothing of a source is on its way to the core.
func (c *core) settled(f *Feed) bool {
	for _, s := range c.streams {
		if s.feed != f || s.stalled {
			continue
		}
		s.mu.Lock()
		// One that was rewound and whose source is gone never comes back to where it was:
		// what it has in the checkpoint is enough.
		waits := s.next > s.record.Pos
		s.mu.Unlock()
		if waits {
			return false
		}
	}
	return true
}

// detach drops a source's streams, as the end of the process would: the next source
// of that name goes on where they are.
func (c *core) detach(f *Feed) {
	for id, s := range c.streams {
		if s.feed != f {
			continue
		}
		c.enqueue(s, &job{close: true})
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		delete(c.streams, id)
		delete(c.names, s.name)
		delete(c.changed, s)
		c.assembler.Unheard(s.name)
	}
}

// forgetClosed drops streams from the checkpoint. One that is open stays.
func (c *core) forgetClosed(f *Feed, keys []string) {
	for _, k := range keys {
		if c.names[nameOf(f.source, k)] == nil {
			c.forget = append(c.forget, checkpoint.Stream{Source: f.source, Key: k})
		}
	}
}

// trouble notes what a source could not read, once.
func (c *core) trouble(f *Feed, origin, reason, detail string) {
	key := f.source + "\x00" + origin + "\x00" + reason
	if c.troubles[key] || len(c.troubles) > 10_000 {
		return
	}
	c.troubles[key] = true
	c.p.metrics.Problems.WithLabelValues(f.source, "read", reason).Inc()
	c.epoch.add()
	c.epoch.batch.Letters = append(c.epoch.batch.Letters, msg.DeadLetter{
		ID: msg.NewLetterID(f.tenant, f.source, "read", origin, reason), Tenant: f.tenant, Source: f.source, Format: f.format.name,
		Stage: "read", Reason: reason, Detail: detail, Origin: origin, Seen: time.Now().UnixNano(), Ver: 1,
	})
}

// idle gives what decoders have open in streams that have fallen silent, closes
// decoders of streams that stay silent, and ends runs that do.
func (c *core) idle(now time.Time) {
	for _, s := range c.streams {
		silent := now.Sub(s.touched)
		if !s.flushed() && !s.flushing && silent >= c.p.settings.FlushIdle {
			s.flushing = c.enqueue(s, &job{flush: true, snapshot: true})
		}
		if s.flushed() && !s.parked && silent >= c.p.settings.ParkIdle && s.record.SnapPos == s.record.Pos {
			s.parked = c.enqueue(s, &job{close: true})
		}
	}
	c.assembler.Idle(now)
}

// flushed reports whether what the decoder has open was given since its last
// frame.
func (s *stream) flushed() bool { return s.record.FlushPos == s.record.Pos }

// enqueue queues a job if nothing of the stream is on its way and its lane has
// room.
func (c *core) enqueue(s *stream, j *job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.next != s.record.Pos {
		return false
	}
	j.stream, j.life, j.pos = s, s.life, s.next
	c.p.outstanding.Add(1)
	select {
	case s.lane.jobs <- j:
		return true
	default:
		c.p.outstanding.Add(-1)
		return false
	}
}

// flushAll gives what every decoder has open, and takes its snapshot. It returns
// whether there was nothing left to do: a stream that is being delivered again is
// not asked, because its decoder is not where it was.
func (c *core) flushAll(wait *sync.WaitGroup) (done bool) {
	done = true
	for _, s := range c.streams {
		if s.stalled || s.flushed() {
			continue
		}
		done = false
		s.mu.Lock()
		ready := !s.closed && s.next == s.record.Pos
		j := &job{stream: s, flush: true, snapshot: true, waits: wait, life: s.life, pos: s.next}
		s.mu.Unlock()
		if !ready {
			continue
		}
		wait.Add(1)
		c.p.outstanding.Add(1)
		go func() {
			if err := s.lane.put(context.Background(), j); err != nil {
				c.p.drop(j)
			}
		}()
	}
	return done
}

func (c *core) quiet() bool {
	c.collect()
	if c.sealed.Load() != 0 || !c.epoch.empty() || len(c.changed) != 0 {
		return false
	}
	for _, s := range c.streams {
		s.mu.Lock()
		behind := s.record.Pos < s.high // rewound, and not delivered again yet
		s.mu.Unlock()
		if behind && !s.stalled {
			return false
		}
	}
	return true
}

// Span implements assemble.Emitter.
func (c *core) Span(s msg.Span) {
	c.epoch.add()
	c.epoch.batch.Spans = append(c.epoch.batch.Spans, s)
	if s.State != msg.SpanOpen && !s.Deleted && !s.Amends {
		c.p.progress.spans.Add(1)
		c.p.metrics.Spans.WithLabelValues(s.Format, s.Kind.String(), s.Outcome.String()).Inc()
	}
}

// Found implements assemble.Emitter.
func (c *core) Found(format, kind string) {
	c.p.metrics.Findings.WithLabelValues(format, kind).Inc()
}

// Relink implements assemble.Emitter; it is done after the batch at hand.
func (c *core) Relink(stream uint64, r assemble.RunRef) {
	c.relinks = append(c.relinks, relink{stream, r})
}

// Replayable implements assemble.Emitter.
func (c *core) Replayable(stream uint64) bool { return c.names[stream] != nil }

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
		rec.Pos, rec.SnapPos, rec.Snapshot, rec.LastTime, rec.FlushPos = 0, 0, nil, 0, 0
		c.touch(s)
		c.rewind(s)
	}
	c.relinks = c.relinks[:0]
	return nil
}

var _ assemble.Emitter = (*core)(nil)
