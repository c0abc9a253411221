package main

import (
	"fmt"
	"math"
	"strings"
)

// chart is a picture of one figure. Axes begin at zero, or at one where they are
// logarithmic.
type chart struct {
	title, x, y string
	log         bool // the x axis
	lines       []curve
}

type curve struct {
	name   string
	points [][2]float64
}

// The size of a chart, and the margins around the drawing.
const (
	chartWidth, chartHeight = 380, 300
	left, right, top, under = 58, 16, 52, 44
)

var colours = []string{"#1f6feb", "#bf5700", "#2da44e", "#8250df"}

// svg draws charts side by side.
func svg(charts ...chart) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n"+
		`<rect width="100%%" height="100%%" fill="white"/>`+"\n", chartWidth*len(charts), chartHeight)
	for i, c := range charts {
		fmt.Fprintf(&b, `<g transform="translate(%d 0)">`+"\n", i*chartWidth)
		c.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (c chart) draw(b *strings.Builder) {
	most := [2]float64{}
	for _, l := range c.lines {
		for _, p := range l.points {
			most[0], most[1] = max(most[0], p[0]), max(most[1], p[1])
		}
	}
	step := [2]float64{round(most[0] / 4), round(most[1] / 4)}
	end := [2]float64{step[0] * math.Ceil(most[0]/step[0]), step[1] * math.Ceil(most[1]/step[1])}
	at := func(x, y float64) (float64, float64) {
		share := x / end[0]
		if c.log {
			share = math.Log(max(x, 1)) / math.Log(most[0])
		}
		return left + share*(chartWidth-left-right), chartHeight - under - y/end[1]*(chartHeight-top-under)
	}
	fmt.Fprintf(b, `<text x="%d" y="18" font-size="13" font-weight="bold">%s</text>`+"\n", left, c.title)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", chartWidth-right, chartHeight-8, c.x)
	fmt.Fprintf(b, `<text x="12" y="%d" transform="rotate(-90 12 %[1]d)" text-anchor="middle">%s</text>`+"\n", chartHeight/2, c.y)
	mark := func(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") }
	for v := 0.0; v <= end[1]+step[1]/2; v += step[1] {
		x, y := at(0, v)
		fmt.Fprintf(b, `<path d="M%d %.1f H%d" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", left, y, chartWidth-right, x-6, y+4, mark(v))
	}
	for _, v := range c.ticks(most[0], end[0], step[0]) {
		x, y := at(v, 0)
		fmt.Fprintf(b, `<path d="M%.1f %.1f v4" stroke="#333"/><text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", x, y, x, y+16, mark(v))
	}
	for i, l := range c.lines {
		colour := colours[i%len(colours)]
		var path strings.Builder
		for n, p := range l.points {
			x, y := at(p[0], p[1])
			fmt.Fprintf(&path, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[n == 0], x, y)
			if len(l.points) < 20 {
				fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x, y, colour)
			}
		}
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", path.String(), colour)
		fmt.Fprintf(b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", left+150*(i%2), 32+13*(i/2), colour, l.name)
	}
}

func (c chart) ticks(most, end, step float64) (out []float64) {
	if c.log {
		for v := 1.0; v <= most; v *= 10 {
			out = append(out, v)
		}
		return out
	}
	for v := 0.0; v <= end+step/2; v += step {
		out = append(out, v)
	}
	return out
}

// round returns a step of 1, 2 or 5 times a power of ten that is at least v.
func round(v float64) float64 {
	if v <= 0 {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*p {
			return m * p
		}
	}
	return 10 * p
}

// picture draws memory, files and latency side by side.
func (g growth) picture() string {
	memory := chart{title: "Memory as the input grows", x: "MB read", y: "peak MiB, sidecar and decoder"}
	peak := curve{name: "100 files"}
	for _, p := range g.more {
		peak.points = append(peak.points, [2]float64{megabytes(p.total.Bytes), mib(p.f.Peak)})
	}
	memory.lines = []curve{peak}
	many := chart{title: "In many files, and live streams", x: "files, or streams", y: "MiB, and CPU-ms for a MB", log: true}
	peak, cpu := curve{name: "peak MiB"}, curve{name: "CPU-ms for a MB"}
	for _, p := range g.files {
		peak.points = append(peak.points, [2]float64{float64(p.sessions), mib(p.f.Peak)})
		cpu.points = append(cpu.points, [2]float64{float64(p.sessions), 10 * p.perHundred()})
	}
	live := curve{name: "peak MiB, live streams", points: [][2]float64{{float64(g.streams.open), mib(g.streams.peak)}}}
	many.lines = []curve{peak, cpu, live}
	wait := chart{title: "From append to queryable", x: "ms", y: "% of lines"}
	for i, a := range g.arrived {
		wait.lines = append(wait.lines, a.curve(fmt.Sprintf("%d lines/s in %d files", g.live[i].rate, g.live[i].files)))
	}
	wait.lines = append(wait.lines, g.streams.arrived.curve(fmt.Sprintf("%d live streams", g.streams.clients)))
	return svg(memory, many, wait)
}

// curve is the share of the lines that had arrived, by time.
func (a arrivals) curve(name string) curve {
	c := curve{name: name}
	for n := 0; n <= 100; n++ {
		c.points = append(c.points, [2]float64{float64(a.at(float64(n) / 100).Milliseconds()), float64(n)})
	}
	return c
}
