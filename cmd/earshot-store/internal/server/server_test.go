package server

import (
	"context"
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// double marks a process of this test that behaves like clickhouse server: it reads the configuration, listens
// on the port, knows the users' passwords, and ends at an interrupt. It proves the contract of the process, and
// nothing about ClickHouse.
const double = "EARSHOT_CLICKHOUSE_DOUBLE"

func TestMain(m *testing.M) {
	switch os.Getenv(double) {
	case "":
		goleak.VerifyTestMain(m)
		return
	case "fails":
		fmt.Fprintln(os.Stderr, "starting\nCode: 76. Cannot lock file")
		os.Exit(1)
	}
	if err := serveDouble(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveDouble() error {
	file, ok := strings.CutPrefix(os.Args[2], "--config-file=")
	if os.Args[1] != "server" || !ok {
		return fmt.Errorf("arguments %q", os.Args)
	}
	var c config
	var u users
	for path, to := range map[string]any{file: &c, filepath.Join(filepath.Dir(file), "users.xml"): &u} {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := xml.Unmarshal(text, to); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s := &http.Server{Addr: fmt.Sprintf("%s:%d", c.Host, c.Port), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ping" {
			io.WriteString(w, "Ok.\n")
			return
		}
		accounts := map[string]account{"default": u.Default, "reader": u.Reader}
		name := r.Header.Get("X-ClickHouse-User")
		a, ok := accounts[name]
		if !ok || fmt.Sprintf("%x", sha256.Sum256([]byte(r.Header.Get("X-ClickHouse-Key")))) != a.Password {
			http.Error(w, "Authentication failed", http.StatusForbidden)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s", name, a.Profile, r.URL.RawQuery, body)
	})}
	go func() { <-ctx.Done(); s.Close() }()
	if err := s.ListenAndServe(); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// executable is a clickhouse that is the double.
func executable(t *testing.T, mode string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "clickhouse")
	if err := os.WriteFile(path, fmt.Appendf(nil, "#!/bin/sh\n%s=%s exec '%s' \"$@\"\n", double, mode, self), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// start starts a server behind a socket, and returns a function that asks it.
func start(t *testing.T, exe, dir string) (s *Server, ask func(query url.Values, header http.Header, body string) string) {
	t.Helper()
	s, err := Start(t.Context(), Config{Executable: exe, Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	return s, func(query url.Values, header http.Header, body string) string {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, "http://store/?"+query.Encode(), strings.NewReader(body))
		r.RequestURI = ""
		for k, v := range header {
			r.Header[k] = v
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
}

// TestProcess starts, asks and ends a server: the users have their passwords, whichever the request had, and another
// user has none; the port alone is of no use.
func TestProcess(t *testing.T) {
	dir := t.TempDir()
	s, ask := start(t, executable(t, "yes"), dir)
	if got := ask(url.Values{"user": {"reader"}, "password": {"x"}, "database": {"earshot"}}, nil, "SELECT 1"); got != "reader reader database=earshot SELECT 1" {
		t.Errorf("reader: %q", got)
	}
	if got := ask(nil, http.Header{"X-Clickhouse-User": {"default"}, "X-Clickhouse-Key": {"x"}}, "INSERT"); got != "default default  INSERT" {
		t.Errorf("default: %q", got)
	}
	if got := ask(url.Values{"user": {"admin"}}, nil, ""); !strings.Contains(got, "Authentication failed") {
		t.Errorf("another user: %q", got)
	}
	for _, name := range []string{"config.xml", "users.xml"} {
		info, err := os.Stat(filepath.Join(dir, Folder, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if !s.cmd.ProcessState.Exited() {
		t.Errorf("it ended by %s", s.cmd.ProcessState)
	}
}

// TestServerThatEnds reports the server's own error.
func TestServerThatEnds(t *testing.T) {
	_, err := Start(t.Context(), Config{Executable: executable(t, "fails"), Path: t.TempDir()})
	if err == nil || !strings.HasSuffix(err.Error(), "Code: 76. Cannot lock file") {
		t.Error(err)
	}
}

// TestRealServer stores and reads a row in the clickhouse of PATH, with both users, where there is one.
func TestRealServer(t *testing.T) {
	exe, err := exec.LookPath("clickhouse")
	if err != nil {
		t.Skip("there is no clickhouse in PATH")
	}
	dir := t.TempDir()
	for range 2 {
		s, ask := start(t, exe, dir)
		ask(nil, nil, "CREATE TABLE IF NOT EXISTS default.t (n UInt8) ENGINE = ReplacingMergeTree ORDER BY n")
		ask(nil, nil, "INSERT INTO default.t VALUES (7)")
		if got := ask(url.Values{"user": {"reader"}}, nil, "SELECT n FROM default.t FINAL"); got != "7\n" {
			t.Errorf("reader: %q", got)
		}
		if got := ask(url.Values{"user": {"reader"}}, nil, "INSERT INTO default.t VALUES (8)"); !strings.Contains(got, "READONLY") && !strings.Contains(got, "ACCESS_DENIED") {
			t.Errorf("reader writes: %q", got)
		}
		if got := ask(nil, nil, "SELECT * FROM file('/etc/passwd', 'LineAsString')"); !strings.Contains(got, "ACCESS_DENIED") {
			t.Errorf("a file is read: %q", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		cancel()
	}
}
