package inspect

import "testing"

// TestPriceLegend: a mark beside a cost is explained where it is printed.
func TestPriceLegend(t *testing.T) {
	priced := Cost{Tokens: Tokens{Input: 10}, CostUSD: 1}
	part, none := priced, priced
	part.Unpriced, none.Unpriced = 4, 10
	for _, c := range []struct {
		costs []Cost
		want  string
	}{
		{[]Cost{priced, {}}, ""},
		{[]Cost{priced, part}, "+ without the tokens of models, or of tiers of the service, that have no price"},
		{[]Cost{none, part}, "+ without the tokens of models, or of tiers of the service, that have no price  ? no model of it has a price, or not in its tier of the service"},
	} {
		var texts []string
		for _, cost := range c.costs {
			texts = append(texts, cost.Dollars())
		}
		if got := PriceLegend(texts); got != c.want {
			t.Errorf("%q: %q, want %q", texts, got, c.want)
		}
	}
}
