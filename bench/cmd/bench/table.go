package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// series are the figures of one subject over the runs.
type series struct {
	subject
	runs []figures
}

// metric is a column of the report.
type metric struct {
	name string
	of   func(figures) float64
	show func(float64) string
}

func metrics() []metric {
	seconds := func(v float64) string { return fmt.Sprintf("%.2f s", v) }
	mib := func(v float64) string { return fmt.Sprintf("%.0f MiB", v/(1<<20)) }
	sec := func(d time.Duration) float64 { return d.Seconds() }
	return []metric{
		{"CPU", func(f figures) float64 { return sec(f.CPU) }, seconds},
		{"wall", func(f figures) float64 { return sec(f.Wall) }, seconds},
		{"peak memory", func(f figures) float64 { return float64(f.Peak) }, mib},
		{"engine CPU", func(f figures) float64 { return sec(f.Engine.CPU) }, seconds},
		{"engine memory", func(f figures) float64 { return float64(f.Engine.Peak) }, mib},
	}
}

// middle returns the median of the values, and the least and the most.
func middle(v []float64) (m, least, most float64) {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2, v[0], v[len(v)-1]
}

func (s series) values(m metric) []float64 {
	out := make([]float64, len(s.runs))
	for i, f := range s.runs {
		out[i] = m.of(f)
	}
	return out
}

// maxOthers is the share of the machine above which wall times depend more on other processes
// than on a subject.
const maxOthers = 0.05

// valid reports whether the runs are usable for the metric.
func valid(m metric, all ...series) bool {
	if m.name != "wall" {
		return true
	}
	for _, s := range all {
		for _, f := range s.runs {
			if f.Others > maxOthers {
				return false
			}
		}
	}
	return true
}

// ratios are those of s to base, run by run: other work on the machine affects both.
func (s series) ratios(base series, m metric) []float64 {
	var out []float64
	for i := range s.runs {
		if d := m.of(base.runs[i]); d > 0 {
			out = append(out, m.of(s.runs[i])/d)
		}
	}
	return out
}

// table shows, of each subject, every figure as its ratio to that of the first,
// the median with the least and the most; and below it the medians themselves.
func table(all []series) string {
	var b strings.Builder
	cols := metrics()
	if !all[0].needsEngine {
		cols = cols[:3]
	}
	row := func(first string, cell func(metric) string) {
		b.WriteString("| " + first)
		for _, m := range cols {
			b.WriteString(" | " + cell(m))
		}
		b.WriteString(" |\n")
	}
	row("", func(m metric) string { return m.name })
	row("---", func(metric) string { return "---" })
	for i, s := range all {
		if i > 0 {
			row(s.name+" / "+all[0].name, func(m metric) string {
				r := s.ratios(all[0], m)
				if len(r) == 0 || !valid(m, s, all[0]) {
					return "not valid"
				}
				mid, least, most := middle(r)
				return fmt.Sprintf("**%.2f** (%.2f to %.2f)", mid, least, most)
			})
		}
	}
	for _, s := range all {
		row(s.name+", median", func(m metric) string {
			mid, _, _ := middle(s.values(m))
			return m.show(mid)
		})
	}
	return b.String()
}
