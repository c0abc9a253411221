package chart

import (
	"fmt"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/inspect"
)

// Table is rows with their values as people read them.
type Table struct {
	Head []Head
	Rows [][]Value
}

// Head is the title of a column.
type Head struct {
	Name   string
	Number bool
	Wide   bool // long texts
}

// Value is a cell.
type Value struct {
	Text   string
	Exact  string // a number so that nothing is lost; empty for other values
	Time   time.Time
	Number bool
	Bad    bool
	Bar    float64 // of the largest number of the column, in thousandths; 0 for no bar
	Link   string
}

// Style is how a column is shown.
type Style struct {
	Unit  string
	Gauge bool
	Wide  bool
	Red   map[string]bool
	// Link is the address of a value, of which cell returns the other texts of its row; nil: values are no links.
	Link func(value string, cell func(column string) string) string
}

// NewTable formats a frame.
func NewTable(f Frame, style func(column string) Style) Table {
	var t Table
	styles := make([]Style, len(f.Columns))
	most := make([]float64, len(f.Columns))
	for i, name := range f.Columns {
		styles[i] = style(name)
		h := Head{Name: name, Wide: styles[i].Wide}
		for _, row := range f.Rows {
			if n, ok := row[i].(float64); ok {
				h.Number = true
				most[i] = max(most[i], n)
			}
		}
		t.Head = append(t.Head, h)
	}
	for _, row := range f.Rows {
		var line []Value
		cell := func(column string) string {
			i := slices.Index(f.Columns, column)
			if i < 0 {
				return ""
			}
			text, _ := row[i].(string) // else it is no text
			return text
		}
		for i, v := range row {
			line = append(line, styles[i].value(v, most[i], t.Head[i].Number, cell))
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

func (s Style) value(v any, most float64, number bool, cell func(string) string) Value {
	out := Value{Number: number}
	switch v := v.(type) {
	case nil:
	case float64:
		out.Text, out.Exact = Format(s.Unit, v), Exact(v)
		if s.Gauge && most > 0 {
			out.Bar = Size * v / most
		}
	case time.Time:
		if v.Unix() != 0 {
			out.Time = v
		}
	case bool:
		out.Text = map[bool]string{true: "yes", false: ""}[v]
	case string:
		out.Text = inspect.Plain(v)
	default:
		out.Text = fmt.Sprint(v)
	}
	out.Bad = s.Red[fmt.Sprint(v)]
	if text, ok := v.(string); ok && text != "" && s.Link != nil {
		out.Link = s.Link(text, cell)
	}
	return out
}

// Stat is one number.
type Stat struct {
	Text, Exact string
	Color       string // green, orange, red, or empty
	Change      *Change
}

// Change is how a number has changed since the period before.
type Change struct {
	Percent     string
	Text, Exact string // the number of that period
	Color       string // green for better, red for worse, or empty
}

// NewChange compares two numbers, of which more is better (1), worse (-1) or neither (0).
func NewChange(before, now float64, unit string, better int) *Change {
	percent := (now - before) / before * 100
	c := &Change{Percent: digits(percent) + "%", Text: Format(unit, before), Exact: Exact(before)}
	if percent > 0 {
		c.Percent = "+" + c.Percent
	} else {
		better = -better
	}
	if percent != 0 && better != 0 {
		c.Color = map[bool]string{true: "green", false: "red"}[better > 0]
	}
	return c
}

// Step is the color of values from a number on, the least first.
type Step struct {
	From  float64
	Color string
}

// NewStat reads the number of the last row of a frame; false if there is none.
func NewStat(f Frame, unit string, steps []Step) (Stat, bool) {
	if len(f.Rows) == 0 {
		return Stat{}, false
	}
	n, ok := f.Number(len(f.Rows) - 1)
	if !ok {
		return Stat{}, false
	}
	s := Stat{Text: Format(unit, n), Exact: Exact(n)}
	for i, step := range steps {
		if i == 0 || n >= step.From {
			s.Color = step.Color
		}
	}
	return s, true
}

// Gauge is a named number with a bar.
type Gauge struct {
	Name, Text, Exact string
	Width             float64
	Color             int
}

// NewGauges reads a frame with a text and a number.
func NewGauges(f Frame, unit string) []Gauge {
	var out []Gauge
	most := 0.0
	for _, row := range f.Rows {
		if len(row) < 2 {
			return nil
		}
		if n, ok := row[1].(float64); ok {
			most = max(most, n)
		}
	}
	for i, row := range f.Rows {
		n, _ := row[1].(float64)
		out = append(out, Gauge{Name: fmt.Sprint(row[0]), Text: Format(unit, n), Exact: Exact(n), Width: Size * n / max(most, 1e-12), Color: i % Colors})
	}
	return out
}
