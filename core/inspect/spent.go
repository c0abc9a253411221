package inspect

import (
	"context"
	"fmt"
)

// Spending is a sum of tokens, of all that has one Name.
type Spending struct {
	Name               string // empty: none is known
	CostUSD            float64
	Tokens, Unpriced   uint64
	Read, Sent, Answer uint64 // from the cache, in full, answered
}

// Dollars is the cost as Cost.Dollars writes it.
func (s Spending) Dollars() string {
	return Cost{Tokens: Tokens{Input: s.Tokens}, CostUSD: s.CostUSD, Unpriced: s.Unpriced}.Dollars()
}

// Hits is the share of the requests' tokens that came from a cache, in percent.
func (s Spending) Hits() string {
	if s.Read+s.Sent == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*float64(s.Read)/float64(s.Read+s.Sent))
}

// Spent is what was spent in all, and by whom: the latest day first, of the others those that spent
// most first. Their sums are equal.
type Spent struct {
	Total                    Spending
	Days                     []Spending // UTC
	Agents, Models, Projects []Spending
}

// Usage is a table expression: v_usage with the column project.
const Usage = `(SELECT u.*, f.project AS project FROM v_usage AS u LEFT JOIN v_session_facts AS f ON f.tenant = u.tenant AND f.session_id = u.session_id)`

// LoadSpent sums up the rows of Usage of which where is true.
func LoadSpent(ctx context.Context, q Querier, where Condition) (*Spent, error) {
	out := &Spent{}
	err := q.Each(ctx, `
		SELECT toUInt64(grouping(day, agent_name, model, project)) AS of, concat(day, agent_name, model, project), ifNull(sum(cost_usd), 0) AS cost, sum(tokens), sumIf(tokens, NOT has_price),
			sum(cache_read_tokens), sum(input_tokens + cache_write_tokens), sum(output_tokens + reasoning_tokens)
		FROM (SELECT *, toString(toDate(ts, 'UTC')) AS day FROM `+Usage+` WHERE `+where.sql()+`)
		GROUP BY GROUPING SETS ((day), (agent_name), (model), (project), ())
		ORDER BY of, if(of = 7, day, '') DESC, cost DESC, sum(tokens) DESC`, where.Params, func(v []any) error {
		r := reader{values: v}
		of := r.num()
		s := Spending{Name: r.str(), CostUSD: r.float(), Tokens: r.num(), Unpriced: r.num(), Read: r.num(), Sent: r.num(), Answer: r.num()}
		switch of {
		case 7:
			out.Days = append(out.Days, s)
		case 11:
			out.Agents = append(out.Agents, s)
		case 13:
			out.Models = append(out.Models, s)
		case 14:
			out.Projects = append(out.Projects, s)
		case 15:
			out.Total = s
		}
		return r.err
	})
	if err != nil {
		return nil, fmt.Errorf("spent: %w", err)
	}
	return out, nil
}
