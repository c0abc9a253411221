package ui

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/blame"
	"github.com/earshot-dev/earshot/core/inspect"
)

// turnPage is a turn as the page shows it.
type turnPage struct {
	*inspect.Turn
	Number   int
	Duration time.Duration
	Steps    []step // those of the window, in the order of the waterfall unless it has another
	Ticks    []time.Duration
	Strip    []stripe // the whole turn's critical path, if not all its steps are shown
	All      int      // how many steps it has
	From     int      // how many of them come before the window
	Texts    int      // how many bytes of each text of a step are shown
	Open     bool
	Views    []link
	Earlier  string
	Later    string
	Notes    []string // on clocks
}

// link is a way to another view of the turn; To is empty for the one that is shown.
type link struct{ Name, To string }

// stripe is a stretch of the strip: kind is that of the step that gates.
type stripe struct {
	bar
	Kind string
}

// window is the range of a turn's steps to show.
type window struct {
	from, size int
	only       string // longest or failed; empty for all in order
}

// step is a line of the waterfall. Bars are in thousandths of the time that the
// window shows.
type step struct {
	*inspect.Step
	Depth    int
	Bar      bar
	Critical []bar         // the parts of it that are on the critical path
	Alone    time.Duration // how much of the turn they are

	from, to int64
	gates    []blame.Segment
}

// Failed reports whether it failed, or its result never came.
func (s step) Failed() bool { return s.Status == "error" || s.Status == "lost" }

// Hint distinguishes the step from others of its kind.
func (s step) Hint() string {
	switch s.Kind {
	case "chat":
		return inspect.Clip(cut(s.Output, 400), 100)
	case "tool":
		return inspect.Clip(cut(inspect.Argument(s.Input), 400), 100)
	}
	return inspect.Clip(cut(s.Input, 400), 100)
}

// Fields are the arguments of a call, if they are shorter than that many bytes.
func (s step) Fields(most int) []field {
	if s.Kind != "tool" && s.Kind != "delegation" || len(s.Input) > most {
		return nil
	}
	return arguments(s.Input)
}

type bar struct{ X, Width float64 }

// pageTexts is how many bytes of texts the steps of a turn may have together,
// about: ten thousand steps are a page too.
const pageTexts = 4 << 20

// newTurn puts the steps of a turn in order, and marks the critical path as
// package blame finds it.
func newTurn(number int, t *inspect.Turn, w window) turnPage {
	out := turnPage{Turn: t, Number: number}
	start, end := t.Started.UnixNano(), t.Started.UnixNano()
	root := ""
	if t.Root != nil {
		root, end = t.Root.SpanID, start+int64(t.Root.Duration)
	}
	var collect func(list []*inspect.Step, depth int)
	collect = func(list []*inspect.Step, depth int) {
		for _, s := range list {
			out.Steps = append(out.Steps, step{Step: s, Depth: depth})
			if t.Root == nil {
				end = max(end, s.Started.Add(s.Duration).UnixNano())
			}
			collect(s.Steps, depth+1)
		}
	}
	collect(t.Steps, 0)
	tree := t.Tree()
	critical := make(map[string][]blame.Segment)
	if n := tree.Node(root); n != nil {
		end = max(end, n.End)
		for _, p := range n.Path() {
			critical[p.Node.ID] = append(critical[p.Node.ID], p)
		}
	}
	out.Duration = time.Duration(end - start)
	for i := range out.Steps {
		s := &out.Steps[i]
		s.from = s.Started.UnixNano()
		s.to = s.from + int64(s.Duration)
		if n := tree.Node(s.SpanID); n != nil {
			s.from, s.to = n.Start, n.End
		}
		for _, p := range critical[s.SpanID] {
			s.gates = append(s.gates, p)
			s.Alone += time.Duration(p.To - p.From)
		}
	}
	out.All, out.Notes = len(out.Steps), inspect.ClockNotes(tree)
	if w.only != "" || out.All > w.size {
		out.Strip = strip(out.Steps, start, end)
	}
	out.Steps, out.From = w.of(out.Steps)
	out.Texts = min(max(pageTexts/max(2*len(out.Steps), 1), 200), inspect.LongTexts)
	if w.only == "" && len(out.Steps) < out.All && len(out.Steps) > 0 { // the scale is that of the window
		end = 0
		for _, s := range out.Steps {
			end = max(end, s.to)
		}
		out.draw(out.Steps[0].from, end, t.Started)
	} else {
		out.draw(start, end, t.Started)
	}
	return out
}

// draw puts the bars on a scale, and its ticks beside it.
func (t *turnPage) draw(start, end int64, zero time.Time) {
	scale := 1000 / max(float64(end-start), 1)
	at := func(from, to int64) bar {
		a := min(max(float64(from-start)*scale, 0), 998)
		b := min(max(float64(to-start)*scale, a+2), 1000)
		return bar{a, b - a}
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		s.Bar = at(s.from, s.to)
		for _, p := range s.gates {
			s.Critical = append(s.Critical, at(p.From, p.To))
		}
	}
	first := time.Duration(start - zero.UnixNano())
	for n := range 5 {
		t.Ticks = append(t.Ticks, first+time.Duration(end-start)*time.Duration(n)/4)
	}
}

// of returns the steps in the window, and how many come before.
func (w window) of(steps []step) ([]step, int) {
	switch w.only {
	case "failed":
		steps = slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return !s.Failed() })
	case "longest":
		steps = slices.Clone(steps)
		slices.SortStableFunc(steps, func(a, b step) int { return cmp.Or(cmp.Compare(b.Alone, a.Alone), cmp.Compare(b.Duration, a.Duration)) })
	}
	from := min(max(w.from, 0), len(steps))
	return steps[from:min(from+w.size, len(steps))], from
}

// strip draws the critical path in a thousand columns, each in the color of the kind that
// has most of the column; a failure shows in any.
func strip(steps []step, start, end int64) []stripe {
	const columns = 1000
	var has [columns]map[string]float64
	scale := columns / max(float64(end-start), 1)
	for _, s := range steps {
		kind, weight := s.Kind, 1.0
		if s.Failed() {
			kind, weight = "failed", 1e9
		}
		for _, p := range s.gates {
			from, to := float64(p.From-start)*scale, float64(p.To-start)*scale
			for at := max(int(from), 0); at < columns && float64(at) < to; at++ {
				if has[at] == nil {
					has[at] = make(map[string]float64)
				}
				has[at][kind] += weight * (min(to, float64(at+1)) - max(from, float64(at)))
			}
		}
	}
	var out []stripe
	for at, kinds := range has {
		most := ""
		for _, k := range slices.Sorted(maps.Keys(kinds)) {
			if most == "" || kinds[k] > kinds[most] {
				most = k
			}
		}
		if n := len(out); n > 0 && out[n-1].Kind == most && out[n-1].X+out[n-1].Width == float64(at) {
			out[n-1].Width++
		} else if most != "" {
			out = append(out, stripe{bar{float64(at), 1}, most})
		}
	}
	return out
}
