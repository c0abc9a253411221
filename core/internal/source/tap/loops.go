package tap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
)

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
