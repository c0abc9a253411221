package file

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// env is a directory, a source that tails below it and the sink it delivers to.
type env struct {
	*testing.T
	dir      string
	settings Settings
	prepare  func(*Source)
	sink     *fakeSink
	src      *Source
	stop     func()
}

// newEnv returns one whose source relies on inotify alone; see poll.
func newEnv(t *testing.T, paths ...string) *env {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e := &env{T: t, dir: dir, sink: newSink(t), prepare: func(*Source) {}}
	e.settings = Settings{Name: "test", PollInterval: time.Hour, Linger: time.Hour, Logger: slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, p := range paths {
		e.settings.Paths = append(e.settings.Paths, filepath.Join(dir, p))
	}
	return e
}

type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

func (e *env) poll() *env {
	e.settings.PollOnly, e.settings.PollInterval = true, 5*time.Millisecond
	return e
}

// start runs the source until the test or stop ends it.
func (e *env) start() *env {
	e.Helper()
	src, err := New(e.settings)
	if err != nil {
		e.Fatal(err)
	}
	src.completeAfter = 20 * time.Millisecond
	e.prepare(src)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- src.Run(ctx, e.sink) }()
	e.src = src
	stopped := false
	e.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			e.Errorf("run: %v", err)
		}
		e.sink.stopped()
	}
	e.Cleanup(e.stop)
	return e
}

func (e *env) path(name string) string { return filepath.Join(e.dir, name) }

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *env) write(name string, data ...string) {
	e.Helper()
	e.must(os.MkdirAll(filepath.Dir(e.path(name)), 0o755))
	e.must(os.WriteFile(e.path(name), []byte(strings.Join(data, "")), 0o644))
}

func (e *env) add(name string, data ...string) {
	e.Helper()
	f, err := os.OpenFile(e.path(name), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	e.must(err)
	_, err = f.WriteString(strings.Join(data, ""))
	e.must(err)
	e.must(f.Close())
}

func (e *env) rename(from, to string) {
	e.Helper()
	e.must(os.MkdirAll(filepath.Dir(e.path(to)), 0o755))
	e.must(os.Rename(e.path(from), e.path(to)))
}

func (e *env) remove(name string) {
	e.Helper()
	e.must(os.RemoveAll(e.path(name)))
}

func (e *env) copy(from, to string) {
	e.Helper()
	b, err := os.ReadFile(e.path(from))
	e.must(err)
	e.write(to, string(b))
}

// gzip compresses a file as gzip does: it keeps the time, and removes the original
// when the archive is complete. That appears whole, since how long it would be cut
// short depends on the machine.
func (e *env) gzip(from, to string) { e.Helper(); e.pack(packed, from, to) }

func (e *env) zstd(from, to string) { e.Helper(); e.pack(zstandard, from, to) }

func (e *env) pack(pack func([]byte) []byte, from, to string) {
	e.Helper()
	info, err := os.Stat(e.path(from))
	e.must(err)
	b, err := os.ReadFile(e.path(from))
	e.must(err)
	e.write("tmp", string(pack(b)))
	old := info.ModTime().Add(-time.Minute) // long enough ago
	e.must(os.Chtimes(e.path("tmp"), old, old))
	e.rename("tmp", to)
	e.must(os.Remove(e.path(from)))
}

func zstandard(b []byte) []byte {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	defer z.Close()
	return z.EncodeAll(b, nil)
}

func packed(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

// until waits for something.
func (e *env) until(what string, cond func() bool) {
	e.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		if cond() {
			return
		}
		if time.Now().After(deadline) {
			e.Fatalf("waited in vain for %s; have:%v", what, e.sink)
		}
		<-time.After(time.Millisecond)
	}
}

// want waits for exactly these lines, in any order across files. To see that no
// more come, it waits until the source has nothing left to do.
func (e *env) want(lines ...string) {
	e.Helper()
	lines = slices.Sorted(slices.Values(lines))
	e.until(fmt.Sprintf("%d lines", len(lines)), func() bool { return e.sink.count() >= len(lines) })
	e.idle()
	if diff := cmp.Diff(lines, e.sink.sorted()); diff != "" {
		e.Fatalf("lines (-want +got):\n%s\n%v", diff, e.sink)
	}
}

func (e *env) idle() {
	e.Helper()
	e.until("the source to be drained", e.src.Drained)
}

func (e *env) wantStreams(n int) {
	e.Helper()
	if got := len(e.sink.live()); got != n {
		e.Fatalf("%d streams, want %d:%v", got, n, e.sink)
	}
}

func (e *env) wantTrouble(reasons ...string) {
	e.Helper()
	e.until(fmt.Sprint("troubles ", reasons), func() bool { return len(e.sink.reasons()) >= len(reasons) })
	if diff := cmp.Diff(reasons, e.sink.reasons()); diff != "" {
		e.Fatalf("troubles (-want +got):\n%s", diff)
	}
}

// orphans returns the number of orphans of a rotation set.
func (e *env) orphans(name string) int {
	e.src.files.mu.Lock()
	defer e.src.files.mu.Unlock()
	return len(e.src.files.orphans[e.path(name)])
}

// isDuplicate reports whether a file was compared as a duplicate at that size.
func (e *env) isDuplicate(name string, size int) bool {
	e.src.files.mu.Lock()
	defer e.src.files.mu.Unlock()
	f := e.src.files.byPath[e.path(name)]
	return f != nil && f.duplicate != nil && f.duplicate.size == int64(size)
}

// numbered returns n lines with some text.
func numbered(prefix string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`{"seq":%d,"of":%q,"text":"the quick brown fox %d"}`, i, prefix, i*i))
	}
	return out
}

func text(lines ...string) string {
	return strings.Join(lines, "\n") + "\n"
}

// lockedBuffer is a log that can be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lockedBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
