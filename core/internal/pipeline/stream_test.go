package pipeline

import (
	"bytes"
	"slices"
	"testing"

	"github.com/earshot-dev/earshot/core/frame"
)

// TestBatchesAreShrunk: a batch that fills little of a large buffer gets a buffer of its size and returns the other; its frames stay as they are.
func TestBatchesAreShrunk(t *testing.T) {
	for _, x := range []struct {
		size, filled int // of the buffer
		shrunk       bool
	}{{64 << 10, 7, true}, {64 << 10, 0, true}, {64 << 10, 32 << 10, true}, {64 << 10, 32<<10 + 1, false}, {largeBuffer, 7, false}, {largeBuffer + 1, 7, true}} {
		released := false
		b := &frame.Batch{Data: make([]byte, x.size), Written: 3, Backlog: true, Release: func() { released = true }}
		used := b.Data[x.size-x.filled:]
		for i := range used {
			used[i] = byte(i)
		}
		half := x.filled / 2
		b.Frames = []frame.Frame{{Pos: 1, End: 2, Data: used[:half]}, {Pos: 2, End: 3, Reason: "cut"}, {Pos: 3, End: 4, Data: used[half:]}}
		var want [][]byte
		for _, f := range b.Frames {
			want = append(want, slices.Clone(f.Data))
		}
		got := shrink(b)
		if released != x.shrunk || (got == b) == x.shrunk || x.shrunk && cap(got.Data) != x.filled {
			t.Errorf("%+v: released %t, room for %d", x, released, cap(got.Data))
		}
		if got.Written != 3 || !got.Backlog || len(got.Frames) != 3 {
			t.Errorf("%+v: %d frames, written %d, backlog %t", x, len(got.Frames), got.Written, got.Backlog)
		}
		for i, f := range got.Frames {
			if _, within := frame.Offset(got.Data, f.Data); !within || !bytes.Equal(f.Data, want[i]) || f.Pos != int64(i+1) || f.End != int64(i+2) || (f.Reason != "") != (i == 1) {
				t.Errorf("%+v: frame %d: %d to %d, %d bytes, %s", x, i, f.Pos, f.End, len(f.Data), f.Reason)
			}
		}
	}
}
