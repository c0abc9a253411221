package inspect

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Pair is an agent and its delegate.
type Pair struct{ Agent, Delegate string }

// Trend is how long the delegations of a pair took over a range of time.
type Trend struct {
	Count uint64        // that have ended, and that were not in the background
	P50   time.Duration // of all of them
	P95   time.Duration
	Parts []TrendPart // in order; those without a delegation are left out
}

// TrendPart is a part of the range of a Trend.
type TrendPart struct {
	Number int // of the part, from 0 on
	Count  uint64
	P95    time.Duration
}

// Trends returns the trends of the pairs from one time to another, in that many equal parts; from the Unix epoch
// on means from the first delegation on. The condition is on the columns of Delegations.
func Trends(ctx context.Context, q Querier, where Condition, pairs []Pair, from, to time.Time, parts int) (map[Pair]*Trend, error) {
	out := make(map[Pair]*Trend)
	if len(pairs) == 0 {
		return out, nil
	}
	if from.Unix() <= 0 {
		err := q.Each(ctx, "SELECT min(ts) FROM "+Delegations+" WHERE "+where.sql(), where.with(map[string]string{}), func(v []any) error {
			r := reader{values: v}
			from = r.time()
			return r.err
		})
		if err != nil {
			return nil, fmt.Errorf("trends: %w", err)
		}
	}
	among := "("
	params := where.with(map[string]string{
		"trend_from": strconv.FormatInt(from.UnixMilli(), 10), "trend_to": strconv.FormatInt(to.UnixMilli(), 10),
		"part": strconv.FormatInt(max(1, (to.Sub(from).Milliseconds()+int64(parts)-1)/int64(parts)), 10),
	})
	for i, p := range pairs {
		if i > 0 {
			among += ", "
		}
		agent, delegate := fmt.Sprintf("pair_%d_a", i), fmt.Sprintf("pair_%d_d", i)
		among += "(" + text(agent) + ", " + text(delegate) + ")"
		params[agent], params[delegate] = escaped(p.Agent), escaped(p.Delegate)
	}
	err := q.Each(ctx, `
		SELECT toString(agent_name) AS agent, toString(delegate_to) AS delegate, toInt64(intDiv(toUnixTimestamp64Milli(ts) - {trend_from:Int64}, {part:Int64})) AS number,
			count() AS delegations, toInt64(quantileExact(0.5)(duration_ns)) AS p50, toInt64(quantileExact(0.95)(duration_ns)) AS p95
		FROM `+Delegations+`
		WHERE ts >= fromUnixTimestamp64Milli({trend_from:Int64}) AND ts <= fromUnixTimestamp64Milli({trend_to:Int64}) AND status != 'running' AND NOT async
			AND (agent_name, delegate_to) IN `+among+`) AND (`+where.sql()+`)
		GROUP BY GROUPING SETS ((agent, delegate), (agent, delegate, number))
		ORDER BY agent, delegate, grouping(number) DESC, number`, params, func(v []any) error {
		r := reader{values: v}
		p := Pair{r.str(), r.str()}
		part := TrendPart{Number: int(r.signed()), Count: r.num()}
		p50 := time.Duration(r.signed())
		part.P95 = time.Duration(r.signed())
		if r.err != nil {
			return r.err
		}
		t := out[p]
		if t == nil { // the first row of a pair is that of the whole range
			out[p] = &Trend{Count: part.Count, P50: p50, P95: part.P95}
			return nil
		}
		t.Parts = append(t.Parts, part)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("trends: %w", err)
	}
	return out, nil
}
