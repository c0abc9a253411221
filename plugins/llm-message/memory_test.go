package llmmessage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestNewItems(t *testing.T) {
	for _, c := range []struct {
		name     string
		was, now []uint64
		cut      bool
		want     []int
	}{
		{"the first", nil, []uint64{1, 2}, false, []int{0, 1}},
		{"the same", []uint64{1, 2}, []uint64{1, 2}, false, nil},
		{"grown", []uint64{1, 2}, []uint64{1, 2, 3}, false, []int{2}},
		{"grown by the same words", []uint64{1, 2}, []uint64{1, 2, 1, 2}, false, []int{2, 3}},
		{"shed", []uint64{1, 2, 3}, []uint64{2, 3, 4}, false, []int{2}},
		{"shed, and the oldest said again", []uint64{1, 2, 3}, []uint64{2, 3, 1}, false, []int{2}},
		{"shrunk in its middle", []uint64{1, 2, 3, 4}, []uint64{1, 4}, false, nil},
		{"changed in its middle", []uint64{1, 2, 3}, []uint64{1, 9, 3}, false, []int{1}},
		{"changed places", []uint64{1, 2, 3}, []uint64{2, 1, 3}, false, nil},
		{"rewritten", []uint64{1, 2, 3}, []uint64{7, 8}, false, []int{0, 1}},
		{"empty", []uint64{1}, nil, false, nil},
		{"longer than is remembered", []uint64{3, 4}, []uint64{1, 2, 3, 4, 5}, true, []int{4}},
	} {
		if got := newItems(c.was, c.now, c.cut); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, then %v: got %v, want %v", c.name, c.was, c.now, got, c.want)
		}
	}
}

// TestNewItemsOfLongMemories: of memories that are too long for a table of all pairs the appended
// messages are still new, and no message is that both have as often.
func TestNewItemsOfLongMemories(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	was := make([]uint64, 3000)
	for i := range was {
		was[i] = r.Uint64()
	}
	now := append(slices.Clone(was[1:]), 1, 2)
	if got := newItems(was, now, false); !slices.Equal(got, []int{2999, 3000}) {
		t.Errorf("got %v", got)
	}
}

func BenchmarkNewItems(b *testing.B) {
	for _, n := range []int{100, 1000} {
		was := make([]uint64, n)
		for i := range was {
			was[i] = uint64(i)
		}
		now := append(slices.Clone(was[1:]), uint64(n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				newItems(was, now, false)
			}
		})
	}
}
