// Package server runs a ClickHouse server of the user's machine in the place of the engine library: it
// writes its configuration, starts it on a loopback port, and passes requests of the store's socket to it.
//
// The server's two users, default and reader, have random passwords that this process alone knows, and
// the rights of the library's user, so another user of the machine reaches the port and no more.
// There is no fence of the kernel: a server needs its port. Its tables are in a folder of their own,
// because its format of the data folder is not the library's.
//
// Only the contract of the process has a test on a machine without ClickHouse; TestRealServer needs one.
package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/engine"
)

// Folder is that of the tables, in the store's data folder.
const Folder = "clickhouse"

// Config of a server.
type Config struct {
	Executable string // clickhouse
	Path       string // the store's data folder
	MaxMemory  uint64 // bytes; 0: the server's default
}

// Server is a ClickHouse server that answers.
type Server struct {
	cmd       *exec.Cmd
	exited    chan struct{}
	http      *http.Server
	transport *http.Transport
	passwords map[string]string // by user
}

// startTime is how long a server may take to answer: it loads all tables before.
const startTime = time.Minute

// Start starts the server and waits until it answers.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	dir, err := filepath.Abs(filepath.Join(cfg.Path, Folder))
	if err != nil {
		return nil, fmt.Errorf("clickhouse: %w", err)
	}
	s := &Server{exited: make(chan struct{}), transport: &http.Transport{DisableCompression: true}, passwords: map[string]string{"default": rand.Text(), "reader": rand.Text()}}
	port, err := freePort()
	if err != nil {
		return nil, fmt.Errorf("clickhouse: %w", err)
	}
	config, err := s.configure(dir, port, cfg.MaxMemory)
	if err != nil {
		return nil, fmt.Errorf("clickhouse: %w", err)
	}
	s.cmd = exec.Command(cfg.Executable, "server", "--config-file="+config)
	s.cmd.Dir = dir
	s.cmd.SysProcAttr = endsWithParent()
	stderr := &lastLines{}
	s.cmd.Stdout, s.cmd.Stderr = io.Discard, stderr
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("clickhouse: %w", err)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.exited)
	}()
	target := &url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}
	s.http = &http.Server{Handler: s.proxy(target), ReadHeaderTimeout: 10 * time.Second}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for !answers(ctx, target) {
		select {
		case <-s.exited:
			return nil, fmt.Errorf("clickhouse: %s ended at its start: %s", cfg.Executable, stderr)
		case <-ctx.Done():
			s.kill()
			return nil, fmt.Errorf("clickhouse: %s does not answer: %s", cfg.Executable, stderr)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return s, nil
}

// Serve answers until Shutdown, then returns nil. The end of the ClickHouse server is an error.
func (s *Server) Serve(l net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- s.http.Serve(l) }()
	select {
	case err := <-ended:
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	case <-s.exited:
		return errors.New("clickhouse: the server ended")
	}
}

// Silent never sends: another process has the tables, and it starts in seconds.
func (s *Server) Silent() <-chan struct{} { return nil }

// Leave is not called: the server is never silent.
func (s *Server) Leave(context.Context) []int { return nil }

// Shutdown waits for running statements until ctx ends, and ends the server.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	s.transport.CloseIdleConnections()
	_ = s.cmd.Process.Signal(os.Interrupt)
	select {
	case <-s.exited:
		return nil
	case <-ctx.Done():
		s.kill()
		return errors.Join(err, errors.New("clickhouse: the server did not end in time"))
	}
}

func (s *Server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// proxy passes requests as the user that they name, with the password of that user.
func (s *Server) proxy(target *url.URL) http.Handler {
	return &httputil.ReverseProxy{Transport: s.transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		q := r.In.URL.Query()
		basic, _, _ := r.In.BasicAuth()
		user := firstOf(r.In.Header.Get("X-ClickHouse-User"), basic, q.Get("user"), "default")
		q.Del("user")
		q.Del("password")
		r.Out.URL.RawQuery = q.Encode()
		r.Out.Header.Del("Authorization")
		r.Out.Header.Set("X-ClickHouse-User", user)
		r.Out.Header.Set("X-ClickHouse-Key", s.passwords[user]) // of another user: none
	}}
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func answers(ctx context.Context, target *url.URL) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String()+"/ping", nil)
	if err != nil {
		return false
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 16))
	return resp.StatusCode == http.StatusOK && bytes.HasPrefix(body, []byte("Ok."))
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// The configuration of the server, as far as it differs from the defaults: no log tables, small caches.
type (
	config struct {
		XMLName   xml.Name `xml:"clickhouse"`
		Level     string   `xml:"logger>level"`
		Console   int      `xml:"logger>console"`
		Host      string   `xml:"listen_host"`
		Port      int      `xml:"http_port"`
		Path      string   `xml:"path"`
		Temporary string   `xml:"tmp_path"`
		Files     string   `xml:"user_files_path"`
		Schemas   string   `xml:"format_schema_path"`
		Users     string   `xml:"users_config"`
		Profile   string   `xml:"default_profile"`
		Database  string   `xml:"default_database"`
		MarkCache int      `xml:"mark_cache_size"`
		MaxMemory uint64   `xml:"max_server_memory_usage,omitempty"`
	}
	account struct {
		Password string   `xml:"password_sha256_hex"`
		Network  string   `xml:"networks>ip"`
		Profile  string   `xml:"profile"`
		Quota    string   `xml:"quota"`
		Grants   []string `xml:"grants>query"`
	}
	users struct {
		XMLName  xml.Name `xml:"clickhouse"`
		Writes   string   `xml:"profiles>default"`
		ReadOnly int      `xml:"profiles>reader>readonly"`
		Quota    string   `xml:"quotas>default"`
		Default  account  `xml:"users>default"`
		Reader   account  `xml:"users>reader"`
	}
)

// configure writes the configuration, which only this user reads, and returns its path.
func (s *Server) configure(dir string, port int, maxMemory uint64) (string, error) {
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o700); err != nil {
		return "", err
	}
	of := func(user, profile string, grants []string) account {
		sum := sha256.Sum256([]byte(s.passwords[user]))
		return account{Password: fmt.Sprintf("%x", sum), Network: "127.0.0.1", Profile: profile, Quota: "default", Grants: grants}
	}
	usersFile, configFile := filepath.Join(dir, "users.xml"), filepath.Join(dir, "config.xml")
	files := map[string]any{
		usersFile: users{
			ReadOnly: 2, Default: of("default", "default", engine.Grants()),
			Reader: of("reader", "reader", []string{"GRANT SHOW, SELECT, CREATE TEMPORARY TABLE ON *.*"}),
		},
		configFile: config{
			Level: "warning", Console: 1, Host: "127.0.0.1", Port: port, Path: dir + "/", Temporary: dir + "/tmp/", Files: dir + "/user_files/",
			Schemas: dir + "/format_schemas/", Users: usersFile, Profile: "default", Database: "default", MarkCache: 64 << 20, MaxMemory: maxMemory,
		},
	}
	for path, content := range files {
		text, err := xml.MarshalIndent(content, "", "  ")
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
			return "", err
		}
	}
	return configFile, nil
}

// lastLines is a writer that keeps the last 2 KiB.
type lastLines struct{ buf []byte }

func (t *lastLines) Write(b []byte) (int, error) {
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - 2048; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

// String is the last line. It is called after the process has ended, or hangs.
func (t *lastLines) String() string {
	lines := strings.Split(strings.TrimSpace(string(t.buf)), "\n")
	return lines[len(lines)-1]
}
