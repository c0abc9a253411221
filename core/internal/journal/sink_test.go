package journal

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink is a pipeline whose checkpoint the test controls. It fails the test when the reader
// breaks the contract of source.Sink.
type sink struct {
	t *testing.T

	mu       sync.Mutex
	streams  map[string]*taken // as it is
	safe     map[string]taken  // as the checkpoint has it
	troubles []string
	details  []string      // of the troubles
	refusal  error         // of Open
	asked    int           // how often Known was called
	dear     time.Duration // pause of Known
	auto     bool          // everything is safe at once
	gate     chan struct{} // not nil: a value lets a batch pass
	moved    chan struct{} // closed and replaced at every change
	batches  int
	awaits   int      // how many more times a stream cannot be closed yet
	order    []string // of the batches and ends of all streams
}

// taken is a stream with the frames that were delivered.
type taken struct {
	sink   *sink
	id     source.ID
	next   int64
	high   int64 // up to where it ever had frames
	open   bool
	closed bool
	frames []frame.Frame
	rewind func(int64)
	again  bool     // rewound: frames from a later position are refused
	gone   bool     // forgotten
	marks  []string // "pos state"
	saves  int
}

func newSink(t *testing.T) *sink {
	return &sink{t: t, streams: make(map[string]*taken), safe: make(map[string]taken), auto: true, moved: make(chan struct{})}
}

func (k *sink) move() {
	close(k.moved)
	k.moved = make(chan struct{})
}

// commit makes everything safe.
func (k *sink) commit() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.commitLocked()
}

func (k *sink) commitLocked() {
	for key, s := range k.streams {
		if s.gone {
			continue
		}
		c := *s
		c.frames = slices.Clone(s.frames)
		k.safe[key] = c
	}
}

// crash goes back to the state of the checkpoint.
func (k *sink) crash() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, s := range k.streams {
		if !s.gone {
			delete(k.streams, key)
		}
	}
	for key, s := range k.safe {
		c := s
		c.frames = slices.Clone(s.frames)
		c.open, c.again, c.high = false, false, c.next
		k.streams[key] = &c
	}
}

func (k *sink) Known() []source.Known {
	time.Sleep(k.dear)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	var out []source.Known
	for key, s := range k.safe {
		out = append(out, source.Known{ID: source.ID{Key: key, Origin: s.id.Origin}, Pos: s.next, Closed: s.closed})
	}
	return out
}

func (k *sink) Open(_ context.Context, id source.ID, rewind func(int64)) (source.Stream, int64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refusal != nil {
		return nil, 0, k.refusal
	}
	s := k.streams[id.Key]
	if s == nil {
		s = &taken{sink: k}
		k.streams[id.Key] = s
	}
	if s.open || s.closed {
		k.t.Errorf("stream %s is opened: open %v, closed %v", id.Key, s.open, s.closed)
	}
	s.id, s.open, s.rewind = id, true, rewind
	k.move()
	return s, s.next, nil
}

func (k *sink) Forget(keys ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keys {
		if s := k.streams[key]; s != nil && s.open {
			k.t.Errorf("stream %s is forgotten while it is open", key)
		}
		delete(k.safe, key)
		if s := k.streams[key]; s != nil {
			s.gone = true
		}
	}
	k.move()
}

func (k *sink) Trouble(origin, reason, detail string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.troubles, k.details = append(k.troubles, reason), append(k.details, detail)
	k.move()
}

func (s *taken) Deliver(ctx context.Context, b *frame.Batch) error {
	k := s.sink
	k.mu.Lock()
	gate := k.gate
	k.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	defer b.Done()
	if len(b.Frames) == 0 {
		k.t.Error("an empty batch")
		return nil
	}
	if s.closed {
		k.t.Errorf("%s gets frames behind its end", s.id.Key)
	}
	k.batches++
	k.order = append(k.order, s.id.Origin)
	frames := slices.Clone(b.Frames)
	for _, f := range frames {
		if f.Pos >= f.End {
			k.t.Errorf("%s gets a frame from %d to %d", s.id.Key, f.Pos, f.End)
		}
	}
	for len(frames) > 0 && frames[0].End <= s.next {
		frames = frames[1:] // it has them
	}
	if len(frames) == 0 || s.again && frames[0].Pos != s.next {
		return nil
	}
	s.again = false
	if !s.open || s.closed {
		k.t.Errorf("%s: frames of a stream that is not open", s.id.Key)
	}
	for _, f := range frames {
		if f.Pos != s.next || f.End <= f.Pos {
			k.t.Errorf("%s: frame %d..%d, want it at %d", s.id.Key, f.Pos, f.End, s.next)
		}
		if _, ok := frame.Offset(b.Data, f.Data); !ok {
			k.t.Errorf("%s: frame %d..%d does not lie in its batch", s.id.Key, f.Pos, f.End)
		}
		f.Data = bytes.Clone(f.Data)
		s.frames = append(s.frames, f)
		s.next = f.End
		s.high = max(s.high, s.next)
	}
	if k.auto {
		k.commitLocked()
	}
	k.move()
	return nil
}

func (s *taken) Save(id source.ID) {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	s.id = id
	s.saves++
}

func (s *taken) Mark(pos int64, state []byte) {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	if len(state) == 0 {
		s.sink.t.Errorf("%s gets a mark of nothing", s.id.Key)
	}
	s.marks = append(s.marks, fmt.Sprintf("%d %s", pos, state))
}

func (s *taken) Close(context.Context, bool) func() error {
	err := s.close()
	return func() error { return err }
}

func (s *taken) close() error {
	k := s.sink
	k.mu.Lock()
	defer k.mu.Unlock()
	k.order = append(k.order, s.id.Origin+" ends")
	if s.next < s.high {
		k.move()
		return source.ErrRewound
	}
	if !s.open || s.closed {
		k.t.Errorf("%s is closed twice", s.id.Key)
	}
	if k.awaits > 0 {
		k.awaits--
		k.move()
		return source.ErrAwaited
	}
	s.open, s.closed = false, true
	if k.auto {
		k.commitLocked()
	}
	k.move()
	return nil
}

// rewind has streams delivered again from some frame on.
func (k *sink) rewind(pick func(n int) int) {
	k.mu.Lock()
	var calls []func()
	for _, key := range slices.Sorted(maps.Keys(k.streams)) {
		s := k.streams[key]
		if !s.open {
			continue
		}
		i := pick(len(s.frames) + 1)
		pos := int64(0)
		if i > 0 {
			pos = s.frames[i-1].End
		}
		if safe, ok := k.safe[key]; ok && pos < safe.next {
			pos, i = safe.next, len(safe.frames)
		}
		s.frames, s.next, s.again = s.frames[:i], pos, true
		calls = append(calls, func() { s.rewind(pos) })
	}
	k.mu.Unlock()
	for _, c := range calls {
		c()
	}
}

// until waits for a condition.
func (k *sink) until(condition string, ok func() bool) {
	k.t.Helper()
	for {
		k.mu.Lock()
		moved, done := k.moved, ok()
		k.mu.Unlock()
		if done {
			return
		}
		select {
		case <-moved:
		case <-k.t.Context().Done():
			k.t.Fatalf("%s: the test has ended", condition)
		case <-deadline():
			k.t.Fatalf("%s: not after %v\n%s", condition, patience, k.dump())
		}
	}
}

// dump prints the delivered frames, without the numbers of the streams.
func (k *sink) dump() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for _, s := range k.streams {
		key := s.id.Key[:len(s.id.Key)-16]
		line := fmt.Sprintf("%s %s closed=%v", key, s.id.Origin, s.closed)
		for _, f := range s.frames {
			line += "\n  " + show(&f)
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}

func show(f *frame.Frame) string {
	data := string(f.Data)
	if len(data) > 40 {
		data = fmt.Sprintf("%s...(%d)", data[:20], len(data))
	}
	return fmt.Sprintf("%d..%d %s %q %q client=%v at=%d %q dropped=%d %s", f.Pos, f.End, f.Kind, f.Name, f.ID, f.FromClient, f.At, data, f.Dropped, f.Reason)
}
