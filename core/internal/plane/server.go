package plane

import (
	"net"
	"sync"
)

// server accepts calls.
type server struct {
	listener *net.UnixListener
	calls    sync.WaitGroup

	mu   sync.Mutex
	open map[*Conn]bool // nil after Close
}

func (s *server) accept(handle func(Call)) {
	for {
		u, err := s.listener.AcceptUnix()
		if err != nil {
			return
		}
		c := newConn(u)
		if !s.begin(c) {
			c.Close()
			return
		}
		s.calls.Go(func() {
			defer s.end(c)
			handle(Call{c})
		})
	}
}

func (s *server) begin(c *Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		return false
	}
	s.open[c] = true
	return true
}

func (s *server) end(c *Conn) {
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// Close implements io.Closer.
func (s *server) Close() error {
	err := s.listener.Close()
	s.mu.Lock()
	for c := range s.open {
		c.Close()
	}
	s.open = nil
	s.mu.Unlock()
	s.calls.Wait()
	return err
}
