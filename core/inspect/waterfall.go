package inspect

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/blame"
)

// Waterfall is a trace in the order in which it is drawn.
type Waterfall struct {
	TraceID   string         `json:"trace_id"`
	SessionID string         `json:"session_id"`
	Started   time.Time      `json:"started"`
	WallMS    float64        `json:"wall_ms"`
	Spans     []WaterfallRow `json:"spans"` // by the number of their node
	Notes     []string       `json:"notes,omitempty"`

	start, end int64
}

// Times are the start and the end of the whole, Unix nanoseconds.
func (w *Waterfall) Times() (start, end int64) { return w.start, w.end }

// Times are the start and the end of the row, Unix nanoseconds.
func (r *WaterfallRow) Times() (start, end int64) { return r.node.Start, r.node.End }

// WaterfallRow is a span of a waterfall.
type WaterfallRow struct {
	SpanID     string  `json:"span_id"`
	ParentID   string  `json:"parent_span_id,omitempty"`
	Depth      int     `json:"depth"`
	Kind       string  `json:"kind"`
	Name       string  `json:"name,omitempty"`
	AgentName  string  `json:"agent_name,omitempty"`
	DelegateTo string  `json:"delegate_to,omitempty"`
	OffsetMS   float64 `json:"offset_ms"`
	DurationMS float64 `json:"duration_ms"`
	CriticalMS float64 `json:"critical_ms"` // the time of the span and its descendants on the critical path
	Status     string  `json:"status,omitempty"`
	Error      string  `json:"error,omitempty"`
	Tokens     Tokens  `json:"tokens,omitzero"` // its own; a run's are those of its model turns
	Tier       string  `json:"tier,omitempty"`  // of the service that Tokens are billed by; empty: the standard one
	Spent      Cost    `json:"spent,omitzero"`  // by it and all below it

	// Below is the number of rows below it, which follow it.
	Below    int              `json:"-"`
	Critical []blame.Interval `json:"-"` // its own time on the critical path, Unix nanoseconds

	node *blame.Node
	work *Work
}

// Label names the row for a person: a delegation by the agent that it goes to, a run by its agent.
func (r *WaterfallRow) Label() string {
	switch {
	case r.Kind == "delegation":
		return "→ " + Delegate(r.DelegateTo)
	case r.Kind == "run" && r.Name == "":
		return r.work.Actor()
	}
	return or(r.Name, "?")
}

// Waterfall puts the trace in order.
func (t *Trace) Waterfall() *Waterfall {
	w := &Waterfall{TraceID: t.ID, SessionID: t.Session, Spans: make([]WaterfallRow, 0, len(t.Works))}
	var add func(n *blame.Node, depth int)
	add = func(n *blame.Node, depth int) {
		s := t.works[n.Number()]
		r := WaterfallRow{
			SpanID: n.ID, ParentID: n.Span.Parent, Depth: depth, Kind: n.Kind.String(), Name: n.Name, AgentName: n.Agent, DelegateTo: n.To,
			DurationMS: ms(n.Wall()), Status: s.Status, Error: s.Error, Tokens: s.Tokens, Tier: s.Tier, Spent: t.spent[n.Number()], node: n, work: s,
		}
		w.Spans = append(w.Spans, r)
		if len(w.Spans) == 1 || n.Start < w.start {
			w.start = n.Start
		}
		w.end = max(w.end, n.End)
		for _, c := range n.Children() {
			add(c, depth+1)
		}
		w.Spans[n.Number()].Below = len(w.Spans) - n.Number() - 1
	}
	for _, n := range t.Tree.Roots() {
		add(n, 0)
		w.Notes = append(w.Notes, t.notes(n)...)
	}
	w.paths(t.Tree)
	// The critical time of a child counts for its parent.
	for i := len(w.Spans) - 1; i >= 0; i-- {
		r := &w.Spans[i]
		if p := r.node.Parent(); p != nil {
			w.Spans[p.Number()].CriticalMS += r.CriticalMS
		}
		r.OffsetMS = ms(r.node.Start - w.start)
	}
	w.Started, w.WallMS = time.Unix(0, w.start).UTC(), ms(w.end-w.start)
	return w
}

// paths puts the segments of the critical paths on their rows, in one allocation for all rows.
func (w *Waterfall) paths(tree *blame.Tree) {
	var path []blame.Segment
	for _, root := range tree.Roots() {
		path = append(path, root.Path()...)
	}
	has := make([]int, len(w.Spans))
	for _, p := range path {
		has[p.Node.Number()]++
	}
	room := make([]blame.Interval, len(path))
	for _, p := range path {
		r := &w.Spans[p.Node.Number()]
		if r.Critical == nil {
			n := has[p.Node.Number()]
			r.Critical, room = room[:0:n], room[n:]
		}
		r.CriticalMS += ms(p.To - p.From)
		r.Critical = append(r.Critical, blame.Interval{From: p.From, To: p.To})
	}
}

// Write draws the waterfall: a line per span, its bar on the scale of the whole
// trace, the part of it that is on the critical path solid.
func (w *Waterfall) Write(out io.Writer, st Style) error {
	if st.Width <= 0 {
		st.Width = 100
	}
	lines := bufio.NewWriter(out)
	p := &printer{w: lines, Style: st}
	p.line("", p.bold("trace "+w.TraceID), fmt.Sprintf("  session %s · %s · %s · %s", printable(w.SessionID), Stamp(w.Started, p.zone()),
		Span(time.Duration(w.WallMS*1e6)), plural(len(w.Spans), "span")))
	name := min(44, max(24, st.Width*2/5))
	bar := max(10, st.Width-name-28)
	p.line("", p.dim(Pad("", name)+fmt.Sprintf("  %7s %7s  ", "after", "took")+Pad("█ critical path  ░ beside it", bar)+"  tokens cost"))
	for i := range w.Spans {
		w.row(p, &w.Spans[i], name, bar)
	}
	for _, n := range w.Notes {
		p.line("", p.dim("clock: "+printable(n)))
	}
	return cmp.Or(p.err, lines.Flush())
}

func (w *Waterfall) row(p *printer, r *WaterfallRow, name, bar int) {
	label := r.Kind + " " + r.Label()
	switch r.Kind {
	case "delegation":
		label = r.Label() + " (" + r.Name + ")"
	case "run":
		label = "agent " + r.Label()
	}
	mark := " "
	if r.CriticalMS > 0 {
		mark = "*"
	}
	label = Pad(mark+strings.Repeat(" ", min(2*r.Depth, name/2))+Clip(label, max(8, name-1-min(2*r.Depth, name/2))), name)
	facts := "  " + Pad(strings.TrimSuffix(tokens(r.Spent.Tokens.Total()), " tokens"), 7) + r.Spent.Dollars()
	if r.Spent.Tokens.Total() == 0 {
		facts = ""
	}
	if r.Status != "" {
		facts += "  " + p.bad(Clip(strings.TrimSpace(r.Status+" "+r.Error), 40))
	}
	p.line("", label, fmt.Sprintf("  %7s %7s  ", after(time.Duration(r.node.Start-w.start)), Span(time.Duration(r.node.Wall()))), w.bar(p, r, bar), facts)
}

// bar draws a span on the scale of the trace. A span with any duration has a mark.
func (w *Waterfall) bar(p *printer, r *WaterfallRow, width int) string {
	at := func(t int64) int {
		if w.end == w.start {
			return 0
		}
		return int(float64(t-w.start) / float64(w.end-w.start) * float64(width))
	}
	cells := []rune(strings.Repeat(" ", width))
	fill := func(from, to int64, c rune) {
		a := min(at(from), width-1)
		for i := a; i < min(max(at(to), a+1), width); i++ {
			cells[i] = c
		}
	}
	fill(r.node.Start, r.node.End, '░')
	for _, c := range r.Critical {
		fill(c.From, c.To, '█')
	}
	text := string(cells)
	switch {
	case r.Status == "error":
		return p.paint("31", text)
	case r.CriticalMS > 0:
		return p.paint("33", text)
	}
	return p.dim(text)
}
