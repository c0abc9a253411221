package pipeline

import (
	"bytes"
	"context"
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
		for _, at := range []int{0, x.size - x.filled} {
			released := false
			b := &frame.Batch{Data: make([]byte, x.size), Written: 3, Backlog: true, Release: func() { released = true }}
			used := b.Data[at : at+x.filled]
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
}

// TestDeliveredOnce: a stream takes the frames that it does not have, and returns the buffers of the others at once.
func TestDeliveredOnce(t *testing.T) {
	p, feed := stopped(t, Settings{Lanes: 1})
	close(feed.format.up)
	a := opened(t, p, feed, "k", 10)
	for _, x := range []struct {
		name     string
		from, to int64
		closed   bool
		taken    int64
	}{{"nothing", 10, 10, false, 0}, {"what it has", 5, 10, false, 0}, {"what it has in part", 8, 12, false, 2}, {"what follows", 12, 15, false, 3}, {"behind a gap", 16, 17, false, 0}, {"behind its end", 15, 17, true, 0}} {
		released := false
		b := &frame.Batch{Release: func() { released = true }}
		for pos := x.from; pos < x.to; pos++ {
			b.Append(frame.Frame{Pos: pos, End: pos + 1}, []byte("x"))
		}
		a.stream.cursor.setClosed(x.closed)
		was, held := p.Progress().Delivered, p.inFlight.inUse()
		if err := a.stream.Deliver(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if n := p.Progress().Delivered - was; n != x.taken || released != (x.taken == 0) || (p.inFlight.inUse() > held) == released || len(a.stream.lane.queue) != map[bool]int{true: 0, false: 1}[released] {
			t.Errorf("%s: %d bytes are taken, released %t, %d in flight", x.name, n, released, p.inFlight.inUse())
		}
		if !released {
			(<-a.stream.lane.queue).discard()
		}
	}
	was := p.inFlight.inUse()
	large := &frame.Batch{Data: make([]byte, 64<<10)}
	for pos := range int64(2) {
		large.Frames = append(large.Frames, frame.Frame{Pos: 15 + pos, End: 16 + pos, Data: large.Data[7*pos : 7*pos+7]})
	}
	a.stream.cursor.setClosed(false)
	if err := a.stream.Deliver(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	if n := p.inFlight.inUse() - was; n != 14+2*frameCost || n != feed.format.undecoded.inUse() {
		t.Errorf("two short frames in a large buffer take %d bytes", n)
	}
	(<-a.stream.lane.queue).discard()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	feed.format.undecoded.used = 1 << 40 // there is no room
	released := false
	late := &frame.Batch{Data: []byte("x"), Frames: []frame.Frame{{Pos: 17, End: 18}}, Release: func() { released = true }}
	if err := a.stream.Deliver(over, late); err == nil || !released || len(a.stream.lane.queue) != 0 {
		t.Errorf("%v, released %t", err, released)
	}
}
