package pipeline

import (
	"context"
	"sync"
	"time"
)

// idle gives what decoders have open in streams that have fallen silent, closes
// decoders of streams that stay silent, and ends runs that do.
func (c *core) idle(now time.Time) error {
	for _, s := range c.streams {
		silent := now.Sub(s.touched)
		if !s.flushed() && !s.flushing && silent >= c.p.settings.FlushIdle {
			s.flushing = c.enqueue(s, &job{flush: true, snapshot: true})
		}
		if s.flushed() && !s.parked && silent >= c.p.settings.ParkIdle && s.record.SnapPos == s.record.Pos {
			s.parked = c.enqueue(s, &job{close: true})
		}
	}
	if every := c.p.settings.Heartbeat; every > 0 && now.Sub(c.drawn) >= every {
		c.beat()
	}
	return c.assembler.Idle(now, int(c.sealed.Load()))
}

// beat has the account of one stream of each source drawn: that it is of now says that
// Earshot lives and listens.
func (c *core) beat() {
	latest := make(map[*Feed]*stream)
	for _, s := range c.streams {
		if was := latest[s.feed]; was == nil || s.touched.After(was.touched) {
			latest[s.feed] = s
		}
	}
	for _, s := range latest {
		c.touch(s)
	}
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
	if c.sealed.Load() != 0 || !c.epoch.empty() || len(c.changed) != 0 || c.assembler.Ended() {
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
