package inspect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/change"
	"github.com/earshot-dev/earshot/core/price"
)

// ChangedFilter picks changes.
type ChangedFilter struct {
	Since  time.Duration // found within
	Now    time.Time
	Agent  string  // only of this one; the level of a look is that of a search of all
	Budget float64 // false alarms that are expected in 30 days; 1 when zero
	Prices *price.Table
}

// Changed has the changes, the latest first.
type Changed struct {
	Since   time.Time     `json:"since"`
	Now     time.Time     `json:"now"`
	Runs    int           `json:"runs"`   // that were compared, with those of the 30 days before Since
	OneOf   uint64        `json:"one_of"` // of so many sessions of the busiest agent one was read
	Budget  float64       `json:"budget"` // false alarms that are expected in 30 days at most
	Looks   change.Looks  `json:"looks"`  // that were made
	Changes []ChangePoint `json:"changes"`
}

// ChangePoint is a change, and where the difference is.
type ChangePoint struct {
	change.Change
	// Time is the difference of the critical paths of turns at the same ranks of both sides, on average, and P95Time that of
	// the two turns that are the 95th percentiles. The parts of each add up to the difference, without the time that people
	// took. Only an agent's duration has them.
	Time    []TimePart `json:"time,omitempty"`
	P95Time []TimePart `json:"p95_time,omitempty"`
	// Turns is how many turns of each side Time is the average of.
	Turns int `json:"turns,omitempty"`
	// TraceA and TraceB have the median of each side.
	TraceA string `json:"trace_before"`
	TraceB string `json:"trace_after"`
}

// WhatChanged finds when agents, tools and models changed in duration, errors, tokens and calls; see package change. It reads
// a row for each run and for each of its tools and models, and no message.
func WhatChanged(ctx context.Context, q Querier, f ChangedFilter) (*Changed, error) {
	return new(RunHistory).WhatChanged(ctx, q, f)
}

// WhatChanged is the function of that name, which reads only the rows that are new since the last look.
func (h *RunHistory) WhatChanged(ctx context.Context, q Querier, f ChangedFilter) (*Changed, error) {
	out := &Changed{Since: f.Now.Add(-f.Since), Now: f.Now, Budget: cmp.Or(f.Budget, 1), Changes: []ChangePoint{}}
	if err := h.read(ctx, q, out.Since.Add(-learned), f.Now); err != nil {
		return nil, fmt.Errorf("changes: %w", err)
	}
	runs := h.runs
	out.Runs, out.OneOf = len(runs), h.sampled.most()
	var found []change.Change
	found, out.Looks = change.Find(seriesOf(runs), change.Options{Since: out.Since, Now: f.Now, Budget: out.Budget})
	explained := 0
	for _, c := range found {
		if f.Agent != "" && c.Agent != f.Agent {
			continue
		}
		p := ChangePoint{Change: c, TraceA: runs[at(c.A.Sample, 0.5)].trace, TraceB: runs[at(c.B.Sample, 0.5)].trace}
		if c.Kind == "agent" && c.Metric == Duration && explained < maxExplained {
			if err := p.explain(ctx, q, runs, f); err != nil {
				return nil, fmt.Errorf("changes: %w", err)
			}
			explained++
		}
		out.Changes = append(out.Changes, p)
	}
	return out, nil
}

// The metrics of series. A duration has no time in which a person was waited for.
const (
	Duration = "duration" // ms; of a tool or a model the median of the run's calls that did not fail
	Errors   = "errors"   // share of the calls that failed, or of the runs
	TokensOf = "tokens"   // of all classes
	Calls    = "calls"    // of tools and delegations
)

// work is how long the run took, without people.
func (x *ran) work() float64 { return max(0, x.wall-x.waited) }

// seriesOf returns the values of runs, which are in the order of time.
func seriesOf(runs []ran) []change.Series {
	byKey := make(map[change.Key]int)
	var out []change.Series
	models := make(map[[2]string]string) // the only one of an agent
	several := make(map[[2]string]bool)
	for i := range runs {
		of := [2]string{runs[i].tenant, runs[i].agent}
		if first, known := models[of]; known && first != runs[i].model {
			several[of] = true
		}
		models[of] = runs[i].model
	}
	add := func(k change.Key, i int, value float64) {
		for _, pooled := range [...]bool{false, true} {
			if pooled && !several[[2]string{k.Tenant, k.Agent}] {
				break
			}
			if pooled {
				k.Model = ""
			} else if k.Model == "" {
				k.Model = "unknown"
			}
			at, known := byKey[k]
			if !known {
				at = len(out)
				byKey[k] = at
				out = append(out, change.Series{Key: k, Share: k.Metric == Errors, Pooled: pooled})
			}
			x := &runs[i]
			out[at].Observations = append(out[at].Observations, change.Observation{Time: x.at, Session: x.session, Version: x.version, Value: value, Run: i})
		}
	}
	flag := map[bool]float64{true: 1}
	for i := range runs {
		x := &runs[i]
		k := change.Key{Tenant: x.tenant, Kind: "agent", Agent: x.agent, Model: x.model}
		measure := func(metric string, value float64) {
			k.Metric = metric
			add(k, i, value)
		}
		measure(Errors, flag[x.failed])
		measure(Calls, x.calls)
		if x.tokens > 0 {
			measure(TokensOf, float64(x.tokens))
		}
		if d := x.work(); d > 0 && !x.failed {
			measure(Duration, d)
		}
		for _, p := range x.parts {
			k.Kind, k.Name = p.kind, p.name
			measure(Errors, p.failed/p.count)
			if p.median > 0 {
				measure(Duration, p.median)
			}
		}
	}
	return out
}

// at returns the run at that rank of the sample.
func at(sample []change.Observation, rank float64) int {
	sorted := slices.Clone(sample)
	slices.SortStableFunc(sorted, func(a, b change.Observation) int { return cmp.Compare(a.Value, b.Value) })
	return sorted[change.Rank(rank, len(sorted))].Run
}

// comparedTurns is how many turns of each side are read for their critical paths.
const comparedTurns = 10

// explain finds where the difference of an agent's durations is.
func (p *ChangePoint) explain(ctx context.Context, q Querier, runs []ran, f ChangedFilter) error {
	difference := func(ranks ...float64) ([]TimePart, error) {
		times := newTimes()
		for side, sample := range [...][]change.Observation{p.A.Sample, p.B.Sample} {
			for _, rank := range ranks {
				x := &runs[at(sample, rank)]
				t, err := loadTrace(ctx, q, x.trace, f.Prices, f.Now)
				if err != nil {
					return nil, err
				}
				if n := t.Tree.Node(x.span); n != nil { // else it has moved to another trace since
					times.add(side, n)
				}
			}
		}
		parts := slices.DeleteFunc(times.parts(), func(t TimePart) bool { return t.Bucket == "wait" })
		for i := range parts {
			t := &parts[i]
			t.A, t.B, t.Delta = t.A/float64(len(ranks)), t.B/float64(len(ranks)), t.Delta/float64(len(ranks))
		}
		return parts, nil
	}
	var ranks []float64
	for i := range comparedTurns {
		ranks = append(ranks, (float64(i)+0.5)/comparedTurns)
	}
	var err error
	if p.Time, err = difference(ranks...); err != nil {
		return err
	}
	p.Turns = comparedTurns
	p.P95Time, err = difference(0.95)
	return err
}

// added is the difference that parts add up to.
func added(parts []TimePart) (ms float64) {
	for _, t := range parts {
		ms += t.Delta
	}
	return ms
}

// Title names the agent, the tool or the model.
func (p *ChangePoint) Title() string {
	of := ""
	if p.Kind != "agent" {
		of = ", " + p.Kind + " " + or(p.Name, "(unnamed)")
	}
	if p.Model != "" && p.Model != "unknown" && p.Model != p.Name {
		of += " (" + p.Model + ")"
	}
	return p.Agent + of
}

// Value formats a value of the metric.
func (p *ChangePoint) Value(v float64) string {
	switch p.Metric {
	case Duration:
		return Span(time.Duration(v * 1e6))
	case Errors:
		return fmt.Sprintf("%.1f%%", 100*v)
	case TokensOf:
		return tokens(uint64(v))
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// Shift is the change of a typical value.
func (p *ChangePoint) Shift() string {
	if p.Share {
		return fmt.Sprintf("%+.1f points", 100*(p.B.Mean-p.A.Mean))
	}
	text := fmt.Sprintf("%+.0f%%", 100*(p.Ratio-1))
	if p.Ratio == 0 && p.A.Mean == 0 {
		text = "new"
	}
	if p.Low > 0 {
		text += fmt.Sprintf(" (%+.0f to %+.0f)", 100*(p.Low-1), 100*(p.High-1))
	}
	return text
}

// Cause names the version that the change came with.
func (p *ChangePoint) Cause() string {
	if len(p.Since) == 0 {
		return "with no new version"
	}
	return "since " + strings.Join(p.Since, ", ")
}

// Detail has sentences on the sizes of the change and where it is.
func (p *ChangePoint) Detail() (out []string) {
	if !p.Share {
		out = append(out, fmt.Sprintf("p50 %s → %s, p95 %s → %s.", p.Value(p.A.Median), p.Value(p.B.Median), p.Value(p.A.P95), p.Value(p.B.P95)))
	} else {
		out = append(out, fmt.Sprintf("%s → %s.", p.Value(p.A.Mean), p.Value(p.B.Mean)))
	}
	if len(p.P95Time) > 0 {
		out = append(out, Sentence("p95", added(p.P95Time), p.P95Time))
	}
	if len(p.Time) > 0 {
		out = append(out, Sentence(fmt.Sprintf("%d turns of each side at the same ranks, on average", p.Turns), added(p.Time), p.Time))
	}
	return out
}

// maxWritten is how many changes are drawn; JSON has all of them.
const maxWritten = 40

// Write draws the changes.
func (c *Changed) Write(w io.Writer, st Style) error {
	p := &printer{w: w, Style: st}
	if len(c.Changes) == 0 {
		what := "nothing changed since "
		if c.Looks.Recent == 0 {
			what = "nothing to compare since "
		}
		p.line("", what, Stamp(c.Since, p.zone()))
	}
	for i := range c.Changes[:min(maxWritten, len(c.Changes))] {
		x := &c.Changes[i]
		p.line("", p.dim(Stamp(x.At, p.zone())), "  ", p.bold(printable(x.Title())), "  ", x.Metric, " ", p.bold(x.Shift()), "  ", printable(x.Cause()),
			p.dim(fmt.Sprintf("  %d runs before, %d after", x.A.Runs, x.B.Runs)))
		for _, s := range x.Detail() {
			p.folded("    ", printable(s))
		}
	}
	if n := len(c.Changes) - maxWritten; n > 0 {
		p.line("", fmt.Sprintf("and %d more: -o json has all of them", n))
	}
	p.line("")
	for _, l := range Fold(c.Basis(), p.Width) {
		p.line("", p.dim(l))
	}
	return p.err
}

// Basis has the numbers behind the answer.
func (c *Changed) Basis() string {
	text := fmt.Sprintf("%s in %d series, with the 30 days before. At most %g false alarm in 30 days is to be expected, of all series together.", plural(c.Runs, "run"), c.Looks.Series, c.Budget)
	if c.OneOf > 1 {
		text += fmt.Sprintf(" Of the busiest agent one session in %d was read.", c.OneOf)
	}
	if c.Looks.Recent == 0 {
		text += fmt.Sprintf(" None has the runs that a comparison needs: %d before a new version or the end of a day, and %d after or in it.", change.MinBefore, change.MinAfter)
	}
	return text
}
