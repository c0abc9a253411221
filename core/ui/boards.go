package ui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/earshot-dev/earshot/core/ui/address"
	"github.com/earshot-dev/earshot/core/ui/chart"
	"github.com/earshot-dev/earshot/dashboards/board"
)

const (
	panelsAtOnce = 4                // queries of panels that run at a time, of all readers together
	panelsWait   = 4 * time.Second  // how long a board waits for its panels; a later one is loaded apart
	panelAlone   = 90 * time.Second // how long a panel that is shown alone may take
	panelRows    = 2000             // rows of a table that are shown
	panelSpans   = 500              // spans of a waterfall that are shown
	linePoints   = 180              // points in time of a chart, about
	barPoints    = 60
)

var errNoBoard = errors.New("there is no such board or panel")

type boardsPage struct{ Boards []boardLink }

type boardLink struct {
	board.Board
	Address string
}

func (u *UI) boards(r request) (string, any, error) {
	var p boardsPage
	for _, b := range board.All() {
		p.Boards = append(p.Boards, boardLink{b, r.State.To("/boards/" + b.Name).String()})
	}
	return "", p, nil
}

// boardPage is a board, or one of its panels.
type boardPage struct {
	board.Board
	State     address.State
	Variables *later[[]variable]
	Marks     *later[[]chart.Mark]
	Panels    []*panel
	Alone     *panel // the panel that is shown alone
	Around    *later[hint]
	Others    []boardLink
}

// hint leads to a range of time that has something; its address is empty if this one has.
type hint struct{ Address string }

// variable is a choice above the panels.
type variable struct {
	board.Variable
	Values []board.Option
	Picked []string
	Text   string // that is typed
	Error  string
}

// Has reports whether the value is picked.
func (v variable) Has(value string) bool { return slices.Contains(v.Picked, value) }

// panel is a panel with its drawing.
type panel struct {
	board.Panel
	Address string // of the panel alone
	Back    string // of its board
	Shown   *later[drawing]
}

// drawing is one of the kinds of drawings, or why there is none.
type drawing struct {
	Error string
	Empty bool
	Rows  int // that there are, if not all are shown

	Stat      *chart.Stat
	Series    *chart.Series
	Heatmap   *chart.Heatmap
	Table     *chart.Table
	Gauges    []chart.Gauge
	Graph     *chart.Graph
	Waterfall *chart.Waterfall

	Values []chart.Table // of the panel alone: the results of its queries
	SQL    []string
}

// panelDrawing is a panel with its drawing, for a template.
type panelDrawing struct {
	Panel   *panel
	Drawing *drawing
}

// later is a value that is being loaded.
type later[T any] struct {
	until time.Time // a page waits for it no longer
	done  chan struct{}
	value T
}

func start[T any](until time.Time, load func() T) *later[T] {
	l := &later[T]{until: until, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		l.value = load()
	}()
	return l
}

// Wait returns the value, or nil if it takes too long.
func (l *later[T]) Wait() *T {
	t := time.NewTimer(time.Until(l.until))
	defer t.Stop()
	select {
	case <-l.done:
		return &l.value
	case <-t.C:
	}
	select {
	case <-l.done: // just now
		return &l.value
	default:
		return nil
	}
}

func (u *UI) board(r request) (string, any, error) {
	all := board.All()
	at := slices.IndexFunc(all, func(b board.Board) bool { return b.Name == r.PathValue("name") })
	if at < 0 {
		return "", nil, errNoBoard
	}
	p := boardPage{Board: all[at], State: r.State}
	for _, b := range all {
		p.Others = append(p.Others, boardLink{b, r.State.To("/boards/" + b.Name).String()})
	}
	look, err := u.look(r, p.Board)
	if err != nil {
		return p.Title, nil, err
	}
	id := r.PathValue("panel")
	title, until := p.Title, r.Now.Add(u.wait)
	if id != "" {
		until = r.Now.Add(panelAlone)
	}
	p.Variables = start(until, func() []variable { return u.variables(r, p.Board, look) })
	p.Marks = start(until, func() []chart.Mark { return u.marks(r, p.Board, look) })
	p.Around = start(until, func() hint { return hint{u.around(r)} })
	// A board's panels are asked for when it is shown, those of one panel alone.
	for _, d := range p.Board.Panels {
		if id != "" && id != strconv.Itoa(d.ID) || id != "" && d.Kind == board.Heading {
			continue
		}
		own := r.State.At(fmt.Sprintf("/boards/%s/%d", p.Name, d.ID))
		shown := &panel{Panel: d, Address: own.String(), Back: r.State.At("/boards/" + p.Name).String()}
		if d.Kind != board.Heading {
			shown.Shown = start(until, func() drawing {
				out := u.draw(r, p.Board, d, look, id != "")
				if out.Series != nil {
					if m := p.Marks.Wait(); m != nil {
						out.Series.Marks = *m
					}
				}
				return out
			})
		}
		if id != "" {
			p.Alone, title = shown, p.Title+": "+d.Title
		}
		p.Panels = append(p.Panels, shown)
	}
	if id != "" && p.Alone == nil {
		return "", nil, errNoBoard
	}
	return title, p, nil
}

// look reads the picked values and the range of the address. All of time begins with the first message.
func (u *UI) look(r request, b board.Board) (board.Look, error) {
	look := board.Look{Picked: make(map[string][]string)}
	look.From, look.To = r.State.Times()
	for _, v := range b.Variables {
		look.Picked[v.Name] = r.State.List(v.Name)
	}
	if !r.State.Range().All() {
		return look, nil
	}
	first, _, err := recorded(r.Context(), u.q)
	if look.From = first; first.IsZero() || !first.Before(look.To) {
		look.From = look.To.Add(-time.Hour)
	}
	return look, err
}

// recorded is when the first and the latest message were written; zero when there is none.
func recorded(ctx context.Context, q Querier) (first, latest time.Time, err error) {
	err = q.Each(ctx, "SELECT min(s.began), max(s.latest) FROM sessions AS s HAVING count() > 0", nil, func(v []any) error {
		return scan(v, &first, &latest)
	})
	return first, latest, err
}

// around is the address of the day before the latest message, if nothing was recorded in the
// range; empty otherwise.
func (u *UI) around(r request) string {
	from, to := r.State.Times()
	first, latest, err := recorded(r.Context(), u.q)
	if err != nil || latest.IsZero() || !latest.Before(from) && !first.After(to) {
		return ""
	}
	return r.State.In(address.Range{
		From: strconv.FormatInt(latest.Add(-24*time.Hour).UnixMilli(), 10), To: strconv.FormatInt(latest.Add(time.Minute).UnixMilli(), 10),
	}).String()
}

func (u *UI) variables(r request, b board.Board, look board.Look) []variable {
	var out []variable
	for _, d := range b.Variables {
		v := variable{Variable: d, Values: d.Options, Picked: look.Picked[d.Name]}
		switch {
		case d.Typed():
			v.Text = r.State.Get(d.Name)
		case d.SQL != "":
			sql, err := b.Values(d, look)
			if err == nil {
				err = u.q.Each(r.Context(), sql, nil, func(row []any) error {
					var text string
					err := scan(row, &text)
					v.Values = append(v.Values, board.Option{Text: text, Value: text})
					return err
				})
			}
			if err != nil {
				v.Error = err.Error()
			}
			for _, value := range v.Picked {
				if !slices.ContainsFunc(v.Values, func(o board.Option) bool { return o.Value == value }) {
					v.Values = append(v.Values, board.Option{Text: value, Value: value})
				}
			}
		}
		out = append(out, v)
	}
	return out
}

// marks are the moments that may explain a change in the charts, in their order. A board is shown without
// those that cannot be read.
func (u *UI) marks(r request, b board.Board, look board.Look) (out []chart.Mark) {
	queries, err := b.Moments(look)
	if err != nil {
		return nil
	}
	for _, sql := range queries {
		_ = u.q.Each(r.Context(), sql, nil, func(row []any) error {
			var m chart.Mark
			err := scan(row, &m.At, &m.Text)
			out = append(out, m)
			return err
		})
	}
	slices.SortStableFunc(out, func(x, y chart.Mark) int { return x.At.Compare(y.At) })
	return out
}

// draw runs the queries of a panel.
func (u *UI) draw(r request, b board.Board, p board.Panel, look board.Look, alone bool) drawing {
	ctx, cancel := context.WithTimeout(r.Context(), panelAlone)
	defer cancel()
	points := linePoints
	if p.Stacked || p.Kind == board.Heatmap {
		points = barPoints
	}
	queries, width, err := b.Expand(p, look, points)
	if err != nil {
		return drawing{Error: err.Error()}
	}
	select {
	case u.slots <- struct{}{}:
		defer func() { <-u.slots }()
	case <-ctx.Done():
		return drawing{Error: ctx.Err().Error()}
	}
	frames := make([]chart.Frame, len(queries))
	for i, sql := range queries {
		f := &frames[i]
		err := u.q.Table(ctx, sql, func(columns []string) { f.Columns = columns }, func(row []any) error {
			f.Add(row)
			return nil
		})
		if err != nil {
			return drawing{Error: err.Error(), SQL: queries}
		}
	}
	d := newDrawing(p, frames, look, width, linker(r.State, b, p))
	if alone {
		d.SQL = queries
		for _, f := range frames {
			if d.Table != nil || d.Stat != nil {
				break // it has shown them
			}
			f.Rows = f.Rows[:min(len(f.Rows), panelRows)]
			d.Values = append(d.Values, chart.NewTable(f, func(string) chart.Style { return chart.Style{Unit: p.Unit} }))
		}
	}
	return d
}

// linker returns the links that a column's values are. A conversation is that of the row's tenant, if it names one.
func linker(state address.State, b board.Board, p board.Panel) func(column string) rowLink {
	return func(column string) rowLink {
		f := p.Fields[column]
		switch {
		case f.Board == "":
			return nil
		case f.Board == "sessions" && b.Name != "sessions": // the page of a conversation shows more than the board does
			return func(id string, cell func(string) string) string {
				path, asked := conversationPath(id)
				to := state.To(path).With("id", asked)
				if tenant := cell("Tenant"); tenant != "" {
					to = to.With("tenant", tenant)
				}
				return to.String()
			}
		}
		return func(id string, _ func(string) string) string {
			return state.To("/boards/"+f.Board).With(f.Sets, id).String()
		}
	}
}

// rowLink is the Link of a chart.Style.
type rowLink = func(value string, cell func(column string) string) string

func newDrawing(p board.Panel, frames []chart.Frame, look board.Look, width time.Duration, link func(column string) rowLink) drawing {
	f := frames[0]
	d := drawing{Empty: len(f.Rows) == 0}
	if d.Empty {
		return d
	}
	switch p.Kind {
	case board.Stat:
		var steps []chart.Step
		for _, s := range p.Steps {
			steps = append(steps, chart.Step{From: s.From, Color: s.Color})
		}
		s, ok := chart.NewStat(f, p.Unit, steps)
		if before, there := f.Number(0); ok && there && p.Compared {
			now, _ := f.Number(len(f.Rows) - 1)
			s.Change = chart.NewChange(before, now, p.Unit, p.Better)
		}
		d.Stat, d.Empty = &s, !ok
	case board.Series:
		s := chart.NewSeries(f, look.From, look.To, width, p.Unit, p.Stacked)
		for _, name := range slices.Sorted(maps.Keys(p.Fields)) {
			s.Paint(name, p.Fields[name].Color)
		}
		d.Series = &s
	case board.Heatmap:
		h := chart.NewHeatmap(f, look.From, look.To, width)
		d.Heatmap = &h
	case board.BarGauge:
		d.Gauges = chart.NewGauges(f, p.Unit)
	case board.NodeGraph:
		g := chart.NewGraph(f, frames[1])
		d.Graph = &g
	case board.Waterfall:
		w := chart.NewWaterfall(f, panelSpans)
		d.Waterfall = &w
	case board.Table:
		if len(f.Rows) > panelRows {
			d.Rows = len(f.Rows)
			f.Rows = f.Rows[:panelRows]
		}
		t := chart.NewTable(f, func(column string) chart.Style {
			set := p.Fields[column]
			s := chart.Style{Unit: set.Unit, Gauge: set.Gauge, Red: set.Red, Link: link(column), Wide: set.Pixels > 300}
			if s.Unit == "" {
				s.Unit = p.Unit
			}
			return s
		})
		d.Table = &t
	default:
		d.Error = fmt.Sprintf("there is no drawing of a %s", p.Kind)
	}
	return d
}
