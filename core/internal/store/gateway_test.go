package store

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a Store whose process answers with the user, the URL and the body of the request.
func echo(t *testing.T) *Store {
	t.Helper()
	s := &Store{settings: Settings{Dir: t.TempDir()}}
	s.socket = filepath.Join(s.settings.Dir, "http.sock")
	l, err := net.Listen("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %q key=%q auth=%q", r.Header.Get("X-ClickHouse-User"), r.URL, b, r.Header.Get("X-ClickHouse-Key"), r.Header.Get("Authorization"))
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return s
}

func open(t *testing.T, s *Store, g GatewaySettings) *Gateway {
	t.Helper()
	g.Listen, g.Logger = "127.0.0.1:0", slog.New(slog.DiscardHandler)
	gw, err := s.OpenGateway(g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gw.Close)
	return gw
}

// TestGatewayDemandsAToken asks as strangers, readers and writers do, by each of ClickHouse's ways
// to sign in.
func TestGatewayDemandsAToken(t *testing.T) {
	gw := open(t, echo(t), GatewaySettings{Token: "r", WriterToken: "w"})
	for _, c := range []struct {
		name, target string
		header       map[string]string
		basic        [2]string
		status       int
		want         string
	}{
		{name: "nobody", target: "/?query=SELECT+1", status: 401},
		{name: "a wrong token", target: "/", basic: [2]string{"reader", "x"}, status: 401},
		{name: "a reader with the writer's token", target: "/", basic: [2]string{"reader", "w"}, status: 401},
		{name: "the default user with a reader's token", target: "/", basic: [2]string{"default", "r"}, status: 401},
		{name: "another user", target: "/", basic: [2]string{"root", "r"}, status: 401},
		{name: "basic", target: "/?query=SELECT+1", basic: [2]string{"reader", "r"}, status: 200, want: `reader /?query=SELECT+1 "body" key="" auth=""`},
		{name: "headers", target: "/", header: map[string]string{"X-ClickHouse-User": "reader", "X-ClickHouse-Key": "r"}, status: 200, want: `reader / "body" key="" auth=""`},
		{name: "parameters", target: "/?user=reader&password=r&database=d", status: 200, want: `reader /?database=d "body"`},
		{name: "no user but the token", target: "/?password=r", status: 200, want: `reader / "body"`},
		{name: "a reader who asks to be another", target: "/?user=default&password=r", basic: [2]string{"reader", "r"}, status: 401},
		{name: "a writer", target: "/", basic: [2]string{"default", "w"}, status: 200, want: "default / "},
		{name: "ping", target: "/ping", status: 200},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+gw.Addr()+c.target, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		if c.basic[0] != "" {
			r.SetBasicAuth(c.basic[0], c.basic[1])
		}
		status, body := do(t, r, c.header)
		if status != c.status || !strings.HasPrefix(body, c.want) {
			t.Errorf("%s: %d %s", c.name, status, body)
		}
	}
}

// TestForeignPagesAreRefused sends a reader's token as a web page could: the page's origin, or a name
// that was rebound to this machine, refuse it.
func TestForeignPagesAreRefused(t *testing.T) {
	gw := open(t, echo(t), GatewaySettings{Token: "r"})
	_, port, _ := net.SplitHostPort(gw.Addr())
	for _, c := range []struct {
		host   string
		header map[string]string
		status int
	}{
		{"", nil, 200},
		{"localhost:" + port, nil, 200},
		{"localhost:1", nil, 403},
		{"127.0.0.1", nil, 403},
		{"evil.example:" + port, nil, 403},
		{"", map[string]string{"Origin": "http://localhost:5173"}, 403},
		{"", map[string]string{"Origin": "http://127.0.0.1:" + port}, 403},
		{"", map[string]string{"Origin": "null"}, 403},
		{"", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{"", map[string]string{"Sec-Fetch-Site": "none"}, 200},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+gw.Addr()+"/?password=r", nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.host != "" {
			r.Host = c.host
		}
		if status, body := do(t, r, c.header); status != c.status {
			t.Errorf("host %q, %v: %d %s", c.host, c.header, status, body)
		}
	}
}

func do(t *testing.T, r *http.Request, header map[string]string) (int, string) {
	t.Helper()
	for k, v := range header {
		r.Header.Set(k, v)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestTokenIsRandomAndKeptPrivate compares two starts, and looks at the file.
func TestTokenIsRandomAndKeptPrivate(t *testing.T) {
	s := echo(t)
	first := open(t, s, GatewaySettings{})
	token := first.settings.Token
	note := filepath.Join(s.settings.Dir, tokenFile)
	info, err := os.Stat(note)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if b, err := os.ReadFile(note); err != nil || strings.TrimSpace(string(b)) != token || len(token) != 32 {
		t.Errorf("token %q, file %q, %v", token, b, err)
	}
	first.Close()
	if _, err := os.Stat(note); err == nil {
		t.Error("the token's file outlived the gateway")
	}
	if again := open(t, s, GatewaySettings{}); again.settings.Token == token {
		t.Error("the token of an earlier start holds")
	}
	for _, address := range []string{"0.0.0.0:0", "10.0.0.1:0", "example.org:1", "[::]:0"} {
		if _, err := s.OpenGateway(GatewaySettings{Listen: address}); err == nil {
			t.Errorf("it listens on %s", address)
		}
	}
}

// TestLongDirectory makes a socket in a directory whose name is longer than a socket's may be.
func TestLongDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("a", 150))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	socket, release, err := socketOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "http.sock")); err != nil {
		t.Error(err)
	}
	l.Close()
	release()
	if _, err := os.Stat(filepath.Dir(socket)); err == nil {
		t.Error("the link stays")
	}
}
