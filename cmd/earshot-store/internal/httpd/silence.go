package httpd

import (
	"sync"
	"time"
)

// silence finds out that no statement has run for a time. The questions that a sidecar asks the tables by itself, once a
// minute, do not break it.
type silence struct {
	after   time.Duration // 0: never
	working func() (bool, error)
	reached chan struct{}

	mu      sync.Mutex
	running int
	last    time.Time // end of the last statement that broke it
	ended   bool      // reached, or closed
	timer   *time.Timer
}

// newSilence begins with a silence. working reports whether the engine has work of its own, which ends first.
func newSilence(after time.Duration, working func() (bool, error)) *silence {
	s := &silence{after: after, working: working, reached: make(chan struct{}), last: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if after > 0 {
		s.timer = time.AfterFunc(after, s.look)
	}
	return s
}

// statement notes that a statement runs, until end is called with whether it breaks the silence.
func (s *silence) statement() (end func(breaks bool)) {
	if s.timer == nil {
		return func(bool) {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running++
	s.timer.Stop()
	return func(breaks bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if breaks {
			s.last = time.Now()
		}
		if s.running--; s.running == 0 && !s.ended {
			s.timer.Reset(max(time.Until(s.last.Add(s.after)), 0))
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
