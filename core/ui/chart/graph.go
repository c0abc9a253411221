package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Graph is nodes with edges between them, in layers from left to right.
type Graph struct {
	Width, Height float64
	Nodes         []Node
	Edges         []Edge
}

// Node is a node; its ring shows the share that went well and that failed.
type Node struct {
	ID, Title, Subtitle string
	Count               string
	Exact               string
	X, Y                float64
	OK, Failed          string // SVG paths of the ring's arcs
	Share               string // that failed; empty for none

	layer int
}

// Edge leads from one node to another.
type Edge struct {
	From, To string
	Path     string
	X, Y     float64 // of its label
	Text     string
	Exact    string
	Bad      bool
	Width    float64
}

// The sizes of a graph, in pixels.
const (
	nodeRadius = 24.0
	layerWidth = 260.0
	lineHeight = 96.0
)

// NewGraph places the nodes: each one layer behind the first that leads to it.
func NewGraph(nodes, edges Frame) Graph {
	var g Graph
	index := make(map[string]int)
	for _, row := range nodes.Rows {
		n := Node{
			ID: nodes.text(row, "id"), Title: nodes.text(row, "title"), Subtitle: nodes.text(row, "subtitle"), layer: -1,
			Count: Format("short", nodes.number(row, "mainstat")), Exact: Exact(nodes.number(row, "mainstat")),
		}
		failed := nodes.number(row, "arc__failed")
		n.OK, n.Failed = arc(0, 1-failed), arc(1-failed, 1)
		if failed > 0 {
			n.Share = Format("percentunit", failed)
		}
		index[n.ID] = len(g.Nodes)
		g.Nodes = append(g.Nodes, n)
	}
	targets := make(map[int][]int)
	called := make(map[int]bool)
	for _, row := range edges.Rows {
		from, there := index[edges.text(row, "source")]
		to, thereToo := index[edges.text(row, "target")]
		if !there || !thereToo {
			continue
		}
		targets[from] = append(targets[from], to)
		if from != to {
			called[to] = true
		}
		g.Edges = append(g.Edges, Edge{
			From: g.Nodes[from].ID, To: g.Nodes[to].ID, Text: Format("short", edges.number(row, "mainstat")) + ", " + edges.text(row, "secondarystat"),
			Exact: Exact(edges.number(row, "mainstat")), Bad: edges.text(row, "color") == "red", Width: min(edges.number(row, "thickness"), 6),
		})
	}
	// The first layer is nodes without a caller; in a circle, its first node.
	var queue []int
	for start := range g.Nodes {
		if !called[start] {
			g.Nodes[start].layer = 0
			queue = append(queue, start)
		}
	}
	for next := 0; ; {
		for ; next < len(queue); next++ {
			for _, to := range targets[queue[next]] {
				if g.Nodes[to].layer < 0 {
					g.Nodes[to].layer = g.Nodes[queue[next]].layer + 1
					queue = append(queue, to)
				}
			}
		}
		left := slices.IndexFunc(g.Nodes, func(n Node) bool { return n.layer < 0 })
		if left < 0 {
			break
		}
		g.Nodes[left].layer = 0
		queue = append(queue, left)
	}
	g.place()
	return g
}

func (g *Graph) place() {
	lines := make(map[int]int)
	layers, most := 0, 0
	for _, n := range g.Nodes {
		lines[n.layer]++
		layers, most = max(layers, n.layer+1), max(most, lines[n.layer])
	}
	g.Width, g.Height = float64(layers)*layerWidth, float64(most)*lineHeight+10
	used := make(map[int]int)
	at := make(map[string]Node)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		gap := g.Height / float64(lines[n.layer])
		n.X, n.Y = layerWidth*(float64(n.layer)+0.5), gap*(float64(used[n.layer])+0.5)-8
		used[n.layer]++
		at[n.ID] = *n
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		a, b := at[e.From], at[e.To]
		switch {
		case e.From == e.To:
			e.Path = fmt.Sprintf("M%.0f %.0fc-30 -34 30 -34 0 0", a.X, a.Y-nodeRadius)
			e.X, e.Y = a.X, a.Y-nodeRadius-28
		case a.layer == b.layer, a.layer > b.layer: // around, so that it does not lie upon another
			bend := math.Max(50, math.Abs(a.X-b.X)/3)
			e.Path = fmt.Sprintf("M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f", a.X, a.Y+nodeRadius, a.X, a.Y+bend, b.X, b.Y+bend, b.X, b.Y+nodeRadius+4)
			e.X, e.Y = (a.X+b.X)/2, (a.Y+b.Y)/2+bend
		default:
			mid := (a.X + b.X) / 2
			e.Path = fmt.Sprintf("M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f", a.X+nodeRadius, a.Y, mid, a.Y, mid, b.Y, b.X-nodeRadius-4, b.Y)
			e.X, e.Y = b.X-nodeRadius-60, b.Y-6
		}
	}
	slices.SortStableFunc(g.Edges, func(a, b Edge) int { return cmp.Compare(a.Width, b.Width) })
}

// arc is a part of the ring of a node, from one share to another.
func arc(from, to float64) string {
	if to-from <= 0 {
		return ""
	}
	if to-from > 0.9999 {
		return fmt.Sprintf("M0 %[1]gA%[2]g %[2]g 0 1 1 0 %[2]gA%[2]g %[2]g 0 1 1 0 %[1]g", -nodeRadius, nodeRadius)
	}
	x := func(share float64) float64 { return nodeRadius * math.Sin(2*math.Pi*share) }
	y := func(share float64) float64 { return -nodeRadius * math.Cos(2*math.Pi*share) }
	long := 0
	if to-from > 0.5 {
		long = 1
	}
	return fmt.Sprintf("M%.2f %.2fA%g %g 0 %d 1 %.2f %.2f", x(from), y(from), nodeRadius, nodeRadius, long, x(to), y(to))
}

// Waterfall is the spans of a trace below each other.
type Waterfall struct {
	Spans []Span
	All   int // spans that there are
	Ticks []string
}

// Span is a line of it.
type Span struct {
	Name, Service string
	Depth         int
	X, Width      float64
	Duration      string
	Exact         string // milliseconds
	Failed        bool
	Error         string
	Kind          string // run, chat, tool, delegation or workflow
	Open          bool   // it still runs
}

// NewWaterfall reads spans as Grafana's trace panel does, and shows the first of them.
func NewWaterfall(f Frame, first int) Waterfall {
	w := Waterfall{All: len(f.Rows)}
	children := make(map[string][][]any)
	known := make(map[string]bool)
	for _, row := range f.Rows {
		known[f.text(row, "spanID")] = true
	}
	start, end := math.Inf(1), math.Inf(-1)
	for _, row := range f.Rows {
		parent := f.text(row, "parentSpanID")
		if !known[parent] {
			parent = ""
		}
		children[parent] = append(children[parent], row)
		at := f.number(row, "startTime")
		start, end = min(start, at), max(end, at+f.number(row, "duration"))
	}
	if w.All == 0 {
		return w
	}
	for i := range 5 {
		w.Ticks = append(w.Ticks, Format("ms", (end-start)*float64(i)/4))
	}
	for _, list := range children { // the query orders those that have ended and those that run apart
		slices.SortStableFunc(list, func(a, b []any) int { return cmp.Compare(f.number(a, "startTime"), f.number(b, "startTime")) })
	}
	scale := Size / max(end-start, 1e-9)
	seen := make(map[string]bool)
	var walk func(parent string, depth int)
	walk = func(parent string, depth int) {
		for _, row := range children[parent] {
			id := f.text(row, "spanID")
			if seen[id] || len(w.Spans) == first {
				continue
			}
			seen[id] = true
			x := (f.number(row, "startTime") - start) * scale
			tags := f.tags(row)
			w.Spans = append(w.Spans, Span{
				Name: f.text(row, "operationName"), Service: f.text(row, "serviceName"), Depth: depth, X: min(x, Size-2), Width: max(min(f.number(row, "duration")*scale, Size-x), 2),
				Duration: Format("ms", f.number(row, "duration")), Exact: Exact(f.number(row, "duration")), Failed: f.number(row, "statusCode") == 2, Error: f.text(row, "statusMessage"),
				Kind: kindOf(tags), Open: tags["earshot.span.state"] == "open",
			})
			walk(id, depth+1)
		}
	}
	walk("", 0)
	return w
}

// tags are the attributes of a span, which the trace panel takes as a list of pairs.
func (f Frame) tags(row []any) map[string]string {
	out := make(map[string]string)
	i := f.column("tags")
	if i < 0 {
		return out
	}
	if list, ok := row[i].([]map[string]string); ok {
		for _, tag := range list {
			out[tag["key"]] = tag["value"]
		}
	}
	return out
}

// kindOf is the kind of a span by its attributes.
func kindOf(tags map[string]string) string {
	switch tags["gen_ai.operation.name"] {
	case "chat", "generate_content", "text_completion":
		return "chat"
	case "execute_tool":
		if tags["earshot.delegate.to"] != "" {
			return "delegation"
		}
		return "tool"
	case "invoke_agent":
		return "run"
	}
	return "workflow"
}
