package journal

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestMarksAreRead delivers marks at their positions among the frames, and none of a stream
// without frames.
func TestMarksAreRead(t *testing.T) {
	mark := func(r interface{ Mark([]byte) error }, state string) {
		t.Helper()
		if err := r.Mark([]byte(state)); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	j := open(t, still(t, dir))
	r := begin(t, j, "a")
	mark(r, "1")
	put(t, r, "x")
	mark(r, "2")
	put(t, r, "y")
	mark(r, "3")
	closed(t, r)
	mark(begin(t, j, "ledger"), "kept")
	kept := begin(t, j, "kept")
	put(t, kept, "z")
	mark(kept, "4")
	if _, err := j.seal(t.Context()); err != nil { // its index is no reason to open a stream either
		t.Fatal(err)
	}
	j.mustClose(t)

	j, k := open(t, still(t, dir)), newSink(t)
	drain(t, j, k)
	want := []string{"0 1", "2 2", "4 3"}
	k.mu.Lock()
	if got := k.streams[k.names("a")[0]].marks; !slices.Equal(got, want) {
		t.Errorf("marks %q, want %q", got, want)
	}
	if n := k.names("ledger"); len(n) != 0 {
		t.Errorf("a recording without frames is stream %v", n)
	}
	k.mu.Unlock()
	j.mustClose(t)

	// A stream that continues after a restart is opened, with its last mark, although nothing is new of it.
	k.crash()
	k.streams[k.names("kept")[0]].marks = nil
	j = open(t, still(t, dir))
	drain(t, j, k)
	k.mu.Lock()
	defer k.mu.Unlock()
	if got := k.streams[k.names("kept")[0]].marks; !slices.Equal(got, []string{"2 4"}) {
		t.Errorf("marks %q of the stream that goes on", got)
	}
}

// TestMarksOfManySegments has the last mark in another segment than the frames, or in an
// evicted one: it is read.
func TestMarksOfManySegments(t *testing.T) {
	for _, givenUp := range []bool{false, true} {
		s := still(t, t.TempDir())
		s.SegmentSize = 4 << 10
		j, k := open(t, s), newSink(t)
		r := begin(t, j, "a")
		if err := r.Mark([]byte("begin")); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			put(t, r, fmt.Sprintf("%0100d", i))
		}
		if err := r.Mark([]byte("end")); err != nil {
			t.Fatal(err)
		}
		sync_(t, r)
		if givenUp {
			j.mu.Lock()
			for _, g := range j.segments.all[:len(j.segments.all)-1] {
				g.gone = true
			}
			j.mu.Unlock()
		}
		closed(t, r)
		drain(t, j, k)
		k.mu.Lock()
		if got := k.streams[k.names("a")[0]].marks; len(got) == 0 || got[len(got)-1] != "10100 end" || !slices.Contains(got, "0 begin") && !givenUp {
			t.Errorf("given up %v: marks %q", givenUp, got)
		}
		k.mu.Unlock()
		j.mustClose(t)
	}
}

// TestLostEndKeepsTheMark has a journal that lost its end, of which the checkpoint has more: a stream with a key goes on as another one, with the
// state of its listener, also when nothing is recorded in it before the next restart.
func TestLostEndKeepsTheMark(t *testing.T) {
	dir := t.TempDir()
	j, k := open(t, still(t, dir)), newSink(t)
	for _, key := range []string{"a", "plain"} {
		r := begin(t, j, key)
		if key == "a" {
			if err := r.Mark([]byte("cursor 7")); err != nil {
				t.Fatal(err)
			}
		}
		put(t, r, "x")
	}
	drain(t, j, k)
	j.mustClose(t)
	known := k.Known()
	for i := range known {
		known[i].Pos += 100
	}
	j = open(t, still(t, dir))
	early := begin(t, j, "a")
	j.Reader("s", "f", known)
	if err := early.Record(t.Context(), frameOf("y")); !errors.Is(err, ErrClosed) {
		t.Errorf("a recording of the stream that lost its end goes on: %v", err)
	}
	j.mustClose(t)
	for range 2 {
		j = open(t, still(t, dir))
		if got := begin(t, j, "a").State(); string(got) != "cursor 7" {
			t.Errorf("its listener's state is %q", got)
		}
		if got := begin(t, j, "plain").State(); len(got) != 0 {
			t.Errorf("a stream without a mark has the state %q", got)
		}
		j.mustClose(t)
	}
	j, k = open(t, still(t, dir)), newSink(t)
	put(t, begin(t, j, "a"), "y")
	drain(t, j, k)
	if n := k.names("a"); len(n) != 2 || len(k.streams[n[1]].frames) != 1 {
		t.Errorf("%d streams: %q", len(n), k.content("a"))
	}
}
