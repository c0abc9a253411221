package journal

import (
	"os"
	"slices"
	"testing"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// TestOpensEarlierData opens a directory that commit e43ec3e wrote: a segment of which only
// the index is left, two sealed ones, and the newest with the beginning of a record that a
// crash interrupted. The readers deliver the same frames as that commit's, from the beginning
// and from a position in the middle, and recording continues.
func TestOpensEarlierData(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/e43ec3e")); err != nil {
		t.Fatal(err)
	}
	j := open(t, still(t, dir))
	if n := j.Stats().Truncated; n != 12 {
		t.Errorf("%d bytes cut at the end, want 12", n)
	}
	a := begin(t, j, "a")
	if got := string(a.State()); got != "state" {
		t.Errorf("state %q", got)
	}
	put(t, a, "later")
	drain := func(j *Journal, sourceName, format string, known map[string]int64) *sink {
		k := newSink(t)
		for key, pos := range known {
			k.streams[key] = &taken{sink: k, next: pos}
		}
		k.commit()
		r := j.Reader(sourceName, format, k.Known())
		readAll(t, r, k)
		return k
	}
	want := map[string][]string{
		"a": {"<journal_dropped 12>", "a4", "a5", "a6", "a7", "a8", "a9", "a10", "a11", "later"},
		"b": {"<journal_dropped 12>", "b4", "b5", "<drop 10>", "b6", "b7", "b8", "b9", "b10", "b11"},
		"":  {"<journal_dropped 12>", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11"},
	}
	check := func(j *Journal) {
		t.Helper()
		k, other := drain(j, "s", "f", nil), drain(j, "s2", "g", nil)
		for key, list := range want {
			got := k.content(key)
			if key == "" {
				got = other.content(key)
			}
			if !slices.Equal(got, list) {
				t.Errorf("stream %q: %q, want %q", key, got, list)
			}
		}
		if len(k.troubles)+len(other.troubles) != 0 {
			t.Errorf("trouble: %q %q", k.troubles, other.troubles)
		}
	}
	check(j)
	for _, pos := range []int64{18, 19} { // the second one within a frame
		half := drain(j, "s", "f", map[string]int64{drain(j, "s", "f", nil).names("a")[0]: pos})
		if got := half.content("a"); !slices.Equal(got, want["a"][3:]) {
			t.Errorf("from %d: %q, want %q", pos, got, want["a"][3:])
		}
	}
	rec, err := j.Recorder("s2").Begin(t.Context(), "g", source.ID{Origin: "next"})
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Record(t.Context(), &frame.Frame{Kind: frame.Event, Data: []byte("c12")}); err != nil {
		t.Fatal(err)
	}
	want[""] = append(want[""], "c12")
	j.mustClose(t)
	check(open(t, still(t, dir)))
}
