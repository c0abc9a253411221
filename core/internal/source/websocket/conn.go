package websocket

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// errEnd is the end of a TCP connection. The library takes io.EOF in the middle of
// a message for the message's end, and would return a truncated message as a
// whole one.
var errEnd = errors.New("the connection ended")

type conn struct {
	net.Conn
	heard *atomic.Int64 // when bytes came last, Unix ns
}

func (c conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Store(time.Now().UnixNano())
	}
	if err == io.EOF {
		err = errEnd
	}
	return n, err
}

// newTransport returns a transport whose connections end with errEnd, and note when bytes came.
func newTransport(heard *atomic.Int64) *http.Transport {
	wrapped := func(c net.Conn, err error) (net.Conn, error) {
		if err != nil {
			return nil, err
		}
		return conn{c, heard}, nil
	}
	plain := &net.Dialer{Timeout: 10 * time.Second}
	secure := &tls.Dialer{NetDialer: plain, Config: &tls.Config{NextProtos: []string{"http/1.1"}}}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := plain.DialContext(ctx, network, addr)
			return wrapped(c, err)
		},
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := secure.DialContext(ctx, network, addr)
			return wrapped(c, err)
		},
	}
}
