package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/release"
)

var (
	buildFlags = []string{"build"} // race_test.go adds to it
	binary     string              // the program under test
	shared     *store              // serves all tests that need nothing special
)

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		return 1
	}
	if _, err := release.Find("", os.Getenv, ""); err != nil {
		return fail(err)
	}
	dir, err := os.MkdirTemp("", "earshot-store-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "earshot-store")
	if out, err := exec.Command("go", append(buildFlags, "-o", binary, ".")...).CombinedOutput(); err != nil {
		return fail(fmt.Errorf("build: %w\n%s", err, out))
	}
	if shared, err = launch(filepath.Join(dir, "data")); err != nil {
		return fail(err)
	}
	code := m.Run()
	if err := shared.terminate(); err != nil && code == 0 {
		code = fail(err)
	}
	shared.client.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		code = fail(err)
	}
	return code
}

// store is a running earshot-store.
type store struct {
	socket string
	url    string // for client
	client *http.Client
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr *bytes.Buffer
	done   chan struct{} // closed when the process has ended
	err    error         // of Wait; read behind done
}

// launch starts a store on path and waits until it listens.
func launch(path string, args ...string) (*store, error) {
	s := &store{stderr: &bytes.Buffer{}, done: make(chan struct{})}
	s.cmd = exec.Command(binary, append([]string{"--path", path}, args...)...)
	s.cmd.Stderr = s.stderr
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	s.stdin = stdin
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	go func() {
		s.err = s.cmd.Wait()
		close(s.done)
	}()
	socket, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on unix:")
	if !ok {
		s.cmd.Process.Kill()
		<-s.done
		return nil, fmt.Errorf("store did not start: %q: %s", line, s.stderr)
	}
	s.socket, s.url, s.client = socket, "http://localhost", &http.Client{Transport: &http.Transport{DialContext: dialer(socket)}}
	return s, nil
}

// dialer connects to a socket and ignores the address.
func dialer(socket string) func(ctx context.Context, _, _ string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
}

// dial is dialer for clickhouse-go.
func (s *store) dial(ctx context.Context, _ string) (net.Conn, error) {
	return dialer(s.socket)(ctx, "", "")
}

// start is launch for a test; the store is gone when the test ends.
func start(t *testing.T, path string, args ...string) *store {
	t.Helper()
	s, err := launch(path, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.kill() })
	return s
}

func (s *store) kill() {
	s.cmd.Process.Kill()
	<-s.done
	s.client.CloseIdleConnections()
}

// terminate sends SIGTERM and wants a clean exit.
func (s *store) terminate() error {
	s.cmd.Process.Signal(syscall.SIGTERM)
	return s.ended(20 * time.Second)
}

func (s *store) ended(within time.Duration) error {
	select {
	case <-s.done:
	case <-time.After(within):
		s.kill()
		return fmt.Errorf("still running after %v: %s", within, s.stderr)
	}
	if s.err != nil {
		return fmt.Errorf("%w: %s", s.err, s.stderr)
	}
	return nil
}

// rss is the resident memory of the process in bytes.
func (s *store) rss(t *testing.T) int64 {
	t.Helper()
	out, err := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(s.cmd.Process.Pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	kib, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// answer is an HTTP response.
type answer struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

// code is the exception code of the answer, 0 when there is none.
func (a answer) code() int {
	n, _ := strconv.Atoi(a.header.Get("X-ClickHouse-Exception-Code"))
	return n
}

type call struct {
	method  string
	params  url.Values
	header  map[string]string
	host    string
	user    string
	body    io.Reader
	timeout time.Duration
}

func (s *store) do(t *testing.T, c call) answer {
	t.Helper()
	if c.method == "" {
		c.method = http.MethodPost
	}
	if c.timeout == 0 {
		c.timeout = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), c.timeout) // cleanups call too
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, c.method, s.url+"/?"+c.params.Encode(), c.body)
	if err != nil {
		t.Fatal(err)
	}
	if c.user != "" {
		req.SetBasicAuth(c.user, "any")
	}
	if c.host != "" {
		req.Host = c.host
	}
	for k, v := range c.header {
		req.Header.Set(k, v)
	}
	resp, err := s.client.Transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body), err}
}

// post runs sql with settings and other parameters as name, value, ...
func (s *store) post(t *testing.T, sql string, params ...string) answer {
	t.Helper()
	return s.do(t, call{body: strings.NewReader(sql), params: values(params...)})
}

// query is post that must succeed; it returns the trimmed body.
func (s *store) query(t *testing.T, sql string, params ...string) string {
	t.Helper()
	a := s.post(t, sql, params...)
	if a.status != http.StatusOK || a.err != nil {
		t.Fatalf("%.200s: %d %v %s", sql, a.status, a.err, a.body)
	}
	return strings.TrimSpace(a.body)
}

func values(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

// database makes an empty database for the test and returns its name.
func database(t *testing.T) string {
	t.Helper()
	name := "t_" + strings.ToLower(strings.NewReplacer("/", "_", "-", "_", " ", "_").Replace(t.Name()))
	shared.query(t, "CREATE DATABASE "+name)
	t.Cleanup(func() { shared.post(t, "DROP DATABASE "+name) })
	return name
}

// open connects clickhouse-go in HTTP mode.
func (s *store) open(t *testing.T, change ...func(*clickhouse.Options)) driver.Conn {
	t.Helper()
	o := &clickhouse.Options{
		Addr: []string{"localhost"}, Protocol: clickhouse.HTTP, Auth: clickhouse.Auth{Username: "default"},
		DialContext: s.dial,
	}
	for _, f := range change {
		f(o)
	}
	conn, err := clickhouse.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// codeOf is the exception code of a driver's error, 0 when it has none.
func codeOf(err error) int32 {
	var e *clickhouse.Exception
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// readReady reads a ready file, or reports that it is not there.
func readReady(path string) (ready, bool) {
	b, err := os.ReadFile(path)
	var r ready
	return r, err == nil && json.Unmarshal(b, &r) == nil
}
