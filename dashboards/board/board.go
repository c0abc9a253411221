// Package board has Earshot's boards for who draws them without Grafana: the panels with their queries,
// units, thresholds and links, and the expansion of a query as Grafana expands it. They are read from the
// definition that Grafana's files are written from, so both have the same queries.
package board

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/dashboards/internal/boards"
	"github.com/earshot-dev/earshot/dashboards/internal/grafana"
	"github.com/earshot-dev/earshot/dashboards/internal/macro"
)

// Board is one dashboard.
type Board struct {
	Name        string // of its address, as delegations
	Title       string // as Delegations
	Description string
	From, To    string // its range of time, as now-6h and now
	Variables   []Variable
	Marks       []string // queries of moments in all charts, with the columns time and text
	Panels      []Panel
}

// Variable is a choice above the panels.
type Variable struct {
	Name, Label, Description string

	SQL     string   // of the values of a choice; empty for one that has Options or is typed
	Options []Option // of which one is picked, the first by default
}

// Option is a fixed value of a variable.
type Option struct{ Text, Value string }

// Typed reports whether a person writes the value.
func (v Variable) Typed() bool { return v.SQL == "" && len(v.Options) == 0 }

// Kind is the kind of a panel's drawing.
type Kind string

// The kinds of panels, by Grafana's names. A heading has a title and nothing else.
const (
	Heading   Kind = "row"
	Stat      Kind = "stat"
	Series    Kind = "timeseries"
	Heatmap   Kind = "heatmap"
	Table     Kind = "table"
	BarGauge  Kind = "bargauge"
	NodeGraph Kind = "nodeGraph"
	Waterfall Kind = "traces"
)

// Panel is a part of a board.
type Panel struct {
	ID                 int
	Kind               Kind
	Title, Description string
	Width, Height      int // on a grid of 24 columns, in lines of 30 pixels
	Queries            []string
	Unit               string // Grafana's name: ms, s, short, bytes, percentunit, currencyUSD
	Empty              string // the meaning of a query without rows
	Stacked            bool   // a series of bars, one upon the other, instead of lines
	Steps              []Step
	Compared           bool             // a stat has two rows: the number of the period before, infinite for none, and that of the range
	Better             int              // which way a compared number gets better: 1 up, -1 down, 0 neither
	Fields             map[string]Field // by the name of the column

	least time.Duration
}

// Step is the color of values from a number on.
type Step struct {
	From  float64 // of the first step: of no meaning
	Color string  // green, orange, red
}

// Field is how a column is shown.
type Field struct {
	Unit   string          // the panel's when empty
	Gauge  bool            // numbers are bars as well
	Pixels int             // of the column; 0 for any
	Red    map[string]bool // values that are bad
	Color  string          // of a series: green, orange, red or blue; empty for any
	Board  string          // to which board a value links, and
	Sets   string          // which of its variables it sets
}

// All returns the boards, in the order in which they are listed.
func All() []Board {
	var out []Board
	for _, d := range boards.All() {
		out = append(out, newBoard(d))
	}
	return out
}

func newBoard(d *grafana.Dashboard) Board {
	_, title, _ := strings.Cut(d.Title, "/ ")
	b := Board{Name: strings.TrimPrefix(d.UID, "earshot-"), Title: title, Description: d.Description, From: d.Time.From, To: d.Time.To}
	for _, v := range d.Templating.List {
		if v.Type == "datasource" {
			continue
		}
		w := Variable{Name: v.Name, Label: v.Label, Description: v.Description}
		if q, ok := v.Query.(grafana.VariableQuery); ok {
			w.SQL = q.RawSQL
		}
		if v.Type == "custom" {
			for _, o := range v.Options {
				w.Options = append(w.Options, Option{o.Text, o.Value})
			}
		}
		b.Variables = append(b.Variables, w)
	}
	for _, m := range d.Annotations.List {
		b.Marks = append(b.Marks, m.Target.RawSQL)
	}
	for _, p := range d.Panels {
		b.Panels = append(b.Panels, newPanel(p))
	}
	return b
}

func newPanel(p *grafana.Panel) Panel {
	out := Panel{ID: p.ID, Kind: Kind(p.Type), Title: p.Title, Description: p.Description, Width: p.GridPos.W, Height: p.GridPos.H, least: time.Second}
	if p.FieldConfig == nil {
		return out
	}
	for _, t := range p.Targets {
		out.Queries = append(out.Queries, t.RawSQL)
	}
	if d, err := time.ParseDuration(p.Interval); err == nil {
		out.least = d
	}
	set := p.FieldConfig.Defaults
	out.Unit, out.Empty = set.Unit, set.NoValue
	out.Stacked = set.Custom["drawStyle"] == "bars"
	if options, ok := p.Options.(map[string]any); ok {
		out.Compared = options["showPercentChange"] == true
		out.Better = map[any]int{string(grafana.Higher): 1, string(grafana.Lower): -1}[options["percentChangeColorMode"]]
	}
	if set.Thresholds != nil {
		for _, s := range set.Thresholds.Steps {
			step := Step{Color: s.Color}
			if s.Value != nil {
				step.From = *s.Value
			}
			out.Steps = append(out.Steps, step)
		}
	}
	out.Fields = make(map[string]Field)
	for _, o := range p.FieldConfig.Overrides {
		out.Fields[o.Matcher.Options] = newField(o.Properties)
	}
	return out
}

func newField(properties []grafana.Property) Field {
	var f Field
	for _, p := range properties {
		switch v := p.Value.(type) {
		case string:
			if p.ID == "unit" {
				f.Unit = v
			}
		case int:
			if p.ID == "custom.width" {
				f.Pixels = v
			}
		case map[string]any:
			f.Gauge = f.Gauge || p.ID == "custom.cellOptions" && v["type"] == "gauge"
			if color, ok := v["fixedColor"].(string); ok {
				f.Color = color
			}
		case []map[string]any:
			switch p.ID {
			case "links":
				f.Board, f.Sets = target(v[0]["url"].(string))
			case "mappings":
				f.Red = make(map[string]bool)
				for value := range v[0]["options"].(map[string]any) {
					f.Red[value] = true
				}
			}
		}
	}
	return f
}

// target reads the board and the variable of a link, as /d/earshot-trace?var-trace_id=${__value.raw}.
func target(link string) (board, variable string) {
	path, query, _ := strings.Cut(link, "?")
	for _, pair := range strings.Split(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); value == "${__value.raw}" {
			variable = strings.TrimPrefix(name, "var-")
		}
	}
	return strings.TrimPrefix(path, "/d/earshot-"), variable
}

// Look is a person's choice: the range of time, and the picked values of the variables. A
// variable without one is all of its values, or empty when it is typed.
type Look struct {
	From, To time.Time
	Picked   map[string][]string
}

// Expand returns the SQL of the panel's queries and the width of a point in time, of which there are
// about so many in the range. A picked or typed value is in the SQL as Grafana puts it there,
// encoded, and no value of a variable is taken that it does not have.
func (b Board) Expand(p Panel, look Look, points int) (queries []string, width time.Duration, err error) {
	width = Interval(look.To.Sub(look.From)/time.Duration(points), p.least)
	for _, q := range p.Queries {
		sql, err := b.expand(q, look, width)
		if err != nil {
			return nil, 0, fmt.Errorf("board %s, panel %s: %w", b.Name, p.Title, err)
		}
		queries = append(queries, sql)
	}
	return queries, width, nil
}

// Values returns the SQL of the values of a variable, in one column.
func (b Board) Values(v Variable, look Look) (string, error) {
	sql, err := b.expand(v.SQL, look, time.Minute)
	if err != nil {
		return "", fmt.Errorf("board %s, variable %s: %w", b.Name, v.Name, err)
	}
	return sql, nil
}

// Moments returns the SQL of the marks.
func (b Board) Moments(look Look) (queries []string, err error) {
	for _, q := range b.Marks {
		sql, err := b.expand(q, look, time.Minute)
		if err != nil {
			return nil, fmt.Errorf("board %s, marks: %w", b.Name, err)
		}
		queries = append(queries, sql)
	}
	return queries, nil
}

func (b Board) expand(sql string, look Look, width time.Duration) (string, error) {
	q := macro.Query{From: look.From, To: look.To, Interval: width, Variables: make(map[string]macro.Value)}
	for _, v := range b.Variables {
		picked := look.Picked[v.Name]
		switch {
		case v.SQL != "" && len(picked) == 0:
			q.Variables[v.Name] = macro.Value{All: true}
		case v.SQL != "":
			q.Variables[v.Name] = macro.Of(picked...)
		case len(v.Options) > 0:
			value := v.Options[0].Value
			if len(picked) > 0 && slices.ContainsFunc(v.Options, func(o Option) bool { return o.Value == picked[0] }) {
				value = picked[0]
			}
			q.Variables[v.Name] = macro.Text(value)
		default:
			q.Variables[v.Name] = macro.Text(strings.Join(picked, " "))
		}
	}
	return q.Expand(sql)
}

// Interval rounds the width of a point up to one that people count in, no less than the least.
func Interval(width, least time.Duration) time.Duration {
	const day = 24 * time.Hour
	for _, w := range []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute,
		10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day, 30 * day,
	} {
		if w >= width && w >= least {
			return w
		}
	}
	return 365 * day
}
