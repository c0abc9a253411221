package clickhouse

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// standbyAsked is how often an embedded store that has closed its engine is asked whether it is open again.
	standbyAsked = time.Minute
	// standbyMost is for how long work that is due waits for another reason to open the engine. Each hour the
	// sidecar looks for changes, which is one, so this is a little longer.
	standbyMost = 70 * time.Minute
)

// standby is whether an embedded store has closed its engine, because no statement came for minutes.
type standby struct {
	socket string // empty: a server, which has no such state
}

// pause is pause, and then waits until the engine is open, or work was postponed for long: nothing is stored meanwhile, so
// the work is of the kind that time alone makes.
func (s standby) pause(ctx context.Context, d time.Duration) error {
	for began := time.Now(); ; d = standbyAsked {
		if err := pause(ctx, d); err != nil {
			return err
		}
		if time.Since(began) >= standbyMost || !s.now(ctx) {
			return nil
		}
	}
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
