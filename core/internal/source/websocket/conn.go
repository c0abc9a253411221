package websocket

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// errEnd is the end of a TCP connection. The library takes io.EOF in the middle of
// a message for the message's end, and would return a truncated message as a
// whole one.
var errEnd = errors.New("the connection ended")

type conn struct{ net.Conn }

func (c conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == io.EOF {
		err = errEnd
	}
	return n, err
}

// newTransport returns a transport whose connections end with errEnd.
func newTransport() *http.Transport {
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

func wrapped(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	return conn{c}, nil
}
