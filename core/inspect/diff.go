package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/blame"
	"github.com/earshot-dev/earshot/core/price"
)

// Difference is the difference between two traces, or the turns of two sessions.
type Difference struct {
	A    DiffSide   `json:"a"`
	B    DiffSide   `json:"b"`
	Time []TimePart `json:"time"`  // they add up to the difference of the durations
	Rows []DiffRow  `json:"steps"` // in the order of the work
	// Diverges is the index in Rows of the first step that only one of them has, or whose
	// arguments differ; -1 if there is none.
	Diverges int `json:"diverges"`
}

// DiffSide is one of the two.
type DiffSide struct {
	ID         string    `json:"id"` // of the trace or the session
	SessionID  string    `json:"session_id"`
	Turns      int       `json:"turns"`
	Started    time.Time `json:"started"`
	DurationMS float64   `json:"duration_ms"` // of its turns together
	Steps      int       `json:"steps"`
	Spent      Cost      `json:"spent"`
}

// TimePart is the time of a tool, a model or an agent in one bucket on the critical paths.
type TimePart struct {
	Bucket string  `json:"bucket"`
	Name   string  `json:"name,omitempty"`
	A      float64 `json:"a_ms"`
	B      float64 `json:"b_ms"`
	Delta  float64 `json:"delta_ms"`
}

// DiffRow is a step of one or of both.
type DiffRow struct {
	Depth int    `json:"depth"`
	Kind  string `json:"kind"` // run, chat, tool or delegation
	Name  string `json:"name"`
	// Mark is = for a step of both with the same arguments, ~ with others, - for one of A alone,
	// + for one of B alone.
	Mark string    `json:"mark"`
	A    *DiffStep `json:"a,omitempty"`
	B    *DiffStep `json:"b,omitempty"`
}

// DiffStep is a step as it is on one side.
type DiffStep struct {
	TraceID    string  `json:"trace_id"`
	SpanID     string  `json:"span_id"`
	OffsetMS   float64 `json:"offset_ms"` // since the start of its turn
	DurationMS float64 `json:"duration_ms"`
	Arguments  string  `json:"arguments,omitempty"` // how they begin
	Status     string  `json:"status,omitempty"`
	Error      string  `json:"error,omitempty"`
	Spent      Cost    `json:"spent"` // by it and all below it
}

// diffNode is a step of a side with those below it.
type diffNode struct {
	kind, name string
	digest     string // of the arguments
	step       DiffStep
	children   []*diffNode
}

// maxTurns is how many turns of a session are compared.
const maxTurns = 200

// Diff compares two traces, or two sessions, or one with the other: a and b have ids or the
// beginnings of ids, and tenants for sessions. Steps are aligned below each pair of steps: calls of the same tool, and
// delegations to the same agent, are a pair, those with the same arguments first.
func Diff(ctx context.Context, q Querier, a, b Ref, prices *price.Table, now time.Time) (*Difference, error) {
	d := &Difference{Rows: []DiffRow{}, Time: []TimePart{}, Diverges: -1}
	times := newTimes()
	var sides [2][]*diffNode
	for i, id := range [...]Ref{a, b} {
		side := [...]*DiffSide{&d.A, &d.B}[i]
		traces, err := side.resolve(ctx, q, id)
		if err != nil {
			return nil, fmt.Errorf("diff: %w", err)
		}
		for _, trace := range traces {
			t, err := loadTrace(ctx, q, trace, prices, now)
			if err != nil {
				return nil, fmt.Errorf("diff: %w", err)
			}
			nodes, err := side.add(ctx, q, t)
			if err != nil {
				return nil, fmt.Errorf("diff: %w", err)
			}
			sides[i] = append(sides[i], nodes...)
			for _, root := range t.Tree.Roots() {
				times.add(i, root)
			}
		}
	}
	d.Time = times.parts()
	d.pair(sides[0], sides[1], 0)
	for _, calls := range [...]bool{true, false} { // another number of responses is the consequence of another call
		if d.Diverges < 0 {
			d.Diverges = slices.IndexFunc(d.Rows, func(r DiffRow) bool { return r.Mark != "=" && calls == (r.Kind != "chat") })
		}
	}
	return d, nil
}

// resolve completes the id of a trace or a session, and returns the traces.
func (s *DiffSide) resolve(ctx context.Context, q Querier, id Ref) ([]string, error) {
	trace, err := resolveTrace(ctx, q, id.ID)
	if err == nil {
		s.ID = trace
		return []string{trace}, nil
	}
	session, other := id.resolve(ctx, q)
	if other != nil {
		return nil, errors.Join(err, other)
	}
	s.ID = session.ID
	var traces []string
	err = q.Each(ctx, `SELECT trace_id FROM v_turns WHERE `+ofSession+` ORDER BY ts, trace_id LIMIT 1001`, session.params(), func(v []any) error {
		r := reader{values: v}
		traces = append(traces, r.str())
		return r.err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("session %s: turns: %w", session.ID, err)
	case len(traces) == 0:
		return nil, fmt.Errorf("session %s has no turns", session.ID)
	case len(traces) > maxTurns:
		return nil, fmt.Errorf("session %s has more than %d turns: compare two of its traces", session.ID, maxTurns)
	}
	return traces, nil
}

// add adds a turn to the side and returns its steps.
func (s *DiffSide) add(ctx context.Context, q Querier, t *Trace) (out []*diffNode, err error) {
	type arguments struct{ text, digest string }
	args := make(map[string]arguments)
	err = q.Each(ctx, `
		SELECT span_id, argMax(substringUTF8(concat(tool_arguments, if(tool_arguments = '', delegate_task, '')), 1, 200), ver), toString(argMax(cityHash64(tool_arguments, delegate_task), ver))
		FROM messages WHERE trace_id = {trace:String} AND kind IN ('tool_call', 'delegation') AND is_deleted = 0
		GROUP BY span_id`, map[string]string{"trace": t.ID}, func(v []any) error {
		r := reader{values: v}
		args[r.str()] = arguments{r.str(), r.str()}
		return r.err
	})
	if err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	s.Turns++
	s.SessionID = cmp.Or(s.SessionID, t.Session)
	for _, root := range t.Tree.Roots() {
		s.DurationMS += ms(root.Wall())
		s.Spent.add(t.spent[root.Number()])
		if at := time.Unix(0, root.Start).UTC(); s.Started.IsZero() || at.Before(s.Started) {
			s.Started = at
		}
		var node func(n *blame.Node) *diffNode
		node = func(n *blame.Node) *diffNode {
			s.Steps++
			w, a := t.Works[n.ID], args[n.ID]
			x := &diffNode{kind: n.Kind.String(), name: n.Label(), digest: a.digest, step: DiffStep{
				TraceID: t.ID, SpanID: n.ID, OffsetMS: ms(n.Start - root.Start), DurationMS: ms(n.Wall()), Arguments: a.text, Status: w.Status, Error: w.Error, Spent: t.spent[n.Number()],
			}}
			switch n.Kind {
			case blame.Run:
				x.name = t.works[n.Number()].Actor()
			case blame.Delegation, blame.Tool: // not with the work that was reported beside it
				x.name = or(n.To, n.Name)
			}
			for _, c := range n.Children() {
				x.children = append(x.children, node(c))
			}
			return x
		}
		out = append(out, node(root))
	}
	return out, nil
}

// pair adds the rows of two lists of steps.
func (d *Difference) pair(a, b []*diffNode, depth int) {
	for _, p := range align(a, b, alike) {
		r := DiffRow{Depth: depth, Mark: "="}
		var x, y *diffNode
		if p[0] >= 0 {
			x = a[p[0]]
			r.Kind, r.Name, r.A, r.Mark = x.kind, x.name, &x.step, "-"
		}
		if p[1] >= 0 {
			y = b[p[1]]
			r.Kind, r.Name, r.B, r.Mark = y.kind, y.name, &y.step, "+"
		}
		var below [2][]*diffNode
		if x != nil {
			below[0] = x.children
		}
		if y != nil {
			below[1] = y.children
		}
		if x != nil && y != nil {
			r.Mark = "="
			if x.digest != y.digest || !sameName(x.name, y.name) {
				r.Mark = "~"
			}
		}
		d.Rows = append(d.Rows, r)
		d.pair(below[0], below[1], depth+1)
	}
}

// sameName reports whether two names are one: a run that ended before its agent's name was known has that of the format in brackets, which
// may be the agent's name.
func sameName(a, b string) bool { return a == b || a == "("+b+")" || b == "("+a+")" }

// alike scores two steps as a pair.
func alike(x, y *diffNode) int {
	switch {
	case x.kind != y.kind:
		return 0
	case x.name == y.name && x.digest == y.digest:
		return 4
	case x.name == y.name:
		return 2
	case x.kind == "run", x.kind == "chat": // the same place in the work of another agent or model
		return 1
	}
	return 0
}

// times are the parts of the critical paths of two sides.
type times map[[2]string]*[2]int64

func newTimes() times { return make(times) }

func (t times) add(side int, n *blame.Node) {
	for _, p := range n.Path() {
		k := [2]string{p.Bucket.String(), p.Node.Label()}
		if t[k] == nil {
			t[k] = new([2]int64)
		}
		t[k][side] += p.To - p.From
	}
}

// parts are the parts, those that differ most first.
func (t times) parts() []TimePart {
	out := make([]TimePart, 0, len(t))
	for k, v := range t {
		out = append(out, TimePart{k[0], k[1], ms(v[0]), ms(v[1]), ms(v[1] - v[0])})
	}
	slices.SortFunc(out, func(a, b TimePart) int {
		return cmp.Or(cmp.Compare(max(b.Delta, -b.Delta), max(a.Delta, -a.Delta)), strings.Compare(a.Bucket, b.Bucket), strings.Compare(a.Name, b.Name))
	})
	return out
}

// String names the part in a few words.
func (p TimePart) String() string {
	return strings.TrimSpace(strings.ReplaceAll(p.Bucket, "_", " ") + " " + p.Name)
}

// Signed is a difference of milliseconds with its sign.
func Signed(ms float64) string {
	d := time.Duration(ms * 1e6).Truncate(time.Millisecond) // Span has no less
	switch {
	case d > 0:
		return "+" + Span(d)
	case d < 0:
		return "−" + Span(-d)
	}
	return "0"
}

// after is a time since a beginning. Clocks differ, so that a step may be before it.
func after(d time.Duration) string {
	if d <= -time.Millisecond {
		return "−" + Span(-d)
	}
	return "+" + Span(max(d, 0))
}

// signedTokens is the difference of two counts, as long as the counts beside it.
func signedTokens(a, b uint64) string {
	count := func(n uint64) string { return strings.Fields(tokens(n))[0] }
	switch {
	case b > a:
		return "+" + count(b-a)
	case b < a:
		return "−" + count(a-b)
	}
	return "0"
}

// nameShown is how many columns of a name a sentence has.
const nameShown = 50

// Sentence is the difference of the durations, and the parts with most of it.
func Sentence(what string, delta float64, parts []TimePart) string {
	text := what + " " + Signed(delta)
	var most []string
	for _, p := range parts[:min(3, len(parts))] {
		if max(p.Delta, -p.Delta) >= 1 {
			most = append(most, Signed(p.Delta)+" in "+Clip(p.String(), nameShown))
		}
	}
	if len(most) == 0 {
		return text + "."
	}
	return text + ": " + strings.Join(most, ", ") + "."
}

// spending is the difference of tokens and costs in a sentence. A side without tokens has not spent none: they are not known.
func spending(a, b Cost) string {
	x, y := a.Tokens.Total(), b.Tokens.Total()
	cost := func(c Cost) string {
		switch {
		case c.Unpriced == c.Tokens.Total():
			return "not known"
		case c.Unpriced > 0:
			return fmt.Sprintf("%s (%s have no price)", c.Dollars(), tokens(c.Unpriced))
		}
		return c.Dollars()
	}
	switch {
	case x == 0 && y == 0:
		return "Tokens and cost are not known."
	case x == 0:
		return fmt.Sprintf("Tokens and cost of A are not known; B has %s, cost %s.", tokens(y), cost(b))
	case y == 0:
		return fmt.Sprintf("A has %s, cost %s; tokens and cost of B are not known.", tokens(x), cost(a))
	}
	if x == y {
		return fmt.Sprintf("Tokens the same, %s, cost %s in A, %s in B.", tokens(x), cost(a), cost(b))
	}
	return fmt.Sprintf("Tokens %s (%s in A, %s in B), cost %s in A, %s in B.", signedTokens(x, y), tokens(x), tokens(y), cost(a), cost(b))
}

// Summary has sentences on how the two differ.
func (d *Difference) Summary() []string {
	out := []string{Sentence("Time", d.B.DurationMS-d.A.DurationMS, d.Time)}
	out = append(out, spending(d.A.Spent, d.B.Spent))
	if d.Diverges < 0 {
		return append(out, "The steps are the same.")
	}
	r := d.Rows[d.Diverges]
	what := map[string]string{"~": "has other arguments", "-": "is in A only", "+": "is in B only"}[r.Mark]
	if r.Kind == "run" && r.Mark == "~" {
		what = "is of another agent"
	}
	at := cmp.Or(r.A, r.B)
	return append(out, fmt.Sprintf("They diverge at step %d, %s into the turn: %s %s %s.", d.Diverges+1, Span(time.Duration(at.OffsetMS*1e6)), r.Kind, or(Clip(r.Name, nameShown), "(unnamed)"), what))
}

// Write draws the difference, as wide as the style. Responses of models that both have are left out.
func (d *Difference) Write(w io.Writer, st Style) error {
	p := &printer{w: w, Style: st}
	for _, s := range [...]struct {
		name string
		DiffSide
	}{{"A", d.A}, {"B", d.B}} {
		id := s.name + " " + printable(s.ID)
		facts := fmt.Sprintf("%s, %s, %s, %s", Stamp(s.Started, st.zone()), Span(time.Duration(s.DurationMS*1e6)), plural(s.Steps, "step"), or(strings.TrimSuffix(s.Spent.Dollars(), "?"), "cost not known"))
		if st.Width > 0 && Visible(id)+2+Visible(facts) > st.Width {
			p.line("", p.bold(id))
			p.line("  ", p.dim(facts))
			continue
		}
		p.line("", p.bold(id), "  ", p.dim(facts))
	}
	for _, s := range d.Summary() {
		for _, l := range Fold(printable(s), st.Width) {
			p.line("", l)
		}
	}
	p.line("")
	cell := 11
	if 0 < st.Width && st.Width < 80 {
		cell = 8
	}
	p.line("", p.dim(Pad("", 4)+Pad("A", cell)+Pad("B", cell)+Pad("B − A", cell)+"step"))
	for i, r := range d.Rows {
		if r.Kind != "chat" || r.A == nil || r.B == nil {
			p.row(&r, cell, i == d.Diverges)
		}
	}
	return p.err
}

// row draws a row, whose times are in cells of that many columns.
func (p *printer) row(r *DiffRow, cell int, first bool) {
	length := func(s *DiffStep) string {
		if s == nil {
			return ""
		}
		return Span(time.Duration(s.DurationMS * 1e6))
	}
	delta := ""
	if r.A != nil && r.B != nil {
		delta = Signed(r.B.DurationMS - r.A.DurationMS)
	}
	indent := strings.Repeat("  ", min(r.Depth, 20))
	room := 1 << 20 // of the terminal, for the name and the rest
	if p.Width > 0 {
		room = max(16, p.Width-4-3*cell)
		indent = indent[:min(len(indent), room/2)]
	}
	room -= len(indent)
	note := ""
	if first {
		if note = "  ← the first difference"; room < 24+len(note) {
			note = "  ←"
		}
		room -= Visible(note)
	}
	name := Clip(r.Kind+" "+printable(or(r.Name, "(unnamed)")), room)
	arguments := func(s *DiffStep, label string, room int) string {
		if room = min(60, room-Visible(label)); s.Arguments == "" || room < 8 {
			return ""
		}
		return label + Clip(printable(strings.Join(strings.Fields(s.Arguments), " ")), room)
	}
	args := arguments(cmp.Or(r.B, r.A), "  ", room-Visible(name))
	mark := r.Mark
	switch mark {
	case "-":
		mark = p.bad(mark)
	case "+":
		mark = p.green(mark)
	}
	if first {
		name = p.bold(name)
	}
	p.line("", mark, "   ", Pad(length(r.A), cell), Pad(length(r.B), cell), Pad(delta, cell), indent, name, p.dim(args), note)
	if r.Mark == "~" && r.A.Arguments != "" && r.A.Arguments != r.B.Arguments {
		if other := arguments(r.A, "in A: ", room); other != "" {
			p.line("", strings.Repeat(" ", 4+3*cell), indent, p.dim(other))
		}
	}
}
