package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// goals writes the goals beside the last measurements of the other modes.
func goals(o options, e *env) error {
	figures, err := e.load()
	if err != nil {
		return err
	}
	queries, err := os.ReadFile("bench/queries.md")
	if err != nil {
		return err
	}
	return e.publish(o, goalsReport(figures, string(queries)), nil)
}

// goal is a row of the page: one figure and its limit.
type goal struct {
	name  string
	goal  string
	is    func(map[string]savedFigure) (text string, met bool) // empty: not measured
	shown string                                               // the command that prints it
}

const (
	compareCommand = "`go run ./bench/cmd/bench`"
	scaleCommand   = "`go run ./bench/cmd/bench -scale`"
	stagesCommand  = "`go run ./bench/cmd/bench -stages`"
	backlogCommand = "`go run ./bench/cmd/bench -backlog 10e9`"
)

// ratio shows the figure of that name; the goal is met when it is at most, or at least, the
// limit.
func ratio(name string, met func(float64) bool) func(map[string]savedFigure) (string, bool) {
	return func(f map[string]savedFigure) (string, bool) {
		k, ok := f[name]
		if !ok {
			return "", false
		}
		text := k.ratio()
		if k.Busy {
			text += ", beside other work"
		}
		return text, met(k.Value)
	}
}

func (k savedFigure) ratio() string {
	if k.Least == k.Most {
		return fmt.Sprintf("**%.2f**", k.Value)
	}
	return fmt.Sprintf("**%.2f** (%.2f to %.2f)", k.Value, k.Least, k.Most)
}

func atMost(limit float64) func(float64) bool  { return func(v float64) bool { return v <= limit } }
func atLeast(limit float64) func(float64) bool { return func(v float64) bool { return v >= limit } }

func allGoals() []goal {
	return []goal{
		{"tail and decode alone, bytes per CPU-second, over the collector's into nothing", "3", ratio("tail", atLeast(3)), compareCommand},
		{"into ClickHouse, CPU of sidecar and decoder, over the collector's best", "0.50", ratio("CPU", atMost(0.5)), compareCommand},
		{"wall time of the same, over the collector's best", "0.55", ratio("wall", atMost(6.0/11)), compareCommand},
		{"peak memory of the same, over the collector's best", "0.33", ratio("peak memory", atMost(150.0/460)), compareCommand},
		{"peak memory after ten times the input, over that before", "1, flat", ratio("growth", atMost(1.25)), scaleCommand},
		{"peak memory after a hundred times the input, a backlog of 10 GB, over that before", "1, flat", ratio("backlog", atMost(1.25)), backlogCommand},
		{"process boundary, share of the CPU from files to batches", "0.15", ratio("boundary", atMost(0.15)), stagesCommand},
		{"process boundary, share of all of the CPU, files to ClickHouse", "0.15", boundaryOfAll, stagesCommand},
		{"tap, added to an event at p99 with 1,000 open streams", "1 ms", ofUnit("tap_added", 1e-3, "ms", atMost(1000)), stagesCommand},
		{"the same over what a bare reverse proxy adds", "2", ratio("tap_ratio", atMost(2)), stagesCommand},
		{"append to queryable, p99 at default settings, the worst of 1, 1,000 and 10,000 files", "1.5 s", ofUnit("latency", 1, "s", atMost(1.5)), scaleCommand},
		{"end of an answer to queryable, p99 with 1,000 live streams", "1.5 s", ofUnit("streams_p99", 1, "s", atMost(1.5)), scaleCommand},
		{"10,000 open sessions, one of them of 100,000 messages: memory for each, over that of 1,000 with one of 10,000", "1, linear", ratio("session_memory", atMost(1.25)), stagesCommand},
		{"the same, longest pause", "100 ms", ofUnit("session_pause", 1, "ms", atMost(100)), stagesCommand},
	}
}

// ofUnit shows a figure in a unit; scale converts the saved value to it.
func ofUnit(name string, scale float64, unit string, met func(float64) bool) func(map[string]savedFigure) (string, bool) {
	return func(f map[string]savedFigure) (string, bool) {
		k, ok := f[name]
		if !ok {
			return "", false
		}
		is := k
		is.Value, is.Least, is.Most = k.Value*scale, k.Least*scale, k.Most*scale
		return is.ratio() + " " + unit, met(k.Value)
	}
}

// boundaryOfAll divides the boundary's CPU for a byte by all of Earshot's CPU for one. The two
// are of different runs, so a few percent mean nothing.
func boundaryOfAll(f map[string]savedFigure) (string, bool) {
	cost, all := f["boundary_ns"], f["cpu_ns"]
	if cost.Value == 0 || all.Value == 0 {
		return "", false
	}
	share := cost.Value / all.Value
	return fmt.Sprintf("**%.2f**", share), share <= 0.15
}

func goalsReport(figures map[string]savedFigure, queries string) string {
	var b strings.Builder
	b.WriteString("# What was to be reached\n\n" +
		"Written by `go run ./bench/cmd/bench -goals` from what the other modes measured last: `make bench` runs them all but the backlog, which takes\n" +
		"ten minutes more, and the queries, which take half an hour. Ratios are of one run, as median (least to most).\n\n")
	fmt.Fprintf(&b, "Machine: %s. Measured: %s.\n\n| what | goal | figure | met | shown by |\n|---|---|---|---|---|\n", machine(), builds(figures))
	row := func(what, goal, is string, met bool, shown string) {
		yes := map[bool]string{true: "yes", false: "no"}[met]
		if is == "" {
			is, yes = "not measured", "-"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", what, goal, is, yes, shown)
	}
	for _, g := range allGoals() {
		is, met := g.is(figures)
		row(g.name, g.goal, is, met, g.shown)
	}
	title, _, _ := strings.Cut(strings.TrimPrefix(queries, "# Queries of the dashboards"), "\n") // " over 2.0 million messages"
	for _, q := range queryTimes(queries) {
		row("dashboard queries"+title+", "+q.window+", p95", "1 s", q.text(), q.wall <= 1000, "`make bench-queries` ([queries](queries.md))")
	}
	b.WriteString("\nMemory counts as flat, and as linear, up to a quarter more. The engine's CPU and memory are beside the others in [report](report.md).\n")
	return b.String()
}

// builds are the measured versions, most often one.
func builds(figures map[string]savedFigure) string {
	var out []string
	for _, k := range figures {
		out = append(out, k.Version)
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), "; ")
}

// queryTime is a line of the first table of the page of queries: what its panels take over a window at p95.
type queryTime struct {
	window    string  // "30d"
	wall, cpu float64 // milliseconds; the CPU is the store's
}

func (q queryTime) text() string {
	return fmt.Sprintf("**%.2f** s, %.2f of the store's CPU", q.wall/1e3, q.cpu/1e3)
}

// queryTimes reads the windows that were measured, which the measurement chooses.
func queryTimes(page string) (out []queryTime) {
	for line := range strings.Lines(page) {
		f := strings.Split(line, "|")
		if len(f) != 10 {
			continue
		}
		wall, err1 := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(f[4]), " ms"), 64)
		cpu, err2 := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(f[7]), " ms"), 64)
		if err1 == nil && err2 == nil {
			out = append(out, queryTime{strings.TrimSpace(f[1]), wall, cpu})
		}
	}
	return out
}
