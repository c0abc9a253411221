package file

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// remembered is a stream of an earlier run, and where it was read from.
type remembered struct {
	*stream
	id      inode
	kind    kind
	outside bool
}

// remember takes over what the checkpoint knows. A stream whose state cannot be
// read is left out: its file is opened under the same key again, and the sink says
// where to go on.
func (s *Source) remember(known []source.Known) {
	s.known = make(map[uint64][]*remembered)
	for _, k := range known {
		st, err := decodeState(k.State)
		if err != nil {
			s.Logger.Warn("stream is not recognized", "source", s.Name, "key", k.Key, "path", k.Origin, "cause", err)
			continue
		}
		s.keys[k.Key] = struct{}{}
		s.known[st.Ino] = append(s.known[st.Ino], &remembered{
			stream: &stream{
				key: k.Key, anchor: k.Anchor, origin: k.Origin, rewind: -1, safe: k.Pos,
				place: place{base: st.Base},
				marks: marks{off: st.Off, head: st.Head, headLen: st.HeadLen, tail: st.Tail},
				done:  stamp{st.DoneSize, st.DoneMtime},
			},
			id: inode{st.Dev, st.Ino}, kind: st.Kind, outside: st.Outside,
		})
	}
}

// is reports whether the stream was read from that inode, or from one of the same
// number at the same path: devices are numbered anew when a machine starts.
func (r *remembered) is(x found) bool {
	return r.id.ino == x.id.ino && (r.id.dev == x.id.dev || r.origin == x.path)
}

// recall takes the streams that were read from a file, what was read furthest
// first.
func (s *Source) recall(x found) []*stream {
	all, ok := s.known[x.id.ino]
	if !ok {
		return nil
	}
	var out []*stream
	rest := all[:0]
	for _, r := range all {
		if r.is(x) {
			out = append(out, r.stream)
		} else {
			rest = append(rest, r)
		}
	}
	s.known[x.id.ino] = rest
	slices.SortFunc(out, func(a, b *stream) int { return cmp.Compare(b.marks.off, a.marks.off) })
	return out
}

// meetLeftOver handles the streams of an earlier run whose files no pattern leads
// to now: those that were renamed, and those that are gone. When it is the patterns
// that have changed, they are left alone.
func (s *Source) meetLeftOver() {
	var left []*remembered
	for _, rs := range s.known {
		left = append(left, rs...)
	}
	dirs := make(map[string][]os.DirEntry)
	for _, r := range left {
		if !r.outside && r.kind != companion && !s.patterns.covers(r.origin) {
			continue
		}
		if x, ok := s.beside(r, dirs); ok {
			s.meet(x)
			continue
		}
		g := &file{path: r.origin, id: r.id, kind: r.kind, stream: r.stream}
		s.mu.Lock()
		s.makeGhost(g, 0)
		s.mu.Unlock()
	}
	clear(s.known)
}

// beside looks for the file of a stream where it was, and near there. dirs are the
// directories that were read already.
func (s *Source) beside(r *remembered, dirs map[string][]os.DirEntry) (found, bool) {
	if x, ok := s.stat(r.origin); ok && r.is(x) {
		return x, true
	}
	dir := filepath.Dir(r.origin)
	entries, ok := dirs[dir]
	if !ok {
		entries, _ = s.readDir(dir)
		dirs[dir] = entries
	}
	for _, e := range entries {
		if e.IsDir() || stem(e.Name()) != stem(filepath.Base(r.origin)) {
			continue
		}
		if x, ok := s.stat(filepath.Join(dir, e.Name())); ok && r.is(x) {
			return x, true
		}
	}
	return found{}, false
}
