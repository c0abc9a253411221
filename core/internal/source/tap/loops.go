package tap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"sync"
)

// Loops knows which connections the taps of a process have made, so that one of
// them finds out when it is asked by itself. It is safe for concurrent use.
type Loops struct {
	mu    sync.Mutex
	conns map[string]chain // by what the other end has as its connection
}

// ends names a connection. One address is not enough: a port is used again for
// connections to somewhere else.
func ends(from, to net.Addr) string { return from.String() + " " + to.String() }

// chain are the taps that a request has come through.
type chain map[*Tap]struct{}

// NewLoops returns an empty one.
func NewLoops() *Loops { return &Loops{conns: make(map[string]chain)} }

// through returns the taps behind a connection that was accepted.
func (l *Loops) through(c net.Conn) chain {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conns[ends(c.RemoteAddr(), c.LocalAddr())]
}

// track notes that t made a connection for a request that had come through taps.
func (l *Loops) track(c net.Conn, t *Tap, through chain) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	all := maps.Clone(through)
	if all == nil {
		all = make(chain, 1)
	}
	all[t] = struct{}{}
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

// tracked is a connection that is forgotten when it is closed.
type tracked struct {
	*net.TCPConn
	forget func()
}

func (c *tracked) Close() error {
	c.forget() // before the ports can be somebody else's
	return c.TCPConn.Close()
}

// errItself is the configuration that sends a tap's requests to the tap.
var errItself = errors.New("upstream is the address that the tap itself listens on")

// checkUpstream finds out whether the upstream is the listener.
func checkUpstream(ctx context.Context, upstream *url.URL, listener net.Addr) error {
	own, err := netip.ParseAddrPort(listener.String())
	if err != nil {
		return nil // not an IP listener
	}
	port := upstream.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[upstream.Scheme]
	}
	if port != fmt.Sprint(own.Port()) {
		return nil
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", upstream.Hostname())
	if err != nil {
		return nil // it may be found later
	}
	for _, a := range addrs {
		a = a.Unmap()
		if a == own.Addr().Unmap() || own.Addr().IsUnspecified() && isLocal(a) {
			return errItself
		}
	}
	return nil
}

// isLocal reports whether an address is one of this host.
func isLocal(a netip.Addr) bool {
	if a.IsLoopback() || a.IsUnspecified() {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, i := range addrs {
		if p, err := netip.ParsePrefix(i.String()); err == nil && p.Addr().Unmap() == a {
			return true
		}
	}
	return false
}
