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

	"github.com/earshot-dev/earshot/core/price"
)

// Sample picks the work of one side of a comparison: work that began from From up to and without To,
// with that version of the agent's program, where one is set.
type Sample struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Version string    `json:"agent_version,omitempty"`
}

// Change is how an agent, a tool or a delegation differs between two samples.
type Change struct {
	Kind string `json:"kind"` // agent, tool or delegation
	Name string `json:"name"` // the agent, the tool, the agent that delegates; of an agent without one its format: (legion)
	To   string `json:"to,omitempty"`
	A    Stats  `json:"a"`
	B    Stats  `json:"b"`
	// DeltaMS is the difference of the 95th percentiles, and Time where it is: the difference of the
	// critical paths of the two that are these percentiles. The parts add up to it. A tool has none,
	// neither has work that only one sample has.
	DeltaMS float64    `json:"p95_delta_ms"`
	Time    []TimePart `json:"time,omitempty"`
}

// Stats are the durations of one side, of the work that has ended.
type Stats struct {
	Count   uint64  `json:"count"`
	Errors  uint64  `json:"errors"`
	P50     float64 `json:"p50_ms"`
	P95     float64 `json:"p95_ms"` // it is the duration of one of them: see change.Rank
	TraceID string  `json:"p95_trace_id,omitempty"`
	SpanID  string  `json:"p95_span_id,omitempty"`
}

// maxExplained is how many changes have their time explained: two traces are read for each.
const maxExplained = 8

// changesSQL has the durations of agents, tools and delegations.
var changesSQL = func() string {
	one := func(kind, name, to, from, duration, where string) string {
		return `SELECT '` + kind + `' AS what, ` + name + ` AS who, ` + to + ` AS whom, count() AS n, countIf(status = 'error') AS errors,
			quantileExact(0.5)(` + duration + `) AS p50, arraySort(groupArray((` + duration + `, trace_id, toString(span_id)))) AS list,
			list[least(n, toUInt64(0.95 * n) + 1)] AS rank, rank.1 AS p95, rank.2 AS trace, rank.3 AS span
		FROM ` + from + `
		WHERE ` + where + ` AND ts >= fromUnixTimestamp64Milli({from:Int64}) AND ts < fromUnixTimestamp64Milli({to:Int64}) AND ({version:String} = '' OR agent_version = {version:String})
		GROUP BY who, whom`
	}
	return `SELECT what, toString(who), toString(whom), n, errors, p50, p95, trace, span FROM (` +
		one("agent", actor, "''", "v_spans", "duration_ms", "kind = 'run'") + ` UNION ALL ` +
		one("tool", "tool_name", "''", "v_tool_calls", "duration_ms - waited_ms", "status != 'running' AND NOT is_delegation") + ` UNION ALL ` +
		one("delegation", actor, "delegate_to", "v_delegations", "duration_ms", "status != 'running'") + `)`
}()

func (s Sample) stats(ctx context.Context, q Querier) (map[[3]string]Stats, error) {
	out := make(map[[3]string]Stats)
	err := q.Each(ctx, changesSQL, map[string]string{
		"from": strconv.FormatInt(s.From.UnixMilli(), 10), "to": strconv.FormatInt(s.To.UnixMilli(), 10), "version": s.Version,
	}, func(v []any) error {
		r := reader{values: v}
		k := [3]string{r.str(), r.str(), r.str()}
		out[k] = Stats{Count: r.num(), Errors: r.num(), P50: take[float64](&r), P95: take[float64](&r), TraceID: r.str(), SpanID: r.str()}
		return r.err
	})
	return out, err
}

// Changes compares agents, tools and delegations of two samples, those whose 95th percentile differs most
// first.
func Changes(ctx context.Context, q Querier, a, b Sample, prices *price.Table, now time.Time) ([]Change, error) {
	before, err := a.stats(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("changes: %w", err)
	}
	after, err := b.stats(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("changes: %w", err)
	}
	out := []Change{}
	for k, s := range before {
		out = append(out, Change{Kind: k[0], Name: k[1], To: k[2], A: s, B: after[k]})
	}
	for k, s := range after {
		if _, both := before[k]; !both {
			out = append(out, Change{Kind: k[0], Name: k[1], To: k[2], B: s})
		}
	}
	for i := range out {
		if c := &out[i]; c.Both() {
			c.DeltaMS = c.B.P95 - c.A.P95
		}
	}
	slices.SortFunc(out, func(x, y Change) int {
		return cmp.Or(cmp.Compare(max(y.DeltaMS, -y.DeltaMS), max(x.DeltaMS, -x.DeltaMS)), cmp.Compare(y.A.Count+y.B.Count, x.A.Count+x.B.Count),
			strings.Compare(x.Kind, y.Kind), strings.Compare(x.Name, y.Name), strings.Compare(x.To, y.To))
	})
	var explained []*Change
	for i := range out {
		if c := &out[i]; c.Kind != "tool" && c.Both() && c.DeltaMS != 0 && len(explained) < maxExplained {
			explained = append(explained, c)
		}
	}
	if err := explainAll(ctx, q, explained, prices, now); err != nil {
		return nil, fmt.Errorf("changes: %w", err)
	}
	return out, nil
}

// Both reports whether both samples have it.
func (c *Change) Both() bool { return c.A.Count > 0 && c.B.Count > 0 }

// explainAll finds where the differences of the two that are the percentiles are.
func explainAll(ctx context.Context, q Querier, changes []*Change, prices *price.Table, now time.Time) error {
	type sides struct {
		times times
		walls [2]float64
		found int
	}
	of := make([]sides, len(changes))
	var traces []string
	for i, c := range changes {
		of[i].times = newTimes()
		traces = append(traces, c.A.TraceID, c.B.TraceID)
	}
	slices.Sort(traces)
	err := loadTraces(ctx, q, slices.Compact(traces), prices, now, func(t *Trace) error {
		for i, c := range changes {
			for side, s := range [...]Stats{c.A, c.B} {
				if s.TraceID != t.ID {
					continue
				}
				if n := t.Tree.Node(s.SpanID); n != nil { // else it has moved to another trace since
					of[i].times.add(side, n)
					of[i].walls[side] = ms(n.Wall())
					of[i].found++
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, c := range changes {
		if of[i].found < 2 {
			continue
		}
		c.Time = of[i].times.parts()
		// The work of a delegation in the background may be longer than its span on the path.
		if a, b := c.A.P95-of[i].walls[0], c.B.P95-of[i].walls[1]; max(a, -a) >= 1 || max(b, -b) >= 1 {
			c.Time = append(c.Time, TimePart{Bucket: "off the path", A: a, B: b, Delta: b - a})
		}
	}
	return nil
}

// Title names the change.
func (c *Change) Title() string {
	name := or(c.Name, "(unnamed)")
	if c.Kind == "delegation" {
		return name + " → " + Delegate(c.To)
	}
	return name
}

// Summary is the change in a sentence.
func (c *Change) Summary() string {
	switch {
	case c.A.Count == 0:
		return "in B only"
	case c.B.Count == 0:
		return "in A only"
	case c.DeltaMS == 0:
		return "p95 is the same."
	}
	return Sentence("p95", c.DeltaMS, c.Time)
}

// changesWidth is the narrowest terminal that a table of changes fits, but for its last column.
const changesWidth = 12 + 34 + 2*28 + 40

// changes draws each change in lines of its own.
func (p *printer) changes(list []Change) {
	side := func(s Stats) string {
		if s.Count == 0 {
			return "none"
		}
		return fmt.Sprintf("%d, p50 %s, p95 %s", s.Count, Span(time.Duration(s.P50*1e6)), Span(time.Duration(s.P95*1e6)))
	}
	for i := range list {
		c := &list[i]
		p.line("", p.dim(c.Kind), " ", p.bold(Clip(printable(c.Title()), max(20, p.Width-len(c.Kind)-1))))
		for _, text := range [...]string{"A: " + side(c.A) + ". B: " + side(c.B) + ".", printable(c.Summary())} {
			for _, l := range Fold(text, max(20, p.Width-4)) {
				p.line("    ", l)
			}
		}
	}
}

// side names a sample.
func (p *printer) side(name string, s Sample, ran bool) {
	text := name + "  "
	if s.Version != "" {
		text += "version " + Clip(s.Version, 30) + ", "
	}
	text += Stamp(s.From, p.zone()) + " to " + Stamp(s.To, p.zone())
	if !ran {
		text += ": nothing ran; --since names a longer time"
	}
	p.folded("", text)
}

// WriteChanges names A and B, and draws their changes as a table, on a narrow terminal as lines.
func WriteChanges(w io.Writer, a, b Sample, list []Change, st Style) error {
	p := &printer{w: w, Style: st}
	p.side("A", a, slices.ContainsFunc(list, func(c Change) bool { return c.A.Count > 0 }))
	p.side("B", b, slices.ContainsFunc(list, func(c Change) bool { return c.B.Count > 0 }))
	if len(list) == 0 {
		return p.err
	}
	p.line("", "")
	if 0 < st.Width && st.Width < changesWidth {
		p.changes(list)
		return p.err
	}
	p.line("", p.dim(Pad("kind", 12)+Pad("what", 34)+Pad("A: count", 10)+Pad("p50", 9)+Pad("p95", 9)+Pad("B: count", 10)+Pad("p50", 9)+Pad("p95", 9)+"difference"))
	cell := func(s Stats, ms float64) string {
		if s.Count == 0 {
			return ""
		}
		return Span(time.Duration(ms * 1e6))
	}
	for i := range list {
		c := &list[i]
		p.line("", Pad(c.Kind, 12), Pad(Clip(printable(c.Title()), 32), 34),
			Pad(fmt.Sprint(c.A.Count), 10), Pad(cell(c.A, c.A.P50), 9), Pad(cell(c.A, c.A.P95), 9),
			Pad(fmt.Sprint(c.B.Count), 10), Pad(cell(c.B, c.B.P50), 9), Pad(cell(c.B, c.B.P95), 9), printable(c.Summary()))
	}
	return p.err
}
