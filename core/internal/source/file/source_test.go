package file

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNew(t *testing.T) {
	for _, tt := range []struct {
		settings Settings
		want     string
	}{
		{Settings{}, "paths: empty"},
		{Settings{Paths: []string{"a/[x"}}, `pattern "a/[x": malformed`},
		{Settings{Paths: []string{"a/{b/c,d}"}}, "braces span a slash"},
		{Settings{Paths: []string{"a"}, Exclude: []string{"{"}}, `exclude: pattern "{": malformed`},
		{Settings{Paths: []string{"a"}, MetadataFiles: []string{"../x"}}, "leaves the directory"},
		{Settings{Paths: []string{"a"}, StartAt: "middle"}, `start_at "middle"`},
		{Settings{Paths: []string{"a"}, MaxLine: -1}, "a limit is negative"},
		{Settings{Paths: []string{"a"}, Linger: -1}, "a duration is negative"},
	} {
		tt.settings.Name = "n"
		if _, err := New(tt.settings); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "file source n: ") {
			t.Errorf("%+v: %v, want %s", tt.settings, err, tt.want)
		}
	}
}

// TestUnreadable reads a file as soon as it may be read.
func TestUnreadable(t *testing.T) {
	for _, poll := range []bool{false, true} {
		t.Run(fmt.Sprintf("poll %v", poll), func(t *testing.T) {
			e := newEnv(t, "*.jsonl")
			if poll {
				e.poll()
			}
			e.write("x.jsonl", text("x"))
			e.write("y.jsonl", text("y"))
			var denied atomic.Bool // the tests may run as a user who may read everything
			denied.Store(true)
			e.prepare = func(s *Source) {
				s.open = func(path string) (*os.File, error) {
					if denied.Load() && filepath.Base(path) == "x.jsonl" {
						return nil, &os.PathError{Op: "open", Path: path, Err: syscall.EACCES}
					}
					return s.trees.open(path)
				}
			}
			e.start().want("y")
			e.wantTrouble(ReasonUnreadable)
			denied.Store(false)
			e.must(os.Chmod(e.path("x.jsonl"), 0o600))
			e.want("x", "y")
			e.wantTrouble(ReasonUnreadable)
		})
	}
}

// TestOutOfDescriptors goes on when some are free again.
func TestOutOfDescriptors(t *testing.T) {
	e := newEnv(t, "*.jsonl").poll()
	e.write("x.jsonl", text(a[:2]...))
	var refusals atomic.Int32
	e.prepare = func(s *Source) {
		s.open = func(path string) (*os.File, error) {
			if refusals.Add(1) == 1 {
				return nil, &os.PathError{Op: "open", Path: path, Err: syscall.EMFILE}
			}
			return s.trees.open(path)
		}
	}
	e.start().want(a[:2]...)
	e.wantTrouble()
}

// TestDescriptors keeps few files open, and reads all of them all the same.
func TestDescriptors(t *testing.T) {
	e := newEnv(t, "*.jsonl")
	e.settings.MaxOpen = 8
	const n = 200
	name := func(i int) string { return fmt.Sprintf("f%03d.jsonl", i) }
	var want []string
	for i := range n {
		e.write(name(i), text(fmt.Sprint("first ", i)))
		want = append(want, fmt.Sprint("first ", i))
	}
	e.start().want(want...)
	open := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		e.must(err)
		count := 0
		for _, fd := range fds {
			if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(to, e.dir) {
				count++
			}
		}
		return count
	}
	if n := open(); n != 8 {
		t.Errorf("%d descriptors are open, want 8", n)
	}
	for i := range n {
		e.add(name(i), text(fmt.Sprint("second ", i)))
		want = append(want, fmt.Sprint("second ", i))
	}
	e.want(want...)
	for i := range n { // renamed out of the patterns: found again by its inode
		e.rename(name(i), name(i)+".1")
		e.write(name(i), text(fmt.Sprint("third ", i)))
		want = append(want, fmt.Sprint("third ", i))
	}
	e.want(want...)
	e.until("the new names", func() bool {
		return e.outside() == n
	})
	e.stop()
	if n := open(); n != 0 {
		t.Errorf("%d descriptors are open after the end, want none", n)
	}
}

// outside returns the number of files that are tailed under a name that no pattern covers.
func (e *env) outside() int {
	e.src.files.mu.Lock()
	defer e.src.files.mu.Unlock()
	n := 0
	for _, f := range e.src.files.byInode {
		if f.outside {
			n++
		}
	}
	return n
}

// TestFairness delivers appended lines of one file while another has many unread ones.
func TestFairness(t *testing.T) {
	e := newEnv(t, "*.jsonl")
	e.settings.MaxRead = minRead
	e.sink.gate = make(chan struct{}, 2)
	e.sink.gate <- struct{}{}
	e.sink.gate <- struct{}{}
	e.write("hot.jsonl", text("hot"))
	e.write("cold.jsonl", text("cold"))
	e.start().want("hot", "cold")
	hot := strings.Repeat(strings.Repeat("h", 99)+"\n", 10000)
	e.add("hot.jsonl", hot)
	e.until("the workers to be busy", func() bool { return !e.src.Drained() })
	e.add("cold.jsonl", text("at last"))
	// The hot file has a turn of one batch: the cold one reaches the sink beside it, and of
	// the next batches one is its own. Deliveries pass the gate in the order of arrival.
	e.until("both files at the gate", func() bool { return e.sink.atGate.Load() == 2 })
	for range 2 {
		e.sink.gate <- struct{}{}
	}
	e.until("the cold file's line", func() bool { return slices.Contains(e.sink.all(), "at last") })
	close(e.sink.gate)
	e.until("the rest", func() bool { return e.sink.count() == 3+10000 })
}

// TestOrder reads the files of the first scan from the top of the tree down, the oldest
// first.
func TestOrder(t *testing.T) {
	e := newEnv(t, "**/*.jsonl")
	e.settings.MaxRead = minRead
	e.settings.MetadataFiles = []string{"*.meta.json"}
	age := func(name string, n int) {
		at := time.Now().Add(-time.Duration(n) * time.Hour)
		e.must(os.Chtimes(e.path(name), at, at))
	}
	long := strings.Repeat("p", 100) + "\n"
	e.write("p/s1.jsonl", strings.Repeat(long, 1000))
	e.write("p/s2.jsonl", "s2\n")
	e.write("p/s1/sub/a.jsonl", "a\n")
	e.write("p/s1/sub/a.meta.json", "meta")
	e.write("p/s1/sub/b.jsonl", "b\n")
	age("p/s1.jsonl", 4)
	age("p/s2.jsonl", 5)
	age("p/s1/sub/a.jsonl", 6)
	age("p/s1/sub/a.meta.json", 3)
	age("p/s1/sub/b.jsonl", 7)
	e.prepare = func(s *Source) { s.workers = 1 }
	e.start()
	e.until("all", func() bool { return e.sink.count() == 1004 })
	got := slices.Compact(e.sink.all())
	if diff := cmp.Diff([]string{"s2", strings.TrimSpace(long), "meta", "b", "a"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestOrderOfLevels reads nothing below before everything above, with all workers.
func TestOrderOfLevels(t *testing.T) {
	e := newEnv(t, "**/*.jsonl")
	e.settings.MaxRead = minRead
	for i := range 5 {
		e.write(fmt.Sprintf("s%d.jsonl", i), strings.Repeat("parent\n", 2000*i))
		e.write(fmt.Sprintf("s%d/a.jsonl", i), "child\n")
	}
	e.start()
	e.until("all", func() bool { return e.sink.count() == 20000+5 })
	if got := slices.Compact(e.sink.all()); !slices.Equal(got, []string{"parent", "child"}) {
		t.Errorf("order: %v", got)
	}
}

// TestKey derives the same key from the same content of the same file without a
// checkpoint.
func TestKey(t *testing.T) {
	e := newEnv(t, "*.jsonl")
	e.write("x.jsonl", text(a...))
	e.start().want(a...)
	e.stop()
	first := e.sink.live()
	e.add("x.jsonl", text(b...))
	e.sink = newSink(t)
	e.start().want(append(slices.Clone(a), b...)...)
	if diff := cmp.Diff(first, e.sink.live()); diff != "" {
		t.Error(diff)
	}
}

// TestStateUnreadable recognizes a stream by its key when its state cannot be decoded.
func TestStateUnreadable(t *testing.T) {
	e := newEnv(t, "*.jsonl")
	e.write("x.jsonl", text(a[:5]...))
	e.start().want(a[:5]...)
	e.stop()
	e.sink.stream(0).id.State = []byte(`{"v":99}`)
	e.add("x.jsonl", text(a[5:7]...))
	e.start().want(a[:7]...)
	e.wantStreams(1)
}

// TestDeviceRenumbered recognizes a file after the numbers of devices changed.
func TestDeviceRenumbered(t *testing.T) {
	e := newEnv(t, "*.jsonl")
	e.write("x.jsonl", text(a[:5]...))
	e.start().want(a[:5]...)
	e.stop()
	st := e.sink.stream(0)
	s, err := decodeState(st.id.State)
	e.must(err)
	s.Dev += 7
	st.id.State = s.encode()
	e.add("x.jsonl", text(a[5:7]...))
	e.start().want(a[:7]...)
	e.wantStreams(1)
}

// TestRewind delivers again from where the sink wants it.
func TestRewind(t *testing.T) {
	e := newEnv(t, "**/*")
	e.settings.MetadataFiles = []string{"*.meta"}
	e.settings.MaxRead = minRead
	lines := numbered("x", 500)
	e.write("x.jsonl", text(lines...))
	e.write("y.gz", string(packed([]byte(text(lines...)))))
	e.must(os.Chtimes(e.path("y.gz"), time.Now(), time.Now().Add(-time.Hour)))
	e.write("x.meta", "metadata")
	want := append(append(slices.Clone(lines), lines...), "metadata")
	e.start().want(want...)
	keys := e.sink.live()
	for i := range keys {
		st := e.sink.stream(i)
		from := 0
		if len(st.frames) > 1 {
			from = 123
			for _, f := range st.frames[from:] {
				want = append(want, string(f.Data))
			}
		} else {
			want = append(want, "metadata")
		}
		e.sink.again(keys[i], st.frames[from].Pos)
		e.want(want...)
	}
	e.add("x.jsonl", text(a...))
	e.want(append(want, a...)...)
}

// TestRewindInFlight has frames refused that were read before the source knew.
func TestRewindInFlight(t *testing.T) {
	e := newEnv(t, "x.jsonl")
	e.settings.MaxRead = minRead
	e.sink.gate = make(chan struct{})
	lines := numbered("x", 2000)
	e.write("x.jsonl", text(lines...))
	e.start()
	for range 5 {
		e.sink.gate <- struct{}{}
	}
	e.until("some frames", func() bool { return e.sink.count() > 100 })
	key := e.sink.live()[0]
	e.sink.mu.Lock()
	got := len(e.sink.streams[key].frames)
	pos := e.sink.streams[key].frames[50].Pos
	e.sink.mu.Unlock()
	e.sink.again(key, pos)
	close(e.sink.gate)
	e.want(append(lines[:got:got], lines[50:]...)...)
}

// TestForget drops the streams of files that are gone, after a while.
func TestForget(t *testing.T) {
	e := newEnv(t, "**/*.jsonl").poll()
	e.settings.Linger = 30 * time.Millisecond
	e.settings.MetadataFiles = []string{"*.meta"}
	e.write("stays.jsonl", text("stays"))
	e.write("goes.jsonl", text("goes"))
	e.write("stays.meta", "meta")
	e.write("truncated.jsonl", text(a[:3]...))
	want := append([]string{"stays", "goes", "meta"}, a[:3]...)
	e.start().want(want...)
	e.wantStreams(4)
	e.remove("goes.jsonl")
	e.remove("stays.meta")
	e.write("truncated.jsonl", text(b[0]))
	e.until("two to be forgotten", func() bool { return len(e.sink.live()) == 2 })
	e.want(append(want, b[0])...)
	e.until("the new one", func() bool { return len(e.sink.live()) == 2 })
	e.stop()
	e.remove("truncated.jsonl")
	e.start().idle()
	e.until("it to be forgotten", func() bool { return len(e.sink.live()) == 1 })
	e.wantTrouble()
}

// TestNotMounted forgets nothing while there is nothing at all.
func TestNotMounted(t *testing.T) {
	e := newEnv(t, "data/*.jsonl").poll()
	e.settings.Linger = 50 * time.Millisecond
	e.write("data/x.jsonl", text(a[:3]...))
	e.start().want(a[:3]...)
	e.stop()
	e.rename("data", "elsewhere")
	var scans atomic.Int32
	e.prepare = func(s *Source) {
		s.readDir = func(dir string) ([]os.DirEntry, error) { scans.Add(1); return os.ReadDir(dir) }
	}
	e.start().idle()
	until := time.Now().Add(4 * e.settings.Linger)
	n := scans.Load()
	e.until("some scans", func() bool { return scans.Load() > n+5 && time.Now().After(until) })
	e.wantStreams(1)
	e.rename("elsewhere", "data")
	e.add("data/x.jsonl", text(a[3:5]...))
	e.want(a[:5]...)
	e.wantStreams(1)
}

// TestGoneUnread reports lost bytes.
func TestGoneUnread(t *testing.T) {
	e := newEnv(t, "*.jsonl").poll()
	e.settings.Linger = time.Nanosecond
	e.settings.MaxRead = minRead
	e.sink.gate = make(chan struct{})
	e.write("other.jsonl", "")
	e.write("x.jsonl", text(numbered("x", 2000)...))
	e.start()
	e.sink.gate <- struct{}{}
	e.write("x.jsonl", "")
	close(e.sink.gate)
	e.wantTrouble(ReasonUnread)
	e.until("it to be forgotten", func() bool { return len(e.sink.live()) == 0 })
}
