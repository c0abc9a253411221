package file

import (
	"errors"
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

// members returns the files of a family that are there. s.mu is held.
func (s *Source) members(family string) []*file {
	all := s.rotated[family]
	if f := s.byPath[family]; f != nil && f.path == family && s.byID[f.id] == f {
		all = append(slices.Clip(all), f)
	}
	return all
}

// upset says that one of a family may have another content now, or another name:
// what is being found out about the others is worth nothing. s.mu is held.
func (s *Source) upset(family string) {
	if _, ok := s.trying[family]; ok {
		s.trying[family] = true
	}
}

// stir has all of a family looked at that have no stream: they may be copies of
// what has just lost its file. s.mu is held.
func (s *Source) stir(family string) {
	s.upset(family)
	for _, f := range append(slices.Clip(s.members(family)), s.ghosts[family]...) {
		if f.stream == nil && f.kind != companion {
			s.push(f)
		}
	}
}

// relative is another file of a family, as it was when it was looked at.
type relative struct {
	*file
	path   string
	stream *stream // nil when it was not identified yet
	marks  marks
}

// relatives returns the files that f may be a copy of. What has no name of a copy
// is written to, and is none; of what has no name at all any more one may be left.
func (s *Source) relatives(f *file) (path string, out []relative) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := family(f.path)
	if f.path == p && !f.ghost {
		return f.path, nil
	}
	for _, o := range s.members(p) {
		if o == f || o.kind == companion {
			continue
		}
		r := relative{file: o, path: o.path, stream: o.stream}
		if o.stream != nil {
			r.marks = o.stream.marks
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
	unclear                 // it has to be seen first what another one holds now
)

// part is what is known of a copy: as it was at that time, and in that size, all
// of it was in the stream.
type part struct {
	stream *stream
	at     stamp
	size   int64
}

// compare finds out whether f is a copy of another file. A twin is looked at again
// when that loses its content.
func (s *Source) compare(f *file, r io.ReaderAt, at stamp) (relation, error) {
	path, relatives := s.relatives(f)
	for _, o := range relatives {
		like := false
		if o.stream != nil {
			var err error
			if like, _, err = o.marks.match(r); err != nil {
				return single, err
			}
		}
		if !like && (o.kind == archive || !slices.Contains(ancestors(path), o.path)) {
			continue
		}
		rel, size, err := s.compareWith(o, r, at)
		if err != nil {
			return single, err
		}
		s.mu.Lock()
		switch rel {
		case twin:
			f.part, f.fresh = &part{o.stream, at, size}, false
		case unclear:
			s.push(o.file)
			s.ask(ask{file: o.file})
		}
		s.mu.Unlock()
		if rel != single {
			return rel, nil
		}
	}
	return single, nil
}

// compareWith compares a content, of which it also returns the size, with what a
// relative has now. An error of the relative is none of the content: then it is not
// known as a copy.
func (s *Source) compareWith(o relative, r io.ReaderAt, at stamp) (rel relation, size int64, err error) {
	fd, err := s.open(o.path)
	switch {
	case err == nil:
	case gone(err) || crowded(err):
		return unclear, 0, nil
	default:
		return single, 0, nil
	}
	defer fd.Close()
	info, err := fd.Stat()
	if err != nil {
		return single, 0, nil
	}
	if id, _, _ := describe(info); id != o.id {
		return unclear, 0, nil
	}
	if o.stream == nil {
		if _, whole, err := firstLine(fd); whole && err == nil {
			return unclear, 0, nil // it goes first
		}
		return single, 0, nil
	}
	var its io.ReaderAt = fd
	if o.kind == archive {
		its = newGzReader(fd, s.MaxRead)
	} else if rel := o.intact(fd); rel != twin { // before r is unpacked for nothing
		return rel, 0, nil
	}
	if size, err = sizeOf(r, at); err != nil || size == 0 {
		return single, 0, err
	}
	mine, err := marksAt(r, size, 1)
	if err != nil {
		return single, 0, err
	}
	theirs, err := marksAt(its, size, 1)
	switch {
	case err != nil && !errors.Is(err, errReplaced):
		return single, 0, nil
	case o.kind == transcript:
		// That it has the content of its stream is looked at last: then it had it before.
		rel = o.intact(fd)
	default:
		rel = twin
	}
	if rel == twin && (err != nil || mine != theirs) {
		rel = single
	}
	return rel, size, nil
}

// intact returns twin when r still has the content of the relative's stream.
func (o relative) intact(r io.ReaderAt) relation {
	switch is, err := o.marks.in(r); {
	case err != nil:
		return single
	case !is:
		return unclear
	}
	return twin
}

// sizeOf returns the size of a content. For an archive that means to unpack it.
func sizeOf(r io.ReaderAt, at stamp) (int64, error) {
	if g, ok := r.(*gzReader); ok {
		return g.size()
	}
	return at.size, nil
}
