// Package loopback knows the addresses that only programs of this machine reach.
package loopback

import (
	"net"
	"strings"
)

// Is reports whether a host, with a port or without, is this machine's loopback: localhost, or an
// address of it. No host at all is every address, and so is not.
func Is(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
