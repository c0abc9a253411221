package journal

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/segment"
)

// TestErase erases frames while a stream is recorded and after a restart: the others are
// delivered as they were, gaps stand for these, and no file has their bytes.
func TestErase(t *testing.T) {
	s := still(t, t.TempDir())
	s.SegmentSize = 400
	j := open(t, s)
	r := begin(t, j, "a")
	var want []string
	for i := range 30 {
		text := "a plain frame of some length"
		if i%4 == 0 {
			text = "a confidential frame of some length"
			want = append(want, "<erased 36>")
		} else {
			want = append(want, text)
		}
		put(t, r, text)
	}
	put(t, r, "pin") // has no room for the reason
	put(t, r, "codes")
	want = append(want, "\x00\x00\x00", "<erased 6>")
	for _, data := range []string{"", "a confidential frame"} { // of another stream
		put(t, begin(t, j, "other"), data)
	}
	secret := func(source, stream string, f *frame.Frame) bool {
		return source == "s" && strings.HasPrefix(stream, "a~") && (bytes.Contains(f.Data, []byte("confidential")) || string(f.Data) == "pin" || string(f.Data) == "codes")
	}
	n, err := j.Erase(t.Context(), secret)
	if err != nil || n != 8*int64(len("a confidential frame of some length"))+3+5 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	put(t, r, "one more")
	sync_(t, r)
	want = append(want, "one more")
	for _, f := range files(t, s.Dir, "seg") {
		if b, err := os.ReadFile(f); err != nil || bytes.Contains(b, []byte("confidential frame of")) {
			t.Errorf("%s has it: %v", f, err)
		}
	}
	for range 2 {
		k := newSink(t)
		drain(t, j, k)
		if got := k.content("a"); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if got := k.content("other"); !slices.Equal(got, []string{"", "a confidential frame"}) || len(k.troubles) > 0 {
			t.Errorf("another stream has %q, troubles %q", got, k.troubles)
		}
		if n, err := j.Erase(t.Context(), secret); n != 0 || err != nil {
			t.Errorf("again: %d bytes, %v", n, err)
		}
		before := len(j.segments.list())
		if _, err := j.Erase(t.Context(), secret); err != nil || len(j.segments.list()) != before {
			t.Errorf("%d segments, %v, where nothing was recorded behind %d", len(j.segments.list()), err, before)
		}
		j.mustClose(t)
		j = open(t, s)
	}
	all := func(_, stream string, _ *frame.Frame) bool { return strings.HasPrefix(stream, "other~") }
	if n, err := j.Erase(t.Context(), all); n != int64(len("a confidential frame")) || err != nil {
		t.Errorf("another stream: %d bytes, %v", n, err)
	}
	k := newSink(t)
	drain(t, j, k)
	if got := k.content("other"); !slices.Equal(got, []string{"", "<erased 21>"}) {
		t.Errorf("another stream has %q", got)
	}
}

// editedDisk calls edit before it opens a file to change it.
type editedDisk struct {
	segment.OS
	edit func()
}

func (d *editedDisk) Edit(path string) (segment.File, error) {
	d.edit()
	return d.OS.Edit(path)
}

// TestEraseOfWhatGoes evicts a segment when Erase is about to open it: it is not made again.
func TestEraseOfWhatGoes(t *testing.T) {
	d := &editedDisk{}
	s := still(t, t.TempDir())
	s.disk = d
	j := open(t, s)
	put(t, begin(t, j, "a"), "x")
	evicted := 0
	d.edit = func() {
		evicted++
		if err := j.retention.evict(j.segments.list()[0], overAge); err != nil {
			t.Error(err)
		}
	}
	n, err := j.Erase(t.Context(), func(string, string, *frame.Frame) bool { return true })
	if names := files(t, s.Dir, extData); n != 0 || err != nil || evicted != 1 || len(names) > 0 {
		t.Errorf("%d bytes, %v, evicted %d times, files %q", n, err, evicted, names)
	}
}
