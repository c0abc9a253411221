package file

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// The names of rotated files and of their copies tell which belong together. That
// is never taken for the truth, which is what the files hold, but it says where to
// look: that two files of different families begin alike means nothing.

// family returns the path that a rotated file had at first, and that all files
// of its rotation have in common: x.jsonl for x.jsonl.1, x.jsonl-20260102 and
// x.jsonl.3.gz. Without an extension before it a number is part of the name.
func family(path string) string {
	path = strings.TrimSuffix(path, ".gz")
	stem := strings.TrimRight(path, "0123456789.:_TZ-")
	rest := path[len(stem):]
	if len(rest) < 2 || rest[0] != '.' && rest[0] != '-' || rest[1] < '0' || rest[1] > '9' || filepath.Ext(stem) == "" {
		return path
	}
	return stem
}

// ancestors returns the paths that path may be a rotated copy of, the nearest
// first: x.jsonl.1 and x.jsonl for x.jsonl.1.gz.
func ancestors(path string) []string {
	var out []string
	if p, ok := strings.CutSuffix(path, ".gz"); ok {
		out = append(out, p)
	}
	if p := family(path); p != path && !slices.Contains(out, p) {
		out = append(out, p)
	}
	return out
}

// stem returns what the names of a rotated file have in common at least.
func stem(name string) string {
	dots := len(name) - len(strings.TrimLeft(name, "."))
	if i := strings.IndexByte(name[dots:], '.'); i >= 0 {
		return name[:dots+i]
	}
	return name
}

// enter and leave keep the index of files with a rotated name. s.mu is held.
func (s *Source) enter(f *file) {
	if p := family(f.path); p != f.path {
		s.rotated[p] = append(s.rotated[p], f)
	}
}

func (s *Source) leave(f *file) {
	p := family(f.path)
	if p == f.path {
		return
	}
	s.rotated[p] = slices.DeleteFunc(s.rotated[p], func(o *file) bool { return o == f })
	if len(s.rotated[p]) == 0 {
		delete(s.rotated, p)
	}
}

// relative is another file of a family, as it was when it was looked at.
type relative struct {
	*file
	path  string
	kind  kind
	begun bool
	marks marks
}

// relatives returns the files that f may be a copy of.
func (s *Source) relatives(f *file) (path string, out []relative) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := family(f.path)
	all := s.rotated[p]
	if o := s.byPath[p]; o != nil && o.path == p {
		all = append(slices.Clip(all), o)
	}
	for _, o := range all {
		if o == f || o.kind == companion {
			continue
		}
		r := relative{file: o, path: o.path, kind: o.kind}
		if o.stream != nil {
			r.begun, r.marks = true, o.stream.marks
		}
		out = append(out, r)
	}
	return f.path, out
}

// relation says what a file is to the others of its family.
type relation uint8

const (
	single  relation = iota // it holds something of its own
	twin                    // it holds nothing that is not in another one
	unclear                 // one of them is being replaced
)

// compare finds out whether f is a copy of another file. A twin is looked at again
// when the other one changes: then it may hold what that has lost.
func (s *Source) compare(f *file, r io.ReaderAt, at stamp) (relation, error) {
	path, relatives := s.relatives(f)
	for _, o := range relatives {
		var has bool
		var err error
		if o.begun {
			if has, err = o.marks.in(r); err == nil && !has {
				has, err = shorter(o.marks, r, at)
			}
		} else if o.kind == transcript && slices.Contains(ancestors(path), o.path) {
			has = true
		}
		if err != nil {
			return single, err
		}
		if !has {
			continue
		}
		rel, err := s.compareWith(o, path, r, at)
		if err != nil {
			return single, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		switch rel {
		case twin:
			if !slices.Contains(s.twins[o.file], f) {
				s.twins[o.file] = append(s.twins[o.file], f)
			}
			f.fresh = false
			return twin, nil
		case unclear:
			s.push(o.file)
			s.ask(ask{path: o.path})
			return unclear, nil
		}
		return single, nil
	}
	return single, nil
}

// compareWith compares a content at path with that of a relative that it may have
// been copied from.
func (s *Source) compareWith(o relative, path string, r io.ReaderAt, at stamp) (relation, error) {
	size, err := sizeOf(r, at)
	if err != nil || size == 0 {
		return single, err
	}
	fd, err := s.open(o.path)
	if err != nil {
		return unclear, nil
	}
	defer fd.Close()
	info, err := fd.Stat()
	if err != nil {
		return unclear, nil
	}
	if id, _, _ := describe(info); id != o.id {
		return unclear, nil
	}
	var other io.ReaderAt = fd
	if o.kind == archive {
		other = newGzReader(fd, s.MaxRead)
	}
	if path != family(path) { // what is written to now has no name of a copy
		mine, err := marksAt(r, size, 1)
		if err != nil {
			return single, err
		}
		if its, err := marksAt(other, size, 1); err == nil && its == mine {
			return twin, nil
		}
	}
	if o.begun && o.kind == transcript {
		if intact, err := o.marks.in(fd); err == nil && !intact {
			return unclear, nil
		}
	}
	return single, nil
}

// isCopy reports whether f has the name of a copy of g.
func (s *Source) isCopy(f, g *file) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.path != family(f.path) && f.path != g.path
}

// shorter reports whether a content may be an earlier state of the one with the
// marks: it ends before them, and does not begin in another way.
func shorter(m marks, r io.ReaderAt, at stamp) (bool, error) {
	size, err := sizeOf(r, at)
	if err != nil || size >= m.off {
		return false, err
	}
	if size < int64(m.headLen) {
		return true, nil // not to be seen from the marks
	}
	now, err := marksAt(r, 0, m.headLen)
	return now.head == m.head, err
}

// sizeOf returns the size of a content. For an archive that means to unpack it.
func sizeOf(r io.ReaderAt, at stamp) (int64, error) {
	if g, ok := r.(*gzReader); ok {
		return g.size()
	}
	return at.size, nil
}
