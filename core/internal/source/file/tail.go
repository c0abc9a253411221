package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
)

// step does the next bit of work on a file.
func (s *Source) step(ctx context.Context, f *file) verdict {
	s.mu.Lock()
	lost := f.lost
	s.mu.Unlock()
	if lost {
		s.trace(f)
	}
	s.mu.Lock()
	ghost, expired, tracked := f.ghost, f.expired, s.byID[f.id] == f
	f.failed = false
	s.mu.Unlock()
	switch {
	case !ghost && !tracked: // it was let go
		return verdict{}
	case ghost && f.fd == nil && expired:
		return s.expire(ctx, f)
	case ghost && f.fd == nil:
		return s.flush(ctx, f)
	case f.kind == companion:
		return s.accompany(ctx, f)
	case f.kind == archive:
		return s.unpack(ctx, f)
	}
	v := s.tail(ctx, f)
	if expired && !v.again && v.after == 0 && ctx.Err() == nil {
		return s.expire(ctx, f)
	}
	return v
}

// tail reads a batch from a file that may grow.
func (s *Source) tail(ctx context.Context, f *file) verdict {
	at, v, ok := s.reach(f)
	if !ok {
		return v
	}
	s.mu.Lock()
	final, settles := s.finishing, time.Duration(0)
	if f.ghost && !final {
		settles = s.whole - time.Since(f.haunt.since)
		final = settles <= 0
	}
	s.mu.Unlock()
	if f.stream == nil {
		v, err := s.identify(f, f.fd, at, final)
		if errors.Is(err, errReplaced) { // meanwhile
			return verdict{after: shortly}
		}
		if err != nil {
			return s.unwell(f, err)
		}
		if f.stream == nil {
			return s.settling(f, v, settles)
		}
	}
	if st := f.stream; st.done == at && !s.wantsRewind(st) {
		s.saveMoved(f)
		return verdict{}
	}
	f.stream.done = stamp{}
	v, err := s.advance(ctx, f, f.fd, at, at.size, final)
	if err != nil {
		return s.unwell(f, err)
	}
	return s.settling(f, v, settles)
}

// settling has a ghost looked at again when its last line, which has no newline
// yet, will not get one any more.
func (s *Source) settling(f *file, v verdict, settles time.Duration) verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.partial && settles > 0 {
		v.after = max(v.after, settles)
	}
	return v
}

// reach makes sure that the file is open, and that it is the one that is meant.
func (s *Source) reach(f *file) (at stamp, v verdict, ok bool) {
	s.mu.Lock()
	path, ghost := f.path, f.ghost
	s.mu.Unlock()
	if f.fd == nil && ghost {
		return stamp{}, verdict{}, false
	}
	if f.fd == nil {
		fd, err := s.open(path)
		switch {
		case err == nil:
			f.fd = fd
		case gone(err):
			return stamp{}, s.misses(f), false
		case crowded(err):
			s.mu.Lock()
			s.closeIdle(0)
			s.mu.Unlock()
			return stamp{}, verdict{after: time.Second}, false
		default:
			return stamp{}, s.unwell(f, err), false
		}
	}
	info, err := f.fd.Stat()
	if err != nil {
		return stamp{}, s.unwell(f, err), false
	}
	id, at, _ := describe(info)
	if id != f.id {
		f.close()
		return stamp{}, s.misses(f), false
	}
	s.well(path)
	return at, verdict{}, true
}

// misses handles a file that is not at its path. Until it is known where it is, its
// family waits.
func (s *Source) misses(f *file) verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ask(ask{file: f})
	return verdict{after: shortly}
}

// unwell handles an error of the file system. The file is looked at again with the
// next scan; nobody waits for it.
func (s *Source) unwell(f *file, err error) verdict {
	s.mu.Lock()
	f.failed = true
	f.fresh = false
	s.settle(f)
	path, ghost := f.path, f.ghost
	s.mu.Unlock()
	if !ghost { // whose descriptor is the only way to it
		f.close()
	}
	s.trouble(path, reasonOf(err), err.Error())
	return verdict{}
}

// resume opens the stream of f where the sink says. What the sink does not take is
// not an error of the file: then done is false, and v says what to do.
func (s *Source) resume(ctx context.Context, f *file, r io.ReaderAt) (v verdict, done bool, err error) {
	st := f.stream
	s.mu.Lock()
	path, outside := f.path, f.outside
	st.rewind = -1
	s.mu.Unlock()
	out, pos, err := s.sink.Open(ctx, st.id(f, path, outside, st.marks), func(pos int64) { s.rewind(st, pos) })
	if err != nil {
		return s.refused(ctx, f, fmt.Errorf("open: %w", err)), false, nil
	}
	st.out, st.origin = out, path
	if err := s.moveTo(st, r, st.place.base+pos); err != nil {
		s.rewindLater(st, pos)
		return verdict{}, true, err
	}
	return verdict{}, true, nil
}

// moveTo makes off, an offset of the file, the place to read from. That the content
// is still the stream's is looked at last: then what was read of it before was.
func (s *Source) moveTo(st *stream, r io.ReaderAt, off int64) error {
	m, err := marksAt(r, off, st.marks.headLen)
	if err != nil {
		return err
	}
	if same, err := st.marks.in(r); err != nil || !same {
		return cmp.Or(err, errReplaced)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.place, st.marks = st.place.at(off), m
	return nil
}

// advance reads a batch of f from r and delivers it. size is how far r goes.
func (s *Source) advance(ctx context.Context, f *file, r io.ReaderAt, at stamp, size int64, final bool) (verdict, error) {
	st := f.stream
	if st.out == nil {
		v, ok, err := s.resume(ctx, f, r)
		if errors.Is(err, errReplaced) {
			return s.replaced(f), nil
		}
		if !ok || err != nil {
			return v, err
		}
	}
	s.mu.Lock()
	rewind := st.rewind
	st.rewind = -1
	s.mu.Unlock()
	if rewind >= 0 {
		if err := s.moveTo(st, r, st.place.base+rewind); err != nil {
			s.rewindLater(st, rewind)
			if errors.Is(err, errReplaced) {
				return s.replaced(f), nil
			}
			return verdict{}, err
		}
	}

	rd, m, failed, err := s.have(st, r, size, final)
	if err != nil {
		rd.drop()
		if errors.Is(err, errReplaced) {
			return s.replaced(f), nil
		}
		return verdict{}, err
	}
	path, outside := s.saveMoved(f)
	if rd.chunk != nil && len(rd.frames) > 0 {
		st.out.Save(st.id(f, path, outside, m))
		b := rd.hand()
		b.Written, b.Backlog = at.mtime, st.backlog(b)
		if err := st.out.Deliver(ctx, b); err != nil {
			return s.refused(ctx, f, fmt.Errorf("deliver: %w", err)), nil
		}
	} else {
		rd.drop()
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if st.rewind < 0 {
		st.place, st.marks = rd.to, m
	}
	st.size = at.size
	f.partial = rd.to.seen > rd.to.line
	if rd.eof {
		f.fresh = false
		st.followed, st.heard = true, max(st.heard, rd.to.pos-rd.to.base)
	}
	end := rd.eof && st.rewind < 0
	return verdict{again: failed == nil && !end, end: end}, failed
}

// backlog reports whether frames were in the file before its end was followed.
func (st *stream) backlog(b *frame.Batch) bool { return !st.followed || b.Frames[0].Pos < st.heard }

// saveMoved tells the sink where the stream is read from now, after it was made sure
// that it is.
func (s *Source) saveMoved(f *file) (path string, outside bool) {
	s.mu.Lock()
	path, outside = f.path, f.outside
	s.settle(f)
	s.mu.Unlock()
	if st := f.stream; st.out != nil && st.origin != path {
		st.out.Save(st.id(f, path, outside, st.marks))
		st.origin = path
	}
	return path, outside
}

// rewindLater puts a rewind back that could not be done, unless there is a newer one.
func (s *Source) rewindLater(st *stream, pos int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.rewind < 0 {
		st.rewind = pos
	}
}

// have reads what there is at the stream's place, makes sure that it belongs to
// the stream, and returns it with the marks behind it. The content that the stream
// had is looked for after the new bytes were read: when it is still there then, they
// are what follows it. Of an archive, which is not written to, it is taken before,
// because there is no going back. failed is what stopped the reading; with an err
// nothing is the stream's.
func (s *Source) have(st *stream, r io.ReaderAt, size int64, final bool) (rd read, m marks, failed, err error) {
	var buf [markLen]byte
	var before []byte
	p := st.place
	if size == unknown {
		if before, err = behind(r, st.marks.off, buf[:]); err != nil {
			return rd, m, nil, err
		}
	} else if size < p.seen {
		p.seen, p.head = p.line, nil // a part of the last line was taken back
	}
	if rd = (read{to: p, eof: true}); size > p.seen || final {
		rd, failed = s.lines.next(r, p, size, final)
	}
	m = st.marks
	n := rd.to.line - p.line
	inChunk := n == int64(len(rd.used))
	if !inChunk {
		if m, err = m.movedTo(r, rd.to.line); err != nil {
			return rd, m, nil, err
		}
	}
	if size != unknown {
		if before, err = behind(r, st.marks.off, buf[:]); err != nil {
			return rd, m, nil, err
		}
	}
	if sumOf(before) != st.marks.tail {
		return rd, m, nil, errReplaced
	}
	if st.marks.off < int64(st.marks.headLen) { // the tail says little
		if same, err := st.marks.in(r); err != nil || !same {
			return rd, m, nil, cmp.Or(err, errReplaced)
		}
	}
	if inChunk && n > 0 {
		m = m.moved(before, rd.used, rd.to.line)
	}
	return rd, m, failed, nil
}
