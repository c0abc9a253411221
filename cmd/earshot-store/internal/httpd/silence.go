package httpd

import (
	"sync"
	"time"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/sqltext"
)

// silence finds out that no statement has run for a time: a reader will ask again, and is waited for longer than a
// writer, whose next rows come in a minute. What a writer has run by itself, its questions and the tables that it computes, is not
// waited behind: each job kept the engine for the next, and three minutes behind a backlog it was open with 240 MiB.
type silence struct {
	after   time.Duration // a reader's statement; 0: never
	working func() (bool, error)
	reached chan struct{} // once

	mu      sync.Mutex
	running int
	until   time.Time // it is reached then, unless a statement runs
	ended   bool      // reached, or closed
	timer   *time.Timer
}

// writerKeeps is the time after a writer's rows: rows without a reader come each minute while an agent works. To open the engine
// again costs a second of a core, as much as to keep it open for five minutes: closed in between, a line a second took 3.1 % of a core and
// not 1.8 (side by side, beside other work).
//
// startKeeps is the time before the first statement, and between the questions that a sidecar asks by itself when it starts.
const (
	writerKeeps = 75 * time.Second
	startKeeps  = 10 * time.Second
)

// newSilence begins with startKeeps, whatever the first statement is: a sidecar that starts asks several questions
// of its own with pauses in between, and each would open the engine again. working reports whether the engine has work of its own, which ends first.
func newSilence(after time.Duration, working func() (bool, error)) *silence {
	s := &silence{after: after, working: working, reached: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	first := min(after, startKeeps)
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
	bySelf // what a writer has run by itself: a question, a table that is computed from rows
)

// ofWriter tells the rows of traffic, which a writer sends as blocks, from what it has run by itself.
func ofWriter(st sqltext.Statement) by {
	if st.Insert && st.Format == "Native" {
		return byWriter
	}
	return bySelf
}

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

// behind is how long the silence behind a statement is.
func (s *silence) behind(who by) time.Duration {
	switch who {
	case bySelf:
		return 0
	case byWriter:
		return min(s.after, writerKeeps)
	}
	return s.after
}

func (s *silence) look() {
	working, err := s.working()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch left := time.Until(s.until); {
	case s.running > 0 || s.ended:
	case left > 0: // a statement ran meanwhile
		s.timer.Reset(left)
	case working || err != nil:
		s.timer.Reset(min(s.after, startKeeps))
	default:
		s.ended = true
		s.reached <- struct{}{}
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
