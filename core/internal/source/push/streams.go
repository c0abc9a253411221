package push

import (
	"container/list"
	"context"
	"sync"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// maxStreams is how many named streams are kept open.
const maxStreams = 1000

// stream is one recording. A named one serves one request after the other.
type stream struct {
	key       string
	recording source.Recording
	turn      chan struct{} // has a value when the stream is free
	users     int
	element   *list.Element // of a named one
}

// streams are the named streams that are open.
type streams struct {
	mu    sync.Mutex
	named map[string]*stream
	order *list.List // of *stream, the one used longest ago in front
}

func newStreams() *streams { return &streams{named: make(map[string]*stream), order: list.New()} }

// take returns the stream and waits for its turn.
func (m *streams) take(ctx context.Context, s *Server, id source.ID, named bool) (*stream, error) {
	if !named {
		return open(ctx, s, id)
	}
	m.mu.Lock()
	st := m.named[id.Key]
	if st == nil {
		var err error
		if st, err = open(ctx, s, id); err != nil {
			m.mu.Unlock()
			return nil, err
		}
		st.turn <- struct{}{}
		st.element = m.order.PushBack(st)
		m.named[id.Key] = st
	}
	st.users++
	m.order.MoveToBack(st.element)
	m.mu.Unlock()
	select {
	case <-st.turn:
		return st, nil
	case <-ctx.Done():
		m.mu.Lock()
		st.users--
		m.mu.Unlock()
		return nil, ctx.Err()
	}
}

func open(ctx context.Context, s *Server, id source.ID) (*stream, error) {
	recording, err := s.rec.Begin(ctx, s.Format, id)
	if err != nil {
		return nil, err
	}
	return &stream{key: id.Key, recording: recording, turn: make(chan struct{}, 1)}, nil
}

// release returns the stream. A bounded number of named streams stays open; a closed one is
// opened again by the next request of its name.
func (m *streams) release(st *stream, s *Server) {
	if st.element == nil {
		closing(st, s)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	st.turn <- struct{}{}
	st.users--
	for e := m.order.Front(); m.order.Len() > maxStreams && e != nil; {
		next := e.Next()
		if old := e.Value.(*stream); old.users == 0 {
			m.order.Remove(e)
			delete(m.named, old.key)
			closing(old, s)
		}
		e = next
	}
}

func closing(st *stream, s *Server) {
	if err := st.recording.Close(); err != nil {
		s.Logger.Warn("a recording is not closed", "error", err)
	}
}
