package inspect

import (
	"bytes"
	"strings"
	"testing"
)

// TestSpendingOfBoth: no side has spent 0 tokens, or a cost of none: where a record has no tokens they are not known.
func TestSpendingOfBoth(t *testing.T) {
	known, dear := Cost{Tokens: Tokens{Input: 1500}, CostUSD: 0.25}, Cost{Tokens: Tokens{Input: 2000}, CostUSD: 0.5, Unpriced: 500}
	odd := Cost{Tokens: Tokens{Output: 7}, Unpriced: 7}
	for _, c := range []struct {
		a, b Cost
		want string
	}{
		{Cost{}, Cost{}, "Tokens and cost are not known."},
		{Cost{}, known, "Tokens and cost of A are not known; B has 1500 tokens, cost $0.25."},
		{known, Cost{}, "A has 1500 tokens, cost $0.25; tokens and cost of B are not known."},
		{known, dear, "Tokens +500 (1500 tokens in A, 2000 tokens in B), cost $0.25 in A, $0.50+ (500 tokens have no price) in B."},
		{odd, known, "Tokens +1493 (7 tokens in A, 1500 tokens in B), cost not known in A, $0.25 in B."},
	} {
		if got := spending(c.a, c.b); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		var out bytes.Buffer
		d := Difference{A: DiffSide{Spent: c.a}, B: DiffSide{Spent: c.b}, Diverges: -1}
		if err := d.Write(&out, Style{}); err != nil || strings.Contains(out.String(), "no cost") || strings.Contains(out.String(), " 0 tokens") {
			t.Errorf("%v in\n%s", err, &out)
		}
	}
}
