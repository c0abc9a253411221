package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/change"
)

// RunHistory is the runs that a search for changes compares. One that is kept from look to look reads only the time in which
// runs were stored, or began, since the last look; its answers are those of a new one.
type RunHistory struct {
	// Late is how long a row may take from its ingest_ts until a query finds it; 5 min when zero.
	Late time.Duration

	runs    []ran // in the order of time
	sampled shares
	counted counted
	to      time.Time // of the last look
	stored  int64     // the store's clock at its begin; Unix ms
	whole   time.Time // when all was read last: rows can vanish, by erasure
}

const (
	// learned is how long before the range runs are read to compare with.
	learned = 30 * 24 * time.Hour
	// A history is read as a whole once a day.
	wholeEvery = 24 * time.Hour
	late       = 5 * time.Minute
	early      = time.Hour // before its run may a call begin, by the clocks of agents
)

// runsOfAgent is how many runs of an agent are read, about, and runsOfAll those of all agents, of which each has fewOfAgent:
// of one that has more, whole sessions are left out.
const runsOfAgent, runsOfAll, fewOfAgent = 2_000, 30_000, 600

const actor = `if(agent_name = '', concat('(', format, ')'), toString(agent_name))`

// shares has of how many sessions of an agent one is read, where that is not all of them. A share is a power of two, so that the
// sessions of a smaller one are among those of a larger one.
type shares map[string]uint64

// counted are the runs of a day by agent.
type counted map[time.Time]map[string]uint64

const countedSQL = `
	SELECT toStartOfDay(ts, 'UTC') AS day, ` + actor + ` AS who, count()
	FROM spans
	WHERE ` + inTime + ` AND kind = 'run' AND state != 'open'
	GROUP BY day, who`

// shares are those of the runs that were counted.
func (c counted) shares() shares {
	runs, out := make(map[string]uint64), shares{}
	for _, day := range c {
		for who, n := range day {
			runs[who] += n
		}
	}
	for who, n := range runs {
		most := max(fewOfAgent, min(runsOfAgent, runsOfAll/len(runs)))
		for out[who] = 1; n > out[who]*uint64(most); {
			out[who] *= 2
		}
	}
	return out
}

// sampled is the condition that a row's session is read.
const sampled = `cityHash64(session_id) % greatest(1, {one_of:Array(UInt64)}[indexOf({who:Array(String)}, ` + actor + `)]) = 0`

// most is the share of the busiest agent.
func (s shares) most() uint64 {
	most := uint64(1)
	for _, n := range s {
		most = max(most, n)
	}
	return most
}

// parameters are those of the condition sampled.
func (s shares) parameters(params map[string]string) {
	var who, ones []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		who = append(who, "'"+strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name)+"'")
		ones = append(ones, strconv.FormatUint(s[name], 10))
	}
	params["who"], params["one_of"] = "["+strings.Join(who, ",")+"]", "["+strings.Join(ones, ",")+"]"
}

// coarser reports whether s has no session that old does not have.
func (s shares) coarser(old shares) bool {
	for who, n := range old {
		if max(s[who], 1) < n {
			return false
		}
	}
	return true
}

// inTime is the condition that a row is of the time that is read.
const inTime = `ts >= fromUnixTimestamp64Milli({from:Int64}) AND ts < fromUnixTimestamp64Milli({to:Int64})`

// ranSQL has the runs that have ended, as v_runs has them, ranCallsSQL their calls and answers, by name, and ranSetUpSQL the set-ups
// of their conversations.
const ranSQL = `
	SELECT toString(tenant), ` + actor + ` AS who, session_id, run_id, lower(hex(trace_id)), lower(hex(span_id)) AS id, ts, toString(if(response_model != '', response_model, request_model)),
		toString(agent_version), toFloat64(duration_ns / 1e6), toUInt64(input_tokens + output_tokens + cache_read_tokens + cache_write_tokens + reasoning_tokens), outcome = 'error', cityHash64(session_id)
	FROM spans FINAL
	WHERE ` + inTime + ` AND kind = 'run' AND state != 'open' AND name != '' AND outcome != 'cancelled' AND ` + sampled + `
	ORDER BY ts, id`

const ranSetUpSQL = setUps + `
	WHERE (tenant, session_id) IN (SELECT tenant, session_id FROM spans WHERE ` + inTime + ` AND kind = 'run' AND ` + sampled + `)
	GROUP BY tenant, session_id, run_id`

const setUps = `
	SELECT toString(tenant), session_id, run_id, argMinIfMerge(x.prompt), argMinIfMerge(x.tools), argMaxIfMerge(x.effort)
	FROM run_setups AS x`

const ranCallsSQL = `
	SELECT toString(tenant), session_id, run_id, multiIf(kind = 'chat', 'model', kind = 'tool', 'tool', 'delegation') AS what,
		toString(if(kind = 'chat', if(response_model != '', response_model, request_model), tool_name)) AS who,
		count(), countIf(outcome = 'error'), quantileExactIf(0.5)(toFloat64(duration_ns - least(waited_ns, duration_ns)) / 1e6, outcome NOT IN ('error', 'cancelled') AND duration_ns > 0) AS p50,
		toFloat64(sum(waited_ns)) / 1e6
	FROM spans FINAL
	WHERE ts >= fromUnixTimestamp64Milli({calls:Int64}) AND ts < fromUnixTimestamp64Milli({to:Int64}) AND kind IN ('tool', 'chat', 'delegation') AND state != 'open' AND NOT internal AND ` + sampled + `
	GROUP BY tenant, session_id, run_id, what, who
	ORDER BY what, who`

// storedSQL has the runs of which a span was stored since, also one that is removed; and setUpSQL the set-ups.
const storedSQL = `
	SELECT toString(tenant), session_id, run_id, min(ts)
	FROM spans
	WHERE ` + inTime + ` AND ingest_ts >= fromUnixTimestamp64Milli({stored:Int64}) AND ` + sampled + `
	GROUP BY tenant, session_id, run_id`

const setUpSQL = setUps + `
	WHERE (tenant, session_id, run_id) IN (SELECT tenant, session_id, run_id FROM run_setups WHERE seen >= toDateTime(intDiv({stored:Int64}, 1000), 'UTC'))
	GROUP BY tenant, session_id, run_id`

// ran is a run.
type ran struct {
	tenant, agent, session, trace, span, model string
	id, client                                 string
	hash                                       uint64 // of the session
	at                                         time.Time
	version                                    *change.Version
	wall                                       float64 // ms
	tokens                                     uint64
	failed                                     bool

	calls  float64
	waited float64 // ms
	parts  []ranPart
}

// ranPart is the calls of a tool, or the answers of a model.
type ranPart struct {
	kind, name    string
	count, failed float64
	median        float64 // ms; zero when there is none
}

// read makes h the runs from from up to to.
func (h *RunHistory) read(ctx context.Context, q Querier, from, to time.Time) error {
	params := map[string]string{"from": strconv.FormatInt(from.UnixMilli(), 10), "to": strconv.FormatInt(to.UnixMilli(), 10)}
	next := RunHistory{Late: h.Late, counted: counted{}, to: to, whole: to}
	err := q.Each(ctx, "SELECT toUInt64(toUnixTimestamp64Milli(now64(3)))", nil, func(v []any) error {
		r := reader{values: v}
		next.stored = int64(r.num())
		return r.err
	})
	if err != nil {
		return err
	}
	begin := from
	if !h.whole.IsZero() && to.Sub(h.whole) < wholeEvery && !to.Before(h.to) {
		h.sampled.parameters(params)
		if begin, err = h.changed(ctx, q, params); err != nil {
			return err
		}
		if begin.Before(from) {
			begin = from
		}
	}
	if err := next.count(ctx, q, h.counted, from, begin, params); err != nil {
		return err
	}
	if begin.After(from) && next.sampled.coarser(h.sampled) {
		next.whole = h.whole
		for i := range h.runs {
			if x := &h.runs[i]; !x.at.Before(from) && x.at.Before(begin) && x.hash%max(1, next.sampled[x.agent]) == 0 {
				next.runs = append(next.runs, *x)
			}
		}
	} else {
		begin = from
	}
	next.sampled.parameters(params)
	params["from"] = strconv.FormatInt(begin.UnixMilli(), 10)
	params["calls"] = strconv.FormatInt(max(begin.Add(-early).UnixMilli(), from.UnixMilli()), 10)
	if err := next.add(ctx, q, params); err != nil {
		return err
	}
	*h = next
	return nil
}

// count counts the runs of each day, and takes the days up to begin from those that were counted.
func (h *RunHistory) count(ctx context.Context, q Querier, before counted, from, begin time.Time, params map[string]string) error {
	const day = 24 * time.Hour
	for at, runs := range before {
		if !at.Before(from.Truncate(day)) && at.Before(begin.Truncate(day)) {
			h.counted[at] = runs
		}
	}
	params["from"] = strconv.FormatInt(begin.Truncate(day).UnixMilli(), 10)
	err := q.Each(ctx, countedSQL, params, func(v []any) error {
		r := reader{values: v}
		at := r.time()
		if h.counted[at] == nil {
			h.counted[at] = make(map[string]uint64)
		}
		h.counted[at][r.str()] = r.num()
		return r.err
	})
	if err != nil {
		return fmt.Errorf("shares: %w", err)
	}
	h.sampled = h.counted.shares()
	return nil
}

// changed returns the time before which all runs are as they were at the last look, in whole milliseconds.
func (h *RunHistory) changed(ctx context.Context, q Querier, params map[string]string) (time.Time, error) {
	begin := h.to
	byRun, bySession := make(map[[3]string]*ran), make(map[[2]string][]*ran)
	for i := range h.runs {
		x := &h.runs[i]
		byRun[[3]string{x.tenant, x.session, x.id}] = x
		bySession[[2]string{x.tenant, x.session}] = append(bySession[[2]string{x.tenant, x.session}], x)
	}
	since := func(t time.Time) {
		if t.Before(begin) {
			begin = t
		}
	}
	params["stored"] = strconv.FormatInt(h.stored-cmp.Or(h.Late, late).Milliseconds(), 10)
	err := q.Each(ctx, storedSQL, params, func(v []any) error {
		r := reader{values: v}
		x := byRun[[3]string{r.str(), r.str(), r.str()}]
		if since(r.time()); x != nil {
			since(x.at)
		}
		return r.err
	})
	if err != nil {
		return begin, fmt.Errorf("new runs: %w", err)
	}
	err = q.Each(ctx, setUpSQL, params, func(v []any) error {
		r := reader{values: v}
		tenant, session, run := r.str(), r.str(), r.str()
		parts := map[change.Component]string{change.Prompt: r.str(), change.Tools: r.str(), change.Effort: r.str()}
		list := bySession[[2]string{tenant, session}]
		if x := byRun[[3]string{tenant, session, run}]; run != "" {
			if list = nil; x != nil {
				list = []*ran{x}
			}
		}
		for _, x := range list { // of a set-up for the session the run may have its own: it is read again then
			for c, value := range parts {
				if value != "" && value != x.version[c] {
					since(x.at)
				}
			}
		}
		return r.err
	})
	if err != nil {
		return begin, fmt.Errorf("set-ups: %w", err)
	}
	return begin.Truncate(time.Millisecond), nil
}

// add reads the runs of a time, which follow those that h has.
func (h *RunHistory) add(ctx context.Context, q Querier, params map[string]string) error {
	byRun, first := make(map[[3]string]int), len(h.runs)
	err := q.Each(ctx, ranSQL, params, func(v []any) error {
		r := reader{values: v}
		x := ran{tenant: r.str(), agent: r.str(), session: r.str(), id: r.str()}
		x.trace, x.span, x.at, x.model, x.client = r.str(), r.str(), r.time(), r.str(), r.str()
		x.wall, x.tokens, x.failed, x.hash = take[float64](&r), r.num(), r.small() != 0, r.num()
		byRun[[3]string{x.tenant, x.session, x.id}] = len(h.runs)
		h.runs = append(h.runs, x)
		return r.err
	})
	if err != nil {
		return fmt.Errorf("runs: %w", err)
	}
	setUps := make(map[[3]string][3]string)
	err = q.Each(ctx, ranSetUpSQL, params, func(v []any) error {
		r := reader{values: v}
		setUps[[3]string{r.str(), r.str(), r.str()}] = [3]string{r.str(), r.str(), r.str()}
		return r.err
	})
	if err != nil {
		return fmt.Errorf("set-ups: %w", err)
	}
	versions := make(map[change.Version]*change.Version)
	for i := range h.runs[first:] {
		x := &h.runs[first+i]
		own, shared := setUps[[3]string{x.tenant, x.session, x.id}], setUps[[3]string{x.tenant, x.session, ""}]
		v := change.Version{
			change.Client: x.client, change.Model: x.model, change.Prompt: cmp.Or(own[0], shared[0]), change.Tools: cmp.Or(own[1], shared[1]), change.Effort: cmp.Or(own[2], shared[2]),
		}
		if versions[v] == nil {
			versions[v] = &v
		}
		x.version = versions[v]
	}
	err = q.Each(ctx, ranCallsSQL, params, func(v []any) error {
		r := reader{values: v}
		i, known := byRun[[3]string{r.str(), r.str(), r.str()}]
		p := ranPart{kind: r.str(), name: r.str(), count: float64(r.num()), failed: float64(r.num()), median: take[float64](&r)}
		waited := take[float64](&r)
		if r.err != nil || !known {
			return r.err
		}
		x := &h.runs[i]
		x.waited += waited
		if p.kind != "model" {
			x.calls += p.count
		}
		if p.kind != "delegation" {
			x.parts = append(x.parts, p)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("calls: %w", err)
	}
	return nil
}
