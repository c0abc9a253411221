package httpd

import (
	"sync"
	"time"
)

// silence finds out that no statement has run for a time.
type silence struct {
	after   time.Duration // 0: never
	working func() (bool, error)
	reached chan struct{}

	mu      sync.Mutex
	running int
	ended   bool // reached, or closed
	timer   *time.Timer
}

// newSilence begins with a silence. working reports whether the engine has work of its own, which ends first.
func newSilence(after time.Duration, working func() (bool, error)) *silence {
	s := &silence{after: after, working: working, reached: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if after > 0 {
		s.timer = time.AfterFunc(after, s.look)
	}
	return s
}

// statement notes that a statement runs, until end is called.
func (s *silence) statement() (end func()) {
	if s.timer == nil {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running++
	s.timer.Stop()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running--; s.running == 0 && !s.ended {
			s.timer.Reset(s.after)
		}
	}
}

func (s *silence) look() {
	working, err := s.working()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.running > 0 || s.ended:
	case working || err != nil:
		s.timer.Reset(s.after)
	default:
		s.ended = true
		close(s.reached)
	}
}

func (s *silence) close() {
	if s.timer == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.timer.Stop()
}
