package file

import (
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestIdentify changes files while one of their rotation set is identified. The source
// does not notice the changes by itself, and the test processes x.jsonl.1 instead of a
// worker.
func TestIdentify(t *testing.T) {
	tests := []struct {
		name string
		run  func(e *env)
	}{
		{"a copy grows after its size was taken", func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			e.write("x.jsonl.1")
			f := e.candidate("x.jsonl.1")
			e.identify(f, func() { e.copy("x.jsonl", "x.jsonl.1") })
			e.wantStream(f, "")
			e.copy("x.jsonl", "x.jsonl.1")
			e.identify(f, nil)
			e.wantStream(f, "")
			if f.duplicate == nil {
				e.Error("it was not recorded as a duplicate")
			}
		}},
		{"a copy of new content of the original that is not read yet", func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			e.write("x.jsonl", text(b[:2]...))
			e.copy("x.jsonl", "x.jsonl.1")
			f := e.candidate("x.jsonl.1")
			if v := e.identify(f, nil); v.after == 0 {
				e.Error("the identification did not wait for the original")
			}
			e.want(append(a[:3:3], b[:2]...)...)
			e.identify(f, nil)
			e.wantStream(f, "")
		}},
		{"the original is truncated during the comparison", func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			e.copy("x.jsonl", "x.jsonl.1")
			key := e.keyOf("x.jsonl")
			f := e.candidate("x.jsonl.1")
			if v := e.identify(f, func() { e.write("x.jsonl", text(b[0])) }); v.after == 0 {
				e.Error("the identification did not wait for the original")
			}
			e.want(append(a[:3:3], b[0])...)
			e.identify(f, nil)
			e.wantStream(f, key)
		}},
		{"the original is found truncated before the comparison, and is not read yet", func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.write("x.jsonl-20260102", text(b[:3]...))
			e.settings.Paths = append(e.settings.Paths, e.path("*-2*"))
			e.start().want(append(a[:3:3], b[:3]...)...)
			key := e.keyOf("x.jsonl")
			e.write("x.jsonl-20260102")
			e.notice("x.jsonl-20260102") // so that there is an orphan to compare with first
			e.until("an orphan", func() bool { return e.orphans("x.jsonl") == 1 })
			e.idle() // no file is compared while another one of its set is being read
			e.copy("x.jsonl", "x.jsonl.1")
			f := e.candidate("x.jsonl.1")
			v := e.identify(f, func() {
				e.write("x.jsonl", text(b[3]))
				e.notice("x.jsonl")
				e.until("another orphan", func() bool { return e.orphans("x.jsonl") == 2 })
			})
			if v.after == 0 {
				e.Error("an invalidated result was used")
			}
			e.wantStream(f, "")
			e.want(append(a[:3:3], b[:4]...)...)
			e.identify(f, nil)
			e.wantStream(f, key)
		}},
		{"one file of a set at a time", func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			e.write("x.jsonl.1", text(b[:3]...))
			e.copy("x.jsonl.1", "x.jsonl.2")
			f, g := e.candidate("x.jsonl.1"), e.candidate("x.jsonl.2")
			e.identify(f, func() {
				if v := e.identify(g, nil); v.after == 0 || g.stream != nil {
					e.Error("another file of the set was identified meanwhile")
				}
			})
			if f.stream == nil {
				e.Error("it has no stream")
			}
		}},
		{"an orphan whose copy was found first", func(e *env) {
			e.settings.Paths = append(e.settings.Paths, e.path("*.2"))
			e.write("x.jsonl.2", text(a[:3]...))
			e.start().want(a[:3]...)
			e.copy("x.jsonl.2", "x.jsonl")
			f := e.candidate("x.jsonl")
			e.remove("x.jsonl")
			f.orphan = &orphan{}
			e.identify(f, nil)
			e.wantStream(f, "")
		}},
		{"a request for a file that is no longer tracked", func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			f := e.candidate("x.jsonl")
			f.path = e.path("x.jsonl.3")
			e.discovery().seek(t.Context(), f)
			e.idle()
			e.src.files.mu.Lock()
			defer e.src.files.mu.Unlock()
			if n := len(e.src.files.rotations.blocked); n > 0 {
				e.Errorf("%d sets wait for ever", n)
			}
		}},
		{"renamed since it was found", func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			e.copy("x.jsonl", "x.jsonl.1")
			f := e.candidate("x.jsonl.1")
			f.path = e.path("x.jsonl")
			if v := e.identify(f, nil); v.after == 0 {
				e.Error("it was identified under a stale name")
			}
		}},
		{"while the name of another one is lost", func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			e.write("x.jsonl.1", text(b[:3]...))
			f := e.candidate("x.jsonl.1")
			e.src.files.pause(true)
			e.src.files.mu.Lock()
			x := e.src.files.byPath[e.path("x.jsonl")]
			e.src.files.mu.Unlock()
			e.discovery().lose([]*file{x}, false)
			e.src.newTailer(e.sink, newProblems(e.sink)).confirm(x) // as its worker does
			if v := e.identify(f, nil); v.after == 0 {
				e.Error("the identification did not wait for the other file")
			}
			e.src.files.pause(false)
			e.idle()
			e.identify(f, nil)
			if f.stream == nil {
				e.Error("it has no stream")
			}
		}},
		{"a copy of an orphan whose inode was reused", func(e *env) {
			e.write("x.jsonl", text(a[:3]...))
			e.start().want(a[:3]...)
			e.copy("x.jsonl", "x.jsonl.1")
			e.src.files.mu.Lock()
			x := e.src.files.byPath[e.path("x.jsonl")]
			x.close()
			e.src.files.rename(x, e.path("y.jsonl.1")) // as it looks
			e.src.files.detach(x)
			e.src.files.mu.Unlock()
			f := e.candidate("x.jsonl.1")
			e.idle()
			e.identify(f, nil)
			e.wantStream(f, e.sink.live()[0])
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, "*.jsonl")
			e.settings.PollOnly = true
			e.prepare = func(s *Source) {
				s.readDir = func(dir string) ([]os.DirEntry, error) {
					entries, err := os.ReadDir(dir)
					return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), ".1") }), err
				}
			}
			tt.run(e)
		})
	}
}

// TestCopyOfUnread has a file copied and truncated before it was read for the first
// time: the copy is all there is.
func TestCopyOfUnread(t *testing.T) {
	e := newEnv(t, "*.jsonl*")
	e.settings.PollOnly = true
	var opened atomic.Int32 // times that the original was
	began, truncated := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(truncated) })
	e.prepare = func(s *Source) {
		s.open = func(path string) (*os.File, error) {
			switch {
			case path == e.path("x.jsonl.1"):
				<-began // so that the comparison does not open the original first
			case path == e.path("x.jsonl") && opened.Add(1) == 1:
				close(began)
				<-truncated // so that the next time is for the comparison
			}
			return s.trees.open(path)
		}
	}
	e.write("x.jsonl", text(a[:3]...))
	e.copy("x.jsonl", "x.jsonl.1")
	old := time.Now().Add(-time.Minute) // the older one is read first
	e.must(os.Chtimes(e.path("x.jsonl"), old, old))
	e.start()
	e.Cleanup(goOn)
	e.until("the comparison", func() bool {
		e.src.files.mu.Lock()
		defer e.src.files.mu.Unlock()
		return opened.Load() > 1 && e.src.files.byPath[e.path("x.jsonl.1")].queued == idle
	})
	e.write("x.jsonl", text(b[:2]...))
	goOn()
	e.want(append(a[:3:3], b[:2]...)...)
}

// candidate returns a file that is to be identified.
func (e *env) candidate(name string) *file {
	e.Helper()
	fd, err := os.Open(e.path(name))
	e.must(err)
	e.Cleanup(func() { fd.Close() })
	info, err := fd.Stat()
	e.must(err)
	id, _, _ := describe(info)
	return &file{path: e.path(name), id: id, fd: fd}
}

// discovery returns one that knows no directories.
func (e *env) discovery() *discovery {
	return e.src.newDiscovery(&directories{}, newProblems(e.sink), nil, false)
}

// identify does it, with something happening after its size was taken, before the first byte is read.
func (e *env) identify(f *file, happens func()) result {
	e.Helper()
	info, err := f.fd.Stat()
	e.must(err)
	_, at, _ := describe(info)
	if info.Size() == 0 && happens != nil { // of an empty file nothing is read
		happens()
		happens = nil
	}
	r := &eventful{f.fd, happens}
	v, err := e.src.newIdentifier().identify(f, r, at, false)
	e.must(err)
	if r.happens != nil {
		e.Error("the comparison did not begin")
	}
	return v
}

type eventful struct {
	io.ReaderAt
	happens func()
}

func (r *eventful) ReadAt(p []byte, off int64) (int, error) {
	if do := r.happens; do != nil {
		r.happens = nil
		do()
	}
	return r.ReaderAt.ReadAt(p, off)
}

// notice has a file read as if there had been a notification.
func (e *env) notice(name string) {
	e.src.files.mu.Lock()
	defer e.src.files.mu.Unlock()
	e.src.files.schedule.push(e.src.files.byPath[e.path(name)])
}

// keyOf returns the key of the stream of a file.
func (e *env) keyOf(name string) string {
	e.src.files.mu.Lock()
	defer e.src.files.mu.Unlock()
	return e.src.files.byPath[e.path(name)].stream.key
}

func (e *env) wantStream(f *file, key string) {
	e.Helper()
	got := ""
	if f.stream != nil {
		got = f.stream.key
	}
	if got != key {
		e.Errorf("%s has the stream %q, want %q", f.path, got, key)
	}
}
