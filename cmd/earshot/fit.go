package main

import (
	"io"
	"time"

	"github.com/earshot-dev/earshot/core/inspect"
)

// column is a column of a table that has to fit a terminal.
type column struct {
	name  string
	least int  // columns of text to which it may be cut; 0: it is not cut
	drop  int  // the lower, the earlier it is left out; 0: it stays
	id    bool // its beginning is enough, and is cut without a mark
	path  bool // its end is worth most
	ends  bool // its beginning and its end are worth more than its middle
}

// zoned is the name of a column of times with their zone.
func zoned(name string, now time.Time) string { return name + " (" + now.Format("MST") + ")" }

// writeFitted writes a table as wide as the terminal behind w: columns are left out and
// cut until it fits. Elsewhere it is whole. It returns the names of the columns that are left.
func writeFitted(w io.Writer, columns []column, rows [][]string) (names []string, err error) {
	width, _ := terminal(w)
	columns, rows = fit(columns, rows, width)
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names, writeTable(w, names, rows)
}

const gap = 2 // between columns

// fit leaves out columns, the first to go first, until the least widths fit, and cuts
// until all of it does: ids, then the widest of those that may be cut.
func fit(columns []column, rows [][]string, width int) ([]column, [][]string) {
	if width <= 0 {
		return columns, rows
	}
	wide := widths(columns, rows)
	for {
		least, first := -gap, -1
		for i, c := range columns {
			n := wide[i]
			if c.least > 0 {
				n = min(n, max(c.least, len(c.name)))
			}
			least += n + gap
			if c.drop > 0 && (first < 0 || c.drop < columns[first].drop) {
				first = i
			}
		}
		if least <= width || first < 0 {
			break
		}
		columns, wide = without(columns, first), without(wide, first)
		cut := make([][]string, len(rows))
		for i, r := range rows {
			cut[i] = without(r, first)
		}
		rows = cut
	}
	total := -gap
	for _, n := range wide {
		total += n + gap
	}
	narrow := func(c column) int { return max(c.least, len(c.name)) }
	narrower := func(c column) int { // where nothing is left to leave out
		if c.id {
			return narrow(c)
		}
		return len(c.name)
	}
	for _, bound := range []func(column) int{narrow, narrower} {
		for ; total > width; total-- {
			widest := -1
			for i, c := range columns {
				if c.least == 0 || wide[i] <= bound(c) {
					continue
				}
				if widest < 0 || c.id && !columns[widest].id || c.id == columns[widest].id && wide[i] > wide[widest] {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			wide[widest]--
		}
	}
	out := make([][]string, len(rows))
	for i, r := range rows {
		out[i] = append([]string(nil), r...)
		for j, c := range columns {
			switch long := inspect.Visible(r[j]) > wide[j]; {
			case c.least == 0:
			case c.id && long:
				out[i][j] = inspect.First(r[j], wide[j])
			case c.path && long:
				out[i][j] = "…" + inspect.Last(r[j], wide[j]-1)
			case c.ends:
				out[i][j] = inspect.Middle(r[j], wide[j])
			default:
				out[i][j] = inspect.Clip(r[j], wide[j])
			}
		}
	}
	return columns, out
}

func widths(columns []column, rows [][]string) []int {
	wide := make([]int, len(columns))
	for i, c := range columns {
		wide[i] = inspect.Visible(c.name)
		for _, r := range rows {
			wide[i] = max(wide[i], inspect.Visible(r[i]))
		}
	}
	return wide
}

func without[T any](list []T, i int) []T {
	return append(append(make([]T, 0, len(list)-1), list[:i]...), list[i+1:]...)
}
