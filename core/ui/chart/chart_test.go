package chart

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

var zero = time.Unix(1_800_000_000, 0)

func at(minute int) time.Time { return zero.Add(time.Duration(minute) * time.Minute) }

// TestNumbersHaveUnits: as people write them, and exactly for who computes with them.
func TestNumbersHaveUnits(t *testing.T) {
	for _, c := range []struct {
		unit string
		n    float64
		want string
	}{
		{"ms", 0, "0ms"}, {"ms", 0.25, "0.25ms"}, {"ms", 1500, "1.5s"}, {"ms", 125_000, "2m05s"}, {"s", 90, "1m30s"}, {"short", 9_999, "9999"},
		{"short", 12_345, "12.3k"}, {"short", 0.5, "0.5"}, {"short", 1_500_000, "1.5M"}, {"bytes", 0, "0 B"}, {"bytes", 1536, "1.5 KiB"}, {"percentunit", 0.1234, "12.3%"},
		{"percentunit", 1, "100%"}, {"currencyUSD", 12.5, "$12.50"}, {"currencyUSD", 0.00123, "$0.0012"}, {"currencyUSD", 0, "$0.00"}, {"currencyUSD", 12_500, "$12.5k"},
	} {
		if got := Format(c.unit, c.n); got != c.want {
			t.Errorf("%v %s is written %q, want %q", c.n, c.unit, got, c.want)
		}
	}
}

// TestSeriesKeepEveryNumber: rows become lines by their texts, of all types that a driver has.
func TestSeriesKeepEveryNumber(t *testing.T) {
	f := Frame{Columns: []string{"time", "pair", "p95"}}
	nothing := (*float64)(nil)
	for _, row := range [][]any{{at(0), "a", uint64(10)}, {at(0), "b", int32(4)}, {at(5), "a", 2.5}, {at(5), "", math.NaN()}, {at(6), "b", nothing}} {
		f.Add(row)
	}
	s := NewSeries(f, at(-10), at(20), time.Minute, "ms", false)
	if len(s.Lines) != 3 || len(s.Times) != 3 || s.Lines[0].Name != "a" || s.Lines[0].Sum != 12.5 || s.Lines[0].Max != 10 || s.Lines[0].Last != 2.5 || s.Lines[2].Name != "(none)" {
		t.Errorf("%+v", s)
	}
	if got := s.Path(s.Lines[1]); got != "M333.3 666.7h.01" {
		t.Errorf("one point is %q", got)
	}
	if s.Top != 12 || strings.Join(s.Ticks(), " ") != "12ms 9ms 6ms 3ms 0ms" {
		t.Errorf("up to %v: %v", s.Top, s.Ticks())
	}
	apart := Frame{Columns: []string{"time", "n"}, Rows: [][]any{{at(0), 1.0}, {at(10), 2.0}, {at(60), 4.0}}}
	if s := NewSeries(apart, at(0), at(100), time.Minute, "short", false); len(s.Times) != 4 || s.Path(s.Lines[0]) != "M0.0 750.0h.01L100.0 500.0M600.0 0.0h.01" {
		t.Errorf("at %v: %s", s.Times, s.Path(s.Lines[0]))
	}
	s.Paint("b", "red")
	s.Paint("(none)", "orange")
	s.Paint("nobody", "green")
	if s.Lines[0].Color != 0 || s.Lines[1].Color != 4 || s.Lines[2].Color != 1 {
		t.Errorf("painted: %+v", s.Lines)
	}
	bars := NewSeries(f, at(-10), at(20), 5*time.Minute, "short", true)
	total := 0.0
	for _, b := range bars.Bars() {
		total += b.Height * bars.Top / Size
		if b.Y < 0 || b.Y+b.Height > Size+1e-9 || b.X < 0 || b.X+b.Width > Size {
			t.Errorf("a bar at %+v", b)
		}
	}
	if math.Abs(total-16.5) > 1e-9 || len(bars.Times) != 7 {
		t.Errorf("bars of %v together at %d times", total, len(bars.Times))
	}
	// Points outside of the range are shown in their own.
	if s := NewSeries(f, at(1000), at(2000), time.Minute, "ms", false); s.From.After(at(0)) || s.To.Before(at(6)) {
		t.Errorf("from %s to %s", s.From, s.To)
	}
}

// TestGraphsHaveEveryNode: circles, who calls itself, and edges to who is not there.
// TestLegendBeginsWithTheLargest: the line that a reader looks for is the first one of the legend, and keeps its color.
func TestLegendBeginsWithTheLargest(t *testing.T) {
	f := Frame{Columns: []string{"time", "pair", "p95"}, Rows: [][]any{{at(0), "a", 1.0}, {at(0), "b", 2.0}, {at(0), "c", 9.0}, {at(1), "b", 8.5}, {at(1), "a", 3.0}}}
	for stacked, want := range map[bool]string{false: "c2 b1 a0", true: "b1 c2 a0"} {
		var got []string
		for _, l := range NewSeries(f, at(0), at(60), time.Minute, "ms", stacked).Lines {
			got = append(got, fmt.Sprint(l.Name, l.Color))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("stacked %t: %v, want %s", stacked, got, want)
		}
	}
}

func TestGraphsHaveEveryNode(t *testing.T) {
	nodes := Frame{Columns: []string{"id", "title", "mainstat", "arc__failed"}}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		nodes.Add([]any{id, id, 1.0, 0.25})
	}
	edges := Frame{Columns: []string{"source", "target", "mainstat", "thickness"}}
	for _, e := range []string{"ab", "bc", "cb", "cc", "de", "ed", "ax"} {
		edges.Add([]any{e[:1], e[1:], 1.0, 1.0})
	}
	g := NewGraph(nodes, edges)
	places := make(map[[2]float64]bool)
	for _, n := range g.Nodes {
		if n.layer < 0 || n.X <= 0 || n.Y <= 0 || n.X >= g.Width || n.Y >= g.Height || places[[2]float64{n.X, n.Y}] {
			t.Errorf("%s is at %v %v of %v %v", n.ID, n.X, n.Y, g.Width, g.Height)
		}
		places[[2]float64{n.X, n.Y}] = true
	}
	if len(g.Nodes) != 5 || len(g.Edges) != 6 {
		t.Errorf("%d nodes, %d edges", len(g.Nodes), len(g.Edges))
	}
}

// TestWaterfallsAreTrees: spans are below their parents in the order of time, and those whose parent is
// not there are at the top.
func TestWaterfallsAreTrees(t *testing.T) {
	f := Frame{Columns: []string{"spanID", "parentSpanID", "startTime", "duration", "operationName", "statusCode"}}
	for _, s := range []struct {
		id, parent  string
		start, took float64
	}{{"late", "root", 80, 20}, {"root", "gone", 0, 100}, {"early", "root", 10, 5}, {"below", "early", 12, 1}, {"self", "self", 0, 1}} {
		f.Add([]any{s.id, s.parent, s.start, s.took, s.id, 0.0})
	}
	w := NewWaterfall(f, 100)
	var got []string
	for _, s := range w.Spans {
		got = append(got, strings.Repeat(">", s.Depth)+s.Name)
		if s.X < 0 || s.X+s.Width > Size+2 {
			t.Errorf("%+v", s)
		}
	}
	if want := "root >early >>below >late"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
	if w := NewWaterfall(f, 2); len(w.Spans) != 2 || w.All != 5 {
		t.Errorf("%d of %d", len(w.Spans), w.All)
	}
}

// TestChange: the change is a share of the number before, and its color is green where it is better.
func TestChange(t *testing.T) {
	for _, c := range []struct {
		before, now float64
		better      int
		want        Change
	}{
		{10_000, 12_000, -1, Change{"+20%", "10s", "10000", "red"}},
		{10_000, 5_000, -1, Change{"-50%", "10s", "10000", "green"}},
		{10_000, 12_000, 1, Change{"+20%", "10s", "10000", "green"}},
		{10_000, 12_000, 0, Change{"+20%", "10s", "10000", ""}},
		{10_000, 10_000, -1, Change{"0%", "10s", "10000", ""}},
		{3_000, 4_000, 0, Change{"+33.3%", "3.0s", "3000", ""}},
	} {
		if got := *NewChange(c.before, c.now, "ms", c.better); got != c.want {
			t.Errorf("%v to %v: %+v, want %+v", c.before, c.now, got, c.want)
		}
	}
}
