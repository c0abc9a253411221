package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// get asks on a connection of its own.
func (s *store) get(t *testing.T, path string) string {
	t.Helper()
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DialContext: dialer(s.socket), DisableKeepAlives: true}}
	resp, err := client.Get(s.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func (s *store) closesEngine(t *testing.T) {
	t.Helper()
	waitFor(t, "the engine to be closed", func() bool { return s.get(t, "/standby") == "yes" })
}

// TestStandby: a store without statements closes its engine, and the statements that come open it, all of them, with
// the rows of before; the process, the socket and the lock stay. Pings and the question whether it is closed leave it closed.
func TestStandby(t *testing.T) {
	path := t.TempDir()
	file := filepath.Join(t.TempDir(), "ready.json")
	s := start(t, path, "--standby", "300ms", "--watch-stdin", "--ready-file", file)
	s.query(t, "CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a")
	rows := 0
	for round := range 3 {
		s.query(t, fmt.Sprintf("INSERT INTO t SELECT number FROM numbers(%d)", round+10))
		rows += round + 10
		open := s.rss(t)
		s.closesEngine(t)
		if closed := s.rss(t); closed > open/2 || closed > 40<<20 {
			t.Errorf("%d bytes are resident without the engine, %d with it", closed, open)
		}
		silent, err := net.Dial("unix", s.socket) // sends nothing yet
		if err != nil {
			t.Fatal(err)
		}
		if got := s.get(t, "/ping"); got != "Ok." {
			t.Errorf("ping: %q", got)
		}
		if got := s.get(t, "/standby"); got != "yes" {
			t.Errorf("a ping opened the engine: %q", got)
		}
		if _, stderr, code := try(t, nil, "--path", path); code != 1 || !strings.Contains(stderr, "in use by another") {
			t.Errorf("a second store: exit %d, %q", code, stderr)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if got := s.query(t, "SELECT count() FROM t"); got != fmt.Sprint(rows) {
					t.Errorf("%s rows, want %d", got, rows)
				}
			})
		}
		wg.Wait()
		fmt.Fprintf(silent, "GET /?query=SELECT+count()+FROM+t HTTP/1.0\r\n\r\n")
		if b, err := io.ReadAll(silent); err != nil || !strings.HasSuffix(strings.TrimSpace(string(b)), fmt.Sprint(rows)) {
			t.Errorf("on a connection that was silent: %q, %v", b, err)
		}
		silent.Close()
	}
	if r, ok := readReady(file); !ok || r.PID != s.cmd.Process.Pid {
		t.Errorf("ready file: %+v, %v", r, ok)
	}
	s.closesEngine(t)
	s.stdin.Close()
	if err := s.ended(20 * time.Second); err != nil {
		t.Error(err)
	}
	for _, name := range []string{file, s.socket} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s outlived the store", name)
		}
	}
}

// TestStandbyEnds: SIGTERM ends a store whose engine is closed, and kill -9 leaves one that starts again.
func TestStandbyEnds(t *testing.T) {
	path := t.TempDir()
	s := start(t, path, "--standby", "200ms")
	s.query(t, "CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a")
	s.closesEngine(t)
	s.kill()
	s = start(t, path, "--standby", "200ms")
	if got := s.query(t, "SELECT count() FROM t"); got != "0" {
		t.Errorf("%s rows", got)
	}
	s.closesEngine(t)
	s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.ended(20 * time.Second); err != nil {
		t.Error(err)
	}
}

// TestStandbyIsNotAtRest: no engine is closed under a statement, however long it takes, and none is lost between two.
func TestStandbyIsNotAtRest(t *testing.T) {
	s := start(t, t.TempDir(), "--standby", "100ms")
	s.query(t, "CREATE TABLE t (a UInt32, b UInt32) ENGINE = MergeTree ORDER BY a")
	s.query(t, "INSERT INTO t SELECT number, sleepEachRow(0.05) FROM numbers(20)")
	n := 20
	kept := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DialContext: dialer(s.socket)}}
	defer kept.CloseIdleConnections()
	for i := range 12 { // about when the engine closes
		time.Sleep(time.Duration(95+i) * time.Millisecond)
		fresh := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DialContext: dialer(s.socket), DisableKeepAlives: true}}
		for name, client := range map[string]*http.Client{"fresh": fresh, "kept": kept} {
			// A body without GetBody: a client could not send it again.
			resp, err := client.Post(s.url, "", io.NopCloser(strings.NewReader("INSERT INTO t SELECT 1, 2")))
			if err != nil {
				t.Fatalf("on a %s connection: %v", name, err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			n++
			if name == "fresh" && i%2 == 0 {
				time.Sleep(time.Duration(95+i) * time.Millisecond)
			}
		}
	}
	if got := s.query(t, "SELECT count() FROM t"); got != fmt.Sprint(n) {
		t.Errorf("%s rows, want %d", got, n)
	}
}

// TestStandbyFlushes: a writer that holds rows back waits at a store without an engine as at one with it, and a reader waits
// for its flush.
func TestStandbyFlushes(t *testing.T) {
	s := start(t, t.TempDir(), "--standby", "300ms")
	s.query(t, "CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a")
	s.closesEngine(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DialContext: dialer(s.socket), DisableKeepAlives: true}}
	post := func(path, body string) string {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(body))
		if err != nil {
			return err.Error()
		}
		r.Header.Set("X-Earshot-Writer", "1")
		resp, err := client.Do(r)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return strings.TrimSpace(string(b))
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	waits := make(chan struct{})
	wg.Go(func() {
		done := "0"
		for close(waits); ctx.Err() == nil; {
			asked := post("/flush?writer=1&done="+done, "")
			if asked != done && ctx.Err() == nil {
				post("/", "INSERT INTO t VALUES (1)")
			}
			done = asked
		}
	})
	<-waits
	time.Sleep(500 * time.Millisecond) // longer than a statement is awaited
	if got := s.get(t, "/standby"); got != "yes" {
		t.Errorf("a writer that waits opened the engine: %q", got)
	}
	if got := s.query(t, "SELECT count() > 0 FROM t"); got != "1" {
		t.Error("the reader did not wait for the rows that were held back")
	}
}

// TestStandbyWriterIsNoReader: a writer whose statement opens the engine is not asked for a flush by it, however long the head
// of its request is; else it would store each row by itself for a while. A reader behind it asks.
func TestStandbyWriterIsNoReader(t *testing.T) {
	s := start(t, t.TempDir(), "--standby", "1s")
	s.query(t, "CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a")
	s.closesEngine(t)
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DialContext: dialer(s.socket), DisableKeepAlives: true}}
	post := func(query, body string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+query, strings.NewReader(body))
		if err != nil {
			return err.Error()
		}
		r.Header.Set("X-Earshot-Writer", "1")
		resp, err := client.Do(r)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return strings.TrimSpace(string(b))
	}
	c, err := net.Dial("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "POST /flush?writer=1&done=7 HTTP/1.0\r\n\r\n")
	waitFor(t, "the writer's request to be read", func() bool { return unread(t, c) == 0 })
	if got := post("/?query="+url.QueryEscape("INSERT INTO t /* "+strings.Repeat("x", 5000)+" */ FORMAT TSV"), "1\n"); got != "" {
		t.Fatal(got)
	}
	if b, err := io.ReadAll(c); err != nil || !strings.HasSuffix(strings.TrimSpace(string(b)), "\n7") {
		t.Errorf("the writer was asked for a flush: %q, %v", b, err)
	}
	asked := make(chan string, 1)
	go func() { asked <- post("/flush?writer=1&done=7", "") }()
	if got := s.query(t, "SELECT count() FROM t"); got != "1" {
		t.Errorf("%s rows", got)
	}
	if got := <-asked; got != "8" {
		t.Errorf("the writer was not asked for a flush by a reader: %q", got)
	}
}

// unread is about how many bytes the other end of a connection has not read.
func unread(t *testing.T, c net.Conn) (n int) {
	t.Helper()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if failed := raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCOUTQ) }); failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	return n
}

// TestStandbyFolderIsLost: the question whether a store has an engine opens it where its folder is another one.
func TestStandbyFolderIsLost(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "data")
	s := start(t, path, "--standby", "200ms", "--socket", filepath.Join(dir, "s"))
	s.closesEngine(t)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if got := s.get(t, "/standby"); got != "no" {
		t.Errorf("its folder is gone: %q", got)
	}
}
