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

	if f != nil && f.kind != kindOf(x) {
		s.replacedBy(f, x)
		return
	}
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
	case f.lost: // it may be back
		f.lost, push = f.path != x.path, true
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

// replacedBy handles a file whose inode was given to one of another kind.
func (s *Source) replacedBy(f *file, x found) {
	s.mu.Lock()
	if s.byID[x.id] == f {
		delete(s.byID, x.id)
		f.lost = true
		s.unsettle(f)
		s.push(f)
	}
	s.mu.Unlock()
	s.meet(x)
}

func kindOf(x found) kind {
	switch {
	case x.companion:
		return companion
	case strings.HasSuffix(x.path, ".gz"):
		return archive
	}
	return transcript
}

// newFile begins to track a file. s.mu is held.
func (s *Source) newFile(x found) *file {
	f := &file{path: x.path, id: x.id, stamp: x.stamp, kind: kindOf(x), fresh: x.size > 0 && !s.scanned}
	f.outside = f.kind != companion && !s.patterns.covers(x.path)
	f.guest = f.outside
	f.early = s.first && !s.scanned
	s.byID[x.id] = f
	s.enter(f)
	if f.known = s.recall(x); f.known != nil {
		s.unsettle(f)
	}
	return f
}

// rename gives a file the name that it has now. Whether it still is the same, and
// not another one that was given its inode, is seen when it is read. s.mu is held.
func (s *Source) rename(f *file, path string) {
	f.lost = false
	if f.stream != nil {
		s.unsettle(f)
	} else {
		s.settle(f)
		s.upset(family(f.path))
	}
	if s.byPath[f.path] == f {
		delete(s.byPath, f.path)
	}
	s.leave(f)
	f.path, f.outside = path, f.kind != companion && !s.patterns.covers(path)
	f.guest = f.guest && f.outside
	s.enter(f)
	s.byPath[path] = f
}

// unsettle says that it is not known at the moment which content f has: others of
// its family, which may have it now, are to wait. s.mu is held.
func (s *Source) unsettle(f *file) {
	if f.unsettled == "" {
		f.unsettled = family(f.path)
		s.pending[f.unsettled]++
		s.upset(f.unsettled)
	}
}

// settle says that it is known again. A file whose name is lost has to be traced
// first. s.mu is held.
func (s *Source) settle(f *file) {
	if f.unsettled == "" || f.lost {
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
	s.leave(f)
	f.lost = false
	s.settle(f)
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
		if !f.lost && s.byID[f.id] == f {
			f.lost = true
			s.unsettle(f)
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
// forgotten. That time does not run while there is nothing at all below its pattern:
// then it is more likely that a file system is not mounted.
func (s *Source) sweep(seen []found) {
	alive := make(map[string]bool)
	for _, p := range s.patterns.list[:s.patterns.companions] {
		root := p.root(p.fixed)
		alive[root] = alive[root] || slices.ContainsFunc(seen, func(x found) bool { return within(root, x.path) })
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.byPath, func(_ string, f *file) bool { return s.byID[f.id] != f })
	for _, ghosts := range s.ghosts {
		for _, g := range ghosts {
			here := s.byPath[g.path]
			waits := here != nil && here.sched != idle && here.stream == nil // it may be the one
			for root, alive := range alive {
				waits = waits || !alive && within(root, g.path)
			}
			if waits {
				g.haunt.waits = now
			}
			g.expired = now.Sub(g.haunt.waits) > s.Linger
			if g.expired || g.fd != nil {
				s.push(g)
			}
		}
	}
}

func within(dir, path string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
