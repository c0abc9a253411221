package source

import (
	"maps"
	"net"
	"sync"
)

// Connections knows which connections the sources of a process have made, so that a proxy
// among them recognizes its own request. It is safe for concurrent use.
type Connections struct {
	mu    sync.Mutex
	conns map[string]Chain // by the name that the other end has for the connection
}

// Chain is the set of proxies that a request has come through.
type Chain map[any]struct{}

// NewConnections returns an empty set.
func NewConnections() *Connections { return &Connections{conns: make(map[string]Chain)} }

// ends names a connection. One address is not enough: a port is used again for
// connections to somewhere else.
func ends(from, to net.Addr) string { return from.String() + " " + to.String() }

// Through returns the proxies behind a connection that was accepted.
func (l *Connections) Through(c net.Conn) Chain {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conns[ends(c.RemoteAddr(), c.LocalAddr())]
}

// Track notes that proxy made a connection for a request that had come through others.
func (l *Connections) Track(c net.Conn, proxy any, through Chain) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	all := maps.Clone(through)
	if all == nil {
		all = make(Chain, 1)
	}
	all[proxy] = struct{}{}
	key := ends(c.LocalAddr(), c.RemoteAddr())
	l.mu.Lock()
	l.conns[key] = all
	l.mu.Unlock()
	return &tracked{TCPConn: tcp, forget: sync.OnceFunc(func() {
		l.mu.Lock()
		delete(l.conns, key)
		l.mu.Unlock()
	})}
}

// Len is the number of connections that are open.
func (l *Connections) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// tracked is a connection that is removed from the set when it is closed.
type tracked struct {
	*net.TCPConn
	forget func()
}

func (c *tracked) Close() error {
	c.forget() // before another connection can have the ports
	return c.TCPConn.Close()
}
