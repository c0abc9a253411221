// Package freeport finds addresses for servers that are started later, or again.
//
// A port that the system chose and that was closed again is in the range of the ephemeral
// ports, of which tests that run in parallel open thousands for outgoing connections. A
// client that keeps dialling a closed port of that range sooner or later has the same port at
// its own end, and so connects to itself. Either makes the server's listen fail.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Loopback returns an address, 127.0.0.1:port, that no process listens on and whose port is
// below the ephemeral range of Linux (from 32768), the BSDs, macOS and Windows (from 49152).
func Loopback() (string, error) {
	all, err := Loopbacks(1)
	if err != nil {
		return "", err
	}
	return all[0], nil
}

// Loopbacks returns that many such addresses, no two of which are the same: each is held until
// the last one is found. Of addresses that were found one by one two are the same sooner than it
// seems, of 110 in one case of four.
func Loopbacks(n int) (all []string, err error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			err = errors.Join(err, l.Close())
		}
	}()
	for range n {
		l, err := listen()
		if err != nil {
			return nil, err
		}
		held, all = append(held, l), append(all, l.Addr().String())
	}
	return all, nil
}

func listen() (net.Listener, error) {
	var failed error
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err == nil {
			return l, nil
		}
		failed = err
	}
	return nil, errors.Join(errors.New("freeport: no port is free"), failed)
}
