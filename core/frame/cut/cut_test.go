package cut

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/frame"
)

func TestLongFramesKeepTheirHead(t *testing.T) {
	var b frame.Batch
	l := NewLines(frame.Line, 4)
	for _, chunk := range []string{"ab", "cdef", "gh", "\nij\n"} {
		l.Feed(&b, []byte(chunk), 0)
	}
	d := NewDocument(4)
	d.Feed(&b, []byte("abc"), 0)
	d.Feed(&b, []byte("defg"), 0)
	d.Finish(&b, 0)
	want := []frame.Frame{
		{Kind: frame.Line, Data: []byte("abcd"), End: 9, Dropped: 4, Reason: "too_long"},
		{Kind: frame.Line, Data: []byte("ij"), Pos: 9, End: 12},
		{Kind: frame.Body, Data: []byte("abcd"), End: 7, Dropped: 3, Reason: "too_long"},
	}
	if d := cmp.Diff(want, b.Frames); d != "" {
		t.Error(d)
	}
}

// Neither a line nor a document without end may take memory.
func TestMemoryIsBounded(t *testing.T) {
	chunk := make([]byte, 64<<10)
	for i := range chunk {
		chunk[i] = 'x'
	}
	var b frame.Batch
	l, d := NewLines(frame.Line, 1<<10), NewDocument(1<<10)
	for range 64 {
		l.Feed(&b, chunk, 0)
		d.Feed(&b, chunk, 0)
	}
	if l.Held() != 1<<10 || d.Held() != 1<<10 || len(b.Frames) != 0 {
		t.Errorf("%d and %d bytes held, %d frames", l.Held(), d.Held(), len(b.Frames))
	}
	l = NewLines(frame.Line, 8<<20)
	l.Feed(&b, make([]byte, 4<<20), 0)
	l.Feed(&b, []byte("x\n"), 0)
	if len(b.Frames) != 1 || cap(l.open) > keep {
		t.Errorf("%d bytes kept after a long line", cap(l.open))
	}
}
