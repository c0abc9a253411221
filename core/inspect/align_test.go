package inspect

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestAlign holds the alignment of random lists to its order, and its score to that of a
// search of all alignments.
func TestAlign(t *testing.T) {
	score := func(x, y byte) int {
		switch {
		case x == y:
			return 4
		case x|32 == y|32:
			return 2
		}
		return 0
	}
	var best func(a, b string) int
	best = func(a, b string) int {
		if a == "" || b == "" {
			return 0
		}
		m := max(best(a[1:], b), best(a, b[1:]))
		if s := score(a[0], b[0]); s > 0 {
			m = max(m, s+best(a[1:], b[1:]))
		}
		return m
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s [2]string
		for i := range s {
			var b strings.Builder
			for range rng.IntN(8) {
				b.WriteByte("abAB"[rng.IntN(4)])
			}
			s[i] = b.String()
		}
		i, j, got := 0, 0, 0
		for _, p := range align([]byte(s[0]), []byte(s[1]), score) {
			if p[0] >= 0 && p[0] != i || p[1] >= 0 && p[1] != j {
				t.Fatalf("%q: %v is out of order", s, p)
			}
			if p[0] >= 0 && p[1] >= 0 {
				got += score(s[0][i], s[1][j])
			}
			if p[0] >= 0 {
				i++
			}
			if p[1] >= 0 {
				j++
			}
		}
		if want := best(s[0], s[1]); got != want || i != len(s[0]) || j != len(s[1]) {
			t.Fatalf("%q: score %d, want %d; %d and %d aligned", s, got, want, i, j)
		}
	}
	long := make([]byte, 6_000)
	if n := len(align(long, long[:5_000], score)); n != len(long) {
		t.Errorf("%d rows of long lists", n)
	}
}
