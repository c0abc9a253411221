package file

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func (s *Source) meetAll(files []found) {
	inOrder(files)
	for _, x := range files {
		s.meet(x)
	}
}

// meet takes note of a file that is there, under a name that it may have had
// before or not, and has it read if there may be something to read.
func (s *Source) meet(x found) {
	s.mu.Lock()
	f, taken := s.byID[x.id], s.byPath[x.path]
	var path string
	if f != nil {
		path = f.path
	}
	if taken == f || taken != nil && taken.path != x.path {
		taken = nil
	}
	s.mu.Unlock()

	renamed := false
	if f != nil && path != x.path {
		at, ok := s.stat(path)
		renamed = !ok || at.id != x.id
	}
	if x.target != "" {
		if _, ok := s.dirs[filepath.Dir(x.target)]; !ok {
			s.watchDir(filepath.Dir(x.target))
		}
	}
	if taken != nil {
		s.lose([]*file{taken}, true) // before f is read, which may be a copy of it
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID[x.id] != f {
		return // a worker found it gone meanwhile; the next scan sees what is there
	}
	push := renamed
	switch {
	case f == nil:
		f = s.newFile(x)
		push = true
	case renamed:
		s.rename(f, x.path)
	}
	if f.stamp != x.stamp || f.failed {
		f.stamp, f.fresh = x.stamp, false
		push = true
	}
	f.round = s.round
	s.byPath[x.path] = f
	if x.target != "" {
		s.byPath[x.target] = f
	}
	if push {
		s.push(f)
	}
}

// newFile begins to track a file. s.mu is held.
func (s *Source) newFile(x found) *file {
	f := &file{path: x.path, id: x.id, stamp: x.stamp, fresh: x.size > 0}
	switch {
	case x.companion:
		f.kind = companion
	case strings.HasSuffix(x.path, ".gz"):
		f.kind = archive
	}
	f.outside = !x.companion && !s.patterns.covers(x.path)
	f.guest = f.outside
	s.byID[x.id] = f
	f.early = s.first && !s.scanned
	if f.known = s.recall(x); f.known != nil {
		s.unsettle(f)
	}
	return f
}

// rename gives a file the name that it has now. s.mu is held.
func (s *Source) rename(f *file, path string) {
	s.settle(f)
	if s.byPath[f.path] == f {
		delete(s.byPath, f.path)
	}
	f.path, f.lost, f.outside = path, false, f.kind != companion && !s.patterns.covers(path)
	f.guest = f.guest && f.outside
	s.byPath[path] = f
}

// unsettle says that it is not known at the moment which content f has: others of
// its family, which may have it now, are to wait. s.mu is held.
func (s *Source) unsettle(f *file) {
	if f.unsettled == "" {
		f.unsettled = family(f.path)
		s.pending[f.unsettled]++
	}
}

func (s *Source) settle(f *file) {
	if f.unsettled == "" {
		return
	}
	if s.pending[f.unsettled]--; s.pending[f.unsettled] == 0 {
		delete(s.pending, f.unsettled)
	}
	f.unsettled = ""
}

// drop ends the tracking of a file that has no stream. s.mu is held.
func (s *Source) drop(f *file) {
	if s.byID[f.id] == f {
		delete(s.byID, f.id)
	}
	if s.byPath[f.path] == f {
		delete(s.byPath, f.path)
	}
	f.close()
}

// lose handles files whose names lead elsewhere now. With search they are looked
// for in their directories, as rotation leaves them there; a worker finds out what
// became of the others.
func (s *Source) lose(files []*file, search bool) {
	if len(files) == 0 {
		return
	}
	paths := make(map[*file]string, len(files))
	byDir := make(map[string][]*file)
	s.mu.Lock()
	for _, f := range files {
		if !f.lost && !f.ghost {
			paths[f] = f.path
			dir := filepath.Dir(f.path)
			byDir[dir] = append(byDir[dir], f)
		}
	}
	s.mu.Unlock()
	if search {
		for dir, group := range byDir {
			s.seekMoved(dir, group, paths)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range paths {
		if f.lost || f.ghost {
			continue
		}
		f.lost = true
		s.unsettle(f)
		s.push(f)
	}
}

// seekMoved looks for files in the directory they were in, and takes those that it
// finds out of paths.
func (s *Source) seekMoved(dir string, files []*file, paths map[*file]string) {
	entries, err := s.readDir(dir)
	if err != nil {
		return
	}
	ids := make(map[inode]*file)
	stems := make(map[string]struct{})
	for _, f := range files {
		ids[f.id] = f
		stems[stem(filepath.Base(paths[f]))] = struct{}{}
	}
	for _, e := range entries {
		if _, ok := stems[stem(e.Name())]; !ok || e.IsDir() {
			continue
		}
		x, ok := s.stat(filepath.Join(dir, e.Name()))
		if f := ids[x.id]; ok && f != nil && paths[f] != "" {
			delete(paths, f)
			s.meet(x)
		}
	}
}

// stem returns what the names of a rotated file have in common at least.
func stem(name string) string {
	dots := len(name) - len(strings.TrimLeft(name, "."))
	if i := strings.IndexByte(name[dots:], '.'); i >= 0 {
		return name[:dots+i]
	}
	return name
}

// seekCopies looks for what may hold the rest of a ghost's stream: a copy or an
// archive beside it that no pattern covers. What turns out to be neither is let go.
func (s *Source) seekCopies(g *file) {
	s.mu.Lock()
	path := g.path
	s.mu.Unlock()
	if g.kind == companion {
		return
	}
	dir := filepath.Dir(path)
	entries, err := s.readDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		p := filepath.Join(dir, e.Name())
		if e.IsDir() || p == path || !slices.Contains(ancestors(p), family(path)) {
			continue
		}
		if x, ok := s.stat(p); ok {
			s.meet(x)
		}
	}
}

// stat looks at a path that no walk needs to lead to.
func (s *Source) stat(path string) (found, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return found{}, false
	}
	x := found{path: path}
	x.id, x.stamp, _ = describe(info)
	return x, true
}

// sweep goes through the ghosts after a scan: one that still has a descriptor may
// have been written to by who has it open too, and one whose time is over is
// forgotten. Not, however, while there is nothing at all below its pattern: then it
// is more likely that a file system is not mounted.
func (s *Source) sweep(seen []found) {
	roots := make(map[string]bool)
	for _, p := range s.patterns.list[:s.patterns.companions] {
		root := p.root(p.fixed)
		roots[root] = roots[root] || slices.ContainsFunc(seen, func(x found) bool { return within(root, x.path) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.byPath, func(_ string, f *file) bool { return s.byID[f.id] != f })
	for _, ghosts := range s.ghosts {
		for _, g := range ghosts {
			if time.Since(g.haunt.since) > s.Linger {
				g.expired = false
				for root, alive := range roots {
					g.expired = g.expired || alive && within(root, g.path)
				}
			}
			if g.expired || g.fd != nil {
				s.push(g)
			}
		}
	}
}

func within(dir, path string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
