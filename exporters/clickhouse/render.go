package clickhouse

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// rowWriters write results in the formats of that name, in lower case.
var rowWriters = map[string]func(*bufio.Writer, *Rows) error{
	"tabseparated":          func(w *bufio.Writer, r *Rows) error { return writeTSV(w, r, false) },
	"tsv":                   func(w *bufio.Writer, r *Rows) error { return writeTSV(w, r, false) },
	"tabseparatedwithnames": func(w *bufio.Writer, r *Rows) error { return writeTSV(w, r, true) },
	"tsvwithnames":          func(w *bufio.Writer, r *Rows) error { return writeTSV(w, r, true) },
	"csv":                   func(w *bufio.Writer, r *Rows) error { return writeCSV(w, r, false) },
	"csvwithnames":          func(w *bufio.Writer, r *Rows) error { return writeCSV(w, r, true) },
	"jsoneachrow":           writeJSON,
	"pretty":                writePretty,
	"vertical":              writeVertical,
}

func writeTSV(w *bufio.Writer, r *Rows, names bool) error {
	escape := strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`, "\b", `\b`, "\f", `\f`)
	line := func(cell func(i int) string) error {
		for i := range r.Columns {
			if i > 0 {
				w.WriteByte('\t') // bufio remembers an error until Flush
			}
			w.WriteString(cell(i))
		}
		return w.WriteByte('\n')
	}
	if names {
		if err := line(func(i int) string { return escape.Replace(r.Columns[i].Name) }); err != nil {
			return err
		}
	}
	for r.Next() {
		err := line(func(i int) string {
			c, v := r.Columns[i], r.Values()[i]
			if jsonable(c, v) == nil {
				return `\N`
			}
			return escape.Replace(text(c, v, ""))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func writeCSV(w *bufio.Writer, r *Rows, names bool) error {
	out := csv.NewWriter(w)
	record := make([]string, len(r.Columns))
	if names {
		for i, c := range r.Columns {
			record[i] = c.Name
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	for r.Next() {
		for i, v := range r.Values() {
			record[i] = text(r.Columns[i], v, `\N`)
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func writeJSON(w *bufio.Writer, r *Rows) error {
	for r.Next() {
		for i, v := range r.Values() {
			name, err := json.Marshal(r.Columns[i].Name)
			if err != nil {
				return err
			}
			value, err := json.Marshal(jsonable(r.Columns[i], v))
			if err != nil {
				return fmt.Errorf("clickhouse: column %s: %w", r.Columns[i].Name, err)
			}
			sep := ","
			if i == 0 {
				sep = "{"
			}
			fmt.Fprintf(w, "%s%s:%s", sep, name, value)
		}
		if _, err := w.WriteString("}\n"); err != nil {
			return err
		}
	}
	return nil
}

// prettyRows is how many rows share column widths; more come in tables of their
// own, so that a long result is not held.
const prettyRows = 10000

func writePretty(w *bufio.Writer, r *Rows) error {
	more := r.Next()
	for first := true; more || first; first = false {
		table := [][]string{make([]string, len(r.Columns))}
		width := make([]int, len(r.Columns))
		for i, c := range r.Columns {
			table[0][i], width[i] = c.Name, utf8.RuneCountInString(c.Name)
		}
		for ; more && len(table) <= prettyRows; more = r.Next() {
			row := make([]string, len(r.Columns))
			for i, v := range r.Values() {
				row[i] = text(r.Columns[i], v, "NULL")
				width[i] = max(width[i], utf8.RuneCountInString(row[i]))
			}
			table = append(table, row)
		}
		for n, row := range table {
			for i, cell := range row {
				fmt.Fprintf(w, " %s%s ", cell, strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)))
			}
			if err := w.WriteByte('\n'); err != nil {
				return err
			}
			if n == 0 {
				for _, n := range width {
					w.WriteString(strings.Repeat("─", n+2))
				}
				w.WriteByte('\n')
			}
		}
	}
	return nil
}

func writeVertical(w *bufio.Writer, r *Rows) error {
	widest := 0
	for _, c := range r.Columns {
		widest = max(widest, utf8.RuneCountInString(c.Name))
	}
	for n := 1; r.Next(); n++ {
		fmt.Fprintf(w, "Row %d:\n", n)
		for i, v := range r.Values() {
			name := r.Columns[i].Name
			fmt.Fprintf(w, "%s:%s %s\n", name, strings.Repeat(" ", widest-utf8.RuneCountInString(name)), text(r.Columns[i], v, "NULL"))
		}
		if err := w.WriteByte('\n'); err != nil {
			return err
		}
	}
	return nil
}

// text is a value as ClickHouse prints it; a nested value is JSON.
func text(c Column, v any, null string) string {
	switch v := jsonable(c, v).(type) {
	case nil:
		return null
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	default:
		b, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(b)
	}
}

// jsonable is a value that encoding/json writes as ClickHouse would.
func jsonable(c Column, v any) any {
	p := reflect.ValueOf(v)
	if p.Kind() == reflect.Pointer && p.IsNil() {
		return nil
	}
	switch v := v.(type) {
	case *time.Time: // of a Nullable column
		return jsonable(c, *v)
	case time.Time:
		return v.Format(timeLayout(c.Type))
	case fmt.Stringer:
		return v.String()
	}
	if p.Kind() == reflect.Pointer {
		return jsonable(c, p.Elem().Interface())
	}
	return v
}

// timeLayout is how ClickHouse prints times of that type.
func timeLayout(kind string) string {
	kind = strings.TrimSuffix(strings.TrimPrefix(kind, "Nullable("), ")")
	if kind == "Date" || kind == "Date32" {
		return time.DateOnly
	}
	if _, p, ok := strings.Cut(kind, "DateTime64("); ok && p[0] > '0' && p[0] <= '9' {
		return time.DateTime + "." + strings.Repeat("0", int(p[0]-'0'))
	}
	return time.DateTime
}
