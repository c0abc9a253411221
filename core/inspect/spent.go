package inspect

import (
	"context"
	"fmt"
	"strings"
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
	return fmt.Sprintf("%.0f%%", 100*float64(s.Read)/float64(s.Read+s.Sent))
}

// Spent are the sums of all usage, and of each value of its dimensions: the latest day first, of the others those
// that spent most first. The sums of each list are equal.
type Spent struct {
	Total                               Spending
	Days                                []Spending // UTC
	Agents, Models, Projects            []Spending
	Teams, Users, Repositories, Tickets []Spending
}

// Usage is a table expression: v_attributed_usage. A turn whose attribution is not derived yet has the project of its
// conversation.
const Usage = `(SELECT u.* EXCEPT (project), toString(if(u.project = 'unknown', f.project, u.project)) AS project
	FROM v_attributed_usage AS u LEFT JOIN v_session_facts AS f ON f.tenant = u.tenant AND f.session_id = u.session_id)`

// LoadSpent sums up the rows of Usage of which where is true. Slots of five minutes count as a whole.
func LoadSpent(ctx context.Context, q Querier, where Condition) (*Spent, error) {
	out := &Spent{}
	lists := []struct {
		column string
		to     *[]Spending
	}{
		{"day", &out.Days}, {"agent_name", &out.Agents}, {"model", &out.Models}, {"project", &out.Projects},
		{"team", &out.Teams}, {"user", &out.Users}, {"repository", &out.Repositories}, {"ticket", &out.Tickets},
	}
	var columns []string
	for _, l := range lists {
		columns = append(columns, l.column)
	}
	all := uint64(1)<<len(lists) - 1
	only := func(i int) uint64 { return all &^ (1 << (len(lists) - 1 - i)) } // grouping() of the set of one column
	err := q.Each(ctx, `
		SELECT toUInt64(grouping(`+strings.Join(columns, ", ")+`)) AS of, if(concat(`+strings.Join(columns, ", ")+`) = 'unknown', '', concat(`+strings.Join(columns, ", ")+`)), ifNull(sum(cost_usd), 0) AS cost, sum(tokens), sumIf(tokens, NOT has_price),
			sum(cache_read_tokens), sum(input_tokens + cache_write_tokens), sum(output_tokens + reasoning_tokens)
		FROM (SELECT * REPLACE(if(agent_name IN ('', 'unknown'), concat('(', format, ')'), toString(agent_name)) AS agent_name), toString(toDate(ts, 'UTC')) AS day FROM `+Usage+` WHERE `+where.sql()+`)
		GROUP BY GROUPING SETS ((`+strings.Join(columns, "), (")+`), ())
		ORDER BY of, if(of = `+fmt.Sprint(only(0))+`, day, '') DESC, cost DESC, sum(tokens) DESC`, where.Params, func(v []any) error {
		r := reader{values: v}
		of := r.num()
		s := Spending{Name: r.str(), CostUSD: r.float(), Tokens: r.num(), Unpriced: r.num(), Read: r.num(), Sent: r.num(), Answer: r.num()}
		if of == all {
			out.Total = s
		}
		for i, l := range lists {
			if of == only(i) {
				*l.to = append(*l.to, s)
			}
		}
		return r.err
	})
	if err != nil {
		return nil, fmt.Errorf("spent: %w", err)
	}
	return out, nil
}
