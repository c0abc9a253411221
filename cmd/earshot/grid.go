package main

import (
	"bufio"
	"bytes"
	"io"
	"strings"

	"github.com/earshot-dev/earshot/core/inspect"
)

// gridSample is how many rows the widths of a grid's columns are taken from. A later value that is wider moves the
// rest of its row.
const gridSample = 1000

// grid draws tab-separated rows as a table with borders, and holds no more than its sample.
type grid struct {
	w      *bufio.Writer
	names  []string
	right  []bool // columns of numbers
	widths []int  // nil until the sample is drawn
	sample [][]string
	rest   []byte // of a line
}

// newGrid returns a grid of columns with these names and types.
func newGrid(w io.Writer, names, types []string) *grid {
	g := &grid{w: bufio.NewWriter(w), names: names, right: make([]bool, len(names))}
	for i, t := range types {
		t = strings.TrimPrefix(t, "Nullable(")
		g.right[i] = strings.HasPrefix(t, "Int") || strings.HasPrefix(t, "UInt") || strings.HasPrefix(t, "Float") || strings.HasPrefix(t, "Decimal")
	}
	return g
}

// Write implements io.Writer.
func (g *grid) Write(p []byte) (int, error) {
	whole := len(p)
	for {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		g.rest = append(g.rest, line...)
		if !ended {
			return whole, nil
		}
		if err := g.row(string(g.rest)); err != nil {
			return 0, err
		}
		g.rest, p = g.rest[:0], rest
	}
}

// gridText is a value as it is shown: its line breaks and tabs stay escaped.
var gridText = strings.NewReplacer(`\\`, `\`, `\'`, `'`)

func (g *grid) row(line string) error {
	cells := strings.Split(line, "\t")
	for i, c := range cells {
		if cells[i] = gridText.Replace(c); c == `\N` {
			cells[i] = "NULL"
		}
	}
	if g.widths != nil {
		return g.draw(cells)
	}
	if g.sample = append(g.sample, cells); len(g.sample) < gridSample {
		return nil
	}
	return g.begin()
}

// begin draws the head and the sample.
func (g *grid) begin() error {
	g.widths = make([]int, len(g.names))
	for _, cells := range append(g.sample, g.names) {
		for i, c := range cells[:min(len(cells), len(g.widths))] {
			g.widths[i] = max(g.widths[i], inspect.Visible(c))
		}
	}
	head := make([]string, len(g.names))
	for i, name := range g.names {
		head[i] = "─" + name + strings.Repeat("─", g.widths[i]-inspect.Visible(name)+1)
	}
	if _, err := g.w.WriteString("┌" + strings.Join(head, "┬") + "┐\n"); err != nil {
		return err
	}
	for _, cells := range g.sample {
		if err := g.draw(cells); err != nil {
			return err
		}
	}
	g.sample = nil
	return nil
}

func (g *grid) draw(cells []string) error {
	for i, c := range cells {
		space := ""
		if i < len(g.widths) {
			space = strings.Repeat(" ", max(0, g.widths[i]-inspect.Visible(c)))
		}
		if i < len(g.right) && g.right[i] {
			c = space + c
		} else {
			c += space
		}
		_, _ = g.w.WriteString("│ " + c + " ") // the next one has its error
	}
	_, err := g.w.WriteString("│\n")
	return err
}

// Close draws the rows that are left, and the last border.
func (g *grid) Close() error {
	if g.widths == nil {
		if err := g.begin(); err != nil {
			return err
		}
	}
	foot := make([]string, len(g.widths))
	for i, n := range g.widths {
		foot[i] = strings.Repeat("─", n+2)
	}
	_, _ = g.w.WriteString("└" + strings.Join(foot, "┴") + "┘\n") // Flush has its error
	return g.w.Flush()
}
