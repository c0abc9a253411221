package replay

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/frame/fixture"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// Recorder writes each recording into a file of its own.
type Recorder struct {
	create func(n int, origin string) (io.WriteCloser, error)

	mu     sync.Mutex
	files  int
	open   map[*recording]bool
	byKey  map[string]*recording
	frames int64
	bytes  int64
	errs   []error
}

var _ source.Recorder = (*Recorder)(nil)

// NewRecorder returns a recorder that calls create for the nth file, from 0 on,
// for the first frame of a stream.
func NewRecorder(create func(n int, origin string) (io.WriteCloser, error)) *Recorder {
	return &Recorder{create: create, open: make(map[*recording]bool), byKey: make(map[string]*recording)}
}

// Count returns how many files, frames and bytes of data were recorded so far.
func (r *Recorder) Count() (files int, frames, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.files, r.frames, r.bytes
}

// Close ends all recordings. It returns the errors since the beginning.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.open {
		r.end(s)
	}
	return errors.Join(r.errs...)
}

// Begin implements source.Recorder.
func (r *Recorder) Begin(_ context.Context, _ string, id source.ID) (source.Recording, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.byKey[id.Key]; s != nil && id.Key != "" {
		return s, nil
	}
	s := &recording{r: r, key: id.Key, origin: id.Origin}
	r.open[s] = true
	r.byKey[id.Key] = s
	return s, nil
}

// end closes a recording's file. mu is held.
func (r *Recorder) end(s *recording) {
	delete(r.open, s)
	if r.byKey[s.key] == s {
		delete(r.byKey, s.key)
	}
	if s.out != nil {
		r.failed(errors.Join(s.buf.Flush(), s.out.Close()))
		s.out = nil
	}
}

func (r *Recorder) failed(err error) {
	const most = 10
	if err != nil && len(r.errs) < most {
		r.errs = append(r.errs, err)
	}
}

// recording is guarded by its recorder's mutex.
type recording struct {
	r      *Recorder
	key    string
	origin string
	out    io.WriteCloser
	buf    *bufio.Writer
	line   []byte
	state  []byte
}

// Record implements source.Recording.
func (s *recording) Record(_ context.Context, f *frame.Frame) error {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	err := s.write(f)
	s.r.failed(err)
	return err
}

func (s *recording) write(f *frame.Frame) (err error) {
	if !s.r.open[s] {
		return errors.New("replay: the recording is closed")
	}
	if s.out == nil {
		if s.out, err = s.r.create(s.r.files, s.origin); err != nil {
			return err
		}
		s.r.files++
		s.buf = bufio.NewWriter(s.out)
	}
	if s.line, err = fixture.AppendFrame(s.line[:0], f); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if _, err = s.buf.Write(s.line); err != nil {
		return err
	}
	s.r.frames++
	s.r.bytes += int64(len(f.Data))
	return s.buf.Flush() // so that an interrupted recording has every frame
}

// Gap implements source.Recording.
func (s *recording) Gap(reason string, _, bytes int64) {
	_ = s.Record(context.Background(), &frame.Frame{Dropped: max(bytes, 0), Reason: reason})
}

// Mark implements source.Recording.
func (s *recording) Mark(state []byte) error {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.state = bytes.Clone(state)
	return nil
}

// State implements source.Recording.
func (s *recording) State() []byte {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return bytes.Clone(s.state)
}

// Sync implements source.Recording.
func (s *recording) Sync(context.Context) error { return nil }

// Close implements source.Recording.
func (s *recording) Close() error {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.end(s)
	return nil
}
