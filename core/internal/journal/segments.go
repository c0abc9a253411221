package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/earshot-dev/earshot/core/internal/segment"
)

const (
	extData  = "seg"
	extIndex = "idx"
)

// seg is one segment of the journal. Its fields are guarded by the journal's lock, but
// for out.
type seg struct {
	id   uint64
	seed uint32

	size     int64    // bytes that are synced, and that readers may read
	planned  int64    // with those in memory
	contents contents // until it is sealed
	first    int64    // time of its first record, Unix ns; 0: none yet
	last     int64
	sealed   bool  // it has an index, and grows no more
	gone     bool  // its data was removed; only the index is left
	indexed  int64 // size of the index
	version  int   // counts the files that its data was copied to
	damaged  int64 // up to where damage was reported

	// Of the writer's goroutine, and of seal.
	out *segment.Writer
}

// segments are the segments of a journal, and their files.
type segments struct {
	dir    segment.Dir
	logger *slog.Logger

	mu        *lock
	all       []*seg // oldest first; the last one grows
	corrupt   int64
	truncated int64

	sealing  sync.Mutex // held while segments are sealed and their files are closed
	removing sync.Mutex // held while a segment's data is removed
}

func (s *segments) new(id uint64) *seg {
	return &seg{id: id, seed: seedOf(id), contents: make(contents)}
}

// newest returns the segment that grows. The lock is held.
func (s *segments) newest() *seg { return s.all[len(s.all)-1] }

// roll begins a new segment. The lock is held.
func (s *segments) roll() *seg {
	g := s.new(s.newest().id + 1)
	s.all = append(s.all, g)
	return g
}

// list returns a copy of the list of segments.
func (s *segments) list() []*seg {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// from returns the oldest segment that has at least that number; nil: there is none.
func (s *segments) from(id uint64) *seg {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.all, func(g *seg) bool { return g.id >= id }); i >= 0 {
		return s.all[i]
	}
	return nil
}

func (s *segments) isSealed(g *seg) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return g.sealed
}

// each visits the entries of every segment, those that begin meanwhile included: a stream may
// have been carried there from one that was removed before it was visited.
func (s *segments) each(visit func(*entry)) error {
	for g := s.from(0); g != nil; g = s.from(g.id + 1) {
		if err := s.entries(g, visit); err != nil && !missing(err) {
			return err
		}
	}
	return nil
}

// entries visits the streams of a segment: from its index, or from memory. The entries
// are copies. The index may have been removed meanwhile (missing).
func (s *segments) entries(g *seg, visit func(*entry)) error {
	s.mu.Lock()
	if g.sealed {
		gone := g.gone
		s.mu.Unlock()
		_, err := s.readIndex(g, visit)
		if gone && errors.Is(err, errIndex) {
			return nil // there is no more of it than was visited
		}
		return err
	}
	list := make([]entry, 0, len(g.contents))
	for _, e := range g.contents {
		list = append(list, *e)
	}
	s.mu.Unlock()
	for i := range list {
		visit(&list[i])
	}
	return nil
}

// seal ends a segment: it gets an index. Its data is synced.
func (s *segments) seal(g *seg) error {
	n, err := s.writeIndex(g)
	if err != nil {
		return err
	}
	s.mu.Lock()
	g.sealed, g.indexed, g.contents = true, n, nil
	s.mu.announce() // to the readers that wait for more of it
	s.mu.Unlock()
	return nil
}

// sealBefore seals the segments before g, which grow no more.
func (s *segments) sealBefore(g *seg) error {
	s.sealing.Lock()
	defer s.sealing.Unlock()
	for _, old := range s.list() {
		if old == g {
			return nil
		}
		if s.isSealed(old) {
			continue
		}
		if err := s.seal(old); err != nil {
			return err
		}
		if old.out != nil {
			_ = old.out.Close()
			old.out = nil
		}
	}
	return nil
}

// close closes the newest segment's file. It is not sealed: the next process continues it.
func (s *segments) close() {
	s.sealing.Lock()
	defer s.sealing.Unlock()
	for _, g := range s.list() {
		if g.out != nil {
			_ = g.out.Close()
		}
	}
}

// removeData removes a segment's data, and reports whether it was there; the index stays.
func (s *segments) removeData(g *seg) (removed bool, err error) {
	s.removing.Lock()
	defer s.removing.Unlock()
	s.mu.Lock()
	gone := g.gone
	s.mu.Unlock()
	if gone {
		return false, nil
	}
	if err := s.dir.Remove(s.dir.File(g.id, extData)); err != nil {
		return false, err
	}
	s.mu.Lock()
	g.gone = true
	s.mu.Unlock()
	return true, nil
}

// isGone reports whether a segment's data was removed. It waits for a removal: the file is gone
// before that is done.
func (s *segments) isGone(g *seg) bool {
	s.removing.Lock()
	defer s.removing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return g.gone
}

// remove removes the index of a segment whose data is gone, and so the segment.
func (s *segments) remove(g *seg) error {
	if err := s.dir.Remove(s.dir.File(g.id, extIndex)); err != nil {
		return err
	}
	s.mu.Lock()
	s.all = slices.DeleteFunc(slices.Clone(s.all), func(x *seg) bool { return x == g })
	s.mu.Unlock()
	return nil
}

// addDamage counts damaged bytes of a segment, the first time that they are found.
func (s *segments) addDamage(g *seg, off, n int64) {
	s.mu.Lock()
	first := off >= g.damaged
	if first {
		g.damaged = off + n
		s.corrupt += n
	}
	s.mu.Unlock()
	if first {
		s.logger.Error("journal is damaged", "segment", g.id, "offset", off, "bytes", n)
	}
}

// writeIndex writes the entries of a segment, and returns the size of the index.
func (s *segments) writeIndex(g *seg) (int64, error) {
	var buf []byte
	for _, e := range g.contents {
		buf = appendEntry(buf, kindEntry, g.seed, e, 0)
	}
	buf = appendRecord(buf, g.seed, &record{kind: kindTrailer, stream: uint64(len(g.contents)), pos: g.size, at: g.last})
	err := s.dir.Replace(s.dir.File(g.id, extIndex), func(f segment.File) error {
		_, err := f.WriteAt(buf, 0)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("index of segment %d: %w", g.id, err)
	}
	return int64(len(buf)), nil
}

// errIndex means that an index is damaged.
var errIndex = errors.New("index is damaged")

// trailer is the last record of an index.
type trailer struct {
	size  int64 // of the segment's data
	last  int64 // time of its last record
	bytes int64 // of the index
}

// readIndex visits the entries of an index, also those before a damaged part.
func (s *segments) readIndex(g *seg, visit func(*entry)) (t trailer, err error) {
	f, err := s.dir.Disk.Read(s.dir.File(g.id, extIndex))
	if err != nil {
		return t, err
	}
	defer f.Close()
	if t.bytes, err = f.Size(); err != nil {
		return t, err
	}
	n, whole := uint64(0), false
	_, _, err = scan(f, g.seed, t.bytes, func(r *record) error {
		if r.kind == kindTrailer {
			t.size, t.last, whole = r.pos, r.at, r.stream == n
			return nil
		}
		e := new(entry)
		if r.kind == kindEntry && e.parse(r) == nil {
			n++
			visit(e)
		}
		return nil
	})
	if err == nil && !whole {
		err = errIndex
	}
	return t, err
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// load finds the segments of earlier processes, and calls restore with the entries of one
// at a time, the oldest first. It reads data only where an index is missing: of the newest
// segment, and after a crash.
func (s *segments) load(restore func(*seg, contents)) error {
	data, err := s.dir.List(extData)
	if err != nil {
		return err
	}
	indexes, err := s.dir.List(extIndex)
	if err != nil {
		return err
	}
	files := make(map[uint64]struct{ data, index bool })
	for _, f := range data {
		files[f.ID] = struct{ data, index bool }{data: true}
	}
	for _, f := range indexes {
		files[f.ID] = struct{ data, index bool }{files[f.ID].data, true}
	}
	next := uint64(1)
	ids := slices.Sorted(maps.Keys(files))
	for i, id := range ids {
		next = id + 1
		g := s.new(id)
		found, err := s.loadSegment(g, files[id].data, files[id].index, i == len(ids)-1)
		if err != nil {
			return fmt.Errorf("segment %d: %w", id, err)
		}
		if found != nil {
			restore(g, found)
			s.all = append(s.all, g)
		}
	}
	if n := len(s.all); n == 0 || s.all[n-1].sealed {
		s.all = append(s.all, s.new(next))
	}
	return nil
}

// loadSegment returns the entries of a segment; nil: it has no record and is no more.
func (s *segments) loadSegment(g *seg, data, index, newest bool) (contents, error) {
	if !index {
		return s.recover(g, newest)
	}
	found := make(contents)
	t, err := s.readIndex(g, func(e *entry) { found[e.number] = e })
	switch {
	case err == nil:
		g.size, g.last, g.indexed, g.sealed, g.gone = t.size, t.last, t.bytes, true, !data
	case !errors.Is(err, errIndex):
		return nil, err
	case data:
		return s.recover(g, newest)
	default: // the entries that can still be read are reported as dropped
		s.logger.Error("journal index is damaged, and its segment is gone", "segment", g.id)
		g.sealed, g.gone, g.indexed = true, true, t.bytes
	}
	return found, nil
}

// recover reads a segment that has no index, and cuts off the bytes that were being written
// when the process or the machine died: no reader has seen them, because they were not synced.
func (s *segments) recover(g *seg, newest bool) (contents, error) {
	var unnamed int // records of streams that a corrupt record named
	var lost int64
	w, cut, err := s.dir.Recover(g.id, extData, func(in io.ReaderAt, size int64) (end int64, err error) {
		end, lost, err = scan(in, g.seed, size, func(r *record) error {
			if !g.contents.add(r) {
				unnamed++
			}
			if g.first == 0 {
				g.first = r.at
			}
			g.last = max(g.last, r.at)
			return nil
		})
		return end, err
	})
	if err != nil {
		return nil, err
	}
	if cut > 0 {
		s.truncated += cut
		s.logger.Info("journal: cut an unfinished end", "segment", g.id, "bytes", cut)
	}
	if w.Size() == 0 {
		if err := errors.Join(w.Close(), s.dir.Disk.Remove(s.dir.File(g.id, extData))); err != nil || !newest {
			return nil, err
		}
		return g.contents, nil // the newest one's number is used again
	}
	g.size, g.planned, g.out = w.Size(), w.Size(), w
	found := g.contents
	if !newest || lost > 0 || unnamed > 0 {
		g.out = nil
		err = errors.Join(w.Close(), s.seal(g))
	}
	return found, err
}
