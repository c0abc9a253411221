package tap

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source/recordtest"
)

// echo is an agent server whose answer repeats the request, in any form that the request
// asks for.
type echo struct{ t *testing.T }

func (e echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var heard bytes.Buffer
	fmt.Fprintf(&heard, "%s %q host=%s length=%d body=%q\n", r.Method, r.RequestURI, r.Host, r.ContentLength, body)
	writeHeader(&heard, r.Header)
	writeHeader(&heard, r.Trailer)

	seed, _ := url.QueryUnescape(r.Header.Get("Seed"))
	rng := rand.New(rand.NewPCG(uint64(len(seed)), hashOf(seed)))
	h := w.Header()
	if rng.IntN(3) == 0 {
		h["Date"] = nil
	} else {
		h.Set("Date", "Thu, 01 Jan 2026 00:00:00 GMT")
	}
	switch rng.IntN(6) {
	case 0:
		h["Content-Type"] = nil
	case 1:
		h.Set("Content-Type", "text/event-stream")
	case 2:
		h.Set("Content-Type", "text/html")
	case 3:
		h.Set("Content-Type", "application/x-ndjson")
	default:
		h.Set("Content-Type", "application/json")
	}
	h.Add("Set-Cookie", "a=1; Path=/")
	h.Add("Set-Cookie", "b=2")
	h.Set("X-Odd", "\xe9 \"q\"")
	h.Set("Server", "echo")
	announced := rng.IntN(4) == 0
	if rng.IntN(5) == 0 {
		h.Set("Link", "</s.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
	}
	status := []int{200, 200, 200, 201, 202, 204, 301, 304, 400, 404, 418, 500, 503, 599}[rng.IntN(14)]
	answer := heard.Bytes()
	if rng.IntN(3) == 0 {
		answer = bytes.Repeat(answer, 1+rng.IntN(40))
	}
	if rng.IntN(2) == 0 && status != 204 && status != 304 {
		h.Set("Content-Length", fmt.Sprint(len(answer)))
	}
	if announced = announced && status != 204 && status != 304 && r.Method != "HEAD" && h.Get("Content-Length") == ""; announced {
		h.Set("Trailer", "X-Announced")
	}
	if status == 301 {
		h.Set("Location", "/elsewhere?x=1")
	}
	w.WriteHeader(status)
	for len(answer) > 0 && status != 204 && status != 304 { // cut at random
		n := min(len(answer), 1+rng.IntN(2000))
		_, _ = w.Write(answer[:n])
		answer = answer[n:]
		if rng.IntN(3) == 0 {
			_ = http.NewResponseController(w).Flush()
		}
		if rng.IntN(400) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	if announced {
		h.Set("X-Announced", "trailing")
	}
	if rng.IntN(8) == 0 && h.Get("Content-Length") == "" {
		h.Set(http.TrailerPrefix+"X-Sudden", "trailing too")
	}
}

func hashOf(s string) (h uint64) {
	for i := range len(s) {
		h = h*1099511628211 ^ uint64(s[i])
	}
	return h
}

func writeHeader(w io.Writer, h http.Header) {
	for _, k := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(w, "%s: %q\n", k, h[k])
	}
}

// paths that proxies like to repair.
var paths = []string{
	"/", "//", "//x//y", "/a/../b/./c", "/a%2Fb", "/a%2fb", "/%7Euser/~user", "/sp%20ace", "/semi;colon=1/x", "/pipe|caret^", "/quote\"s",
	"/%E2%82%AC", "/\xe2\x82\xac", "/back\\slash", "/brackets[1]{2}", "/a%00b", "/trailing/", "/v1/messages", "/plus+plus", "/at@colon:1",
}

var queries = []string{
	"", "?", "?a=1&b=2", "?b=2&a=1", "?a;b", "?a=%zz", "?a=%", "?x=y=z", "?a=1&a=2", "?%20", "?q=a+b", "?a[]=1", "?url=http://h/p?q#f",
}

// raw is a request as bytes.
func raw(rng *rand.Rand, host string, n int) string {
	methods := []string{"GET", "GET", "POST", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "PROPFIND", "BREW"}
	method := methods[rng.IntN(len(methods))]
	path := paths[rng.IntN(len(paths))]
	if strings.HasPrefix(path, "//") && rng.IntN(2) == 0 {
		path = "/y"
	}
	target := path + queries[rng.IntN(len(queries))]
	switch rng.IntN(40) {
	case 0:
		method, target = "OPTIONS", "*"
	case 1:
		target = "http://elsewhere.example" + target
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nSeed: %d\r\n", method, target, host, n)
	for _, h := range []string{
		"User-Agent: odd/1", "Accept: */*", "Accept-Encoding: gzip, br", "X-Forwarded-For: 10.0.0.1", "X-Forwarded-Host: h", "Forwarded: for=1",
		"X-Forwarded-Proto: https", "Via: 1.1 other", "Cookie: a=1; b=2", "Authorization: Bearer x", "X-Empty:", "X-Twice: 1\r\nX-Twice: 2",
		"Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "X-Latin: \xe9", "TE: trailers", "Cache-Control: no-cache",
	} {
		if rng.IntN(4) == 0 {
			b.WriteString(h + "\r\n")
		}
	}
	body := strings.Repeat("{\"prompt\":\"x\"}\n", rng.IntN(1+rng.IntN(300)))
	switch {
	case method == "GET" || method == "HEAD" || method == "OPTIONS":
		b.WriteString("\r\n")
	case rng.IntN(3) == 0:
		if rng.IntN(2) == 0 {
			b.WriteString("Trailer: X-End\r\n")
		}
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		for len(body) > 0 {
			n := min(len(body), 1+rng.IntN(1000))
			fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
			body = body[n:]
		}
		b.WriteString("0\r\n")
		if rng.IntN(2) == 0 {
			b.WriteString("X-End: here\r\n")
		}
		b.WriteString("\r\n")
	default:
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	}
	return b.String()
}

// answer reads an answer as it is on the wire, but for the cut into chunks.
func answer(conn *reader, method string) (string, error) {
	var b bytes.Buffer
	for {
		res, err := http.ReadResponse(conn.br, &http.Request{Method: method})
		if err != nil {
			return "", err
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s length=%d chunked=%v close=%v body=%q\n", res.Status, res.ContentLength, res.TransferEncoding, res.Close, body)
		writeHeader(&b, res.Header)
		writeHeader(&b, res.Trailer)
		if res.StatusCode >= 200 {
			return b.String(), nil
		}
	}
}

// Requests of every kind are answered through the tap as they are around it, and
// the server receives the same.
func TestByteCompare(t *testing.T) {
	requests := 10_000
	if raceEnabled || testing.Short() {
		requests = 1500
	}
	f := start(t, echo{t}, func(s *Settings) { s.MaxQueue = 64 << 20 })
	f.rec.Discard()
	around, through := dial(t, strings.TrimPrefix(f.upstream.URL, "http://")), dial(t, strings.TrimPrefix(f.url, "http://"))
	for n := range requests {
		rng := rand.New(rand.NewPCG(uint64(n), 5))
		text := raw(rng, "agent.example:8080", n)
		method, _, _ := strings.Cut(text, " ")
		var got [2]string
		for i, c := range []*reader{around, through} {
			c.send(rng, text)
			var err error
			if got[i], err = answer(c, method); err != nil {
				t.Fatalf("request %d, %d: %v\n%s", n, i, err, text)
			}
		}
		if got[0] != got[1] {
			at := 0
			for at < min(len(got[0]), len(got[1])) && got[0][at] == got[1][at] {
				at++
			}
			from := max(at-200, 0)
			t.Fatalf("request %d\n%s\naround the tap: ...%s\nthrough it: ...%s", n, text[:min(len(text), 600)],
				got[0][from:min(at+200, len(got[0]))], got[1][from:min(at+200, len(got[1]))])
		}
	}
	around.Close()
	through.Close()
	f.stop()
	if c := f.tap.Counts(); c.Requests != int64(requests) || c.Recorded == 0 || c.Lost != 0 || c.Failed != 0 {
		t.Errorf("counts: %+v", c)
	}
}

// The same over TLS in front and behind, HTTP/2 and h2c.
func TestProtocols(t *testing.T) {
	proto := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Trailer", "X-End")
		fmt.Fprintf(w, `{"proto":%q,"tls":%v,"host":%q,"uri":%q,"body":%q,"end":%q}`, r.Proto, r.TLS != nil, r.Host, r.RequestURI, b, r.Trailer.Get("X-End"))
		w.Header().Set("X-End", "e")
	})
	secure := httptest.NewUnstartedServer(proto)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewUnstartedServer(proto)
	plain.Config.Protocols = protocols(true, true, true)
	plain.Start()
	defer plain.Close()
	cert := secure.TLS.Certificates[0]
	trust := secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs

	for _, c := range []struct {
		name          string
		front, behind bool
		protocols     *http.Protocols
		want          string // protocol at the upstream
	}{
		{"http/1.1", false, false, protocols(true, false, false), "HTTP/1.1"},
		{"h2c", false, false, protocols(false, false, true), "HTTP/2.0"},
		{"TLS behind", false, true, protocols(true, false, false), "HTTP/1.1"},
		{"h2c in front, TLS behind", false, true, protocols(false, false, true), "HTTP/2.0"},
		{"TLS in front", true, false, protocols(true, false, false), "HTTP/1.1"},
		{"h2 in front, plain behind", true, false, protocols(false, true, false), "HTTP/1.1"},
		{"h2 all along", true, true, protocols(false, true, false), "HTTP/2.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			upstream := plain.URL
			if c.behind {
				upstream = secure.URL
			}
			f := startAt(t, upstream, func(s *Settings) {
				if c.front {
					s.ServerTLS = &tls.Config{Certificates: []tls.Certificate{cert}}
				}
				s.ClientTLS = &tls.Config{RootCAs: trust}
			})
			transport := &http.Transport{Protocols: c.protocols, TLSClientConfig: &tls.Config{RootCAs: trust}}
			defer transport.CloseIdleConnections()
			f.client = &http.Client{Transport: transport}
			r := f.request("POST", "/a%2Fb?q;x", strings.NewReader("hello"))
			r.ContentLength = -1
			r.Trailer = http.Header{"X-End": {"t"}}
			res, body := f.do(r)
			host := strings.TrimPrefix(strings.TrimPrefix(f.url, "http://"), "https://")
			if c.behind {
				host = strings.TrimPrefix(secure.URL, "https://")
			}
			want := fmt.Sprintf(`{"proto":%q,"tls":%v,"host":%q,"uri":"/a%%2Fb?q;x","body":"hello","end":"t"}`, c.want, c.behind, host)
			if body != want || res.Trailer.Get("X-End") != "e" {
				t.Errorf("got %s %v, want %s", body, res.Trailer, want)
			}
			recordtest.Equal(t, "frames", show(f.closed(1)[0].Frames), "request< POST /a%2Fb hello\nbody "+want+"\nclose \n")
		})
	}
}

func TestUpstreamWithPath(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RequestURI) }))
	defer up.Close()
	f := startAt(t, up.URL+"/base/")
	for in, want := range map[string]string{"/a%2Fb|?x": "/base/a%2Fb|?x", "/": "/base/", "//x": "/base//x"} {
		c := dial(t, strings.TrimPrefix(f.url, "http://"))
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", in)
		got, err := answer(c, "GET")
		if err != nil || !strings.Contains(got, fmt.Sprintf("body=%q", want)) {
			t.Errorf("%s: %v %s", in, err, got)
		}
		c.Close()
	}
}

// A body is passed on while it is still being sent, in both directions at once.
func TestFullDuplex(t *testing.T) {
	f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		rc := http.NewResponseController(w)
		_ = rc.EnableFullDuplex()
		_ = rc.Flush()
		buf := make([]byte, 100)
		for {
			n, err := r.Body.Read(buf)
			if n > 0 {
				_, _ = w.Write(buf[:n])
				_ = rc.Flush()
			}
			if err != nil {
				return
			}
		}
	}))
	transport := &http.Transport{Protocols: protocols(false, false, true)}
	defer transport.CloseIdleConnections()
	f.client = &http.Client{Transport: transport}
	pr, pw := io.Pipe()
	res, err := f.client.Do(f.request("POST", "/x", pr))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for i := range 3 {
		line := fmt.Sprintf("{\"n\":%d}\n", i)
		_, _ = io.WriteString(pw, line)
		buf := make([]byte, len(line))
		if _, err := io.ReadFull(res.Body, buf); err != nil || string(buf) != line {
			t.Fatalf("%q %v", buf, err)
		}
	}
	_ = pw.Close()
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
		t.Fatalf("%q %v", rest, err)
	}
	recordtest.Equal(t, "frames", show(f.closed(1)[0].Frames),
		"request< POST /x {\"n\":0}\n{\"n\":1}\n{\"n\":2}\n\nline {\"n\":0}\nline {\"n\":1}\nline {\"n\":2}\nclose \n")
}

func dial(t *testing.T, addr string) *reader {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	return newReader(c)
}
