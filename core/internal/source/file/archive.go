package file

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// gzReader reads what a .gz holds as if it could be read anywhere. It goes back a
// little for nothing (to the beginning of a line that it has read a part of), and
// further by beginning anew.
type gzReader struct {
	fd     *os.File
	z      *gzip.Reader
	off    int64  // bytes unpacked
	window []byte // the last of them, up to limit or twice that
	limit  int
	end    error // what came at off: io.EOF, or how it is corrupt
}

func newGzReader(fd *os.File, maxRead int) *gzReader {
	return &gzReader{fd: fd, limit: maxRead + 2*markLen}
}

func (g *gzReader) restart() error {
	if _, err := g.fd.Seek(0, io.SeekStart); err != nil {
		return err
	}
	g.off, g.window, g.end = 0, g.window[:0], nil
	if g.z == nil {
		g.z, g.end = gzip.NewReader(g.fd)
	} else {
		g.end = g.z.Reset(g.fd)
	}
	if g.end == io.EOF { // not even a header
		g.end = io.ErrUnexpectedEOF
	}
	return nil
}

func (g *gzReader) ReadAt(p []byte, off int64) (n int, err error) {
	if g.z == nil && g.end == nil || off < g.off-int64(len(g.window)) {
		if err := g.restart(); err != nil {
			return 0, err
		}
	}
	var skip [8 << 10]byte
	for g.off < off {
		if err := g.read(skip[:min(int64(len(skip)), off-g.off)]); err != nil {
			return 0, err
		}
	}
	if off < g.off {
		n = copy(p, g.window[int64(len(g.window))-(g.off-off):])
	}
	for n < len(p) {
		was := g.off
		err := g.read(p[n:])
		n += int(g.off - was)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// read unpacks up to len(p) bytes.
func (g *gzReader) read(p []byte) error {
	if g.end != nil {
		return g.end
	}
	n, err := g.z.Read(p)
	g.off += int64(n)
	g.window = append(g.window, p[:n]...)
	if len(g.window) > 2*g.limit {
		g.window = append(g.window[:0], g.window[len(g.window)-g.limit:]...)
	}
	g.end = err
	return err
}

// size unpacks everything to know how much it is.
func (g *gzReader) size() (int64, error) {
	for {
		var b [1]byte
		_, err := g.ReadAt(b[:], g.off)
		if err == io.EOF {
			return g.off, nil
		}
		if err != nil {
			return 0, err
		}
		if err := g.read(make([]byte, 32<<10)); err != nil && err != io.EOF {
			return 0, err
		}
	}
}

// unpack reads an archive to its end. It is done in one go: to take it up again
// would mean to unpack it again.
func (s *Source) unpack(ctx context.Context, f *file) verdict {
	defer f.close()
	at, v, ok := s.reach(f)
	if !ok {
		return v
	}
	if age := time.Since(time.Unix(0, at.mtime)); age >= 0 && age < s.whole {
		return verdict{after: s.whole - age} // it is still being written
	}
	if st := f.stream; st != nil && st.done == at && !s.wantsRewind(st) {
		return verdict{}
	}
	r := newGzReader(f.fd, s.MaxRead)
	if f.stream == nil {
		v, err := s.identify(f, r, at, true)
		if err != nil {
			return s.corrupt(f, err, r)
		}
		if f.stream == nil || f.stream.done == at {
			return v
		}
	}
	f.stream.done = stamp{}
	for ctx.Err() == nil {
		v, err := s.advance(ctx, f, r, at, unknown, true)
		switch {
		case err != nil:
			return s.corrupt(f, err, r)
		case v.end:
			return s.complete(ctx, f, at)
		case !v.again || f.stream == nil: // refused, or it was another content
			return v
		}
	}
	return verdict{}
}

func (s *Source) wantsRewind(st *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return st.rewind >= 0
}

// complete closes the stream of a file that has been read to its end for good.
func (s *Source) complete(ctx context.Context, f *file, at stamp) verdict {
	st := f.stream
	st.done = at
	s.mu.Lock()
	path, outside := f.path, f.outside
	s.mu.Unlock()
	st.out.Save(st.id(f, path, outside, st.marks))
	if err := st.out.Close(ctx, false); err != nil {
		return s.refused(ctx, f, fmt.Errorf("close: %w", err))
	}
	st.out = nil
	return verdict{}
}

// corrupt handles an archive that cannot be unpacked to its end. It is tried again
// when it has changed.
func (s *Source) corrupt(f *file, err error, r *gzReader) verdict {
	var path *os.PathError
	if errors.As(err, &path) {
		return s.unwell(f, err)
	}
	s.mu.Lock()
	name := f.path
	f.fresh = false
	s.settle(f)
	s.mu.Unlock()
	s.trouble(name, ReasonArchive, fmt.Sprintf("%v after %d bytes", err, r.off))
	return verdict{}
}
