package file

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// steady is how long a companion must have been left alone before it is read, so
// that it is not read while it is being written.
const steady = 50 * time.Millisecond

// accompany delivers a companion as a stream of one frame. Another content is
// another stream, whose key follows from it.
func (s *Source) accompany(ctx context.Context, f *file) verdict {
	defer f.close()
	at, v, ok := s.reach(f)
	if !ok {
		return v
	}
	if age := time.Since(time.Unix(0, at.mtime)); age >= 0 && age < steady {
		return verdict{after: steady - age}
	}
	older := s.generations(f, at)
	if st := f.stream; st != nil && st.done == at && !s.wantsRewind(st) {
		return s.forgetAll(ctx, f, older)
	}
	if at.size == 0 {
		return s.forgetAll(ctx, f, older)
	}
	c, key, err := s.body(f, at)
	if err != nil {
		return s.unwell(f, err)
	}
	defer c.drop()
	if info, err := f.fd.Stat(); err != nil {
		return s.unwell(f, err)
	} else if _, now, _ := describe(info); now != at {
		return verdict{after: steady}
	}
	st := f.stream
	if st == nil || st.key != key {
		if st != nil {
			older = append(older, st)
		}
		st = s.newGeneration(f, key, at)
	}
	if st.done = at; st.origin == "" || s.wantsRewind(st) {
		if err := s.deliverBody(ctx, f, st, &c); err != nil {
			return s.refused(ctx, f, err)
		}
	}
	older = slices.DeleteFunc(older, func(o *stream) bool { return o.key == key })
	return s.forgetAll(ctx, f, older)
}

// generations takes the streams of an earlier run that were read from f: the one
// that has the content becomes its stream, the others are returned.
func (s *Source) generations(f *file, at stamp) (older []*stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range f.known {
		if f.stream == nil && st.done == at && st.safe >= at.size {
			f.stream, st.file = st, f
		} else {
			older = append(older, st)
		}
	}
	f.known, f.fresh = nil, false
	s.settle(f)
	return older
}

// newGeneration gives f the stream of the content with that key. A ghost that has
// it was the same file before.
func (s *Source) newGeneration(f *file, key string, at stamp) *stream {
	st := &stream{key: key, anchor: at.mtime, rewind: -1, file: f}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.ghosts[family(f.path)] {
		if g.kind == companion && g.sched == idle && g.stream != nil && g.stream.key == key {
			s.exorcise(g)
			break
		}
	}
	s.keys[key] = struct{}{}
	f.stream = st
	return st
}

// body reads a companion whole, or its first bytes when it is too long, and names
// its content.
func (s *Source) body(f *file, at stamp) (read, string, error) {
	n := at.size
	if n > int64(s.MaxLine) {
		n = int64(min(keptOfLong, s.MaxLine))
	}
	c := s.lines.buffers.get(int(n))
	got, err := f.fd.ReadAt(c.buf, 0)
	if err != nil && err != io.EOF {
		c.release()
		return read{}, "", err
	}
	c.buf = c.buf[:got]
	fr := frame.Frame{Kind: frame.Body, At: s.lines.now(), Data: c.buf, End: at.size}
	if fr.Dropped = at.size - int64(got); fr.Dropped > 0 {
		fr.Reason = msg.ReasonTooLong
	}
	c.frames = append(c.frames, fr)
	sum := sha256.Sum256(c.buf)
	return read{chunk: c}, fmt.Sprintf("%x-%x-%d-%x", f.id.dev, f.id.ino, at.size, sum[:8]), nil
}

// deliverBody delivers the frame, unless the sink has it, and closes the stream.
func (s *Source) deliverBody(ctx context.Context, f *file, st *stream, c *read) error {
	s.mu.Lock()
	path := f.path
	st.rewind = -1
	s.mu.Unlock()
	pos := int64(0)
	if st.out == nil { // else it was rewound when it was to be closed
		var err error
		if st.out, pos, err = s.sink.Open(ctx, st.id(f, path, false, marks{}), func(pos int64) { s.rewind(st, pos) }); err != nil {
			st.out = nil
			return fmt.Errorf("open: %w", err)
		}
	}
	if pos == 0 {
		b := c.hand()
		b.Written, b.Backlog = st.anchor, true
		if err := st.out.Deliver(ctx, b); err != nil {
			return fmt.Errorf("deliver: %w", err)
		}
	}
	if err := st.out.Close(ctx, false); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	st.out, st.origin = nil, path
	return nil
}

// forgetAll forgets streams whose content f had once.
func (s *Source) forgetAll(ctx context.Context, f *file, old []*stream) verdict {
	for _, st := range old {
		if err := s.forget(ctx, f, st); err != nil {
			return s.refused(ctx, f, err)
		}
		s.mu.Lock()
		delete(s.keys, st.key)
		s.mu.Unlock()
	}
	return verdict{}
}
