package inspect

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/blame"
)

// Explanation explains in words and numbers where the time of a trace was spent.
type Explanation struct {
	TraceID   string     `json:"trace_id"`
	SessionID string     `json:"session_id"`
	Text      []string   `json:"text"` // sentences
	Works     []WorkTime `json:"work"` // every run and delegation, in the order of the tree
}

// WorkTime is the time of a run or a delegation.
type WorkTime struct {
	SpanID     string           `json:"span_id"`
	Depth      int              `json:"depth"`
	Kind       string           `json:"kind"`
	AgentName  string           `json:"agent_name,omitempty"`
	DelegateTo string           `json:"delegate_to,omitempty"`
	Started    time.Time        `json:"started"`
	DurationMS int64            `json:"duration_ms"`
	BlameMS    map[string]int64 `json:"blame_ms"`
	Status     string           `json:"status,omitempty"`
	Spent      Cost             `json:"spent"` // by it and all below it

	split blame.Split
	who   string // the agent, for a person
}

// Explain explains the trace.
func (t *Trace) Explain() *Explanation {
	e := &Explanation{TraceID: t.ID, SessionID: t.Session, Works: []WorkTime{}}
	for _, root := range t.Tree.Roots() {
		e.works(t, root, 0)
		e.root(t, root)
	}
	e.slowest(t)
	e.troubles(t)
	return e
}

func (e *Explanation) say(format string, args ...any) {
	e.Text = append(e.Text, fmt.Sprintf(format, args...))
}

func (e *Explanation) works(t *Trace, n *blame.Node, depth int) {
	if n.Kind == blame.Run || n.Kind == blame.Delegation {
		w := WorkTime{
			SpanID: n.ID, Depth: depth, Kind: n.Kind.String(), AgentName: n.Agent, DelegateTo: n.To, Started: time.Unix(0, n.Start).UTC(),
			Status: t.Works[n.ID].Status, Spent: t.spent[n.Number()], BlameMS: make(map[string]int64), split: n.Split(), who: t.works[n.Number()].Actor(),
		}
		split, total := w.split.Millis()
		w.DurationMS = total
		for _, b := range blame.Buckets() {
			w.BlameMS[b.String()] = split[b]
		}
		e.Works = append(e.Works, w)
		depth++
	}
	for _, c := range n.Children() {
		e.works(t, c, depth)
	}
}

// root lists the parts of the turn's time, largest first, and the changes that would have
// shortened it.
func (e *Explanation) root(t *Trace, n *blame.Node) {
	took, saved := "took %s from %s on", func(c blame.Bottleneck) string { return saves(c, "the turn") }
	if t.Works[n.ID].Status == "running" { // it has no end that could have been earlier
		took, saved = "has run for %s, since %s", func(blame.Bottleneck) string { return "" }
	}
	who := "The turn of " + or(n.Name, t.works[n.Number()].Actor())
	if n.Kind != blame.Run {
		who = "The " + n.Kind.String() + " " + or(n.Name, "(unnamed)")
	}
	e.say("%s "+took+".", who, Span(time.Duration(n.Wall())), Stamp(time.Unix(0, n.Start), t.zone))
	if s := t.spent[n.Number()]; s.Tokens.Total() > 0 {
		e.say("It took %s", s)
	}
	if n.Wall() == 0 {
		return
	}
	e.say("Its time was spent on %s.", spent(n.Split()))
	for i, c := range n.Bottlenecks(3) {
		name := culprit(c)
		switch {
		case i == 0:
			e.say("The largest part of the critical path was %s (%s)%s.", name, percent(c.Time, n.Wall()), saved(c))
		case c.Time*20 >= n.Wall():
			e.say("Next was %s (%s)%s.", name, percent(c.Time, n.Wall()), saved(c))
		default:
			continue
		}
		if s := together(c.Worst); s != "" {
			e.say("%s.", s)
		}
	}
}

// saves is the saving without a bottleneck of the whole, with the reason where it is less than its time.
func saves(c blame.Bottleneck, whole string) string {
	switch {
	case c.Saves == 0:
		return ", though without it other work that ran beside it would have taken as long"
	case c.Saves*10 < c.Time*9:
		return fmt.Sprintf("; without it %s would have ended only %s earlier, because other work ran beside it", whole, Span(time.Duration(c.Saves)))
	}
	return fmt.Sprintf("; without it %s would have ended %s earlier", whole, Span(time.Duration(c.Saves)))
}

// together names the calls that were reported together with a call, where it is unknown
// which of them took the time.
func together(n *blame.Node) string {
	if len(n.ReportedWith()) == 0 {
		return ""
	}
	names := strings.Split(n.Label(), " or ")
	what := strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
	if len(names) == 1 {
		what = fmt.Sprintf("%d calls of %s", len(n.ReportedWith())+1, or(names[0], "a tool"))
	}
	return what + " were reported together; which of them took the time is not known"
}

// spent lists the buckets, largest first.
func spent(s blame.Split) string {
	words := map[blame.Bucket]string{
		blame.ModelTTFT: "waiting for first tokens", blame.ModelStream: "the model answering", blame.ToolTime: "tools", blame.SubAgent: "other agents",
		blame.Wait: "waiting for a person", blame.Retry: "retries", blame.Idle: "no recorded activity",
	}
	order := blame.Buckets()
	slices.SortStableFunc(order, func(a, b blame.Bucket) int { return int(min(1, max(-1, s[b]-s[a]))) })
	var out []string
	for _, b := range order {
		if s[b] > 0 {
			out = append(out, fmt.Sprintf("%s %s (%s)", words[b], Span(time.Duration(s[b])), percent(s[b], s.Total())))
		}
	}
	return strings.Join(out, ", ")
}

func percent(part, whole int64) string {
	if whole <= 0 {
		return "0%"
	}
	p := 100 * float64(part) / float64(whole)
	switch {
	case p > 0 && p < 1:
		return "<1%"
	case p >= 99.5 && part < whole:
		return ">99%"
	}
	return fmt.Sprintf("%.0f%%", p)
}

// slowest explains the longest delegation that the caller waited for, and lists the work
// in the background.
func (e *Explanation) slowest(t *Trace) {
	var worst, aside *blame.Node
	count, asides := 0, 0
	for _, w := range e.Works {
		switch n := t.Tree.Node(w.SpanID); {
		case n.Kind != blame.Delegation:
		case n.Waited():
			if count++; worst == nil || n.Wall() > worst.Wall() {
				worst = n
			}
		default:
			if asides++; aside == nil || n.Wall() > aside.Wall() {
				aside = n
			}
		}
	}
	if worst != nil && worst.Wall() > 0 {
		what := "Its delegation"
		if count > 1 {
			what = fmt.Sprintf("The slowest of its %d delegations", count)
		}
		took := "took"
		if t.Works[worst.ID].Status == "running" {
			took = "has run for"
		}
		s := fmt.Sprintf("%s, %s to %s, %s %s", what, t.works[worst.Number()].Actor(), Delegate(worst.To), took, Span(time.Duration(worst.Wall())))
		if list := worst.Bottlenecks(1); len(list) > 0 {
			s += fmt.Sprintf(", %s of it %s", percent(list[0].Time, worst.Wall()), culprit(list[0]))
		}
		e.say("%s.", s)
	}
	if aside != nil {
		what := fmt.Sprintf("Nobody waited for its delegation to %s, which went on in the background for %s", Delegate(aside.To), Span(time.Duration(aside.Wall())))
		if asides > 1 {
			what = fmt.Sprintf("Nobody waited for %d of its delegations, which went on in the background; the longest, to %s, for %s",
				asides, Delegate(aside.To), Span(time.Duration(aside.Wall())))
		}
		e.say("%s.", what)
	}
}

// troubles lists failures, running and lost spans, and skewed clocks.
func (e *Explanation) troubles(t *Trace) {
	failed, lost := 0, 0
	var open *Work
	running := 0
	for _, w := range t.Works {
		switch w.Status {
		case "error":
			failed++
		case "lost":
			lost++
		case "running":
			if running++; open == nil || w.Start > open.Start || w.Start == open.Start && w.ID < open.ID {
				open = w
			}
		}
	}
	for i := range e.Works {
		w := t.Works[e.Works[i].SpanID]
		for _, f := range w.Findings {
			e.say("%s %s.", w.Actor(), f)
		}
	}
	if failed > 0 {
		e.say("%s failed.", plural(failed, "step"))
	}
	if lost > 0 {
		e.say("The result of %s never arrived.", plural(lost, "call"))
	}
	if open != nil {
		e.say("Still running: %s. The last to begin was the %s %s, silent for %s.", plural(running, "step"), open.Kind, or(or(open.Name, open.To), "(unnamed)"), Span(open.Silent))
	}
	for _, n := range t.Tree.Roots() {
		for _, note := range t.notes(n) {
			e.say("By the clocks, %s.", note)
		}
	}
}

// Write writes the sentences, and the split of every run and delegation below.
func (e *Explanation) Write(out io.Writer, st Style) error {
	if st.Width <= 0 {
		st.Width = 100
	}
	p := &printer{w: out, Style: st}
	for _, s := range e.Text {
		p.folded("", printable(s))
	}
	name, bar := 36, 24
	if st.Width < 100 { // the times, the largest bucket and the status take 40
		name = max(16, st.Width/4)
		bar = max(4, min(24, st.Width-name-40))
	}
	if len(e.Works) > 0 {
		p.line("", "")
		for _, l := range Lines(BarLegend, st.Width) {
			p.line("", p.dim(l))
		}
	}
	for i := range e.Works {
		w := &e.Works[i]
		who := "agent " + w.who
		if w.Kind == "delegation" {
			who = "→ " + Delegate(w.DelegateTo)
		}
		indent := strings.Repeat("  ", min(w.Depth, name/4))
		p.line(Pad(indent+Clip(who, name-len(indent)), name), fmt.Sprintf(" %7s  ", Span(time.Duration(w.split.Total()))), Bar(w.split, bar, st.Color), "  ",
			Pad(top(w.split), 18), p.bad(w.Status))
	}
	return p.err
}
