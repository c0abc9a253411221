package standby

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Conns are the connections of an HTTP server whose program becomes another one. A server that shuts down
// drops the requests that arrive meanwhile: it closes the connections that idle and those whose
// request it has just read. So a connection is taken from it before, where no byte of a next request was
// read, and the next program answers the requests on it.
type Conns struct {
	mu   sync.Mutex
	open map[*conn]struct{}
}

// Follow has a server, which serves Listener, report the state of its connections.
func (s *Conns) Follow(server *http.Server) {
	server.ConnState = func(c net.Conn, state http.ConnState) {
		c.(*conn).is(state)
		if state == http.StateClosed {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.open, c.(*conn))
		}
	}
}

// Listener accepts the connections of l.
func (s *Conns) Listener(l net.Listener) net.Listener { return &followed{l, s} }

type followed struct {
	net.Listener
	conns *Conns
}

// Accept implements net.Listener.
func (f *followed) Accept() (net.Conn, error) {
	accepted, err := f.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted}
	f.conns.mu.Lock()
	defer f.conns.mu.Unlock()
	if f.conns.open == nil {
		f.conns.open = make(map[*conn]struct{})
	}
	f.conns.open[c] = struct{}{}
	return c, nil
}

// Take takes the connections from the server, each when its request is answered, until it has none or ctx
// ends. Nothing is accepted meanwhile. The descriptors are copies.
func (s *Conns) Take(ctx context.Context) (descriptors []int) {
	for {
		s.mu.Lock()
		rest := len(s.open)
		for c := range s.open {
			if fd, ok := c.take(); ok {
				descriptors = append(descriptors, fd)
			}
		}
		s.mu.Unlock()
		if rest == 0 {
			return descriptors
		}
		select {
		case <-ctx.Done():
			return descriptors
		case <-time.After(time.Millisecond):
		}
	}
}

// conn is a connection that can be taken from its reader.
type conn struct {
	net.Conn
	reading sync.Mutex // held by Read

	mu       sync.Mutex
	between  bool // requests, or before the first
	begun    bool // a byte was read after the last one was written
	taken    bool
	deadline time.Time
}

// is notes a state that the server reports.
func (c *conn) is(state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.between = state == http.StateNew || state == http.StateIdle
}

// take ends the reading and returns a copy of the descriptor, unless a request has begun, or it was taken before.
func (c *conn) take() (fd int, ok bool) {
	c.mu.Lock()
	if !c.between || c.begun || c.taken {
		c.mu.Unlock()
		return 0, false
	}
	fd, err := c.copied() // first: who reads closes it
	c.taken = err == nil
	if c.taken {
		_ = c.Conn.SetReadDeadline(time.Now()) // wakes Read
	}
	c.mu.Unlock()
	if err != nil {
		return 0, false
	}

	c.reading.Lock()
	defer c.reading.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun { // meanwhile
		c.goOn()
		_ = unix.Close(fd)
		return 0, false
	}
	return fd, true
}

// copied returns a copy of the descriptor.
func (c *conn) copied() (int, error) {
	raw, ok := c.Conn.(syscall.Conn)
	if !ok {
		return 0, fmt.Errorf("standby: a connection of %T has no descriptor", c.Conn)
	}
	fd, err := Descriptor(raw)
	if err != nil {
		return 0, err
	}
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
}

// goOn leaves the connection to its reader. mu is held.
func (c *conn) goOn() {
	c.taken = false
	_ = c.Conn.SetReadDeadline(c.deadline)
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	for {
		if c.gone() {
			return 0, os.ErrDeadlineExceeded
		}
		n, err := c.Conn.Read(p)
		if c.again(n, err) {
			continue
		}
		return n, err
	}
}

// gone reports whether the connection is not the reader's any more.
func (c *conn) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken && !c.begun
}

// again notes a read, and reports whether nothing was because take interrupted a request that had begun.
func (c *conn) again(n int, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = c.begun || n > 0
	if n > 0 || !c.taken || !c.begun || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	c.goOn()
	return true
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.begun = false
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// CloseWrite closes the writing side, as a server does before it closes a connection whose request it has not read.
func (c *conn) CloseWrite() error {
	if u, ok := c.Conn.(*net.UnixConn); ok {
		return u.CloseWrite()
	}
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	if c.taken {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}
