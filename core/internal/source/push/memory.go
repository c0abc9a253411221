package push

import (
	"container/list"
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// maxKeys is how many idempotency keys are remembered.
const maxKeys = 10_000

// keys remembers the answers to requests with an idempotency key.
type keys struct {
	mu    sync.Mutex
	known map[string]*list.Element // of *known
	order *list.List               // the oldest in front
}

type known struct {
	key, hash string
	answer    *answer // nil while it is being answered
}

func newKeys() *keys { return &keys{known: make(map[string]*list.Element), order: list.New()} }

// begin returns the answer to a request whose key is known, or says that it is to be
// answered: then done is called with the answer.
func (k *keys) begin(key, hash string) (before *answer, done func(*answer)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.known[key]; e != nil {
		switch n := e.Value.(*known); {
		case n.answer == nil:
			return refuse(http.StatusConflict, "a request with this idempotency key is being answered"), nil
		case n.hash != hash:
			return otherBody(), nil
		default:
			return n.answer, nil
		}
	}
	n := &known{key: key, hash: hash}
	e := k.order.PushBack(n)
	k.known[key] = e
	for oldest := k.order.Front(); k.order.Len() > maxKeys && oldest != nil; {
		next := oldest.Next()
		if o := oldest.Value.(*known); o.answer != nil {
			k.order.Remove(oldest)
			delete(k.known, o.key)
		}
		oldest = next
	}
	return nil, func(a *answer) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if a.Error == "" {
			n.answer = a
			return
		}
		// It may be tried again.
		k.order.Remove(e)
		delete(k.known, key)
	}
}

func otherBody() *answer {
	return refuse(http.StatusUnprocessableEntity, "this idempotency key was used for another body")
}

// maxStreams is how many named streams are kept open.
const maxStreams = 1000

// maxSeen is how many idempotency keys a stream remembers over a restart.
const maxSeen = 32

// stream is one recording. A named one serves one request after the other.
type stream struct {
	key       string
	recording source.Recording
	turn      chan struct{} // has a value when nobody is at it
	users     int
	element   *list.Element // of a named one
	state     state
}

// state is the State of a recording.
type state struct {
	Seen []seen `json:"seen,omitempty"` // the newest last
}

type seen struct {
	Key    string `json:"key"`
	Hash   string `json:"hash,omitempty"`
	Frames int    `json:"frames"`
}

// answered returns the answer to a request that was recorded by a process before.
func (s *stream) answered(key, hash string) *answer {
	for _, n := range s.state.Seen {
		if n.Key == key && n.Hash == hash {
			return &answer{Status: http.StatusOK, Frames: n.Frames}
		} else if n.Key == key {
			return otherBody()
		}
	}
	return nil
}

// remember marks that the request was recorded.
func (s *stream) remember(key, hash string, frames int) error {
	s.state.Seen = append(s.state.Seen, seen{key, hash, frames})
	if over := len(s.state.Seen) - maxSeen; over > 0 {
		s.state.Seen = append([]seen(nil), s.state.Seen[over:]...)
	}
	b, err := json.Marshal(s.state)
	if err != nil {
		return err
	}
	return s.recording.Mark(b)
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
	st := &stream{key: id.Key, recording: recording, turn: make(chan struct{}, 1)}
	if b := recording.State(); len(b) > 0 {
		if err := json.Unmarshal(b, &st.state); err != nil {
			s.Logger.Warn("the state of a stream is not readable", "error", err)
		}
	}
	return st, nil
}

// give gives the stream back. Only so many named ones are kept open; one that was
// closed is begun again by the next request of its name.
func (m *streams) give(st *stream, s *Server) {
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
