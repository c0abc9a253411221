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
//
// The answer hangs on what the others of the family have, so that only one of a
// family is identified at a time, and a stream begins only when no other one lost
// its file meanwhile.
func (s *Source) identify(f *file, r io.ReaderAt, at stamp, final bool) (verdict, error) {
	if err := s.claim(f, r, at); err != nil || f.stream != nil {
		return verdict{}, err
	}
	s.mu.Lock()
	s.settle(f) // it has none that it could keep
	p, guest := family(f.path), f.guest
	ghosts, ok := s.borrowGhosts(f, p)
	if ok {
		s.trying[p] = false
	}
	s.mu.Unlock()
	if !ok {
		return verdict{after: shortly}, nil
	}
	known, err := s.recognize(f, r, ghosts, guest, final)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range ghosts {
		s.putDown(g, verdict{})
	}
	upset := s.trying[p]
	delete(s.trying, p)
	switch {
	case err != nil || f.stream != nil:
		return verdict{}, err
	case upset || !known:
		return verdict{after: shortly}, nil
	case guest:
		s.drop(f)
	}
	return verdict{}, nil
}

// recognize does it, once nobody else of the family is at it. known is false while
// it cannot be said.
func (s *Source) recognize(f *file, r io.ReaderAt, ghosts []*file, guest, final bool) (known bool, err error) {
	// Whatever lost its file up to now was copied before: the copy is whole by now, and
	// would not have been when the caller looked.
	info, err := f.fd.Stat()
	if err != nil {
		return false, err
	}
	_, at, _ := describe(info)
	if !s.named(f) {
		return false, nil
	}
	if f.kind == transcript {
		r = io.NewSectionReader(r, 0, at.size) // what comes later was not compared
	}
	if err := s.adopt(f, ghosts, r, at); err != nil || f.stream != nil || guest {
		return true, err
	}
	switch rel, err := s.compare(f, r, at); {
	case err != nil || rel == unclear:
		return false, err
	case rel == twin:
		return true, nil
	}
	return true, s.begin(f, r, at, final)
}

// named reports whether f has the name that says what it may be a copy of. Else it
// is asked what became of it. A ghost has none any more.
func (s *Source) named(f *file) bool {
	s.mu.Lock()
	path, ghost := f.path, f.ghost
	s.mu.Unlock()
	if x, ok := s.stat(path); ghost || ok && x.id == f.id {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ask(ask{file: f})
	return false
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
// not possible, there may be more, or another one is identified. s.mu is held.
func (s *Source) borrowGhosts(f *file, family string) (ghosts []*file, ok bool) {
	if _, taken := s.trying[family]; taken || s.pending[family] > 0 {
		return nil, false
	}
	for _, g := range s.ghosts[family] {
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

// adopt gives f the stream of a ghost when it holds all that was read of it: an
// archive, a copy, or what was written anew with the same beginning. What holds
// less is taken only for what it was seen to be while the ghost had its file: that
// it begins alike is no proof, and would lose what it goes on with.
func (s *Source) adopt(f *file, ghosts []*file, r io.ReaderAt, at stamp) error {
	for _, g := range ghosts {
		if g.kind == companion {
			continue
		}
		spent := f.part != nil && f.part.stream == g.stream && f.part.at == at && f.part.size < g.stream.marks.off
		if !spent {
			is, err := g.stream.marks.in(r)
			if err != nil {
				return err
			}
			if !is {
				continue
			}
		}
		s.mu.Lock()
		st := g.stream
		s.Logger.Info("stream goes on in another file", "source", s.Name, "stream", st.key, "from", g.path, "path", f.path)
		s.exorcise(g)
		g.stream = nil
		f.stream, st.file, f.part = st, f, nil
		if st.done = (stamp{}); spent {
			st.done = at
		}
		s.mu.Unlock()
		return nil
	}
	return nil
}

// begin gives f a stream of its own, once there is a line to name it by.
func (s *Source) begin(f *file, r io.ReaderAt, at stamp, final bool) error {
	head, whole, err := firstLine(r)
	if err != nil {
		return err
	}
	if !whole && !final || len(head) == 0 {
		s.mu.Lock()
		f.partial, f.fresh = len(head) > 0, false
		s.mu.Unlock()
		return nil
	}
	st := &stream{anchor: at.mtime, rewind: -1}
	if f.early && s.StartAt == End {
		if st.place.base, err = sizeOf(r, at); err == nil && f.kind != archive {
			st.place.base, err = lastLine(r, at.size)
		}
		if err != nil {
			return err
		}
	}
	st.place = st.place.at(st.place.base)
	if st.marks, err = marksAt(r, st.place.base, len(head)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trying[family(f.path)] {
		return nil
	}
	st.key = s.newKey(f.id, sumOf(head))
	s.Logger.Debug("new stream", "source", s.Name, "stream", st.key, "path", f.path)
	f.stream, st.file, f.part = st, f, nil
	return nil
}

// firstLine returns what a content begins with, up to its first newline. It is
// whole when there is one, or when the line is too long for a mark.
func firstLine(r io.ReaderAt) (line []byte, whole bool, err error) {
	head := make([]byte, markLen)
	n, eof, err := readAt(r, head, 0)
	if i := bytes.IndexByte(head[:n], '\n'); i >= 0 {
		return head[:i+1], true, err
	}
	return head[:n], !eof, err
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
