package tap

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// newProxy returns the proxy to the upstream.
func (t *Tap) newProxy() *httputil.ReverseProxy {
	one, two := t.transport(protocols(true, false, false)), t.transport(protocols(true, true, false))
	if t.upstream.Scheme == "http" {
		two = t.transport(protocols(false, false, true))
	}
	t.close = func() {
		one.CloseIdleConnections()
		two.CloseIdleConnections()
	}
	return &httputil.ReverseProxy{
		Rewrite:        t.rewrite,
		Transport:      mirror{one, two, t.upstream.Scheme == "https"},
		FlushInterval:  -1,
		BufferPool:     newBuffers(),
		ModifyResponse: t.answered,
		ErrorHandler:   t.failed,
		ErrorLog:       slog.NewLogLogger(t.Logger.Handler(), slog.LevelDebug),
	}
}

func (t *Tap) transport(p *http.Protocols) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	var through func(*http.Request) (*url.URL, error) // as the client would go by itself; an http:// upstream is beside us
	if t.upstream.Scheme == "https" {
		through = http.ProxyFromEnvironment
	}
	return &http.Transport{
		Proxy: through,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			through, _ := ctx.Value(throughKey).(source.Chain)
			return t.Connections.Track(c, t, through), nil
		},
		Protocols:             p,
		TLSClientConfig:       t.trust(),
		TLSHandshakeTimeout:   10 * time.Second,
		DisableCompression:    true, // the client decides on the encoding
		MaxIdleConnsPerHost:   1024,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// authorityFiles are the variables of the environment by which agents trust more authorities than the system: those of Node and
// of Python's requests. SSL_CERT_FILE is the system's.
var authorityFiles = [...]string{"NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"}

// trust is the TLS towards the upstream. Without a configuration it has the authorities that the client would trust.
func (t *Tap) trust() *tls.Config {
	if t.ClientTLS != nil {
		return t.ClientTLS.Clone()
	}
	var all *x509.CertPool
	for _, name := range authorityFiles {
		path := os.Getenv(name)
		if path == "" {
			continue
		}
		if all == nil {
			var err error
			if all, err = x509.SystemCertPool(); err != nil {
				all = x509.NewCertPool()
			}
		}
		if b, err := os.ReadFile(path); err != nil || !all.AppendCertsFromPEM(b) {
			t.Logger.Warn("no authorities are read from the file of the environment", "variable", name, "path", path, "error", err)
		}
	}
	if all == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: all}
}

// mirror uses the client's version of HTTP towards the upstream.
type mirror struct {
	one, two *http.Transport
	tls      bool // two can speak both
}

func (m mirror) RoundTrip(r *http.Request) (*http.Response, error) {
	// A client that agreed on HTTP/2 in TLS does not imply an upstream that speaks h2c.
	if r.ProtoMajor == 2 && (m.tls || r.TLS == nil) {
		return m.two.RoundTrip(r)
	}
	return m.one.RoundTrip(r)
}

// forwarded are the headers that httputil.ReverseProxy removes because clients can forge
// them. The tap passes them on.
var forwarded = [...]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// rewrite builds the request that the client would send without the tap.
func (t *Tap) rewrite(p *httputil.ProxyRequest) {
	in, out := p.In, p.Out
	out.URL = t.target(in)
	if t.upstream.Scheme == "https" && isAddress(in.Host) {
		out.Host = "" // the URL's
	}
	for _, name := range forwarded {
		if v, ok := in.Header[name]; ok && !hopByHop(in.Header, name) {
			out.Header[name] = v
		}
	}
	if _, present := in.Header["Content-Length"]; present && in.ContentLength == 0 {
		// This makes net/http write Content-Length: 0 for every method but GET and HEAD,
		// whose clients do not send it.
		out.Body, out.TransferEncoding = http.NoBody, []string{"identity"}
	}
	// The same map, which the end of the body fills.
	out.Trailer = in.Trailer
}

// hopByHop reports whether the Connection header names the header.
func hopByHop(h http.Header, name string) bool {
	for _, v := range h["Connection"] {
		for token := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(token), name) {
				return true
			}
		}
	}
	return false
}

// target is the URL of a request at the upstream, whose path and query are written
// as the client wrote them.
func (t *Tap) target(in *http.Request) *url.URL {
	u := *in.URL
	u.Scheme, u.Host, u.User = t.upstream.Scheme, t.upstream.Host, nil
	prefix := strings.TrimSuffix(t.upstream.EscapedPath(), "/")
	raw, _, _ := strings.Cut(in.RequestURI, "?")
	switch {
	case in.URL.Scheme == t.upstream.Scheme && prefix == "":
		// An absolute URI, as proxies are asked. Opaque is written as it is, behind the
		// scheme if it begins with two slashes.
		u.Opaque = strings.TrimPrefix(raw, in.URL.Scheme+":")
		return &u
	case !strings.HasPrefix(raw, "/"): // another one, or *
		raw = u.EscapedPath()
	}
	if raw = prefix + raw; raw != u.EscapedPath() && strings.HasPrefix(raw, "/") && !strings.HasPrefix(raw, "//") {
		u.Opaque = raw
	}
	return &u
}

// isAddress reports whether a Host names a machine by its address.
func isAddress(host string) bool {
	name := hostname(host)
	if strings.EqualFold(name, "localhost") {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}

// writer keeps net/http from adding headers that the upstream did not send.
type writer struct{ http.ResponseWriter }

func (w writer) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		h := w.Header()
		for _, name := range [...]string{"Date", "Content-Type"} {
			if _, ok := h[name]; !ok {
				h[name] = nil
			}
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController flush and hijack.
func (w writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// buffers is the pool of the buffers that copy bodies.
type buffers struct{ pool sync.Pool }

const bufferSize = 16 << 10

func newBuffers() *buffers {
	return &buffers{sync.Pool{New: func() any { return new([bufferSize]byte) }}}
}

func (b *buffers) Get() []byte { return b.pool.Get().(*[bufferSize]byte)[:] }

func (b *buffers) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }
