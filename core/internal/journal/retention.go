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

// room makes room for n more bytes, or returns errFull.
func (r *retention) room(n int64) error {
	for {
		over, err := r.over(n)
		if over == "" {
			return err
		}
		if r.release() {
			continue
		}
		old := r.oldest()
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

// oldest returns the oldest sealed segment that has data.
func (r *retention) oldest() *seg {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.segments.all {
		if s.sealed && !s.gone {
			return s
		}
	}
	return nil
}

// evict removes a segment's data. Its index stays, for the readers to count the loss.
func (r *retention) evict(g *seg, why string) error {
	removed, err := r.segments.removeData(g)
	if err != nil || !removed {
		return err
	}
	r.mu.Lock()
	size := g.size
	r.evicted += size
	r.mu.Unlock()
	r.settings.Logger.Warn("journal evicted a segment; its frames that were not delivered are counted as dropped", "segment", g.id, "bytes", size, "limit", why)
	return nil
}

// release removes the data of the oldest segments, while everything in them is safe, and
// reports whether there were any.
func (r *retention) release() (freed bool) {
	known := r.safety()
	for _, s := range r.segments.list() {
		r.mu.Lock()
		candidate := s.sealed && !s.gone
		r.mu.Unlock()
		if !candidate {
			continue
		}
		if !r.safe(s, known) {
			return freed
		}
		if _, err := r.segments.removeData(s); err != nil {
			r.settings.Logger.Error("journal cannot remove a segment", "segment", s.id, "error", err)
			return freed
		}
		freed = true
	}
	return freed
}

// safety has the checkpoint's position of each stream, by number, and the readers.
type safety struct {
	known   checkpoint
	readers map[[2]string]*Reader
}

func (r *retention) safety() safety {
	out := safety{make(checkpoint), make(map[[2]string]*Reader)}
	sinks := make(map[string]source.Sink) // that of one format: it knows the streams of a source in all of them
	r.mu.Lock()
	for _, reader := range r.readers {
		out.readers[[2]string{reader.source, reader.format}] = reader
		sinks[reader.source] = reader.sink
	}
	r.mu.Unlock()
	for _, sink := range sinks {
		out.known.add(sink.Known())
	}
	return out
}

// safe reports whether a restart needs nothing of a segment.
func (r *retention) safe(g *seg, s safety) bool {
	all := true
	err := r.segments.entries(g, func(e *entry) {
		k, ok := s.known[e.number]
		markOnly := !e.ended && e.to == 0
		all = all && s.readers[[2]string{e.source, e.format}] != nil && (markOnly || e.safe(k, ok))
	})
	return all && err == nil
}
