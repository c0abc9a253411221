package store

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"time"

	"github.com/earshot-dev/earshot/core/loopback"
)

// GatewaySettings are who may reach the store by TCP, and where.
type GatewaySettings struct {
	Listen      string // loopback address; port 0 takes a free one
	Token       string // password of the user reader; empty: a random one
	WriterToken string // password of the user default; empty: the user does not exist here
	Logger      *slog.Logger
}

// Gateway serves the store by TCP, for programs that cannot use its Unix socket: Grafana, curl,
// a ClickHouse driver. A request needs a token, is for exactly the gateway's address, and is not
// a web page's.
type Gateway struct {
	settings GatewaySettings
	listener net.Listener
	server   *http.Server
	note     string // file with the token
	done     chan struct{}
}

// tokenFile has the reader's token, in the store's data directory.
const tokenFile = "token"

// OpenGateway listens, and answers until Close.
func (s *Store) OpenGateway(g GatewaySettings) (*Gateway, error) {
	if _, _, err := net.SplitHostPort(g.Listen); err != nil {
		return nil, fmt.Errorf("store: listen: %w", err)
	} else if !loopback.Is(g.Listen) {
		return nil, fmt.Errorf("store: listen: %s is not a loopback address, and there is no TLS", g.Listen)
	}
	if g.Token == "" {
		b := make([]byte, 16)
		_, _ = rand.Read(b)
		g.Token = hex.EncodeToString(b)
	}
	l, err := net.Listen("tcp", g.Listen)
	if err != nil {
		return nil, fmt.Errorf("store: listen: %w", err)
	}
	gw := &Gateway{settings: g, listener: l, note: filepath.Join(s.settings.Dir, tokenFile), done: make(chan struct{})}
	if err := os.WriteFile(gw.note, []byte(g.Token+"\n"), 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("store: %w", err)
	}
	transport := s.transport()
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: slog.NewLogLogger(g.Logger.Handler(), slog.LevelDebug),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "store", "store"
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "The store does not answer: "+err.Error(), http.StatusBadGateway)
		},
	}
	gw.server = &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { gw.serve(w, r, proxy) }),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute, MaxHeaderBytes: 1 << 20,
		ErrorLog: proxy.ErrorLog,
	}
	go func() {
		defer close(gw.done)
		if err := gw.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			g.Logger.Error("the gateway of the store has ended", "error", err)
		}
		transport.CloseIdleConnections()
	}()
	return gw, nil
}

// URL is the address with the user and the token of a reader.
func (g *Gateway) URL() string { return "http://reader:" + g.settings.Token + "@" + g.Addr() }

// Addr is host and port.
func (g *Gateway) Addr() string { return g.listener.Addr().String() }

// Close ends the gateway within a second.
func (g *Gateway) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if g.server.Shutdown(ctx) != nil {
		_ = g.server.Close()
	}
	<-g.done
	_ = os.Remove(g.note)
}

// serve passes a request on that proves who sent it.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, proxy http.Handler) {
	if why := g.foreign(r); why != "" {
		http.Error(w, "Forbidden: "+why+".", http.StatusForbidden)
		return
	}
	switch r.URL.Path {
	case "/ping":
		proxy.ServeHTTP(w, r)
		return
	case "/flush": // for the sidecar
		http.NotFound(w, r)
		return
	}
	user, ok := g.user(r)
	if !ok {
		w.Header().Set("WWW-Authenticate", `Basic realm="ClickHouse server HTTP API"`)
		w.Header().Set("X-ClickHouse-Exception-Code", "516")
		http.Error(w, "Code: 516. DB::Exception: "+user+": Authentication failed: the password of the user reader is the token that `earshot store --listen` prints. (AUTHENTICATION_FAILED)", http.StatusUnauthorized)
		return
	}
	query := r.URL.Query()
	query.Del("user")
	query.Del("password")
	r.URL.RawQuery = query.Encode()
	for _, name := range []string{"Authorization", "X-ClickHouse-Key", "Origin", "Referer", "Cookie"} {
		r.Header.Del(name)
	}
	r.Header.Set("X-ClickHouse-User", user)
	proxy.ServeHTTP(w, r)
}

// foreign returns why a request may be a web page's: a name that was rebound to this machine
// shows in Host, a page in Origin or Sec-Fetch-Site. It returns "" when all is well.
func (g *Gateway) foreign(r *http.Request) string {
	_, port, _ := net.SplitHostPort(g.Addr())
	if r.Host != g.Addr() && r.Host != net.JoinHostPort("localhost", port) {
		return "the Host header is not " + g.Addr()
	}
	if r.Header.Get("Origin") != "" {
		return "the request comes from a web page"
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none":
		return ""
	}
	return "the request comes from a web page"
}

// user is who a request proves to be, by any of the ways that ClickHouse knows.
func (g *Gateway) user(r *http.Request) (name string, ok bool) {
	name, password, _ := r.BasicAuth()
	if u := r.Header.Get("X-ClickHouse-User"); u != "" {
		name, password = u, r.Header.Get("X-ClickHouse-Key")
	}
	query := r.URL.Query()
	if u := query.Get("user"); u != "" {
		name = u
	}
	if p := query.Get("password"); p != "" {
		password = p
	}
	switch name {
	case "", "reader":
		return "reader", equal(password, g.settings.Token)
	case "default":
		return name, g.settings.WriterToken != "" && equal(password, g.settings.WriterToken)
	}
	return name, false
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
