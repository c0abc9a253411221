package bounded

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLikeAList holds the set against a list, through snapshots and with few members and
// many.
func TestLikeAList(t *testing.T) {
	for _, limit := range []int{1, 3, indexed - 1, indexed, 100} {
		var s Set[int]
		var want []int
		random := rand.New(rand.NewPCG(1, uint64(limit)))
		for range 5000 {
			v := random.IntN(2 * limit)
			switch random.IntN(20) {
			case 0:
				s.Remove(v)
				want = slices.DeleteFunc(want, func(w int) bool { return w == v })
			case 1:
				b, err := json.Marshal(s)
				if err != nil {
					t.Fatal(err)
				}
				var again Set[int]
				if err := json.Unmarshal(b, &again); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(again.all(), want) {
					t.Fatalf("limit %d: %s, want %v", limit, b, want)
				}
				s = again
			default:
				added := s.Add(v, limit)
				if added == slices.Contains(want, v) {
					t.Fatalf("limit %d: %d added %t to %v", limit, v, added, want)
				}
				if added {
					want = append(want, v)
					want = want[max(len(want)-limit, 0):]
				}
			}
			if s.Has(v) != slices.Contains(want, v) || s.Len() != len(want) || s.IsZero() != (len(want) == 0) {
				t.Fatalf("limit %d: %v, want %v", limit, s.all(), want)
			}
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	b.ReportAllocs()
	var s Set[uint64]
	var n uint64
	for b.Loop() {
		n++
		s.Add(n, 256)
	}
}
