package file

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// fakeSink is a pipeline that keeps all frames and checks the contract of source.Sink.
type fakeSink struct {
	t *testing.T

	mu       sync.Mutex
	streams  map[string]*fakeStream
	order    []string // keys, as they were opened first
	troubles []trouble
	log      []delivery
	gate     chan struct{} // nil: open; else one value lets one batch pass
	atGate   atomic.Int32  // deliveries that wait at the gate
	opening  func()        // called once, when a stream is opened
	backlog  []bool        // of each batch
	rewinds  int           // so many Closes rewind their stream to its begin instead
}

type trouble struct{ path, reason string }

type delivery struct {
	key  string
	data string
}

// fakeStream is one stream of it, over any number of runs.
type fakeStream struct {
	sink *fakeSink
	id   source.ID // as of Open or the last Save
	// saved are the states in the order of Save, each with the position that the
	// stream had then.
	saved     []source.Known
	next      int64 // position of the next frame
	frames    []frame.Frame
	rewinding bool // frames from further on may still come
	rewind    func(int64)
	open      bool
	opens     int
	closes    int
	forgotten bool
}

func newSink(t *testing.T) *fakeSink {
	return &fakeSink{t: t, streams: make(map[string]*fakeStream)}
}

func (k *fakeSink) Known() []source.Known {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []source.Known
	for _, key := range k.order {
		if st := k.streams[key]; !st.forgotten {
			out = append(out, source.Known{ID: st.id, Pos: st.next})
		}
	}
	return out
}

func (k *fakeSink) Open(ctx context.Context, id source.ID, rewind func(int64)) (source.Stream, int64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if do := k.opening; do != nil {
		k.opening = nil
		do()
	}
	st := k.streams[id.Key]
	if st == nil {
		st = &fakeStream{sink: k}
		k.streams[id.Key] = st
		k.order = append(k.order, id.Key)
	}
	if st.open {
		k.t.Errorf("stream %s (%s) is opened while it is open", id.Key, id.Origin)
	}
	if st.forgotten {
		st.forgotten, st.next = false, 0
	}
	st.id, st.rewind, st.open = id, rewind, true
	st.opens++
	return st, st.next, nil
}

func (k *fakeSink) Forget(keys ...string) { k.t.Errorf("%q are forgotten without being open", keys) }

func (k *fakeSink) Trouble(origin, reason, detail string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.troubles = append(k.troubles, trouble{origin, reason})
}

func (st *fakeStream) Deliver(ctx context.Context, b *frame.Batch) error {
	k := st.sink
	if k.gate != nil {
		k.atGate.Add(1)
		defer k.atGate.Add(-1)
		select {
		case <-k.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.backlog = append(k.backlog, b.Backlog)
	if b.Written == 0 {
		k.t.Errorf("stream %s: a batch does not say when it was written", st.id.Key)
	}
	if !st.open {
		k.t.Errorf("stream %s: frames after it was closed", st.id.Key)
	}
	if len(b.Frames) == 0 {
		k.t.Errorf("stream %s: empty batch", st.id.Key)
	}
	for _, f := range b.Frames {
		if st.rewinding && f.Pos > st.next {
			continue
		}
		st.rewinding = false
		if f.Pos != st.next || f.End <= f.Pos {
			k.t.Errorf("stream %s (%s): frame %d..%d, want it at %d", st.id.Key, st.id.Origin, f.Pos, f.End, st.next)
		}
		if _, ok := frame.Offset(b.Data, f.Data); !ok {
			k.t.Errorf("stream %s: frame %d..%d does not lie in its batch", st.id.Key, f.Pos, f.End)
		}
		if f.At == 0 {
			k.t.Errorf("stream %s: frame %d..%d has no time", st.id.Key, f.Pos, f.End)
		}
		f.Data = bytes.Clone(f.Data)
		st.frames = append(st.frames, f)
		k.log = append(k.log, delivery{st.id.Key, string(f.Data)})
		st.next = f.End
	}
	for i := range b.Data {
		b.Data[i] = 0xCC // the source must not use it any more
	}
	b.Done()
	return nil
}

func (st *fakeStream) Save(id source.ID) {
	k := st.sink
	k.mu.Lock()
	defer k.mu.Unlock()
	if id.Key != st.id.Key || id.Anchor != st.id.Anchor {
		k.t.Errorf("stream %s is saved as %s with anchor %d", st.id.Key, id.Key, id.Anchor)
	}
	st.saved = append(st.saved, source.Known{ID: st.id, Pos: st.next})
	st.id = id
}

func (st *fakeStream) Mark(int64, []byte) {}

func (st *fakeStream) Close(_ context.Context, forget bool) func() error {
	return func() error { return st.close(forget) }
}

func (st *fakeStream) close(forget bool) error {
	k := st.sink
	k.mu.Lock()
	defer k.mu.Unlock()
	if !st.open {
		k.t.Errorf("stream %s is closed twice", st.id.Key)
	}
	if k.rewinds > 0 && !forget {
		k.rewinds--
		st.next, st.rewinding = 0, true
		go st.rewind(0)
		return source.ErrRewound
	}
	st.open = false
	st.closes++
	st.forgotten = forget
	return nil
}

// again has a stream delivered again from pos.
func (k *fakeSink) again(key string, pos int64) {
	k.mu.Lock()
	st := k.streams[key]
	st.next, st.rewinding = pos, true
	rewind := st.rewind
	k.mu.Unlock()
	rewind(pos)
}

// stopped closes all streams when the source's run ends.
func (k *fakeSink) stopped() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, st := range k.streams {
		st.open = false
	}
}

// all returns the data of all frames, in the order of delivery.
func (k *fakeSink) all() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for _, d := range k.log {
		out = append(out, d.data)
	}
	return out
}

func (k *fakeSink) sorted() []string {
	out := k.all()
	slices.Sort(out)
	return out
}

func (k *fakeSink) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.log)
}

func (k *fakeSink) reasons() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for _, t := range k.troubles {
		out = append(out, t.reason)
	}
	slices.Sort(out)
	return out
}

// live returns the keys of the streams that are not forgotten.
func (k *fakeSink) live() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for _, key := range k.order {
		if !k.streams[key].forgotten {
			out = append(out, key)
		}
	}
	return out
}

func (k *fakeSink) stream(i int) *fakeStream {
	k.mu.Lock()
	defer k.mu.Unlock()
	if i >= len(k.order) {
		k.t.Fatalf("there are %d streams, want number %d", len(k.order), i)
	}
	return k.streams[k.order[i]]
}

func (k *fakeSink) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var b bytes.Buffer
	for _, key := range k.order {
		st := k.streams[key]
		fmt.Fprintf(&b, "\n%s %s next %d open %v closes %d forgotten %v", key, st.id.Origin, st.next, st.open, st.closes, st.forgotten)
		for _, f := range st.frames {
			fmt.Fprintf(&b, "\n    %d..%d %.60q", f.Pos, f.End, f.Data)
		}
	}
	for _, t := range k.troubles {
		fmt.Fprintf(&b, "\n    %s: %s", t.path, t.reason)
	}
	return b.String()
}
