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

	"github.com/earshot-dev/earshot/core/blame"
	"github.com/earshot-dev/earshot/core/price"
)

// SlowFilter picks delegations. The zero value picks the slowest of all.
type SlowFilter struct {
	Since   time.Duration // that ran within; 0: ever
	Session Ref           // of that session; of any without an id
	Limit   int           // 20 when zero
	Where   Condition     // on the columns of Delegations
	Prices  *price.Table  // for costs
	Now     time.Time     // the end of spans that still run
}

// Condition is a condition of a query, with its parameters. The zero value is always true.
type Condition struct {
	SQL    string
	Params map[string]string
}

func (c Condition) sql() string { return or(c.SQL, "1") }

// with returns the parameters of the condition and others.
func (c Condition) with(params map[string]string) map[string]string {
	maps.Copy(params, c.Params)
	return params
}

// Delegations is a table expression: a row for each delegation in its latest version, with the
// columns tenant, ts, format, session_id, trace_id, span_id, agent_name, delegate_to, tool_name,
// model (that of the caller), project, status, async, duration_ns and waited (a person was asked in the
// call or in the delegate's run).
const Delegations = `(
	SELECT tenant, ts, format, session_id, trace_id, toString(d.span_id) AS span_id, agent_name, delegate_to, tool_name, model, project, async, toString(d.status) AS status,
		toUInt64(round(duration_ms * 1e6)) AS duration_ns, waits_for != '' OR (tenant, child_run_id) IN (SELECT tenant, run_id FROM spans WHERE waits_for != '' AND run_id != '') AS waited
	FROM v_delegations AS d)`

// SlowDelegation is a delegation with the split of its time.
type SlowDelegation struct {
	TraceID    string           `json:"trace_id"`
	SpanID     string           `json:"span_id"`
	SessionID  string           `json:"session_id"`
	AgentName  string           `json:"agent_name"`
	DelegateTo string           `json:"delegate_to"`
	DurationMS int64            `json:"duration_ms"` // to the result, for which the caller waited
	WorkedMS   int64            `json:"worked_ms"`   // to the end of the delegate's run: duration_ms of v_delegations; 0 while it runs
	BlameMS    map[string]int64 `json:"blame_ms"`    // every bucket; they add up to duration_ms
	Path       []PathStep       `json:"critical_path"`

	Started    time.Time   `json:"started"`
	Status     string      `json:"status,omitempty"`     // error, cancelled, running, lost
	Spent      Cost        `json:"spent"`                // by the delegate and all below it
	Bottleneck *Bottleneck `json:"bottleneck,omitempty"` // the group with most of the critical path
	Notes      []string    `json:"notes,omitempty"`      // corrections and gaps that the times alone do not show
	Why        string      `json:"why,omitempty"`        // the bottleneck in a sentence
	Waited     bool        `json:"caller_waited"`        // or it ran in the background

	Split blame.Split   `json:"-"`
	Wall  time.Duration `json:"-"`

	caller string // for a person
}

// Worked is how long the delegate worked, as the boards have it, where that is another time than Wall for a person; else 0.
func (d *SlowDelegation) Worked() time.Duration {
	w := time.Duration(d.WorkedMS) * time.Millisecond
	if Span(w) == Span(d.Wall) {
		return 0
	}
	return w
}

// Pair names who hands work to whom, for a person.
func (d *SlowDelegation) Pair() string { return d.caller + " → " + Delegate(d.DelegateTo) }

// PathStep is a piece of a critical path.
type PathStep struct {
	SpanID     string  `json:"span_id"`
	Kind       string  `json:"kind"`
	Name       string  `json:"name,omitempty"`
	AgentName  string  `json:"agent_name,omitempty"`
	Bucket     string  `json:"bucket"`
	OffsetMS   float64 `json:"offset_ms"` // since the delegation's start
	DurationMS float64 `json:"duration_ms"`
}

// Bottleneck is time of one sort on a critical path: of the same tool, the same
// model or the same agent.
type Bottleneck struct {
	Bucket    string  `json:"bucket"`
	Kind      string  `json:"kind"`
	Name      string  `json:"name,omitempty"`
	AgentName string  `json:"agent_name,omitempty"`
	SpanID    string  `json:"span_id"` // the one that has most of it
	Steps     int     `json:"steps"`
	TimeMS    float64 `json:"time_ms"`
	SavesMS   float64 `json:"saves_ms"` // how much earlier it would have ended without; 0 while it runs
}

func ms(ns int64) float64 { return float64(ns) / 1e6 }

// Unawaited is the note of work in the background that no caller waited for.
const Unawaited = "no caller waited for it"

// longest is how long before a window work may have begun to be found in it.
const longest = 7 * 24 * time.Hour

// slowSpares is how many delegations are looked at for each that is asked for: as many calls at most may have waited
// less than the tables show, because their results were reported together with others.
const slowSpares = 8

// slowSQL finds delegations by how long they can have taken: to the result of the call, in the background to the end of
// the work. A call without an end of its own in the tables is as long as its work.
const slowSQL = `
	WITH
		fromUnixTimestamp64Nano({now:Int64}, 'UTC') AS now,
		now - toIntervalSecond({since:Int64}) AS since,
		now - toIntervalSecond({since:Int64} + {longest:Int64}) AS oldest,
		(SELECT (min(ts), max(ts)) FROM %[1]s WHERE %[2]s) AS range,
		toUInt64(round(call.duration_ms * 1e6)) AS call_ns
	SELECT trace_id, span_id AS span, if(status = 'running', now, ts + toIntervalNanosecond(duration_ns)) AS ended, toInt64(duration_ns),
		toInt64(multiIf(status = 'running', greatest({now:Int64} - toUnixTimestamp64Nano(ts), 0), async, greatest(call_ns, duration_ns), call_ns > 0, call_ns, duration_ns)) AS longest_ns
	FROM %[1]s AS d
	LEFT ANY JOIN (SELECT tenant, span_id, duration_ms FROM v_span_facts WHERE kind = 'delegation' AND ts BETWEEN range.1 AND range.2) AS call USING (tenant, span_id)
	WHERE ({since:Int64} = 0 OR ts >= oldest AND ended >= since) AND ({session:String} = '' OR session_id = {session:String}) AND ({tenant:String} = '' OR tenant = {tenant:String}) AND (%[2]s)
	ORDER BY longest_ns DESC, trace_id, span
	LIMIT {limit:UInt32}`

// candidate is a delegation that may be among the slowest.
type candidate struct {
	trace, span     string
	worked, longest int64
}

// Slow returns the slowest delegations, the slowest first.
func Slow(ctx context.Context, q Querier, f SlowFilter) ([]SlowDelegation, error) {
	if f.Limit <= 0 {
		f.Limit = 20
	}
	if f.Session.ID != "" {
		whole, err := f.Session.resolve(ctx, q)
		if err != nil {
			return nil, err
		}
		f.Session = whole
	}
	list, err := f.candidates(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("slow: %w", err)
	}
	var out []SlowDelegation
	read := make(map[string]bool)
	// The candidates are in the order of their longest possible time: the slowest are found when none of the
	// others can have taken longer.
	for at := 0; at < len(list) && (len(out) < f.Limit || int64(out[f.Limit-1].Wall) < list[at].longest); at += f.Limit {
		var traces []string
		for _, c := range list[at:min(at+f.Limit, len(list))] {
			if !read[c.trace] {
				read[c.trace], traces = true, append(traces, c.trace)
			}
		}
		more, err := f.read(ctx, q, list, traces)
		if err != nil {
			return nil, fmt.Errorf("slow: %w", err)
		}
		out = append(out, more...)
		slices.SortStableFunc(out, func(a, b SlowDelegation) int { return cmp.Compare(b.Wall, a.Wall) })
		out = out[:min(len(out), f.Limit)]
	}
	return out, nil
}

// candidates lists the delegations that may be among the slowest.
func (f SlowFilter) candidates(ctx context.Context, q Querier) (out []candidate, err error) {
	err = q.Each(ctx, fmt.Sprintf(slowSQL, Delegations, f.Where.sql()), f.Where.with(map[string]string{
		"now": strconv.FormatInt(f.Now.UnixNano(), 10), "since": strconv.FormatInt(int64(f.Since/time.Second), 10),
		"longest": strconv.FormatInt(int64(longest/time.Second), 10), "session": f.Session.ID, "tenant": f.Session.Tenant, "limit": strconv.Itoa(f.Limit * slowSpares),
	}), func(v []any) error {
		r := reader{values: v}
		c := candidate{trace: r.str(), span: r.str()}
		_ = r.time()
		c.worked, c.longest = r.signed(), r.signed()
		out = append(out, c)
		return r.err
	})
	return out, err
}

// read reads traces, and returns the slowest of the candidates that are in each of them.
func (f SlowFilter) read(ctx context.Context, q Querier, list []candidate, traces []string) ([]SlowDelegation, error) {
	var found []SlowDelegation
	err := loadTraces(ctx, q, traces, f.Prices, f.Now, func(t *Trace) error {
		var nodes []*blame.Node
		worked := make(map[*blame.Node]int64)
		for _, c := range list {
			if c.trace != t.ID {
				continue
			}
			if n := t.Tree.Node(c.span); n != nil { // else it was taken back meanwhile
				nodes, worked[n] = append(nodes, n), c.worked
			}
		}
		slices.SortStableFunc(nodes, func(a, b *blame.Node) int { return cmp.Compare(b.Wall(), a.Wall()) })
		for _, n := range nodes[:min(len(nodes), f.Limit)] {
			d := t.slow(n)
			d.WorkedMS = (worked[n] + 5e5) / 1e6
			found = append(found, d)
		}
		return nil
	})
	return found, err
}

func (t *Trace) slow(n *blame.Node) SlowDelegation {
	w := t.Works[n.ID]
	d := SlowDelegation{
		TraceID: t.ID, SpanID: n.ID, SessionID: w.Session, AgentName: n.Agent, DelegateTo: n.To,
		BlameMS: make(map[string]int64), Path: t.path(n), Started: time.Unix(0, n.Start).UTC(), Status: w.Status,
		Split: n.Split(), Wall: time.Duration(n.Wall()), Notes: t.notes(n), Spent: t.spent[n.Number()], caller: w.Actor(),
	}
	split, total := d.Split.Millis()
	d.DurationMS = total
	for _, b := range blame.Buckets() {
		d.BlameMS[b.String()] = split[b]
	}
	d.Waited = n.Waited()
	if list := n.Bottlenecks(1); len(list) > 0 {
		c := culprit(list[0])
		running := w.Status == "running"
		if running {
			c.SavesMS = 0
		}
		d.Bottleneck = &c
		d.Why = why(n, list[0], running)
		if worst := t.works[list[0].Worst.Number()]; list[0].Steps == 1 && worst.Status == "error" && worst.ID != n.ID {
			d.Why += " It failed: " + or(strings.TrimSuffix(worst.Error, "."), "no reason is known") + "."
		}
		if s := together(list[0].Worst); s != "" {
			d.Notes = append(d.Notes, s)
		}
	}
	if w.Status == "lost" {
		d.Notes = append(d.Notes, "its result never arrived")
	}
	if n.End < n.Reported {
		d.Notes = append(d.Notes, "its result was reported "+Span(time.Duration(n.Reported-n.End))+" after its work was done")
	}
	if !n.Waited() {
		d.Notes = append(d.Notes, Unawaited)
	}
	return d
}

// why explains a delegation's time by the other agents, where these took most of it, and by its bottleneck. One that
// runs has no end that could have been earlier.
func why(n *blame.Node, c blame.Bottleneck, running bool) string {
	if c.Worst == n && c.Bucket == blame.SubAgent {
		if running {
			return "The delegate has left no record of its work so far."
		}
		return "The delegate left no record of its work."
	}
	part, what := percent(c.Time, n.Wall())+" of it", "was "+culprit(c).String()
	if running {
		what += " so far"
	} else {
		what += saves(c, "the delegation")
	}
	switch {
	case c.Time == n.Wall():
		part = "All of it"
	case 2*c.Time < n.Wall():
		part = "The largest single part, " + percent(c.Time, n.Wall()) + ","
	}
	if c.Bucket == blame.Idle {
		what = "has no record of any work"
	}
	return others(n) + part + " " + what + "."
}

// others names the delegate that took most, where other agents took at least half of a delegation's time.
func others(n *blame.Node) string {
	var all int64
	by := make(map[string]int64)
	for _, s := range n.Shallow() {
		if s.Bucket == blame.SubAgent && s.Node != n {
			all += s.To - s.From
			by[s.Node.Label()] += s.To - s.From
		}
	}
	if all == 0 || 2*all < n.Wall() {
		return ""
	}
	most := slices.MaxFunc(slices.Sorted(maps.Keys(by)), func(a, b string) int { return cmp.Compare(by[a], by[b]) })
	return fmt.Sprintf("Other agents took %s of it, %s %s. ", percent(all, n.Wall()), Delegate(most), Span(time.Duration(by[most])))
}

func culprit(c blame.Bottleneck) Bottleneck {
	return Bottleneck{
		Bucket: c.Bucket.String(), Kind: c.Kind.String(), Name: c.Name, AgentName: c.Agent, SpanID: c.Worst.ID, Steps: c.Steps,
		TimeMS: ms(c.Time), SavesMS: ms(c.Saves),
	}
}

func (t *Trace) path(n *blame.Node) []PathStep {
	pieces := n.Path()
	out := make([]PathStep, 0, len(pieces))
	for _, p := range pieces {
		out = append(out, PathStep{
			SpanID: p.Node.ID, Kind: p.Node.Kind.String(), Name: p.Node.Name, AgentName: p.Node.Agent, Bucket: p.Bucket.String(),
			OffsetMS: ms(p.From - n.Start), DurationMS: ms(p.To - p.From),
		})
	}
	return out
}

// notes lists the clock corrections at or below n.
func (t *Trace) notes(n *blame.Node) (out []string) {
	for _, s := range t.Tree.Shifts() {
		for at := t.Tree.Node(s.ID); at != nil; at = at.Parent() {
			if at == n {
				out = append(out, clockNote(t.Tree, s))
				break
			}
		}
	}
	return out
}

// ClockNotes lists all clock corrections.
func ClockNotes(tree *blame.Tree) (out []string) {
	for _, s := range tree.Shifts() {
		out = append(out, clockNote(tree, s))
	}
	return out
}

func clockNote(tree *blame.Tree, s blame.Shift) string {
	how := "later"
	if s.By < 0 {
		how = "earlier"
	}
	return fmt.Sprintf("the times of %s were moved %s %s: %s", or(tree.Node(s.ID).Name, "a run"), Span(time.Duration(max(s.By, -s.By))), how, s.Why)
}

// Latest returns when the last delegation that has ended did so; zero when there
// is none.
func Latest(ctx context.Context, q Querier) (at time.Time, err error) {
	err = q.Each(ctx, `SELECT max(ts + toIntervalNanosecond(duration_ns)), count() FROM delegations`, nil, func(v []any) error {
		r := reader{values: v}
		last, n := r.time(), r.num()
		if n > 0 {
			at = last
		}
		return r.err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("latest delegation: %w", err)
	}
	return at, nil
}

// String names the bottleneck in a few words: its name, agent, count and time.
func (c Bottleneck) String() string {
	what := ""
	switch c.Bucket {
	case "model_ttft":
		what = "first token of " + or(c.Name, "a model")
	case "model_stream":
		what = "model " + or(c.Name, "of unknown name")
	case "tool":
		what = c.Kind + " " + or(c.Name, "of unknown name")
		if c.Kind == "run" {
			what = "step " + or(c.Name, "of unknown name")
		}
	case "sub_agent":
		what = "agent " + or(c.Name, "of unknown name") + " (not recorded)"
	case "wait":
		what = "waiting for a person"
		if c.Kind != "run" {
			what += " at " + or(c.Name, "a step")
		}
	case "retry":
		what = "retries of " + or(c.Name, c.Kind)
	default:
		what = "unrecorded time"
		if c.Name != "" {
			what += " of " + c.Name
		}
	}
	if c.AgentName != "" && c.Kind != "run" {
		what += " in " + c.AgentName
	}
	if c.Steps > 1 {
		what += " ×" + strconv.Itoa(c.Steps)
	}
	return strings.TrimSpace(what) + " " + Span(time.Duration(c.TimeMS*1e6))
}
