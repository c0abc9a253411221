package file

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	soon = 50 * time.Millisecond
	// share bounds what scanning takes of a processor: one part in this many.
	share = 20
)

// follow finds files and keeps track of their names until ctx ends.
func (s *Source) follow(ctx context.Context) {
	took := s.scan(ctx)
	timer := time.NewTimer(max(s.PollInterval, share*took))
	defer timer.Stop()
	events := s.events()
	for {
		again := false
		select {
		case <-ctx.Done():
			return
		case batch, ok := <-events:
			if !ok {
				events = nil
			}
			again = s.notice(ctx, batch)
		case <-s.wake:
			s.answer(ctx)
		case <-timer.C:
			took = s.scan(ctx)
			timer.Reset(max(s.PollInterval, share*took))
		}
		if again {
			timer.Reset(max(soon, share*took))
		}
	}
}

func (s *Source) newWalk() *walk {
	return &walk{
		patterns: s.patterns,
		wants:    s.wants,
		trouble:  s.trouble,
		readDir:  s.readDir,
		enter: func(dir string, at []spot) {
			if _, ok := s.dirs[dir]; !ok {
				s.watchDir(dir)
			}
			s.dirs[dir] = at
		},
	}
}

// wants reports whether a file is to be tailed: not one that lay untouched since
// long before it was first seen.
func (s *Source) wants(x found) bool {
	if s.IgnoreOlderThan == 0 || time.Since(time.Unix(0, x.mtime)) <= s.IgnoreOlderThan {
		return true
	}
	if len(s.known[x.id.ino]) > 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[x.id] != nil || len(s.ghosts[family(x.path)]) > 0
}

// scan walks everything, and finds what notifications did not tell.
func (s *Source) scan(ctx context.Context) (took time.Duration) {
	began := time.Now()
	s.round++
	s.dirs = make(map[string][]spot, len(s.dirs))
	w := s.newWalk()
	w.roots(ctx)
	if ctx.Err() != nil {
		return 0
	}
	s.hold(true)
	s.meetAll(w.files)
	if s.round == 1 {
		s.meetLeftOver()
	}
	s.miss()
	s.sweep(w.files)
	s.hold(false)
	return time.Since(began)
}

// hold keeps the workers from taking up files while it is not yet known what all
// the others are.
func (s *Source) hold(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = on
	if !on {
		s.scanned = true
		s.plain.cond.Broadcast()
		s.packed.cond.Broadcast()
	}
}

// miss finds the files that the last walk did not come upon.
func (s *Source) miss() {
	var missing, outside []*file
	s.mu.Lock()
	for _, f := range s.byID {
		switch {
		case f.round == s.round || f.lost:
		case f.outside:
			outside = append(outside, f)
		default:
			missing = append(missing, f)
		}
	}
	s.mu.Unlock()
	for _, f := range outside {
		if x, ok := s.stat(f.path); ok && x.id == f.id {
			s.meet(x)
		} else {
			missing = append(missing, f)
		}
	}
	s.lose(missing, true)
}

// notice handles notifications. again asks for a scan.
func (s *Source) notice(ctx context.Context, batch []event) (again bool) {
	var removed, moved []*file
	for _, e := range batch {
		s.mu.Lock()
		f := s.byPath[e.path]
		if f != nil && e.kind == wrote {
			f.fresh = false
			s.push(f)
		}
		s.mu.Unlock()
		switch e.kind {
		case wrote:
			if f == nil {
				s.look(ctx, e.path)
			}
		case appeared:
			s.look(ctx, e.path)
		case deleted, movedAway:
			if _, ok := s.dirs[e.path]; ok {
				again = true
			}
			switch {
			case f == nil:
			case e.kind == deleted:
				removed = append(removed, f)
			default:
				moved = append(moved, f)
			}
		case dirMoved, overflowed:
			again = true
		}
	}
	s.lose(removed, false)
	s.lose(moved, true)
	return again
}

// look finds out what is at a path now.
func (s *Source) look(ctx context.Context, path string) {
	info, err := os.Lstat(path)
	if err != nil {
		s.mu.Lock()
		f := s.byPath[path]
		s.mu.Unlock()
		if f != nil && gone(err) {
			s.lose([]*file{f}, true)
		}
		return
	}
	dir := filepath.Dir(path)
	at, ok := s.dirs[dir]
	if !ok {
		s.lookAgain(path)
		return
	}
	w := s.newWalk()
	w.one(ctx, dir, fs.FileInfoToDirEntry(info), at)
	if len(w.files) == 0 {
		s.lookAgain(path)
	}
	s.meetAll(w.files)
}

// lookAgain is for a path that no pattern covers, but a tailed file may have: the
// target of a symbolic link, or the name it was rotated to.
func (s *Source) lookAgain(path string) {
	s.mu.Lock()
	f := s.byPath[path]
	s.mu.Unlock()
	if f == nil {
		return
	}
	if x, ok := s.stat(f.path); ok && x.id == f.id {
		s.meet(x)
	} else {
		s.lose([]*file{f}, true)
	}
}

// answer does what the workers asked for.
func (s *Source) answer(ctx context.Context) {
	s.mu.Lock()
	asks := s.asks
	s.asks = nil
	s.mu.Unlock()
	for _, a := range asks {
		if a.copies != nil {
			s.seekCopies(a.copies)
		} else {
			s.seek(ctx, a.file)
		}
	}
}

// seek looks what is at the path of a file that a worker did not find there, and
// what became of the file.
func (s *Source) seek(ctx context.Context, f *file) {
	s.mu.Lock()
	path := f.path
	s.mu.Unlock()
	s.look(ctx, path)
	x, ok := s.stat(path)
	s.mu.Lock()
	still := f.path == path
	s.mu.Unlock()
	if still && !(ok && x.id == f.id) {
		s.lose([]*file{f}, true)
	}
}
