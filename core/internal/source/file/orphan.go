package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// makeGhost makes a ghost of a file that nobody else knows any more. left are the
// bytes that were not read and cannot be any more. s.mu is held.
func (s *Source) makeGhost(g *file, left int64) {
	now := time.Now()
	g.ghost, g.haunt = true, &haunt{since: now, waits: now, left: left}
	if st := g.stream; st != nil {
		st.file = g
		if st.origin != "" {
			g.path = st.origin // whoever has the name or the inode now may be of another family
		}
	}
	p := family(g.path)
	s.ghosts[p] = append(s.ghosts[p], g)
	s.stir(p)
	s.ask(ask{copies: g})
	if g.fd == nil && g.stream != nil {
		s.push(g)
	}
}

// exorcise forgets a ghost. s.mu is held.
func (s *Source) exorcise(g *file) {
	p := family(g.path)
	s.ghosts[p] = slices.DeleteFunc(s.ghosts[p], func(o *file) bool { return o == g })
	if len(s.ghosts[p]) == 0 {
		delete(s.ghosts, p)
	}
	if s.byPath[g.path] == g {
		delete(s.byPath, g.path)
	}
	if g.stream != nil && g.stream.file == g {
		g.stream.file = nil
	}
	g.close()
}

// trace finds out what became of a file whose name leads elsewhere.
func (s *Source) trace(f *file) {
	s.mu.Lock()
	path := f.path
	reused := s.byID[f.id] != f
	s.mu.Unlock()
	if reused {
		f.close()
	}

	now, is := path, false
	info, err := os.Stat(path)
	switch {
	case err == nil:
		id, _, _ := describe(info)
		is = id == f.id && !reused
	case !gone(err):
		is = true // as far as can be told
	}
	if !is && !reused && f.fd != nil {
		if info, err := f.fd.Stat(); err == nil {
			if _, _, links := describe(info); links > 0 {
				if name, ok := nameOf(f.fd); ok {
					if x, ok := s.stat(name); ok && x.id == f.id {
						now, is = name, true
					}
				}
			}
		}
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if !f.lost {
		return // found in the meantime
	}
	if is {
		s.rename(f, now)
		return
	}
	s.bury(f)
}

// bury makes a ghost of a file whose name is gone. Its descriptor, if it has one,
// still leads to its content. s.mu is held.
func (s *Source) bury(f *file) {
	f.lost = false
	s.settle(f)
	if s.byID[f.id] == f {
		delete(s.byID, f.id)
	}
	if s.byPath[f.path] == f && f.fd == nil { // with one, who has it open may still write to it
		delete(s.byPath, f.path)
	}
	s.leave(f)
	for _, st := range f.known {
		s.makeGhost(&file{path: f.path, id: f.id, kind: f.kind, stream: st}, 0)
	}
	f.known = nil
	left := int64(0)
	if f.fd == nil && f.kind == transcript && f.stream != nil {
		left = max(0, f.stamp.size-f.stream.place.line)
	}
	if f.fd != nil || f.stream != nil {
		s.makeGhost(f, left)
	}
}

// replaced handles a file whose content is another one now, because it was
// truncated, or because its inode is used again. The stream that was read from it
// becomes a ghost, and the file is looked at anew.
func (s *Source) replaced(f *file) verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := f.stream
	s.Logger.Info("file has another content", "source", s.Name, "path", f.path, "stream", st.key, "read", st.place.line)
	g := &file{path: f.path, id: f.id, kind: f.kind, stream: st}
	f.stream, f.partial, f.fresh, f.guest = nil, false, false, f.outside
	s.makeGhost(g, max(0, st.size-st.place.line))
	s.settle(f)
	if p := family(f.path); p != family(g.path) {
		s.stir(p)
	}
	return verdict{again: true}
}

// expire forgets a ghost and its stream.
func (s *Source) expire(ctx context.Context, g *file) verdict {
	if st := g.stream; st != nil {
		s.mu.Lock()
		rewind := st.rewind
		s.mu.Unlock()
		if n := g.haunt.left; n > 0 {
			s.trouble(g.path, ReasonUnread, fmt.Sprintf("%d bytes were not read before they were gone", n))
		}
		if rewind >= 0 {
			s.trouble(g.path, ReasonReplay, fmt.Sprintf("wanted again from %d on, but gone", rewind))
		}
		if err := s.forget(ctx, g, st); err != nil {
			return s.refused(ctx, g, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.stream != nil {
		delete(s.keys, g.stream.key)
	}
	delete(s.troubles, g.path)
	s.exorcise(g)
	return verdict{}
}

// flush has the sink emit what the decoder of a ghost's stream holds. The stream is
// opened for that and closed, but not forgotten: where its content turns up again it
// goes on.
func (s *Source) flush(ctx context.Context, g *file) verdict {
	st := g.stream
	if st == nil || st.out != nil || g.kind == companion || g.haunt.flushed {
		return verdict{}
	}
	if err := s.openSpent(ctx, g, st); err != nil {
		return s.refused(ctx, g, err)
	}
	err := st.out.Close(ctx, false)
	if errors.Is(err, source.ErrRewound) {
		return s.refused(ctx, g, err)
	}
	st.out = nil
	if err != nil {
		return s.refused(ctx, g, fmt.Errorf("close: %w", err))
	}
	g.haunt.flushed = true
	return verdict{}
}

// openSpent opens a stream of which there is nothing more to deliver.
func (s *Source) openSpent(ctx context.Context, f *file, st *stream) error {
	out, _, err := s.sink.Open(ctx, st.id(f, st.origin, false, st.marks), func(int64) {})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	st.out = out
	return nil
}

// forget closes a stream for good.
func (s *Source) forget(ctx context.Context, f *file, st *stream) error {
	if st.out == nil {
		if err := s.openSpent(ctx, f, st); err != nil {
			return err
		}
	}
	if err := st.out.Close(ctx, true); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	st.out = nil
	return nil
}

// refused handles an error of the sink. It is tried again with the next scan, and
// a stream that was rewound instead of being closed at once.
func (s *Source) refused(ctx context.Context, f *file, err error) verdict {
	if ctx.Err() != nil {
		return verdict{}
	}
	if errors.Is(err, source.ErrRewound) {
		return verdict{after: shortly}
	}
	s.mu.Lock()
	f.failed = true
	path := f.path
	s.mu.Unlock()
	s.trouble(path, ReasonRefused, err.Error())
	return verdict{}
}
