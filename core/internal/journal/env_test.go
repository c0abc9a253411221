package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/segment"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// patience is how long a test waits for what is to happen. It ends one that hangs; a shared machine takes a minute for
// what takes a second elsewhere.
const patience = 2 * time.Minute

func deadline() <-chan time.Time { return time.After(patience) }

// poll polls a condition that has no event to wait for.
func poll(t *testing.T, condition string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not after %v", condition, patience)
		}
		<-time.After(200 * time.Microsecond)
	}
}

type logTo struct{ t *testing.T }

func (l logTo) Write(b []byte) (int, error) {
	l.t.Log(string(bytes.TrimSpace(b)))
	return len(b), nil
}

// lazyDisk syncs nothing. It is for tests that do not depend on fsync.
type lazyDisk struct{ segment.OS }

func (lazyDisk) SyncDir(string) error { return nil }

func (d lazyDisk) Open(path string) (segment.File, error) {
	f, err := d.OS.Open(path)
	return lazyFile{f}, err
}

type lazyFile struct{ segment.File }

func (lazyFile) Sync() error { return nil }

// small returns settings with intervals of a millisecond.
func small(t *testing.T, dir string) Settings {
	return Settings{
		Dir: dir, FsyncInterval: time.Millisecond, sweep: time.Millisecond, retry: time.Millisecond, disk: lazyDisk{},
		Logger: slog.New(slog.NewTextHandler(logTo{t}, nil)),
	}
}

// still returns settings under which nothing is removed or logged.
func still(t *testing.T, dir string) Settings {
	s := small(t, dir)
	s.Logger, s.sweep = nil, time.Hour
	return s
}

func open(t *testing.T, s Settings) *Journal {
	t.Helper()
	j, err := Open(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func (j *Journal) mustClose(t *testing.T) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// sweep removes the segments that are safe now.
func (j *Journal) sweep(t *testing.T) {
	s := sweeper{settings: j.settings, mu: j.mu, retention: j.retention, segments: j.segments, streams: j.streams, writer: j.writer}
	s.sweep(t.Context())
}

// begin begins a recording of the source "s" in the format "f".
func begin(t *testing.T, j *Journal, key string) source.Recording {
	t.Helper()
	r, err := j.Recorder("s").Begin(t.Context(), "f", source.ID{Key: key, Origin: "/" + key, Anchor: 7})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func put(t *testing.T, r source.Recording, data string) {
	t.Helper()
	if err := r.Record(t.Context(), &frame.Frame{Kind: frame.Event, At: 5, Data: []byte(data)}); err != nil {
		t.Fatal(err)
	}
}

func sync_(t *testing.T, r source.Recording) {
	t.Helper()
	if err := r.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func closed(t *testing.T, r source.Recording) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// follow runs a reader until stop is called, and then waits for it.
func follow(t *testing.T, j *Journal, k *sink) (r *Reader, stop func()) {
	t.Helper()
	r = j.Reader("s", "f", k.Known())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, k) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("reader: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return r, stop
}

// drain reads everything that the journal has.
func drain(t *testing.T, j *Journal, k *sink) {
	t.Helper()
	r, stop := follow(t, j, k)
	poll(t, "drained", r.Drained)
	stop()
}

// files returns the names of the journal's files with an ending.
func files(t *testing.T, dir, ext string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*."+ext))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// brokenDisk is a disk that fails as its fields are set.
type brokenDisk struct {
	segment.OS
	mu      sync.Mutex
	write   error
	sync    error
	readErr error
	left    int64 // 0: plenty
	gate    chan struct{}
	waiting chan struct{} // gets a value when a sync waits at the gate
	syncs   int
	bytes   int64 // read
	frees   int   // how often the free space was asked for
	files   int   // that are open
	onRead  func(path string) error

	onRemove func(path string, remove func() error) error
}

func (d *brokenDisk) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// count returns how many bytes were read.
func (d *brokenDisk) count() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bytes
}

func (d *brokenDisk) Free(string) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.frees++
	if d.left == 0 {
		return 1 << 40, nil
	}
	return d.left, nil
}

func (d *brokenDisk) Open(path string) (segment.File, error) {
	d.mu.Lock()
	err := d.write
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	f, err := d.OS.Open(path)
	if err != nil {
		return nil, err
	}
	d.set(func() { d.files++ })
	n, err := f.Size()
	return &brokenFile{File: f, d: d, synced: n}, err
}

func (d *brokenDisk) Read(path string) (segment.File, error) {
	if d.onRead != nil {
		if err := d.onRead(path); err != nil {
			return nil, err
		}
	}
	f, err := d.OS.Read(path)
	if err != nil {
		return nil, err
	}
	d.set(func() { d.files++ })
	return &brokenFile{File: f, d: d}, nil
}

func (d *brokenDisk) Remove(path string) error {
	remove := func() error { return d.OS.Remove(path) }
	if d.onRemove != nil {
		return d.onRemove(path, remove)
	}
	return remove()
}

// brokenFile loses the bytes that were not synced when a sync fails, as the page cache does.
type brokenFile struct {
	segment.File
	d      *brokenDisk
	synced int64
	end    int64
}

func (f *brokenFile) WriteAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	err := f.d.write
	f.d.mu.Unlock()
	if err != nil {
		n, _ := f.File.WriteAt(b[:len(b)/2], off) // half of it gets through
		return n, err
	}
	f.end = off + int64(len(b))
	return f.File.WriteAt(b, off)
}

func (f *brokenFile) Sync() error {
	f.d.mu.Lock()
	err, gate := f.d.sync, f.d.gate
	f.d.syncs++
	f.d.mu.Unlock()
	if gate != nil {
		select {
		case f.d.waiting <- struct{}{}:
		default:
		}
		<-gate
	}
	if err != nil {
		_, werr := f.File.WriteAt(make([]byte, max(f.end-f.synced, 0)), f.synced)
		return errors.Join(err, werr)
	}
	f.synced = f.end
	return f.File.Sync()
}

func (f *brokenFile) Close() error {
	f.d.set(func() { f.d.files-- })
	return f.File.Close()
}

func (f *brokenFile) ReadAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	err := f.d.readErr
	f.d.mu.Unlock()
	if err != nil {
		return 0, err
	}
	n, err := f.File.ReadAt(b, off)
	f.d.mu.Lock()
	f.d.bytes += int64(n)
	f.d.mu.Unlock()
	return n, err
}

// content returns the data of a stream's frames; a gap is shown by its reason.
func (k *sink) content(key string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for _, name := range k.names(key) {
		for _, f := range k.streams[name].frames {
			if f.Reason != "" {
				out = append(out, fmt.Sprintf("<%s %d>", f.Reason, f.Dropped))
			} else {
				out = append(out, string(f.Data))
			}
		}
	}
	return out
}

// names returns the streams of a key, in order. mu is held.
func (k *sink) names(key string) []string {
	var names []string
	for n := range k.streams {
		if key == "" && len(n) == 16 || key != "" && len(n) == len(key)+17 && n[:len(key)+1] == key+"~" {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

func frameOf(data string) *frame.Frame {
	return &frame.Frame{Kind: frame.Event, At: 5, Data: []byte(data)}
}

// readAll runs a reader until it has nothing more to deliver.
func readAll(t *testing.T, r *Reader, k *sink) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, k) }()
	poll(t, "drained", r.Drained)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
