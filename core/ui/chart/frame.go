// Package chart turns the rows of a query into drawings for a template: numbers with their units, tables,
// lines over time, heatmaps, bars, graphs and waterfalls. Nothing here reads anything, and everything is
// drawn without a script: coordinates are of an SVG that is stretched over its place, in a box of 1000 by 1000,
// and texts are beside it.
package chart

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/inspect"
)

// Frame is the result of a query.
type Frame struct {
	Columns []string
	Rows    [][]any // each value is nil, a float64, a string, a bool, a time.Time, or a list or map as the driver has it
}

// Add adds a row as a driver has it: its slice may be reused afterwards.
func (f *Frame) Add(row []any) {
	out := make([]any, len(row))
	for i, v := range row {
		out[i] = plain(v)
	}
	f.Rows = append(f.Rows, out)
}

// column is the index of a column, -1 for none.
func (f Frame) column(name string) int {
	for i, c := range f.Columns {
		if c == name {
			return i
		}
	}
	return -1
}

// text is the value of a row's column as text; empty when there is none.
func (f Frame) text(row []any, name string) string {
	if i := f.column(name); i >= 0 && row[i] != nil {
		return fmt.Sprint(row[i])
	}
	return ""
}

// number is the value of a row's column as a number; 0 when there is none.
func (f Frame) number(row []any, name string) float64 {
	if i := f.column(name); i >= 0 {
		if n, ok := row[i].(float64); ok {
			return n
		}
	}
	return 0
}

// Number is the first value of a row; false if it is none.
func (f Frame) Number(row int) (float64, bool) {
	if len(f.Rows[row]) == 0 {
		return 0, false
	}
	n, ok := f.Rows[row][0].(float64)
	return n, ok
}

// plain returns a driver's value without its pointer, a number as a float64.
func plain(v any) any {
	switch v := v.(type) {
	case nil, string, bool, time.Time, float64:
		return finite(v)
	case *string:
		if v == nil {
			return nil
		}
		return *v
	case *float64:
		if v == nil {
			return nil
		}
		return finite(*v)
	}
	r := reflect.ValueOf(v)
	switch {
	case r.Kind() == reflect.Pointer && r.IsNil():
		return nil
	case r.Kind() == reflect.Pointer:
		return plain(r.Elem().Interface())
	case r.CanInt():
		return float64(r.Int())
	case r.CanUint():
		return float64(r.Uint())
	case r.CanFloat():
		return finite(r.Float())
	case r.Kind() == reflect.String:
		return r.String()
	}
	return v
}

// finite is nil for NaN and infinities.
func finite(v any) any {
	if n, ok := v.(float64); ok && (math.IsNaN(n) || math.IsInf(n, 0)) {
		return nil
	}
	return v
}

// Format writes a number with its unit, by Grafana's names of units.
func Format(unit string, n float64) string {
	switch unit {
	case "ms":
		return span(n)
	case "s":
		return span(n * 1000)
	case "bytes":
		return scaled(n, 1024, " ", "B", "KiB", "MiB", "GiB", "TiB")
	case "percentunit":
		return digits(n*100) + "%"
	case "currencyUSD":
		switch a := math.Abs(n); {
		case a != 0 && a < 0.01:
			return "$" + strconv.FormatFloat(n, 'g', 2, 64)
		case a < 1000:
			return fmt.Sprintf("$%.2f", n)
		}
		return "$" + scaled(n, 1000, "", "", "k", "M", "G")
	}
	if n == math.Trunc(n) && math.Abs(n) < 10_000 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return scaled(n, 1000, "", "", "k", "M", "G", "T")
}

// span is a duration of milliseconds; less than one is too short for the words of package inspect.
func span(ms float64) string {
	if ms != 0 && math.Abs(ms) < 1 {
		return digits(ms) + "ms"
	}
	return inspect.Span(time.Duration(ms * float64(time.Millisecond)))
}

func scaled(n, base float64, space string, units ...string) string {
	i := 0
	for math.Abs(n) >= base && i < len(units)-1 {
		n, i = n/base, i+1
	}
	return digits(n) + space + units[i]
}

// digits writes three digits that count.
func digits(n float64) string {
	places := 0
	switch a := math.Abs(n); {
	case n == math.Trunc(n):
	case a < 0.01:
		return strconv.FormatFloat(n, 'g', 2, 64)
	case a < 10:
		places = 2
	case a < 100:
		places = 1
	}
	s := strconv.FormatFloat(n, 'f', places, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Exact writes a number so that nothing of it is lost.
func Exact(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
