package inspect

import (
	"fmt"
	"strings"

	"github.com/earshot-dev/earshot/core/blame"
)

// marks are how a bar shows the buckets: a letter each, and a color.
var marks = [...]struct{ letter, color string }{
	blame.ModelTTFT:   {"f", "35"},
	blame.ModelStream: {"m", "34"},
	blame.ToolTime:    {"t", "33"},
	blame.SubAgent:    {"a", "36"},
	blame.Wait:        {"w", "32"},
	blame.Retry:       {"r", "31"},
	blame.Idle:        {".", "2"},
}

// BarLegend explains the letters of a bar.
const BarLegend = "f first token  m model  t tool  a other agent  w waiting for a person  r retry  . no record"

// Bar draws a split in that many columns. Each bucket has its share, as whole
// columns by largest remainder.
func Bar(s blame.Split, width int, color bool) string {
	total := s.Total()
	if total <= 0 {
		return strings.Repeat(" ", width)
	}
	var cells blame.Split
	left := int64(width)
	for b, n := range s {
		cells[b] = int64(float64(n) / float64(total) * float64(width))
		left -= cells[b]
	}
	for ; left > 0; left-- {
		most, lack := 0, -1.0
		for b, n := range s {
			if d := float64(n)/float64(total)*float64(width) - float64(cells[b]); n > 0 && d > lack {
				most, lack = b, d
			}
		}
		cells[most]++
	}
	p := printer{Style: Style{Color: color}}
	var out strings.Builder
	for b, n := range cells {
		out.WriteString(p.paint(marks[b].color, strings.Repeat(marks[b].letter, int(n))))
	}
	return out.String()
}

// top is the largest bucket with its share.
func top(s blame.Split) string {
	most := blame.ModelTTFT
	for _, b := range blame.Buckets() {
		if s[b] > s[most] {
			most = b
		}
	}
	if s[most] == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s", most, percent(s[most], s.Total()))
}

// Top is the largest bucket of a delegation with its share.
func (d *SlowDelegation) Top() string { return top(d.Split) }

// Fold breaks a text at blanks into lines of at most n columns; 0: into one.
func Fold(s string, n int) (lines []string) {
	if n <= 0 {
		return []string{s}
	}
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case Visible(line)+1+Visible(word) <= n:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// Lines is Fold for a text whose blanks are meant, as those between columns are: one that fits is left as it is.
func Lines(s string, n int) []string {
	if Visible(s) <= n {
		n = 0
	}
	return Fold(s, n)
}
