package pipeline

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/source"
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
	began     time.Time    // when the pipeline began to listen
	drawn     time.Time    // when an account was drawn last
	spans     map[spanKind]prometheus.Counter
}

type spanKind struct {
	format  string
	kind    msg.SpanKind
	outcome msg.Outcome
}

func (c *core) init(p *Pipeline) {
	c.p = p
	c.streams = make(map[uint64]*stream)
	c.names = make(map[uint64]*stream)
	c.changed = make(map[*stream]struct{})
	c.troubles = make(map[string]bool)
	c.spans = make(map[spanKind]prometheus.Counter)
	rules := p.settings.Assemble
	rules.Replay, rules.LocalIDs = !p.check.Fresh(), p.localIDs
	c.assembler = assemble.New(rules, p.check, c)
	// What is not used of the first lists is memory by name only.
	c.shelf.messages = int(min(p.settings.BatchBytes/messageBytes, int64(p.settings.BatchRows)))
	c.shelf.spans = c.shelf.messages / 2
	c.epoch = newEpoch(&c.shelf)
	c.began = time.Now()
	c.drawn = c.began
}

// messageBytes is how many bytes of frames make a message, or more.
const messageBytes = 1 << 10

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
			c.p.reuse(d.result)
		case f := <-c.p.mailbox:
			f()
		case now := <-tick.C:
			c.collect()
			if c.due(now) {
				err = c.seal(ctx, nil)
			}
		case now := <-slow.C:
			err = c.idle(now)
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
		return len(c.changed) > 0 || len(c.forget) > 0 || c.assembler.Ended()
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
		c.epoch.batch.DeadLetters = append(c.epoch.batch.DeadLetters, letters[i])
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

// awaitParent is how long a stream that has ended can be decoded again, when a run of it
// is known to be a child and nothing has been heard of the call that caused it: who waits
// for an answer is heard to the end after the one who gave it.
const awaitParent = time.Minute

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
	if !j.forget && s.feed.journalled && time.Since(s.touched) < awaitParent {
		waits, err := c.assembler.Awaits(s.name, sessions)
		if err != nil {
			j.end <- err
			return err
		}
		if waits {
			s.parked = true
			j.end <- source.ErrAwaited
			return nil
		}
	}
	if j.forget && j.pos < s.record.Pos {
		c.trouble(s.feed, s.record.Origin, msg.ReasonStateLost, fmt.Sprintf("%d bytes were decoded after the decoder's last snapshot, and are gone: what it held of them is lost", s.record.Pos-j.pos))
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

// Span implements assemble.Emitter.
func (c *core) Span(s msg.Span) {
	c.epoch.add()
	c.epoch.batch.Spans = append(c.epoch.batch.Spans, s)
	if s.State != msg.SpanOpen && !s.Tombstone && !s.Amends {
		c.p.progress.spans.Add(1)
		c.ended(s.Format, s.Kind, s.Outcome).Inc()
	}
}

// ended is the counter of a format's spans.
func (c *core) ended(format string, k msg.SpanKind, o msg.Outcome) prometheus.Counter {
	key := spanKind{format, k, o}
	n := c.spans[key]
	if n == nil {
		n = c.p.metrics.Spans.WithLabelValues(format, k.String(), o.String())
		c.spans[key] = n
	}
	return n
}

// Found implements assemble.Emitter.
func (c *core) Finding(format, kind string) {
	c.p.metrics.Findings.WithLabelValues(format, kind).Inc()
}

var _ assemble.Emitter = (*core)(nil)
