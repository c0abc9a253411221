package ui

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/earshot-dev/earshot/core/blame"
	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/ui/address"
)

// How much the first page shows.
const (
	slowest       = 12 // each of them may be another trace to read
	slowAside     = 3  // in the background
	newest        = 8  // conversations
	parts         = 24
	trendWidth    = 4 // of a part, with the space beside it
	trendHeight   = 24
	slowBarScale  = 1000
	defaultRecent = "now-7d"
)

type slowPage struct {
	Filters    filters
	Rows       []slowRow
	Background []slowRow // no caller waited for these
	Newest     []inspect.Session
	Range      string
	Latest     time.Time // when the latest delegation ended, if there are none in the range
	Widened    bool      // there are none in the range that the page has by itself, so that it shows all time
	All        address.State
	Sessions   address.State
}

// slowRow is a delegation as the page shows it.
type slowRow struct {
	inspect.SlowDelegation
	Bar   []share
	Aside bool // in the background: it has no trend
	Trend *inspect.Trend
	Spark []sparkPart
}

// share is a bucket's part of the time, in thousandths.
type share struct {
	bar
	Bucket, Words string
	Time          time.Duration
}

type sparkPart struct {
	X, Y, Height float64
	P95          time.Duration
	Count        uint64
}

// delegationColumns are the filters of inspect.Delegations.
var delegationColumns = address.Columns{
	"time": "ts", "agent": "agent_name", "delegate": "delegate_to", "tool": "tool_name", "model": "model", "project": "project", "format": "format", "tenant": "tenant", "status": "status", "waiting": "waited",
}

// bucketWords are the buckets in a person's words.
var bucketWords = map[blame.Bucket]string{
	blame.ModelTTFT: "waiting for the first token", blame.ModelStream: "the model answering", blame.ToolTime: "tools", blame.SubAgent: "other agents",
	blame.Wait: "waiting for a person", blame.Retry: "attempts that failed", blame.Idle: "no record of any work",
}

func (u *UI) slow(r request) (string, any, error) {
	p, err := u.slowIn(r)
	if err != nil || len(p.Rows)+len(p.Background) > 0 || p.Latest.IsZero() || len(p.Filters.Picked) > 0 || r.FormValue("from") != "" || r.FormValue("to") != "" {
		return "", p, err
	}
	r.State = r.State.In(address.Range{})
	p, err = u.slowIn(r)
	p.Widened = true
	return "", p, err
}

// slowIn shows the delegations of the range.
func (u *UI) slowIn(r request) (p slowPage, err error) {
	p = slowPage{Range: r.State.Label(), All: r.State.In(address.Range{From: "all"}), Sessions: r.State.To("/sessions").In(address.Range{})}
	sql, params := r.State.Where(delegationColumns)
	var waited, aside []inspect.SlowDelegation
	group, ctx := errgroup.WithContext(r.Context())
	load := func(and string, limit int, to *[]inspect.SlowDelegation) {
		group.Go(func() (err error) {
			*to, err = inspect.Slow(ctx, u.q, inspect.SlowFilter{
				Where: inspect.Condition{SQL: "(" + sql + ") AND " + and, Params: params}, Limit: limit, Prices: u.prices, Now: r.Now,
			})
			return err
		})
	}
	load("NOT async", slowest, &waited)
	load("async", slowAside, &aside)
	group.Go(func() (err error) { p.Filters, err = u.filters(r, inspect.Delegations, delegationColumns); return err })
	group.Go(func() (err error) {
		p.Newest, err = inspect.Sessions(ctx, u.q, inspect.Filter{Limit: newest})
		return err
	})
	if err := group.Wait(); err != nil {
		return p, err
	}
	for i, c := range p.Filters.Choices {
		if c.Name == "model" {
			p.Filters.Choices[i].Label = "caller's model"
		}
	}
	var pairs []inspect.Pair
	for _, d := range append(waited, aside...) {
		row := slowRow{SlowDelegation: d, Bar: shares(d.Split)}
		if d.Waited {
			p.Rows = append(p.Rows, row)
			pairs = append(pairs, inspect.Pair{Agent: d.AgentName, Delegate: d.DelegateTo})
		} else {
			row.Aside = true
			row.Notes = slices.DeleteFunc(row.Notes, func(n string) bool { return n == inspect.Unawaited }) // the heading has it
			p.Background = append(p.Background, row)
		}
	}
	slices.SortStableFunc(p.Rows, func(a, b slowRow) int { return cmp.Compare(b.Wall, a.Wall) })
	from, to := r.State.Times()
	trends, err := inspect.Trends(r.Context(), u.q, inspect.Condition{SQL: sql, Params: params}, pairs, from, to, parts)
	if err != nil {
		return p, err
	}
	for i := range p.Rows {
		row := &p.Rows[i]
		if t := trends[inspect.Pair{Agent: row.AgentName, Delegate: row.DelegateTo}]; t != nil {
			row.Trend, row.Spark = t, spark(t)
		}
	}
	if len(p.Rows)+len(p.Background) == 0 {
		p.Latest, err = inspect.Latest(r.Context(), u.q)
	}
	return p, err
}

// shares are the buckets that have time, in their order.
func shares(s blame.Split) (out []share) {
	total, at := float64(max(s.Total(), 1)), 0.0
	for _, b := range blame.Buckets() {
		if s[b] > 0 {
			w := float64(s[b]) / total * slowBarScale
			out = append(out, share{bar{at, w}, b.String(), bucketWords[b], time.Duration(s[b])})
			at += w
		}
	}
	return out
}

// spark draws the p95 of the parts as bars on the scale of the largest.
func spark(t *inspect.Trend) (out []sparkPart) {
	var most time.Duration
	for _, p := range t.Parts {
		most = max(most, p.P95)
	}
	for _, p := range t.Parts {
		h := max(1, float64(p.P95)/float64(max(most, 1))*trendHeight)
		out = append(out, sparkPart{float64(min(max(p.Number, 0), parts-1) * trendWidth), trendHeight - h, h, p.P95, p.Count})
	}
	return out
}

// Usual compares the delegation with the others of its pair: empty when there are too few.
func (r slowRow) Usual() string {
	if r.Trend == nil || r.Trend.Count < 4 || r.Trend.P50 <= 0 {
		return ""
	}
	took := r.Wall
	if r.WorkedMS > 0 { // the trend, as the boards, is of the runs
		took = time.Duration(r.WorkedMS) * time.Millisecond
	}
	if times := float64(took) / float64(r.Trend.P50); times >= 1.5 {
		return fmt.Sprintf("%.1f times the median of %s", times, inspect.Span(r.Trend.P50))
	}
	return "the median is " + inspect.Span(r.Trend.P50)
}

// Step is the address of the delegation in its trace.
func (r slowRow) Step() string { return "/trace/" + r.TraceID + "?step=" + r.SpanID }

// Culprit is the address of the step that took most of it.
func (r slowRow) Culprit() string {
	if r.Bottleneck == nil || r.Bottleneck.SpanID == r.SpanID {
		return ""
	}
	return "/trace/" + r.TraceID + "?step=" + r.Bottleneck.SpanID
}
