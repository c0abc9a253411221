package httpd

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// fromHere returns an error when a request may be a web page's and not a local program's:
// a name that was rebound to 127.0.0.1 shows in Host, a foreign page in Origin or
// Sec-Fetch-Site. It returns "" when all is well.
func fromHere(r *http.Request) string {
	if !Loopback(r.Host) {
		return "the Host header is not a loopback address"
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !Loopback(u.Host) {
			return "the request comes from a web page of another origin"
		}
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return "the request comes from a web page of another site"
	}
	return ""
}

// Loopback reports whether hostport, with or without a port, names this machine
// by localhost or a loopback address.
func Loopback(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback()
}
