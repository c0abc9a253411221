// Package freeport finds addresses for servers that are started later, or again.
//
// A port that the system chose and that was closed again is not kept: it lies among
// those that outgoing connections are given, of which tests that run beside each other
// open thousands. A client that keeps dialling a closed port of that kind is one
// day given the same port for its own end and so connects to itself. Either makes the
// server's listen fail.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Loopback returns an address, 127.0.0.1:port, that nobody listens on and whose port is
// below the range that Linux (from 32768), the BSDs, macOS and Windows (from 49152)
// give to outgoing connections.
func Loopback() (string, error) {
	var failed error
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
		failed = err
	}
	return "", errors.Join(errors.New("freeport: no port is free"), failed)
}
