package pipeline

import (
	"bytes"
	"slices"
	"testing"

	"github.com/earshot-dev/earshot/core/frame"
)

// TestSuspectFramesAreAlone cuts a batch so that each frame between two positions is decoded alone: every frame is in one part, with its bytes and its
// position. The budgets have the batch once, and its buffer is returned behind the last part.
func TestSuspectFramesAreAlone(t *testing.T) {
	for _, x := range []struct {
		from, to int64
		want     []string // data of each part; those that are alone in brackets
	}{
		{10, 30, []string{"a", "[bb]", "[]", "ddee"}},
		{0, 50, []string{"[a]", "[bb]", "[]", "[dd]", "[ee]"}},
		{40, 99, []string{"abbdd", "[ee]"}},
		{15, 16, []string{"a", "[bb]", "ddee"}},
		{29, 31, []string{"abb", "[]", "[dd]", "ee"}},
		{60, 70, []string{"abbddee"}},
	} {
		released := 0
		b := &frame.Batch{Written: 7, Backlog: true, Release: func() { released++ }}
		b.Data = append(b.Data, "before "...)
		for i, data := range []string{"a", "bb", "", "dd", "ee"} {
			b.Append(frame.Frame{Pos: int64(10 * i), End: int64(10*i + 10)}, []byte(data))
		}
		held, err := newLease(t.Context(), 100, newBudget(200), newBudget(200))
		if err != nil {
			t.Fatal(err)
		}
		d := &decode{ticket: ticket{generation: 3, pos: 5}, batch: b, held: held}
		var got []string
		next := int64(0)
		parts := d.split(x.from, x.to)
		for i, r := range parts {
			part := r.commands[0].(*decode)
			var data []byte
			for _, f := range part.batch.Frames {
				data = append(data, f.Data...)
			}
			if !bytes.Equal(part.batch.Data, data) || part.batch.Written != 7 || !part.batch.Backlog || part.ticket != d.ticket {
				t.Errorf("part %d of %d-%d: %+v", i, x.from, x.to, part.batch)
			}
			if a := part.attempt(); a.from != next || a.to != part.batch.End() || a.step != atFrames || a.generation != 3 {
				t.Errorf("part %d of %d-%d: %+v", i, x.from, x.to, a)
			}
			next = part.batch.End()
			text := string(data)
			if r.alone {
				text = "[" + text + "]"
			}
			got = append(got, text)
		}
		if !slices.Equal(got, x.want) || next != 50 {
			t.Errorf("%d-%d: %q, want %q", x.from, x.to, got, x.want)
		}
		for i, r := range parts {
			if released != 0 || held.inFlight.inUse() > 100 {
				t.Errorf("%d-%d: released before part %d of %d", x.from, x.to, i, len(parts))
			}
			r.commands[0].discard()
		}
		if released != 1 || held.inFlight.inUse() != 0 || held.undecoded.inUse() != 0 {
			t.Errorf("%d-%d: released %d times, %d and %d bytes are held", x.from, x.to, released, held.inFlight.inUse(), held.undecoded.inUse())
		}
	}
}

// TestAnswersNameFrames turns the decoder's index of a frame into the batch's, of which it did not get all.
func TestAnswersNameFrames(t *testing.T) {
	frames := []frame.Frame{{Reason: "cut"}, {Data: []byte("a"), Clean: true}, {Reason: "cut"}, {Data: []byte("b")}}
	part := &decode{batch: &frame.Batch{Frames: frames}}
	part.sent, _ = decodable(frames)
	cut := &decode{batch: &frame.Batch{Frames: frames[:1]}} // of which the decoder gets nothing
	cut.sent, _ = decodable(frames[:1])
	for _, x := range []struct {
		d     *decode
		index int32
		at    int
		ok    bool
		clean string
	}{
		{part, -1, 0, false, ""}, {part, 0, 1, true, "a"}, {part, 1, 3, true, ""}, {part, 2, 0, false, ""},
		{cut, 0, 0, false, ""}, {&decode{batch: part.batch}, 1, 1, true, "a"}, {&decode{batch: part.batch}, 3, 3, true, ""}, {&decode{batch: part.batch}, 4, 4, false, ""},
	} {
		at, ok := x.d.index(x.index)
		if clean := x.d.cleanAt(x.index); at != x.at || ok != x.ok || string(clean) != x.clean {
			t.Errorf("frame %d: %d, %t, %q", x.index, at, ok, clean)
		}
	}
}
