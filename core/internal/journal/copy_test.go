package journal

import (
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
	if !j.retention.release(nil) {
		t.Error("nothing was released when the room was needed")
	}
	if n := len(files(t, s.Dir, "seg")); n != 1 || j.retention.release(nil) {
		t.Errorf("%d segments of %d are left, or it is released again", n, before)
	}
	stop()
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
	if err := Copy(from, to); err != nil {
		t.Fatal(err)
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
