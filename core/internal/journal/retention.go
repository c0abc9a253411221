package journal

import (
	"fmt"
	"slices"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// retention decides which segments can go: those in which everything is safe, and, when a
// limit is reached, the oldest.
type retention struct {
	settings Settings
	segments *segments

	mu      *lock
	readers []*Reader
	evicted int64
}

// add adds a reader: its sink has the positions that are safe.
func (r *retention) add(reader *Reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers = append(r.readers, reader)
}

func (r *retention) remove(reader *Reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers = slices.DeleteFunc(r.readers, func(x *Reader) bool { return x == reader })
}

// room makes room for n more bytes before segment g is written, or returns errFull.
func (r *retention) room(g *seg, n int64) error {
	for {
		over, err := r.over(n)
		if over == "" || err != nil {
			return err
		}
		if r.release(g) {
			continue
		}
		old := r.oldest(g)
		switch {
		case old == nil && over == overSize: // the new frames alone are over the limit
			return nil
		case old == nil || r.settings.WhenFull == Backpressure:
			return fmt.Errorf("%w: %s", errFull, over)
		}
		if err := r.evict(old, over); err != nil {
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
func (r *retention) over(n int64) (string, error) {
	if r.settings.MinFree > 0 {
		free, err := r.segments.dir.Disk.Free(r.segments.dir.Path)
		if err != nil {
			return "", err
		}
		if free-n < r.settings.MinFree {
			return overDisk, nil
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.segments.all {
		if !g.gone {
			n += g.size
		}
	}
	if n > r.settings.MaxSize {
		return overSize, nil
	}
	return "", nil
}

// oldest returns the oldest segment before g that has data.
func (r *retention) oldest(g *seg) *seg {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.segments.all {
		if s == g {
			break
		}
		if s.sealed && !s.gone {
			return s
		}
	}
	return nil
}

// evict removes a segment's data. Its index stays, for the readers to count the loss.
func (r *retention) evict(g *seg, why string) error {
	r.mu.Lock()
	size, gone := g.size, g.gone
	r.mu.Unlock()
	if gone {
		return nil
	}
	if err := r.segments.removeData(g); err != nil {
		return err
	}
	r.mu.Lock()
	r.evicted += size
	r.mu.Unlock()
	r.settings.Logger.Warn("journal evicted a segment; its frames that were not delivered are counted as dropped", "segment", g.id, "bytes", size, "limit", why)
	return nil
}

// release removes the data of segments before g in which everything is safe, and
// reports whether there were any.
func (r *retention) release(g *seg) (freed bool) {
	known := r.safety()
	for _, s := range r.segments.list() {
		if s == g {
			break
		}
		r.mu.Lock()
		candidate := s.sealed && !s.gone
		r.mu.Unlock()
		if !candidate {
			continue
		}
		if !r.safe(s, known) {
			break
		}
		if err := r.segments.removeData(s); err != nil {
			r.settings.Logger.Error("journal cannot remove a segment", "segment", s.id, "error", err)
			break
		}
		freed = true
	}
	return freed
}

// safety has the checkpoint's position of each stream, by number, and the readers.
type safety struct {
	known   map[uint64]source.Known
	readers map[[2]string]*Reader
}

func (r *retention) safety() safety {
	out := safety{make(map[uint64]source.Known), make(map[[2]string]*Reader)}
	r.mu.Lock()
	readers := slices.Clone(r.readers)
	r.mu.Unlock()
	asked := make(map[string]bool) // Known has the streams of a source in all formats
	for _, reader := range readers {
		out.readers[[2]string{reader.source, reader.format}] = reader
		if asked[reader.source] {
			continue
		}
		asked[reader.source] = true
		for _, k := range reader.sink.Known() {
			if n, ok := numberOf(k.Key); ok {
				k.State = nil
				out.known[n] = k
			}
		}
	}
	return out
}

// safe reports whether a restart needs nothing of a segment.
func (r *retention) safe(g *seg, s safety) bool {
	all := true
	err := r.segments.entries(g, func(e *entry) {
		if !all || s.readers[[2]string{e.source, e.format}] == nil {
			all = false
			return
		}
		k, ok := s.known[e.number]
		all = e.safe(k, ok) || !e.ended && e.to == 0 // nothing but a mark
	})
	return all && err == nil
}
