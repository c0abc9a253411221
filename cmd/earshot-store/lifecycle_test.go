package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// try runs the program with these arguments to its end.
func try(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestMissingLibrary(t *testing.T) {
	empty := t.TempDir()
	_, stderr, code := try(t, []string{"EARSHOT_ENGINE_DIR=" + empty, "XDG_CACHE_HOME=" + empty, "HOME=" + empty}, "--path", t.TempDir())
	if code != exitMissing || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "type `earshot store fetch`") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

func TestFlags(t *testing.T) {
	dir := t.TempDir()
	cases := []struct {
		args []string
		want string
	}{
		{nil, "--path DIR is required"},
		{[]string{"--path", dir, "--connections", "0"}, "at least 1"},
		{[]string{"--path", dir, "--max-memory", "lots"}, "not a size"},
		{[]string{"--path", dir, "--max-memory", "-1GiB"}, "not a size"},
		{[]string{"--path", dir, "--shutdown-timeout", "-1s"}, "must not be negative"},
		{[]string{"--path", dir, "--nonsense"}, "nonsense"},
		{[]string{"--path", dir, "extra"}, "unexpected argument"},
	}
	for _, c := range cases {
		_, stderr, code := try(t, nil, c.args...)
		if code != 2 || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit %d, %q", c.args, code, stderr)
		}
	}
	stdout, _, code := try(t, nil, "--help")
	if code != 0 || !strings.Contains(stdout, "Example:") || !strings.Contains(stdout, "-shutdown-timeout") {
		t.Errorf("--help: exit %d, %q", code, stdout)
	}
	stdout, _, code = try(t, nil, "--version")
	if code != 0 || !strings.Contains(stdout, "engine @chdb/") {
		t.Errorf("--version: exit %d, %q", code, stdout)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]size{"512MiB": 512 << 20, "1 GiB": 1 << 30, "1.5GiB": 3 << 29, "2GB": 2e9, "4096": 4096, "10B": 10, "1kB": 1000} {
		var s size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%q: %d, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "0", "MiB", "1XiB", "1e999", "NaN", "9999999TiB"} {
		if err := new(size).Set(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestReadyFileAndSecondProcess(t *testing.T) {
	dir := t.TempDir()
	path, file := filepath.Join(dir, "data"), filepath.Join(dir, "ready.json")
	s := start(t, path, "--ready-file", file)
	r, ok := readReady(file)
	if !ok || r.Socket != s.socket || r.PID != s.cmd.Process.Pid || !strings.HasPrefix(r.Version, "26.7") {
		t.Errorf("ready file: %+v", r)
	}
	_, stderr, code := try(t, nil, "--path", path, "--ready-file", file)
	if code != 1 || !strings.Contains(stderr, "in use by another earshot-store (pid "+strconv.Itoa(s.cmd.Process.Pid)+")") {
		t.Errorf("second process: exit %d, %q", code, stderr)
	}
	if again, ok := readReady(file); !ok || again != r {
		t.Errorf("the second process left the ready file as %+v", again)
	}
	if got := s.query(t, "SELECT 1"); got != "1" {
		t.Errorf("the first one answers %q", got)
	}
	if err := s.terminate(); err != nil {
		t.Error(err)
	}
	if _, ok := readReady(file); ok {
		t.Error("the ready file outlived the store")
	}
	if err := os.WriteFile(file, []byte(`{"socket":"/nowhere","pid":1}`), 0o600); err != nil { // left by one that was killed
		t.Fatal(err)
	}
	if _, stderr, code := try(t, nil, "--path", path, "--ready-file", file, "--socket", filepath.Join(dir, "no folder", "s")); code != 1 || !strings.Contains(stderr, "listen") {
		t.Errorf("a socket that cannot be made: exit %d, %q", code, stderr)
	}
	if _, ok := readReady(file); ok {
		t.Error("an old ready file stayed although nothing is ready")
	}
	again := start(t, path) // the lock went with its owner
	if err := again.terminate(); err != nil {
		t.Error(err)
	}
}

func TestMaxMemoryRefusesStatements(t *testing.T) {
	s := start(t, t.TempDir(), "--max-memory", "400MiB")
	if a := s.post(t, "SELECT groupArray(repeat('x', 1000)) FROM numbers(1000000) FORMAT Null"); a.code() != 241 {
		t.Errorf("%d %s", a.status, a.body)
	}
	// A held result of constants, which no limit on results counts.
	if a := s.post(t, "SELECT repeat('x', 500) FROM numbers(5000000) FORMAT JSON"); a.code() != 241 {
		t.Errorf("%d %.200s", a.status, a.body)
	}
	if got := s.query(t, "SELECT 1"); got != "1" {
		t.Errorf("afterwards: %q", got)
	}
}

// SIGTERM lets a running statement end, takes no new one, and exits 0.
func TestTerminate(t *testing.T) {
	path := t.TempDir()
	s := start(t, path)
	s.query(t, "CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a")
	slow := make(chan answer, 1)
	go func() {
		slow <- s.post(t, "INSERT INTO t SELECT sleepEachRow(0.1) FROM numbers(10)", "query_id", "slow")
	}()
	waitFor(t, "the statement to run", func() bool {
		return s.query(t, "SELECT count() FROM system.processes WHERE startsWith(Settings['query_cache_tag'], 'slow#')") == "1"
	})
	s.cmd.Process.Signal(syscall.SIGTERM)
	if a := <-slow; a.status != 200 {
		t.Errorf("the running statement: %d %s", a.status, a.body)
	}
	if err := s.ended(20 * time.Second); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("unix", s.socket); err == nil {
		conn.Close()
		t.Error("the port still answers")
	}
	again := start(t, path)
	if got := again.query(t, "SELECT count() FROM t"); got != "10" {
		t.Errorf("%s rows after the restart", got)
	}
}

// A statement that outlives the timeout is killed, and its client gets an error.
func TestTerminateDoesNotWaitForEver(t *testing.T) {
	s := start(t, t.TempDir(), "--shutdown-timeout", "300ms")
	endless := make(chan answer, 1)
	go func() {
		endless <- s.post(t, "SELECT sum(sipHash64(number)) FROM numbers(1000000000000)", "query_id", "endless")
	}()
	waitFor(t, "the statement to run", func() bool {
		return s.query(t, "SELECT count() FROM system.processes WHERE startsWith(Settings['query_cache_tag'], 'endless#')") == "1"
	})
	begin := time.Now()
	if err := s.terminate(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("took %v", took)
	}
	if a := <-endless; a.code() != 394 || !strings.Contains(a.body, "shutting down") {
		t.Errorf("the client was told %d %s", a.status, a.body)
	}
}

func TestStdinCloseStops(t *testing.T) {
	s := start(t, t.TempDir(), "--watch-stdin")
	if _, err := io.WriteString(s.stdin, "anything\n"); err != nil {
		t.Fatal(err)
	}
	if got := s.query(t, "SELECT 1"); got != "1" {
		t.Errorf("input stopped it: %q", got)
	}
	s.stdin.Close()
	if err := s.ended(20 * time.Second); err != nil {
		t.Error(err)
	}
	plain := start(t, t.TempDir())
	plain.stdin.Close()
	if got := plain.query(t, "SELECT 1"); got != "1" {
		t.Errorf("stopped without --watch-stdin: %q", got)
	}
}

// The store ends with the process that started it, also when that is killed.
func TestParentDeathStops(t *testing.T) {
	if _, stderr, code := try(t, nil, "--path", t.TempDir(), "--parent-pid", "1"); code != 1 || !strings.Contains(stderr, "--parent-pid 1") {
		t.Errorf("a process that is not the parent: exit %d, %q", code, stderr)
	}
	file := filepath.Join(t.TempDir(), "ready.json")
	parent := exec.CommandContext(t.Context(), "sh", "-c", `"$0" --path "$1" --ready-file "$2" --parent-pid $$ >/dev/null & wait`, binary, t.TempDir(), file)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var r ready
	waitFor(t, "the store to be ready", func() bool {
		var ok bool
		r, ok = readReady(file)
		return ok
	})
	child, err := os.FindProcess(r.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer child.Kill()
	child.Signal(syscall.SIGHUP) // as if only the parent's thread had ended
	client := &http.Client{Transport: &http.Transport{DialContext: dialer(r.Socket), DisableKeepAlives: true}}
	resp, err := client.Get("http://store/ping")
	if err != nil {
		t.Fatalf("it believed a false alarm: %v", err)
	}
	resp.Body.Close()
	parent.Process.Kill()
	parent.Wait()
	waitFor(t, "the store to end", func() bool {
		conn, err := net.Dial("unix", r.Socket)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	waitFor(t, "its clean end", func() bool { _, ok := readReady(file); return !ok })
}

// TestWait starts a store on a folder that another one has, and ends that one.
func TestWait(t *testing.T) {
	path := t.TempDir()
	first := start(t, path)
	second := make(chan *store, 1)
	go func() {
		s, err := launch(path, "--wait", "30s")
		if err != nil {
			t.Error(err)
		}
		second <- s
	}()
	select {
	case <-second:
		t.Fatal("two stores have one folder")
	case <-time.After(500 * time.Millisecond):
	}
	if err := first.terminate(); err != nil {
		t.Error(err)
	}
	s := <-second
	if s == nil {
		return
	}
	defer s.kill()
	if got := s.query(t, "SELECT 1"); got != "1" {
		t.Errorf("the second one answers %q", got)
	}
}

// Rounds of kill -9 in the middle of inserts: every acknowledged batch is there
// once and whole, and the one that was under way is stored once when it is sent
// again with its token.
func TestKill9(t *testing.T) {
	path := t.TempDir()
	s := start(t, path)
	s.query(t, "CREATE TABLE t (batch String, n UInt32, text String) ENGINE = MergeTree ORDER BY (batch, n) SETTINGS non_replicated_deduplication_window = 1000")
	const writers, rows = 3, 2000
	body := func(batch string) io.Reader {
		var b strings.Builder
		for i := range rows {
			fmt.Fprintf(&b, "%s,%d,%s\n", batch, i, strings.Repeat("x", i%200))
		}
		return strings.NewReader(b.String())
	}
	insert := func(s *store, batch string) (int, error) {
		resp, err := s.client.Post(s.url+"/?"+values("query", "INSERT INTO t FORMAT CSV", "insert_deduplication_token", batch).Encode(), "", body(batch))
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	}
	acked := map[string]bool{}
	total := 0
	for round := range 4 {
		var mu sync.Mutex
		var pending []string
		enough := make(chan struct{})
		var once sync.Once
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := 0; ; i++ {
					batch := fmt.Sprintf("%d-%d-%d", round, w, i)
					status, err := insert(s, batch)
					mu.Lock()
					if status != 200 || err != nil {
						pending = append(pending, batch)
						mu.Unlock()
						return
					}
					acked[batch] = true
					total++
					if len(acked) >= 12*(round+1) {
						once.Do(func() { close(enough) })
					}
					mu.Unlock()
				}
			})
		}
		select {
		case <-enough:
		case <-time.After(time.Minute):
			t.Fatal("no batches are accepted")
		}
		s.kill()
		wg.Wait()
		s.client.CloseIdleConnections()
		s = start(t, path)
		for _, batch := range pending {
			if status, err := insert(s, batch); status != 200 || err != nil {
				t.Fatalf("retry of %s: %d, %v", batch, status, err)
			}
			acked[batch] = true
		}
		for _, line := range strings.Split(s.query(t, "SELECT batch, count(), uniqExact(n) FROM t GROUP BY batch"), "\n") {
			batch, counts, _ := strings.Cut(line, "\t")
			if !acked[batch] || counts != fmt.Sprintf("%d\t%[1]d", rows) {
				t.Errorf("round %d: batch %s has %s rows", round, batch, counts)
			}
		}
		if got := s.query(t, "SELECT uniqExact(batch) FROM t"); got != strconv.Itoa(len(acked)) {
			t.Errorf("round %d: %s batches of %d are there", round, got, len(acked))
		}
	}
	t.Logf("%d batches acknowledged before the kills, %d in all", total, len(acked))
}
