package httpd

import (
	"sync"
	"time"
)

// calm returns memory when no statement has run for calmAfter, if those since the last time took at least worthTrim
// together: to return it costs some milliseconds, and so does the next statement, and the questions of an idle
// sidecar are shorter than that for minutes. Rows that are stored once a minute have it returned every trimAgain.
const (
	calmAfter = 15 * time.Second
	worthTrim = 100 * time.Millisecond
	trimAgain = 2 * time.Minute
)

// calm has memory returned when statements have stopped.
type calm struct {
	trim func() (done bool, err error)

	mu      sync.Mutex
	running int
	took    time.Duration // by all statements since memory was returned
	trimmed time.Time     // when it was
	timer   *time.Timer
	closed  bool
}

func newCalm(trim func() (bool, error)) *calm { return &calm{trim: trim} }

// statement notes that a statement runs, until end is called.
func (c *calm) statement() (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running++
	if c.timer != nil {
		c.timer.Stop()
	}
	began := time.Now()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running--
		c.took += time.Since(began)
		c.wait()
	}
}

// wait has memory returned later, unless a statement begins. mu is held.
func (c *calm) wait() {
	after := max(calmAfter, time.Until(c.trimmed.Add(trimAgain)))
	switch {
	case c.running > 0 || c.closed || c.took < worthTrim:
	case c.timer == nil:
		c.timer = time.AfterFunc(after, c.now)
	default:
		c.timer.Reset(after)
	}
}

func (c *calm) now() {
	done, err := c.trim()
	c.mu.Lock()
	defer c.mu.Unlock()
	if done || err != nil { // one that fails does so the next time
		c.took, c.trimmed = 0, time.Now()
	}
	c.wait()
}

func (c *calm) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
}
