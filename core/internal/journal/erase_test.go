package journal

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/frame"
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
