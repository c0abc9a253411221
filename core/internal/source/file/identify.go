package file

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// errReplaced says that a content is not the one that was read before.
var errReplaced = errors.New("another content")

// shortly is how long a file waits for others of its family.
const shortly = 20 * time.Millisecond

// identify finds the stream that the content of f belongs to: one that was read
// from it in an earlier run, one whose own file is gone, or a new one. Until it
// can be said, f.stream stays nil. at is the stamp of the file, and final says that
// it has all the content that it will have.
func (s *Source) identify(f *file, r io.ReaderAt, at stamp, final bool) (verdict, error) {
	if err := s.claim(f, r, at); err != nil || f.stream != nil {
		return verdict{}, err
	}
	s.mu.Lock()
	s.settle(f) // it has none that it could keep
	ghosts, ok := s.borrowGhosts(f)
	made := s.ghostsMade
	s.mu.Unlock()
	if !ok {
		return verdict{after: shortly}, nil
	}
	err := s.adopt(f, ghosts, r, at)
	s.mu.Lock()
	for _, g := range ghosts {
		s.putDown(g, verdict{})
	}
	guest := f.guest
	if err == nil && f.stream == nil && guest {
		s.drop(f)
	}
	s.mu.Unlock()
	if err != nil || f.stream != nil || guest {
		return verdict{}, err
	}
	switch rel, err := s.compare(f, r, at); {
	case err != nil || rel == twin:
		return verdict{}, err
	case rel == unclear:
		return verdict{after: shortly}, nil
	}
	if ok, err := s.begin(f, r, at, final, made); err != nil || ok {
		return verdict{}, err
	}
	return verdict{after: shortly}, nil
}

// claim gives f the stream of an earlier run that was read from it. Those that
// were as well, but have another content, become ghosts.
func (s *Source) claim(f *file, r io.ReaderAt, at stamp) error {
	s.mu.Lock()
	known := f.known
	s.mu.Unlock()
	if len(known) == 0 {
		return nil
	}
	var mine *stream
	for _, st := range known {
		is, err := st.done == at && at != stamp{}, error(nil)
		if !is {
			is, err = st.marks.in(r)
		}
		if err != nil {
			return err
		}
		if is {
			mine = st
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.known = nil
	for _, st := range known {
		if st != mine {
			s.makeGhost(&file{path: f.path, id: f.id, kind: f.kind, stream: st}, 0)
		}
	}
	if mine != nil {
		f.stream, mine.file = mine, f
	}
	s.settle(f)
	return nil
}

// borrowGhosts takes up the ghosts of the family of f. ok is false while that is
// not possible, or there may be more. s.mu is held.
func (s *Source) borrowGhosts(f *file) (ghosts []*file, ok bool) {
	p := family(f.path)
	if s.pending[p] > 0 {
		return nil, false
	}
	for _, g := range s.ghosts[p] {
		if g.stream == nil || g == f {
			continue
		}
		if g.sched != idle {
			return nil, false
		}
		ghosts = append(ghosts, g)
	}
	for _, g := range ghosts {
		s.takeUp(g)
	}
	slices.SortFunc(ghosts, func(a, b *file) int { return cmp.Compare(b.stream.marks.off, a.stream.marks.off) })
	return ghosts, true
}

// adopt gives f the stream of a ghost when it has the same content: an archive, a
// copy, or what was written anew with the same beginning.
func (s *Source) adopt(f *file, ghosts []*file, r io.ReaderAt, at stamp) error {
	for _, g := range ghosts {
		if g.kind == companion {
			continue
		}
		is, err := g.stream.marks.in(r)
		if err != nil {
			return err
		}
		spent := false
		if !is && s.isCopy(f, g) && (at.size >= int64(g.stream.marks.headLen) || f.kind == archive) {
			spent, err = shorter(g.stream.marks, r, at)
		}
		if err != nil {
			return err
		}
		if !is && !spent {
			continue
		}
		s.mu.Lock()
		st := g.stream
		s.Logger.Info("stream goes on in another file", "source", s.Name, "stream", st.key, "from", g.path, "path", f.path)
		s.exorcise(g)
		g.stream = nil
		f.stream, st.file = st, f
		if st.done = (stamp{}); spent {
			st.done = at
		}
		s.mu.Unlock()
		return nil
	}
	return nil
}

// begin gives f a stream of its own, once there is a line to name it by. It does
// not when there were other ghosts than those that f was compared with.
func (s *Source) begin(f *file, r io.ReaderAt, at stamp, final bool, ghosts int) (ok bool, err error) {
	head := make([]byte, markLen)
	n, eof, err := readAt(r, head, 0)
	if err != nil {
		return false, err
	}
	head = head[:n]
	if i := bytes.IndexByte(head, '\n'); i >= 0 {
		head = head[:i+1]
	} else if eof && !final || n == 0 {
		s.mu.Lock()
		f.partial, f.fresh = n > 0, false
		s.mu.Unlock()
		return true, nil
	}
	st := &stream{anchor: at.mtime, rewind: -1}
	if f.early && s.StartAt == End {
		if st.place.base, err = sizeOf(r, at); err == nil && f.kind != archive {
			st.place.base, err = lastLine(r, at.size)
		}
		if err != nil {
			return false, err
		}
	}
	st.place = st.place.at(st.place.base)
	if st.marks, err = marksAt(r, st.place.base, len(head)); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ghostsMade != ghosts || s.pending[family(f.path)] > 0 {
		return false, nil
	}
	st.key = s.newKey(f.id, sumOf(head))
	s.Logger.Debug("new stream", "source", s.Name, "stream", st.key, "path", f.path)
	f.stream, st.file = st, f
	return true, nil
}

// newKey returns a key that depends on nothing but the file: the same after a
// restart that remembers nothing of it. s.mu is held.
func (s *Source) newKey(id inode, first sum) string {
	key := fmt.Sprintf("%x-%x-%016x", id.dev, id.ino, uint64(first))
	for n := 2; ; n++ {
		if _, taken := s.keys[key]; !taken {
			s.keys[key] = struct{}{}
			return key
		}
		key = fmt.Sprintf("%x-%x-%016x-%d", id.dev, id.ino, uint64(first), n)
	}
}

// lastLine returns where the last line of the first size bytes begins: behind the
// last newline.
func lastLine(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for end := size; end > 0; {
		b := buf[:min(end, int64(len(buf)))]
		n, _, err := readAt(r, b, end-int64(len(b)))
		if err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(b[:n], '\n'); i >= 0 {
			return end - int64(len(b)) + int64(i) + 1, nil
		}
		end -= int64(len(b))
	}
	return 0, nil
}
