package source

import (
	"errors"
	"net/http"
	"slices"
)

// maxRedirects is that of http.Client without a policy of its own.
const maxRedirects = 10

// Redirect is the policy of a client whose requests have configured headers: they are for the
// configured server, and none of them follows a redirect to another one. http.Client knows that
// of Authorization and Cookie alone.
func Redirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return errors.New("stopped after 10 redirects")
	}
	first := via[0].URL
	if req.URL.Host == first.Host && (req.URL.Scheme == first.Scheme || first.Scheme == "http") {
		return nil
	}
	for name := range req.Header {
		if !slices.Contains([]string{"Accept", "Accept-Encoding", "Cache-Control", "Content-Type", "Last-Event-Id", "User-Agent", "Connection", "Upgrade"}, name) &&
			(len(name) < 14 || name[:14] != "Sec-Websocket-") {
			delete(req.Header, name)
		}
	}
	return nil
}
