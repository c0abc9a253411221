package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/blame"
	"github.com/earshot-dev/earshot/core/price"
)

// Cost is a number of tokens and their cost.
type Cost struct {
	Tokens   Tokens  `json:"tokens"`
	CostUSD  float64 `json:"cost_usd"`                  // of those whose cost is known
	Stated   float64 `json:"stated_usd,omitempty"`      // how many of CostUSD the protocol states; the others are at list prices
	Unpriced uint64  `json:"unpriced_tokens,omitempty"` // those whose cost is not known: the model has no price, or none in the tier
}

func (s *Cost) add(u Cost) {
	s.Tokens.add(u.Tokens)
	s.CostUSD += u.CostUSD
	s.Stated += u.Stated
	s.Unpriced += u.Unpriced
}

// Dollars is the cost, with a + when some of it is not known; empty when nothing
// was spent, ? when no price is known.
func (s Cost) Dollars() string {
	more := ""
	switch total := s.Tokens.Total(); {
	case total == 0:
		return ""
	case s.Unpriced == total:
		return "?"
	case s.Unpriced > 0:
		more = "+"
	}
	if s.CostUSD > 0 && s.CostUSD < 0.00005 {
		return "<$0.0001" + more
	}
	if s.CostUSD < 0.01 {
		return fmt.Sprintf("$%.4f%s", s.CostUSD, more)
	}
	return fmt.Sprintf("$%.2f%s", s.CostUSD, more)
}

// ByRecord is the part of the cost that the records of responses state; empty if they state none.
func (s Cost) ByRecord() string {
	if s.Stated == 0 {
		return ""
	}
	return Cost{Tokens: s.Tokens, CostUSD: s.Stated}.Dollars()
}

// PriceLegend explains the marks in texts of Dollars; empty when they have none.
func PriceLegend(texts []string) string {
	var out []string
	if slices.ContainsFunc(texts, func(s string) bool { return strings.HasSuffix(s, "+") }) {
		out = append(out, "+ without the tokens of models, or of tiers of the service, that have no price")
	}
	if slices.Contains(texts, "?") {
		out = append(out, "? no model of it has a price, or not in its tier of the service")
	}
	return strings.Join(out, "  ")
}

// String ends a sentence.
func (s Cost) String() string {
	text := tokens(s.Tokens.Total())
	if s.Unpriced < s.Tokens.Total() {
		text += " for " + s.Dollars()
	}
	if s.Unpriced > 0 {
		text += fmt.Sprintf(" (%s have no price)", tokens(s.Unpriced))
	}
	return text + "."
}

// addCost computes and stores the cost of n with everything below it. A run's tokens are
// those of its model turns; where the protocol reports more for the run as a whole than
// for its turns, the rest is the run's own.
func (t *Trace) addCost(n *blame.Node, prices tariff) (sum Cost) {
	w := t.works[n.Number()]
	own, stated, prompt := w.Tokens, w.Stated, uint64(0)
	switch n.Kind {
	case blame.Chat:
		prompt = own.Input + own.CacheRead + own.CacheWrite
	case blame.Run: // its tokens are of several requests
	default:
		own = Tokens{}
	}
	for _, c := range n.Children() {
		if c.Kind == blame.Chat && n.Kind == blame.Run {
			own, stated = own.less(t.works[c.Number()].Tokens), less(stated, t.works[c.Number()].Stated)
		}
		sum.add(t.addCost(c, prices))
	}
	if own != (Tokens{}) {
		sum.add(prices.cost(w, own, stated, prompt))
	}
	t.spent[n.Number()] = sum
	return sum
}

// tariff has the prices of a trace's models: a trace has many responses of few models.
type tariff struct {
	prices *price.Table
	models map[string]price.Prices
}

// cost is that of tokens of a work: stated, in US dollars times 10^12, or at the price of its model, for its tier and a prompt of that size.
func (t tariff) cost(w *Work, tokens Tokens, stated, prompt uint64) Cost {
	prices, known := t.models[w.Model]
	if !known {
		prices = t.prices.Model(w.Model)
		t.models[w.Model] = prices
	}
	s := Cost{Tokens: tokens}
	usd, ok := prices.Cost(price.Usage{Tokens: price.Tokens(tokens), Time: time.Unix(0, w.Start), Tier: w.Tier, Prompt: prompt, Stated: stated})
	switch {
	case !ok:
		s.Unpriced = tokens.Total()
	case stated > 0:
		s.Stated = usd
	}
	s.CostUSD = usd
	return s
}

// less takes tokens away, class by class, down to nothing.
func (t Tokens) less(u Tokens) Tokens {
	return Tokens{
		less(t.Input, u.Input), less(t.Output, u.Output), less(t.CacheRead, u.CacheRead), less(t.CacheWrite, u.CacheWrite), less(t.Reasoning, u.Reasoning),
		less(t.CacheWrite1h, u.CacheWrite1h),
	}
}

// Plus is the sum of two.
func (s Cost) Plus(u Cost) Cost {
	s.add(u)
	return s
}
