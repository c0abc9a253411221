package file

import (
	"bytes"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// ledger is a sink that can return to an earlier checkpoint. It keeps all frames, and fails
// the test when a position of a stream gets a second content.
type ledger struct {
	t       *testing.T
	mu      sync.Mutex
	content map[string]map[int64]frame.Frame // by key and Pos
	streams map[string]*ledgerStream         // as the pipeline knows them now
	lines   map[string]map[string]bool       // keys by line
	run     int
}

type ledgerStream struct {
	*ledger
	run  int
	id   source.ID
	next int64
	ends []int64
}

func newLedger(t *testing.T) *ledger {
	return &ledger{
		t: t, content: make(map[string]map[int64]frame.Frame),
		streams: make(map[string]*ledgerStream), lines: make(map[string]map[string]bool),
	}
}

func (l *ledger) Known() []source.Known {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []source.Known
	for _, key := range slices.Sorted(maps.Keys(l.streams)) {
		out = append(out, source.Known{ID: l.streams[key].id, Pos: l.streams[key].next})
	}
	return out
}

func (l *ledger) Forget(keys ...string) { l.t.Errorf("%q are forgotten without being open", keys) }

func (l *ledger) Trouble(origin, reason, detail string) {
	l.t.Errorf("trouble: %s: %s: %s", origin, reason, detail)
}

func (l *ledger) Open(ctx context.Context, id source.ID, rewind func(int64)) (source.Stream, int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := l.streams[id.Key]
	if st == nil {
		st = &ledgerStream{ledger: l}
		l.streams[id.Key] = st
		if l.content[id.Key] == nil {
			l.content[id.Key] = make(map[int64]frame.Frame)
		}
	}
	st.id, st.run = id, l.run
	return st, st.next, nil
}

func (s *ledgerStream) Deliver(ctx context.Context, b *frame.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != s.ledger.run {
		s.t.Errorf("%s: a batch of an earlier run", s.id.Key)
	}
	for _, f := range b.Frames {
		if f.Pos != s.next {
			s.t.Errorf("%s: frame %d..%d, want it at %d", s.id.Key, f.Pos, f.End, s.next)
		}
		f.Data = bytes.Clone(f.Data)
		if was, ok := s.content[s.id.Key][f.Pos]; ok && (was.End != f.End || !bytes.Equal(was.Data, f.Data)) {
			s.t.Errorf("%s: at %d stood %.80q, now %.80q", s.id.Key, f.Pos, was.Data, f.Data)
		}
		s.content[s.id.Key][f.Pos] = f
		if line := string(f.Data); s.lines[line] == nil {
			s.lines[line] = map[string]bool{s.id.Key: true}
		} else {
			s.lines[line][s.id.Key] = true
		}
		s.next = f.End
		s.ends = append(s.ends, f.End)
	}
	b.Done()
	return nil
}

func (s *ledgerStream) Save(id source.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = id
}

func (s *ledgerStream) Mark(int64, []byte) {}

func (s *ledgerStream) Close(_ context.Context, forget bool) func() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if forget {
		delete(s.streams, s.id.Key)
	}
	return func() error { return nil }
}

// checkpoint returns the positions that are safe at this moment.
func (l *ledger) checkpoint(r *rand.Rand) map[string]source.Known {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[string]source.Known)
	for _, key := range slices.Sorted(maps.Keys(l.streams)) {
		st := l.streams[key]
		pos := st.next
		if len(st.ends) > 0 && r.IntN(2) == 0 { // some of it is still on its way
			pos = st.ends[r.IntN(len(st.ends))]
		}
		out[key] = source.Known{ID: st.id, Pos: pos}
	}
	return out
}

// restore goes back to a checkpoint.
func (l *ledger) restore(cp map[string]source.Known) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run++
	clear(l.streams)
	for key, k := range cp {
		l.streams[key] = &ledgerStream{ledger: l, id: k.ID, next: k.Pos}
	}
}

// missing returns how many of the lines were not delivered.
func (l *ledger) missing(lines []string) (n int, example string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range lines {
		if l.lines[line] == nil {
			n, example = n+1, line
		}
	}
	return n, example
}
