package clickhouse

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// standbyAsked is how often an embedded store that has closed its engine is asked whether it is open again.
	standbyAsked = time.Minute
	// standbyMost is for how long work that is due waits for another reason to open the engine. Each hour the
	// sidecar looks for changes, which is one, so this is a little longer.
	standbyMost = 70 * time.Minute
)

// standby is whether an embedded store has closed its engine, because no statement came for a while.
type standby struct {
	socket string // empty: a server, which has no such state
	stored *bell  // rung when rows were stored: the engine is open for seconds then
}

// pause is pause, and then waits until the engine is open, or work was postponed for long: nothing is stored meanwhile, so
// the work is of the kind that time alone makes.
func (s standby) pause(ctx context.Context, d time.Duration) error {
	if err := pause(ctx, d); err != nil {
		return err
	}
	return s.open(ctx, standbyMost-d)
}

// open waits until the engine is open, as a server always is, or for so long.
func (s standby) open(ctx context.Context, most time.Duration) error {
	if s.socket == "" {
		return ctx.Err()
	}
	stored := s.stored.next()
	for began := time.Now(); time.Since(began) < most && s.now(ctx); {
		if rung, err := stored.within(ctx, standbyAsked); rung || err != nil {
			return err
		}
	}
	return ctx.Err()
}

// now reports whether the engine is closed. The question does not open it.
func (s standby) now(ctx context.Context) bool {
	if s.socket == "" {
		return false
	}
	c, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "unix", s.socket)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://store/standby", nil)
	if err != nil || r.Write(c) != nil {
		return false
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), r)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	line, _ := bufio.NewReader(resp.Body).ReadString('\n')
	return strings.TrimSpace(line) == "yes"
}

// bell wakes those that wait for the next time that it is rung.
type bell struct {
	mu   sync.Mutex
	rung chan struct{}
}

// ring is a time that a bell is rung: it is closed then.
type ring <-chan struct{}

func (b *bell) next() ring {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

// within waits until then, or for so long.
func (r ring) within(ctx context.Context, d time.Duration) (rung bool, err error) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-r:
		return true, nil
	case <-t.C:
		return false, nil
	}
}
