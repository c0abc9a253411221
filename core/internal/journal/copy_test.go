package journal

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestKeep has segments in which everything is safe stay for a while, but not when
// the room is needed.
func TestKeep(t *testing.T) {
	s := small(t, t.TempDir())
	s.SegmentSize, s.Keep = 200, time.Hour
	j, k := open(t, s), newSink(t)
	r := begin(t, j, "a")
	var want []string
	for range 50 {
		want = append(want, "twelve bytes")
		put(t, r, "twelve bytes")
	}
	sync_(t, r)
	_, stop := follow(t, j, k)
	poll(t, "all delivered", func() bool { return slices.Equal(k.content("a"), want) })
	before := len(files(t, s.Dir, "seg"))
	if before < 5 {
		t.Fatalf("%d segments", before)
	}
	poll(t, "a few sweeps", func() bool { j.sweep(t); return true })
	if n := len(files(t, s.Dir, "seg")); n != before {
		t.Errorf("%d segments of %d are left", n, before)
	}
	if !j.retention.release() {
		t.Error("nothing was released when the room was needed")
	}
	if n := len(files(t, s.Dir, "seg")); n != 1 || j.retention.release() {
		t.Errorf("%d segments of %d are left, or it is released again", n, before)
	}
	stop()
	asked := k.asked
	if j.sweep(t); k.asked != asked {
		t.Error("the checkpoint is asked, although nothing can go")
	}
}

// TestKeptForAWhile: segments that are safe go when their time has passed.
func TestKeptForAWhile(t *testing.T) {
	s := still(t, t.TempDir())
	s.SegmentSize, s.Keep = 200, time.Millisecond
	j, k := open(t, s), newSink(t)
	r := begin(t, j, "a")
	for range 10 {
		put(t, r, "twelve bytes")
	}
	sync_(t, r)
	reader, stop := follow(t, j, k)
	defer stop()
	poll(t, "drained", reader.Drained)
	poll(t, "they are gone", func() bool { j.sweep(t); return len(files(t, s.Dir, "seg")) == 1 })
}

func info(t *testing.T, path string) os.FileInfo {
	t.Helper()
	i, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// TestCopy opens a copy beside the journal, which keeps recording: the copy has the frames
// of that moment, the journal all of them.
func TestCopy(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	s := small(t, from)
	s.SegmentSize = 200
	j := open(t, s)
	r := begin(t, j, "a")
	var want []string
	for range 50 {
		want = append(want, "twelve bytes")
		put(t, r, "twelve bytes")
	}
	sync_(t, r)
	if err := os.WriteFile(filepath.Join(from, "000000000001.old"), nil, 0o600); err != nil { // is none of its files
		t.Fatal(err)
	}
	if err := Copy(from, to); err != nil {
		t.Fatal(err)
	}
	if names := files(t, to, "*"); len(names) != len(files(t, from, "*"))-1 {
		t.Errorf("copied: %q", names)
	}
	if a, b := info(t, files(t, from, "seg")[0]), info(t, files(t, to, "seg")[0]); !os.SameFile(a, b) {
		t.Error("a segment that is complete takes twice the room")
	}
	put(t, r, "more")
	sync_(t, r)
	for dir, want := range map[string][]string{to: want, from: append(slices.Clone(want), "more")} {
		c := j
		if dir == to {
			c = open(t, still(t, to))
		}
		k := newSink(t)
		drain(t, c, k)
		if got := k.content("a"); !slices.Equal(got, want) {
			t.Errorf("%d frames of %d", len(got), len(want))
		}
	}
	if err := Copy(filepath.Join(from, "none"), filepath.Join(to, "none")); err != nil {
		t.Errorf("of a journal that never was: %v", err)
	}
}
