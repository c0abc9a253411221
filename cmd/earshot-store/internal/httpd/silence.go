package httpd

import (
	"sync"
	"time"
)

// silence finds out that no statement has run for a time: a reader will ask again, and is waited for longer than a
// writer, whose next rows come in a minute. The questions that a writer asks the tables by itself are not waited behind.
type silence struct {
	after   time.Duration // a reader's statement; 0: never
	working func() (bool, error)
	reached chan time.Time // of the writer's last statement, once

	mu      sync.Mutex
	running int
	wrote   time.Time     // the end of the writer's last statement
	keeps   time.Duration // after it
	until   time.Time     // it is reached then, unless a statement runs
	ended   bool          // reached, or closed
	timer   *time.Timer
}

// writerKeeps is the time after a writer's statement. One that comes a minute after the one before is followed by the next in a
// minute: rows come, and nobody reads. The engine stays open for that, because to close and open it each minute has a line a
// second take 3.1 % of a core and not 1.8 (side by side, beside other work); it has its hundred megabytes as long as rows come.
const (
	writerKeeps  = 10 * time.Second
	writersAgain = 75 * time.Second
)

// newSilence begins as behind a writer's statement, whatever the first one is: a sidecar that starts asks several questions
// of its own with pauses in between, and each would open the engine again. working reports whether the engine has work of its own, which ends first.
// wrote is when the writer's last statement ended, of an engine before.
func newSilence(after time.Duration, wrote time.Time, working func() (bool, error)) *silence {
	s := &silence{after: after, working: working, reached: make(chan time.Time, 1), wrote: wrote, keeps: writerKeeps}
	s.mu.Lock()
	defer s.mu.Unlock()
	first := min(after, writerKeeps)
	s.until = time.Now().Add(first)
	if after > 0 {
		s.timer = time.AfterFunc(first, s.look)
	}
	return s
}

// by is who has a statement run.
type by int

const (
	byReader by = iota
	byWriter
	bySelf // a question that a writer asks by itself
)

// statement notes that a statement runs, until end is called with who had it run.
func (s *silence) statement() (end func(by)) {
	if s.timer == nil {
		return func(by) {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running++
	s.timer.Stop()
	return func(who by) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if until := time.Now().Add(s.behind(who)); until.After(s.until) {
			s.until = until
		}
		if s.running--; s.running == 0 && !s.ended {
			s.timer.Reset(max(time.Until(s.until), 0))
		}
	}
}

// behind is how long the silence behind a statement is, which has just ended. mu is held.
func (s *silence) behind(who by) time.Duration {
	switch who {
	case bySelf:
		return 0
	case byWriter:
		if pause := time.Since(s.wrote); pause > writerKeeps {
			s.keeps = writerKeeps
			if pause <= writersAgain {
				s.keeps = writersAgain
			}
		}
		s.wrote = time.Now()
		return min(s.after, s.keeps)
	}
	return s.after
}

func (s *silence) look() {
	working, err := s.working()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.running > 0 || s.ended:
	case working || err != nil:
		s.timer.Reset(min(s.after, writerKeeps))
	default:
		s.ended = true
		s.reached <- s.wrote
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
