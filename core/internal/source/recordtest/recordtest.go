// Package recordtest has a recorder in memory, for the tests of listeners.
package recordtest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// Gap is a call of Recording.Gap.
type Gap struct {
	Reason        string
	Frames, Bytes int64
}

// Stream is the recording under one key.
type Stream struct {
	Key    string
	Format string
	ID     source.ID
	Frames []frame.Frame
	Gaps   []Gap
	State  []byte
	Synced int // frames that Sync has made safe
	Bytes  int64
	Closed bool
	Begun  int
}

// Missing is the number of bytes that the gaps account for.
func (s *Stream) Missing() (n int64) {
	for _, g := range s.Gaps {
		n += g.Bytes
	}
	return n
}

// Text writes the stream's frames, one on a line: kind, data, and the reason if
// there is one.
func (s *Stream) Text() string {
	var b strings.Builder
	for i := range s.Frames {
		f := &s.Frames[i]
		b.WriteString(f.Kind.String() + " " + string(f.Data))
		if f.Reason != "" {
			b.WriteString(" !" + f.Reason)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Recorder records in memory.
type Recorder struct {
	mu      sync.Mutex
	all     []*Stream
	open    map[string]*Stream // by key
	changed chan struct{}
	gate    chan struct{} // not nil: Record waits until it is closed
	begin   func(source.ID)
	fail    error
	discard bool
}

// New returns an empty recorder.
func New() *Recorder {
	return &Recorder{open: make(map[string]*Stream), changed: make(chan struct{})}
}

// Discard makes it count the frames' bytes and forget them.
func (r *Recorder) Discard() { r.discard = true }

// Hold makes Record wait, as a full journal does, until the returned function is
// called.
func (r *Recorder) Hold() (release func()) {
	gate := make(chan struct{})
	r.mu.Lock()
	r.gate = gate
	r.mu.Unlock()
	return sync.OnceFunc(func() {
		r.mu.Lock()
		r.gate = nil
		r.mu.Unlock()
		close(gate)
	})
}

// BeforeBegin has Begin call f first, and wait for it.
func (r *Recorder) BeforeBegin(f func(source.ID)) {
	r.mu.Lock()
	r.begin = f
	r.mu.Unlock()
}

// Fail makes every call fail with err, or succeed again with nil.
func (r *Recorder) Fail(err error) {
	r.mu.Lock()
	r.fail = err
	r.mu.Unlock()
}

// Streams returns copies of the recordings, in the order of their beginning. A key that
// was begun again after Close is another stream.
func (r *Recorder) Streams() []Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Stream, 0, len(r.all))
	for _, one := range r.all {
		s := *one
		s.Frames, s.Gaps = slices.Clone(s.Frames), slices.Clone(s.Gaps)
		out = append(out, s)
	}
	return out
}

// Wait waits until the streams are as wanted, or ctx ends. It returns them as they
// were last.
func (r *Recorder) Wait(ctx context.Context, wanted func([]Stream) bool) ([]Stream, bool) {
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		s := r.Streams()
		if wanted(s) {
			return s, true
		}
		select {
		case <-ctx.Done():
			return s, false
		case <-changed:
		case <-time.After(time.Second):
		}
	}
}

func (r *Recorder) touch() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// Begin implements source.Recorder.
func (r *Recorder) Begin(_ context.Context, format string, id source.ID) (source.Recording, error) {
	r.mu.Lock()
	before := r.begin
	r.mu.Unlock()
	if before != nil {
		before(id)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return nil, r.fail
	}
	s := r.open[id.Key]
	if s == nil {
		s = &Stream{Key: id.Key}
		r.all = append(r.all, s)
	}
	if id.Key != "" {
		r.open[id.Key] = s
	}
	s.Format, s.ID = format, id
	s.Begun++
	r.touch()
	return &recording{r, s}, nil
}

type recording struct {
	r *Recorder
	s *Stream
}

// maxState is the longest state that the journal takes.
const maxState = 64 << 10

var (
	errClosed = errors.New("recordtest: recorded after Close")
	errState  = errors.New("recordtest: a state of more than 64 KiB")
)

func (c *recording) Record(ctx context.Context, f *frame.Frame) error {
	c.r.mu.Lock()
	for gate := c.r.gate; gate != nil; gate = c.r.gate {
		c.r.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-gate:
		}
		c.r.mu.Lock()
	}
	defer c.r.mu.Unlock()
	switch {
	case c.r.fail != nil:
		return c.r.fail
	case c.s.Closed:
		return errClosed
	}
	g := *f
	g.Pos, g.End, g.Data = 0, 0, nil
	if !c.r.discard {
		g.Data = bytes.Clone(f.Data)
	}
	c.s.Frames = append(c.s.Frames, g)
	c.s.Bytes += int64(len(f.Data))
	c.r.touch()
	return nil
}

func (c *recording) Gap(reason string, frames, n int64) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.s.Gaps = append(c.s.Gaps, Gap{reason, frames, n})
	c.r.touch()
}

func (c *recording) Mark(state []byte) error {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	switch {
	case c.r.fail != nil:
		return c.r.fail
	case c.s.Closed:
		return errClosed
	case len(state) > maxState:
		return errState
	}
	c.s.State = bytes.Clone(state)
	c.r.touch()
	return nil
}

func (c *recording) State() []byte {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	return bytes.Clone(c.s.State)
}

func (c *recording) Sync(context.Context) error {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	if c.r.fail != nil {
		return c.r.fail
	}
	c.s.Synced = len(c.s.Frames)
	c.r.touch()
	return nil
}

func (c *recording) Close() error {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.s.Closed = true
	if c.r.open[c.s.Key] == c.s {
		delete(c.r.open, c.s.Key) // it is forgotten, and its state with it
	}
	c.r.touch()
	return nil
}

var (
	_ source.Recorder  = (*Recorder)(nil)
	_ source.Recording = (*recording)(nil)
)
