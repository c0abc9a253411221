package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Size is the width and the height of the box that everything is drawn in.
const Size = 1000.0

// Colors is how many colors there are.
const Colors = 12

// Series are lines over time, or bars one upon the other.
type Series struct {
	From, To time.Time
	Width    time.Duration // of a point
	Unit     string
	Stacked  bool
	Times    []time.Time
	Lines    []Line
	Top      float64 // the value at the upper edge
	Marks    []Mark  // moments that may explain a change
}

// colors are the numbers of those with a name.
var colors = map[string]int{"blue": 0, "orange": 1, "red": 4, "green": 5}

// Paint gives the line of that name a color by its name. A line that has it changes with it.
func (s *Series) Paint(name, color string) {
	n, known := colors[color]
	i := slices.IndexFunc(s.Lines, func(l Line) bool { return l.Name == name })
	if !known || i < 0 {
		return
	}
	for k := range s.Lines {
		if s.Lines[k].Color == n {
			s.Lines[k].Color = s.Lines[i].Color
		}
	}
	s.Lines[i].Color = n
}

// Line is one of the lines.
type Line struct {
	Name   string
	Color  int        // below Colors
	Values []*float64 // one for each time; nil where there is none
	Max    float64
	Last   float64
	Sum    float64
}

// Bar is a rectangle.
type Bar struct {
	X, Y, Width, Height float64
	Color               int
	Title               string
}

// NewSeries reads a frame with a column time, in its order, numbers, and texts that name the lines.
func NewSeries(f Frame, from, to time.Time, width time.Duration, unit string, stacked bool) Series {
	s := Series{From: from, To: to, Width: width, Unit: unit, Stacked: stacked}
	at := f.column("time")
	if at < 0 {
		return s
	}
	var numbers, names []int
	for i := range f.Columns {
		if i == at {
			continue
		}
		kind := names
		isNumber := slices.ContainsFunc(f.Rows, func(row []any) bool { _, ok := row[i].(float64); return ok })
		isText := slices.ContainsFunc(f.Rows, func(row []any) bool { _, ok := row[i].(string); return ok })
		if isText {
			names = append(kind, i)
		} else if isNumber {
			numbers = append(numbers, i)
		}
	}
	line := make(map[string]int)
	points := make(map[string]map[int64]float64)
	for _, row := range f.Rows {
		t, ok := row[at].(time.Time)
		if !ok {
			continue
		}
		if n := len(s.Times); n == 0 || s.Times[n-1].Before(t) {
			s.Times = append(s.Times, t)
		}
		var label []string
		for _, i := range names {
			if text, _ := row[i].(string); text == "" {
				label = append(label, "(none)")
			} else {
				label = append(label, text)
			}
		}
		for _, i := range numbers {
			name := strings.Join(label, " ")
			if name == "" || len(numbers) > 1 {
				name = strings.TrimSpace(f.Columns[i] + " " + name)
			}
			if _, there := line[name]; !there {
				line[name] = len(s.Lines)
				s.Lines = append(s.Lines, Line{Name: name, Color: len(s.Lines) % Colors})
				points[name] = make(map[int64]float64)
			}
			if n, ok := row[i].(float64); ok {
				points[name][t.UnixNano()] = n
			}
		}
	}
	s.fit()
	if stacked {
		s.fill()
	} else {
		s.part()
	}
	heights := make([]float64, len(s.Times))
	for i := range s.Lines {
		l := &s.Lines[i]
		l.Max = math.Inf(-1)
		for k, t := range s.Times {
			n, there := points[l.Name][t.UnixNano()]
			if !there {
				l.Values = append(l.Values, nil)
				continue
			}
			l.Values = append(l.Values, &n)
			l.Max, l.Last, l.Sum = max(l.Max, n), n, l.Sum+n
			if stacked {
				heights[k] += n
			} else {
				heights[k] = max(heights[k], n)
			}
		}
	}
	s.Top = 1
	if len(heights) > 0 {
		s.Top = nice(slices.Max(heights), unit)
	}
	if len(names) > 0 { // else they are columns, in the order of the query
		slices.SortStableFunc(s.Lines, func(a, b Line) int { return cmp.Compare(b.weight(stacked), a.weight(stacked)) })
	}
	return s
}

// weight puts the line first in the legend that a reader looks for.
func (l Line) weight(stacked bool) float64 {
	if stacked {
		return l.Sum
	}
	return l.Max
}

// fit takes the points' own range of time where a query has looked outside of the one that was picked.
func (s *Series) fit() {
	n := len(s.Times)
	if n == 0 || !s.Times[0].Before(s.From.Add(-s.Width)) && !s.Times[n-1].After(s.To) {
		return
	}
	around := max((s.Times[n-1].Sub(s.Times[0]))/20, time.Minute)
	s.From, s.To = s.Times[0].Add(-around), s.Times[n-1].Add(around)
	s.Width = min(s.Width, around)
}

// fill adds the times at which nothing was counted, so that each bar has the width of a point.
func (s *Series) fill() {
	if len(s.Times) == 0 || s.Width <= 0 || s.To.Sub(s.From)/s.Width > 2000 {
		return
	}
	known := make(map[int64]bool)
	for _, t := range s.Times {
		known[t.UnixNano()] = true
	}
	first := s.Times[0].Add(-s.Times[0].Sub(s.From).Truncate(s.Width))
	for t := first; t.Before(s.To); t = t.Add(s.Width) {
		if !known[t.UnixNano()] {
			s.Times = append(s.Times, t)
		}
	}
	slices.SortFunc(s.Times, time.Time.Compare)
}

// part adds a time without a value to each gap that no line connects.
func (s *Series) part() {
	for i := len(s.Times) - 1; i > 0; i-- {
		if before := s.Times[i-1]; s.Width > 0 && s.Times[i].Sub(before) > longestBridge*s.Width {
			s.Times = slices.Insert(s.Times, i, before.Add(s.Width))
		}
	}
}

// nice rounds the upper edge up to a number whose quarters are short.
func nice(n float64, unit string) float64 {
	if n <= 0 {
		return 1
	}
	if unit == "ms" && n > 60_000 || unit == "s" && n > 60 { // minutes and hours have no tens
		base := 60_000.0
		if unit == "s" {
			base = 60
		}
		for _, m := range []float64{2, 4, 8, 12, 20, 40, 60, 120, 240, 480, 720, 1440} {
			if n <= m*base {
				return m * base
			}
		}
	}
	whole := unit == "ms" || unit == "s" || unit == "short" && n == math.Trunc(n) // none has quarters of one
	if whole && n <= 12 {
		return 4 * math.Ceil(n/4)
	}
	power := math.Pow(10, math.Floor(math.Log10(n)))
	for _, m := range []float64{1.2, 2, 4, 6, 8} {
		if n <= m*power*(1+1e-9) {
			return m * power
		}
	}
	return 12 * power
}

func (s Series) x(t time.Time) float64 {
	return Size * float64(t.Sub(s.From)) / max(float64(s.To.Sub(s.From)), 1)
}

func (s Series) y(n float64) float64 { return Size * (1 - n/s.Top) }

// longestBridge is how many points may be missing between two that a line connects: nothing happened in
// between, and a line over hours of it would be a claim.
const longestBridge = 12

// Path is the line as an SVG path; a point without a neighbor is a dot.
func (s Series) Path(l Line) string {
	var b strings.Builder
	var last time.Time
	for i, v := range l.Values {
		if v == nil {
			continue
		}
		word := "L"
		if last.IsZero() || s.Times[i].Sub(last) > longestBridge*s.Width {
			word = "M"
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", word, s.x(s.Times[i]), s.y(*v))
		if word == "M" {
			b.WriteString("h.01")
		}
		last = s.Times[i]
	}
	return b.String()
}

// Bars are the values as bars one upon the other.
func (s Series) Bars() []Bar {
	var out []Bar
	width := max(Size*float64(s.Width)/max(float64(s.To.Sub(s.From)), 1)*0.9, 2)
	below := make([]float64, len(s.Times))
	for _, l := range s.Lines {
		for i, v := range l.Values {
			if v == nil || *v <= 0 {
				continue
			}
			x := max(s.x(s.Times[i]), 0)
			out = append(out, Bar{
				X: x, Y: s.y(below[i] + *v), Width: min(width, Size-x), Height: Size * *v / s.Top, Color: l.Color,
				Title: fmt.Sprintf("%s %s: %s", s.Times[i].Local().Format("Jan 2 15:04"), l.Name, Format(s.Unit, *v)),
			})
			below[i] += *v
		}
	}
	return out
}

// Ticks are the labels of the values, the uppermost first.
func (s Series) Ticks() []string {
	var out []string
	for i := 4; i >= 0; i-- {
		out = append(out, Format(s.Unit, s.Top*float64(i)/4))
	}
	return out
}

// TimeTicks are the labels of the time, evenly apart.
func (s Series) TimeTicks() []string { return timeTicks(s.From, s.To) }

func timeTicks(from, to time.Time) []string {
	layout := "15:04"
	switch long := to.Sub(from); {
	case long > 4*24*time.Hour:
		layout = "Jan 2"
	case long > 24*time.Hour:
		layout = "Jan 2 15:04"
	case long < 10*time.Minute:
		layout = "15:04:05"
	}
	var out []string
	for i := range 5 {
		out = append(out, from.Add(to.Sub(from)*time.Duration(i)/4).Local().Format(layout))
	}
	return out
}

// Data is the series for a script: times in seconds, and the lines' values.
type Data struct {
	From    float64      `json:"from"`
	To      float64      `json:"to"`
	Bridge  float64      `json:"bridge"` // the longest distance of two points that a line connects
	Unit    string       `json:"unit"`
	Stacked bool         `json:"stacked"`
	Names   []string     `json:"names"`
	Values  [][]*float64 `json:"values"` // of times, then of each line
	Marks   []DataMark   `json:"marks"`
}

// Mark is a moment that may explain a change.
type Mark struct {
	At   time.Time
	Text string
}

// X is where a mark is drawn.
func (s Series) X(m Mark) float64 { return s.x(m.At) }

// DataMark is a mark for a script: its time in seconds.
type DataMark struct {
	At   float64 `json:"at"`
	Text string  `json:"text"`
}

// Data returns the series for a script.
func (s Series) Data() Data {
	seconds := func(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
	d := Data{From: seconds(s.From), To: seconds(s.To), Bridge: (longestBridge * s.Width).Seconds(), Unit: s.Unit, Stacked: s.Stacked}
	var times []*float64
	for _, t := range s.Times {
		at := seconds(t)
		times = append(times, &at)
	}
	d.Values = append(d.Values, times)
	for _, m := range s.Marks {
		d.Marks = append(d.Marks, DataMark{seconds(m.At), m.Text})
	}
	for _, l := range s.Lines {
		d.Names, d.Values = append(d.Names, l.Name), append(d.Values, l.Values)
	}
	return d
}

// Heatmap counts by time and size.
type Heatmap struct {
	From, To time.Time
	Width    time.Duration // of a cell
	Rows     []string      // the largest first
	Cells    []Cell
}

// Cell is one count.
type Cell struct {
	Bar
	Count float64
	Level int // how much of the largest count, 1 to 8
}

// NewHeatmap reads a frame with a column time and a column of counts for each size, the smallest first.
func NewHeatmap(f Frame, from, to time.Time, width time.Duration) Heatmap {
	h := Heatmap{From: from, To: to, Width: width}
	at := f.column("time")
	if at < 0 || len(f.Columns) < 2 {
		return h
	}
	most := 0.0
	for _, row := range f.Rows {
		for i, v := range row {
			if n, ok := v.(float64); ok && i != at {
				most = max(most, n)
			}
		}
	}
	sizes := len(f.Columns) - 1
	for i := len(f.Columns) - 1; i >= 0; i-- {
		if i != at {
			h.Rows = append(h.Rows, f.Columns[i])
		}
	}
	s := Series{From: from, To: to}
	w := max(Size*float64(width)/max(float64(to.Sub(from)), 1), 3)
	for _, row := range f.Rows {
		t, ok := row[at].(time.Time)
		if !ok {
			continue
		}
		for line, name := range h.Rows {
			n := f.number(row, name)
			if n == 0 {
				continue
			}
			x, height := max(s.x(t), 0), Size/float64(sizes)
			h.Cells = append(h.Cells, Cell{
				Bar:   Bar{X: x, Y: float64(line) * height, Width: min(w, Size-x), Height: height, Title: fmt.Sprintf("%s, up to %s: %s", t.Local().Format("Jan 2 15:04"), name, Format("short", n))},
				Count: n, Level: int(math.Ceil(8 * math.Sqrt(n/most))),
			})
		}
	}
	return h
}

// TimeTicks are the labels of the time, evenly apart.
func (h Heatmap) TimeTicks() []string { return timeTicks(h.From, h.To) }
