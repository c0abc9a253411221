package source

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/config/spec"
	"github.com/earshot-dev/earshot/core/loopback"
)

// Served is an HTTP server with its listener; it serves TLS if it has a configuration for it.
type Served struct {
	*http.Server
	Listener net.Listener
}

// Serve serves until ctx ends, or until one of the servers fails, whose error it returns. Requests in
// progress have the grace to end then; after it their connections are closed.
func Serve(ctx context.Context, grace time.Duration, servers ...Served) (err error) {
	served := make(chan error, len(servers))
	for _, s := range servers {
		go func() {
			if s.TLSConfig != nil {
				served <- s.ServeTLS(s.Listener, "", "")
			} else {
				served <- s.Serve(s.Listener)
			}
		}()
	}
	ended := 0
	select {
	case err = <-served:
		ended++
	case <-ctx.Done():
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		var all sync.WaitGroup
		for _, s := range servers {
			all.Go(func() { _ = s.Shutdown(patience) })
		}
		all.Wait()
		cancel()
	}
	for _, s := range servers {
		_ = s.Close()
	}
	for ; ended < len(servers); ended++ {
		<-served
	}
	return err
}

// Authorized reports whether a request carries the bearer token, in a time that does not depend on
// either. Every request does if the token is empty.
func Authorized(r *http.Request, token spec.Secret) bool {
	if token.Reveal() == "" {
		return true
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	a, b := sha256.Sum256([]byte(strings.TrimSpace(given))), sha256.Sum256([]byte(token.Reveal()))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

// Rebound reports whether a request may be a web page's that reached this machine by a name of its own, which its DNS server
// has led here: to the browser the listener is then the page's own server. A page that names this machine has another origin
// than the listener, and the browser does not let it send any of the content types that are taken.
func Rebound(r *http.Request, token spec.Secret) bool {
	return token.Reveal() == "" && r.Header.Get("Origin") != "" && !loopback.Is(r.Host)
}
