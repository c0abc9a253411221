package source

import (
	"container/list"
	"context"
	"log/slog"
	"sync"
	"time"
)

// MaxRecordings is how many named recordings a listener keeps open.
const MaxRecordings = 1000

// Recordings are the named recordings that a listener has open. Requests of one name are
// recorded one after the other. It is safe for concurrent use.
type Recordings struct {
	rec   Recorder
	log   *slog.Logger
	mu    sync.Mutex
	named map[string]*Turn
	order *list.List // of *Turn, the one used longest ago in front
}

// Turn is a recording in the hands of one request.
type Turn struct {
	Recording
	key     string
	free    chan struct{} // has a value when the turn is free
	users   int
	used    time.Time     // when it was last released
	element *list.Element // of a named one
}

// NewRecordings returns the recordings of a listener.
func NewRecordings(rec Recorder, log *slog.Logger) *Recordings {
	return &Recordings{rec: rec, log: log, named: make(map[string]*Turn), order: list.New()}
}

// Len is the number of named recordings that are open.
func (m *Recordings) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.named)
}

// Take returns the recording of id.Key when no other request has it. One without a key is of
// this request alone. A request that takes several takes them in the order of their keys.
func (m *Recordings) Take(ctx context.Context, format string, id ID) (*Turn, error) {
	if id.Key == "" {
		return m.open(ctx, format, id)
	}
	m.mu.Lock()
	t := m.named[id.Key]
	if t == nil {
		var err error
		if t, err = m.open(ctx, format, id); err != nil {
			m.mu.Unlock()
			return nil, err
		}
		t.free <- struct{}{}
		t.element = m.order.PushBack(t)
		m.named[id.Key] = t
	}
	t.users++
	m.order.MoveToBack(t.element)
	m.mu.Unlock()
	select {
	case <-t.free:
		return t, nil
	case <-ctx.Done():
		m.mu.Lock()
		t.users--
		m.mu.Unlock()
		return nil, ctx.Err()
	}
}

func (m *Recordings) open(ctx context.Context, format string, id ID) (*Turn, error) {
	recording, err := m.rec.Begin(ctx, format, id)
	if err != nil {
		return nil, err
	}
	return &Turn{Recording: recording, key: id.Key, free: make(chan struct{}, 1)}, nil
}

// Release returns the recording. A bounded number of named ones stays open; a closed one is
// opened again by the next request of its name.
func (m *Recordings) Release(t *Turn) {
	if t.element == nil {
		m.close(t)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t.free <- struct{}{}
	t.users--
	t.used = time.Now()
	for e := m.order.Front(); m.order.Len() > MaxRecordings && e != nil; {
		next := e.Next()
		if old := e.Value.(*Turn); old.users == 0 {
			m.order.Remove(e)
			delete(m.named, old.key)
			m.close(old)
		}
		e = next
	}
}

// CloseIdle closes the named recordings that no request has used since then: their decoders
// emit the open messages.
func (m *Recordings) CloseIdle(since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for e := m.order.Front(); e != nil; {
		next := e.Next()
		if t := e.Value.(*Turn); t.users == 0 && t.used.Before(since) {
			m.order.Remove(e)
			delete(m.named, t.key)
			m.close(t)
		}
		e = next
	}
}

func (m *Recordings) close(t *Turn) {
	if err := t.Close(); err != nil {
		m.log.Warn("a recording is not closed", "error", err)
	}
}
