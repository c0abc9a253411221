package mcp

import (
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Handler serves streamable HTTP to clients with the token, as "Authorization: Bearer TOKEN". addr is the
// address that is listened on, with its port: a request for another host, or from a page of another origin, is
// refused with any token.
func (m *Server) Handler(addr, token string) http.Handler {
	_, port, _ := net.SplitHostPort(addr) // a listener's
	hosts := map[string]bool{addr: true, "localhost:" + port: true}
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return m.sdk }, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case !hosts[r.Host]:
			http.Error(w, "this is served to this machine only", http.StatusMisdirectedRequest)
		case len(r.Header.Values("Origin")) > 0 && (!strings.HasPrefix(origin, "http://") || !hosts[strings.TrimPrefix(origin, "http://")]):
			http.Error(w, "requests of pages from elsewhere are refused", http.StatusForbidden)
		case token == "" || !bearer || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the token is missing or wrong: send Authorization: Bearer TOKEN", http.StatusUnauthorized)
		default:
			h.ServeHTTP(w, r)
		}
	})
}
