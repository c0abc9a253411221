package journal

import (
	"context"
	"time"

	"github.com/earshot-dev/earshot/core/retry"
)

// sweeper removes the segments that are safe or too old, once in a while.
type sweeper struct {
	settings  Settings
	mu        *lock
	retention *retention
	segments  *segments
	streams   *streams
	writer    *writer
}

// run sweeps until ctx ends. A checkpoint that is slow is asked seldom; one that was slow once, as in a stall of the machine, is not.
func (s *sweeper) run(ctx context.Context) {
	var before time.Duration
	for wait := s.settings.sweep; retry.Wait(ctx, wait); {
		took := s.sweep(ctx)
		s.age(time.Now())
		wait = max(s.settings.sweep, 20*min(took, before))
		before = took
	}
}

// age evicts segments that are too old, and ends one that grows slowly, so that
// it can become too old.
func (s *sweeper) age(now time.Time) {
	limit := now.Add(-s.settings.MaxAge).UnixNano()
	s.mu.Lock()
	g := s.segments.newest()
	stale := g.planned > 0 && s.writer.pending == 0 && g.first < now.Add(-s.settings.MaxAge/4).UnixNano()
	if stale {
		g = s.segments.roll()
	}
	s.mu.Unlock()
	if stale {
		if err := s.segments.sealBefore(g); err != nil { // the writer tries again
			s.settings.Logger.Warn("journal cannot seal a segment", "error", err)
		}
	}
	for _, g := range s.segments.list() {
		s.mu.Lock()
		old := g.sealed && !g.gone && g.last < limit
		s.mu.Unlock()
		if !old {
			continue
		}
		if err := s.retention.evict(g, overAge); err != nil {
			s.settings.Logger.Error("journal cannot remove a segment", "segment", g.id, "error", err)
		}
	}
}

// sweep removes segments in which everything is safe, oldest first. It returns how
// long the checkpoint took to list the safe positions: with many streams that is too
// expensive for every tick.
func (s *sweeper) sweep(ctx context.Context) (took time.Duration) {
	began := time.Now()
	if g := s.segments.list()[0]; !s.segments.isSealed(g) || s.kept(g, began) {
		return 0
	}
	known := s.retention.safety()
	took = time.Since(began)
	retire := true // in order: a stream that ends in a segment must not begin in an older one
	for _, g := range s.segments.list() {
		if ctx.Err() != nil || !s.segments.isSealed(g) || s.kept(g, began) || !s.retention.safe(g, known) {
			return took
		}
		_, err := s.segments.removeData(g)
		if retire = retire && err == nil && s.worth(g); retire {
			err = s.retire(ctx, g, known)
		}
		if err != nil {
			if ctx.Err() == nil {
				s.settings.Logger.Error("journal cannot remove a segment", "segment", g.id, "error", err)
			}
			return took
		}
	}
	return took
}

// kept reports whether a segment stays although it may be safe. The older ones stay
// less long, so those behind it stay too. One whose data is gone is not kept.
func (s *sweeper) kept(g *seg, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings.Keep > 0 && !g.gone && g.last > now.Add(-s.settings.Keep).UnixNano()
}

// worth reports whether a safe segment's index may go too: it costs less than carrying the
// streams that only this segment names.
func (s *sweeper) worth(g *seg) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams.carrySize(g) <= g.size/2
}

// retire removes the index of a safe segment whose data is gone, when no open stream
// depends on it any more, and then has the checkpoint forget the streams that ended in it.
// In this order a crash leaves nothing that would be decoded again.
func (s *sweeper) retire(ctx context.Context, g *seg, known safety) error {
	s.mu.Lock()
	s.streams.carry(g)
	err := s.writer.sync(ctx, s.writer.appended)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	ended := make(map[*Reader][]*entry)
	err = s.segments.entries(g, func(e *entry) {
		if r := known.readers[[2]string{e.source, e.format}]; e.ended {
			ended[r] = append(ended[r], e)
		}
	})
	if err != nil {
		return err
	}
	if err := s.segments.remove(g); err != nil {
		return err
	}
	for r, list := range ended {
		var keys []string
		for _, e := range list {
			keys = append(keys, e.name())
			r.inbox.retired(e.number, g.id) // not before: a rewind may lead to g while it is there
		}
		r.sink.Forget(keys...)
	}
	return nil
}
