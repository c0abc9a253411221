package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// room makes room for n more bytes before segment g is written, or returns errFull.
func (j *Journal) room(g *segment, n int64) error {
	for {
		over, err := j.over(n)
		if over == "" || err != nil {
			return err
		}
		if j.release(g) {
			continue
		}
		old := j.oldest(g)
		switch {
		case old == nil && over == overSize: // there is nothing but what comes in now
			return nil
		case old == nil || j.settings.WhenFull == Backpressure:
			return fmt.Errorf("%w: %s", errFull, over)
		}
		if err := j.giveUp(old, over); err != nil {
			return err
		}
	}
}

const (
	overSize = "max_size"
	overDisk = "min_free_disk"
	overAge  = "max_age"
)

// over returns which limit n more bytes would exceed.
func (j *Journal) over(n int64) (string, error) {
	if j.settings.MinFree > 0 {
		free, err := j.settings.disk.free(j.settings.Dir)
		if err != nil {
			return "", err
		}
		if free-n < j.settings.MinFree {
			return overDisk, nil
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, g := range j.segments {
		if !g.gone {
			n += g.size
		}
	}
	if n > j.settings.MaxSize {
		return overSize, nil
	}
	return "", nil
}

// oldest returns the oldest segment before g that has data.
func (j *Journal) oldest(g *segment) *segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.segments {
		if s == g {
			break
		}
		if s.sealed && !s.gone {
			return s
		}
	}
	return nil
}

// giveUp removes a segment's data; its index stays, and tells what is lost.
func (j *Journal) giveUp(g *segment, why string) error {
	j.mu.Lock()
	size, gone := g.size, g.gone
	j.mu.Unlock()
	if gone {
		return nil
	}
	if err := j.removeData(g); err != nil {
		return err
	}
	j.mu.Lock()
	j.stats.GivenUp += size
	j.mu.Unlock()
	j.settings.Logger.Warn("journal gave up a segment; what was not delivered is counted as dropped", "segment", g.id, "bytes", size, "limit", why)
	return nil
}

func (j *Journal) removeData(g *segment) error {
	j.mu.Lock()
	gone := g.gone
	j.mu.Unlock()
	if gone {
		return nil
	}
	d := j.settings.disk
	if err := d.remove(g.path); err != nil && !missing(err) {
		return err
	}
	if err := d.syncDir(j.settings.Dir); err != nil {
		return err
	}
	j.mu.Lock()
	g.gone = true
	j.announce()
	j.mu.Unlock()
	return nil
}

// release removes the data of segments before g in which everything is safe, and
// reports whether there were any.
func (j *Journal) release(g *segment) (freed bool) {
	known := j.safety()
	for _, s := range j.list() {
		if s == g {
			break
		}
		j.mu.Lock()
		candidate := s.sealed && !s.gone
		j.mu.Unlock()
		if !candidate {
			continue
		}
		if !j.safe(s, known) {
			break
		}
		if err := j.removeData(s); err != nil {
			j.settings.Logger.Error("journal cannot remove a segment", "segment", s.id, "error", err)
			break
		}
		freed = true
	}
	return freed
}

// safety is what the checkpoint knows of each stream, by number, and who reads
// them.
type safety struct {
	known   map[uint64]source.Known
	readers map[[2]string]*Reader
}

func (j *Journal) safety() safety {
	out := safety{make(map[uint64]source.Known), make(map[[2]string]*Reader)}
	j.mu.Lock()
	readers := append([]*Reader(nil), j.readers...)
	j.mu.Unlock()
	asked := make(map[string]bool) // Known is of a source, whatever the format
	for _, r := range readers {
		out.readers[[2]string{r.source, r.format}] = r
		if asked[r.source] {
			continue
		}
		asked[r.source] = true
		for _, k := range r.sink.Known() {
			if n, ok := numberOf(k.Key); ok {
				k.State = nil
				out.known[n] = k
			}
		}
	}
	return out
}

// safe reports whether a restart needs nothing of a segment.
func (j *Journal) safe(g *segment, s safety) bool {
	all := true
	err := j.entries(g, func(e *entry) {
		if !all || s.readers[[2]string{e.source, e.format}] == nil {
			all = false
			return
		}
		k, ok := s.known[e.number]
		all = e.safe(k, ok) || !e.ended && e.to == 0 // nothing but a mark
	})
	return all && err == nil
}

// tidy removes segments that are safe or too old until ctx ends.
func (j *Journal) tidy(ctx context.Context) {
	wait := j.settings.sweep
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		took := j.sweep(ctx)
		j.age(time.Now())
		wait = max(j.settings.sweep, 20*took)
	}
}

// age gives up segments that are too old, and ends one that grows slowly, so that
// it can become too old.
func (j *Journal) age(now time.Time) {
	limit := now.Add(-j.settings.MaxAge).UnixNano()
	j.mu.Lock()
	g := j.segments[len(j.segments)-1]
	stale := g.planned > 0 && j.pending == 0 && g.first < now.Add(-j.settings.MaxAge/4).UnixNano()
	if stale {
		g = j.roll()
	}
	j.mu.Unlock()
	if stale {
		if err := j.sealBefore(g); err != nil { // the flusher tries again
			j.settings.Logger.Warn("journal cannot seal a segment", "error", err)
		}
	}
	for _, g := range j.list() {
		j.mu.Lock()
		old := g.sealed && !g.gone && g.last < limit
		j.mu.Unlock()
		if !old {
			continue
		}
		if err := j.giveUp(g, overAge); err != nil {
			j.settings.Logger.Error("journal cannot remove a segment", "segment", g.id, "error", err)
		}
	}
}

// sweep removes segments in which everything is safe, oldest first. It returns how
// long the checkpoint took to say what is safe: with many streams it is not to be
// asked all the time.
func (j *Journal) sweep(ctx context.Context) (took time.Duration) {
	began := time.Now()
	if g := j.list()[0]; !j.isSealed(g) || j.kept(g, began) {
		return 0
	}
	known := j.safety()
	took = time.Since(began)
	retire := true // in order: what a segment ends, no older one may begin
	for _, g := range j.list() {
		if ctx.Err() != nil || !j.isSealed(g) || j.kept(g, began) || !j.safe(g, known) {
			return took
		}
		err := j.removeData(g)
		if retire = retire && err == nil && j.worth(g); retire {
			err = j.retire(ctx, g, known)
		}
		if err != nil {
			if ctx.Err() == nil {
				j.settings.Logger.Error("journal cannot remove a segment", "segment", g.id, "error", err)
			}
			return took
		}
	}
	return took
}

// kept reports whether a segment stays although it may be safe. The older ones stay
// less long, so those behind it stay too. What is gone already is not kept.
func (j *Journal) kept(g *segment, now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.settings.Keep > 0 && !g.gone && g.last > now.Add(-j.settings.Keep).UnixNano()
}

func (j *Journal) isSealed(g *segment) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return g.sealed
}

// worth reports whether a safe segment's index may go too: streams that go on and
// that no newer segment knows have then to be written again.
func (j *Journal) worth(g *segment) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	var again int64
	for _, st := range j.open {
		if st.segment == g {
			again += headSize + int64(len(st.source)+len(st.format)+len(st.key)+len(st.origin)+len(st.state))
		}
	}
	return again <= g.size/2
}

// retire removes what is left of a safe segment whose data is gone: when nothing
// depends on it any more, its index, and then the memory of streams that ended in
// it. In this order a crash leaves nothing that would be decoded again.
func (j *Journal) retire(ctx context.Context, g *segment, s safety) error {
	// Streams that go on and that no newer segment knows.
	j.mu.Lock()
	for _, st := range j.open {
		if st.segment == g {
			j.put(st, headSize, func(dst []byte, _ uint32, _ int64) []byte { return dst })
		}
	}
	upto := j.appended
	j.mu.Unlock()
	if err := j.synced(ctx, upto); err != nil {
		return err
	}
	over := make(map[*Reader][]string)
	err := j.entries(g, func(e *entry) {
		if r := s.readers[[2]string{e.source, e.format}]; e.ended {
			over[r] = append(over[r], e.name())
			r.retired(e.number, g.id)
		}
	})
	if err != nil {
		return err
	}
	d := j.settings.disk
	if err := d.remove(g.indexPath()); err != nil && !missing(err) {
		return err
	}
	if err := d.syncDir(j.settings.Dir); err != nil {
		return err
	}
	j.mu.Lock()
	for i, x := range j.segments {
		if x == g {
			j.segments = append(j.segments[:i:i], j.segments[i+1:]...)
			break
		}
	}
	j.announce()
	j.mu.Unlock()
	for r, keys := range over {
		r.sink.Forget(keys...)
	}
	return nil
}

// synced returns when what was appended up to there is durable.
func (j *Journal) synced(ctx context.Context, upto int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.urgent = max(j.urgent, upto)
	j.hurry()
	for j.durable < upto {
		if err := j.await(ctx); err != nil {
			return err
		}
	}
	return nil
}
