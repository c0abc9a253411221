package source

import (
	"net"
	"testing"
)

func TestServerOf(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:7777":             "127.0.0.1:7777",
		"https://api.harbour.internal/base": "api.harbour.internal:443",
		"http://[::1]/stream":               "[::1]:80",
		"wss://harbour/ws":                  "harbour:443",
		"http://harbour:8283/v1":            "harbour:8283",
		"":                                  "",
	} {
		if got := ServerOf(address); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

// TestConnectionsHaveTwoEnds: the port of a connection to the upstream may be that of a
// client, because the other end differs.
func TestConnectionsHaveTwoEnds(t *testing.T) {
	open := NewConnections()
	a, b, c := &net.TCPAddr{Port: 1}, &net.TCPAddr{Port: 2}, &net.TCPAddr{Port: 3}
	open.conns[ends(a, b)] = Chain{nil: {}}
	if open.Through(fakeConn{local: b, remote: a}) == nil || open.Through(fakeConn{local: c, remote: a}) != nil {
		t.Error("taken for one another")
	}
}

// fakeConn is a connection with addresses.
type fakeConn struct {
	local, remote net.Addr
	net.Conn
}

func (c fakeConn) LocalAddr() net.Addr  { return c.local }
func (c fakeConn) RemoteAddr() net.Addr { return c.remote }
