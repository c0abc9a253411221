package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/earshot-dev/earshot/core/blame"
	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/ui/address"
)

// A trace of any size is one page: the page has the first rows, and the script asks for those that are scrolled to.
const (
	rowsOnPage  = 200 // in the page, and in an answer of /trace/ID/rows
	mapColumns  = 240 // of the map of the whole trace
	tracesKept  = 2
	keptFor     = time.Minute     // a trace that has ended
	keptRunning = 2 * time.Second // one that runs
	segments    = 120             // of a row's critical path that are drawn
	explained   = 20_000          // steps of a trace that is explained at once
)

// traces keeps the traces that were shown last: each page of rows is a request.
type traces struct {
	mu   sync.Mutex
	list []*shownTrace // the latest first
}

// shownTrace is a trace in the order of its rows.
type shownTrace struct {
	*inspect.Trace
	*inspect.Waterfall
	loaded  time.Time
	running bool

	why func() []string // explains it, at most once
}

func (u *UI) loadTrace(ctx context.Context, id string, now time.Time) (*shownTrace, error) {
	u.traces.mu.Lock()
	i := slices.IndexFunc(u.traces.list, func(s *shownTrace) bool {
		return s.Trace.ID == id && (now.Sub(s.loaded) < keptRunning || !s.running && now.Sub(s.loaded) < keptFor)
	})
	if i >= 0 {
		defer u.traces.mu.Unlock()
		return u.traces.list[i], nil
	}
	u.traces.mu.Unlock()
	t, err := inspect.LoadTrace(ctx, u.q, id, u.prices, now)
	if err != nil {
		return nil, err
	}
	s := &shownTrace{Trace: t, Waterfall: t.Waterfall(), loaded: now}
	s.why = sync.OnceValue(func() []string { return t.Explain().Text })
	for i := range s.Spans {
		s.running = s.running || s.Spans[i].Status == "running"
	}
	u.traces.mu.Lock()
	defer u.traces.mu.Unlock()
	u.traces.list = slices.DeleteFunc(u.traces.list, func(o *shownTrace) bool { return o.Trace.ID == t.ID })
	u.traces.list = append([]*shownTrace{s}, u.traces.list...)
	u.traces.list = u.traces.list[:min(len(u.traces.list), tracesKept)]
	return s, nil
}

// traceView is the part of a trace that the address asks for: the rows down to a depth, those that
// overlap a window of time, those that failed or are on the critical path.
type traceView struct {
	depth    int // 0: all
	only     string
	from, to int64 // Unix ns
	zoomed   bool
}

func (s *shownTrace) view(get func(string) string) traceView {
	v := traceView{only: get("only")}
	v.from, v.to = s.Waterfall.Times()
	if d, err := strconv.Atoi(get("depth")); err == nil && d > 0 {
		v.depth = d
	}
	a, b, _ := strings.Cut(get("zoom"), "-")
	from, err1 := strconv.ParseFloat(a, 64)
	to, err2 := strconv.ParseFloat(b, 64)
	if err1 == nil && err2 == nil && from >= 0 && from < to && to < 1e12 {
		start := v.from
		v.from, v.to, v.zoomed = start+int64(from*1e6), min(v.to, start+int64(to*1e6)), true
		v.from = min(v.from, v.to-1)
	}
	return v
}

// rows are the numbers of the view's rows.
func (s *shownTrace) rows(v traceView) []int {
	out := make([]int, 0, len(s.Spans))
	for i := range s.Spans {
		r := &s.Spans[i]
		from, to := r.Times()
		switch {
		case v.depth > 0 && r.Depth >= v.depth,
			v.zoomed && (to < v.from || from > v.to),
			v.only == "failed" && r.Status != "error" && r.Status != "lost",
			v.only == "critical" && r.CriticalMS == 0:
			continue
		}
		out = append(out, i)
	}
	return out
}

// place is where a view's rows have a span; -1 when they have not.
func (s *shownTrace) place(rows []int, span string) int {
	if n := s.Tree.Node(span); n != nil {
		if at, ok := slices.BinarySearch(rows, n.Number()); ok {
			return at
		}
	}
	return -1
}

// traceRow is a row as the page and its script show it. X and widths are thousandths of the view.
type traceRow struct {
	Number   int          `json:"n"` // in the view
	Span     string       `json:"id"`
	Depth    int          `json:"d"`
	Kind     string       `json:"k"`
	Name     string       `json:"t"`
	Hint     string       `json:"h,omitempty"`
	Status   string       `json:"s,omitempty"`
	Bar      [2]float64   `json:"b"`
	Critical [][2]float64 `json:"c,omitempty"`
	Took     string       `json:"took"`
	OnPath   string       `json:"g,omitempty"` // time on the critical path
	Tokens   string       `json:"tok,omitempty"`
	Cost     string       `json:"usd,omitempty"`
	Below    int          `json:"below,omitempty"` // rows of the view
	Marks    []traceMark  `json:"m,omitempty"`
}

// traceMark is an event of a row.
type traceMark struct {
	X    float64 `json:"x"`
	Name string  `json:"t"`
}

// Indent is the depth as it is drawn.
func (r traceRow) Indent() int { return min(r.Depth, 12) }

// Failed reports whether the step failed, or its result never arrived.
func (r traceRow) Failed() bool {
	return strings.HasPrefix(r.Status, "error") || strings.HasPrefix(r.Status, "lost")
}

// Tone is the class of its status: a step that a person stopped or denied is no failure. trace.js has the same.
func (r traceRow) Tone() string {
	switch {
	case r.Status == "running":
		return "busy"
	case r.Failed():
		return "bad"
	}
	return "soft"
}

// page returns rows of the view from one on.
func (s *shownTrace) page(ctx context.Context, q inspect.Querier, v traceView, rows []int, at int) ([]traceRow, error) {
	at = max(0, min(at, len(rows)))
	out := make([]traceRow, 0, rowsOnPage)
	var spans []string
	for n := at; n < min(at+rowsOnPage, len(rows)); n++ {
		r := &s.Spans[rows[n]]
		out = append(out, s.draw(v, r, n))
		out[len(out)-1].Below = sort.SearchInts(rows[n+1:], rows[n]+r.Below+1)
		if r.Kind != "run" {
			spans = append(spans, r.SpanID)
		}
	}
	hints, err := s.Hints(ctx, q, spans)
	for i := range out {
		out[i].Hint = inspect.Clip(hints[out[i].Span], 90)
	}
	return out, err
}

// draw puts a row on the scale of the view.
func (s *shownTrace) draw(v traceView, r *inspect.WaterfallRow, number int) traceRow {
	from, to := r.Times()
	out := traceRow{
		Number: number, Span: r.SpanID, Depth: r.Depth, Kind: r.Kind, Name: inspect.Middle(r.Label(), 44), Status: inspect.Clip(strings.TrimSpace(r.Status+" "+r.Error), 40),
		Bar: v.at(from, to, 2), Took: inspect.Span(time.Duration(to - from)), Cost: r.Spent.Dollars(),
	}
	if n := r.Spent.Tokens.Total(); n > 0 {
		out.Tokens = short(n)
	}
	if r.CriticalMS > 0 {
		out.OnPath = inspect.Span(time.Duration(r.CriticalMS * 1e6))
	}
	for _, c := range r.Critical {
		if c.To < v.from || c.From > v.to {
			continue
		}
		b := v.at(c.From, c.To, 1)
		if n := len(out.Critical); n > 0 && b[0]-out.Critical[n-1][0]-out.Critical[n-1][1] < 1000./segments/2 {
			last := &out.Critical[n-1]
			last[1] = round(max(last[1], b[0]+b[1]-last[0]))
		} else {
			out.Critical = append(out.Critical, b)
		}
	}
	if w := s.Works[r.SpanID]; w != nil {
		for _, e := range w.Events[:min(len(w.Events), 20)] {
			if e.Time >= v.from && e.Time <= v.to {
				out.Marks = append(out.Marks, traceMark{v.at(e.Time, e.Time, 0)[0], inspect.Clip(e.Name, 40)})
			}
		}
	}
	return out
}

func round(f float64) float64 { return math.Round(f*10) / 10 }

// at is a time's place and width on the scale of the view, no narrower than least.
func (v traceView) at(from, to int64, least float64) [2]float64 {
	scale := 1000 / max(float64(v.to-v.from), 1)
	a := min(max(float64(from-v.from)*scale, 0), 1000-least)
	b := min(max(float64(to-v.from)*scale, a+least), 1000)
	return [2]float64{round(a), round(b - a)}
}

// ticks label the scale of the view, from the trace's beginning on.
func (s *shownTrace) ticks(v traceView) (out []string) {
	start, _ := s.Waterfall.Times()
	for n := range int64(5) {
		at := "0"
		if d := time.Duration(v.from - start + (v.to-v.from)*n/4); d > 0 {
			at = inspect.Span(d)
		}
		out = append(out, at)
	}
	return out
}

// overview draws the critical path of the whole trace: each column has the kind that is on it longest.
func (s *shownTrace) overview() (out []stripe) {
	var has [mapColumns]map[string]int64
	start, end := s.Waterfall.Times()
	width := max(1, (end-start)/mapColumns)
	for i := range s.Spans {
		r := &s.Spans[i]
		kind := r.Kind
		if r.Status == "error" {
			kind = "failed"
		}
		for _, c := range r.Critical {
			for at := c.From; at < c.To; {
				n := min((at-start)/width, mapColumns-1)
				next := min(start+(n+1)*width, c.To)
				if n == mapColumns-1 {
					next = c.To
				}
				if has[n] == nil {
					has[n] = make(map[string]int64)
				}
				has[n][kind] += next - at
				at = next
			}
		}
	}
	for at, kinds := range has {
		most := ""
		for _, k := range slices.Sorted(maps.Keys(kinds)) {
			if most == "" || kinds[k] > kinds[most] || k == "failed" {
				most = k
			}
		}
		if n := len(out); n > 0 && out[n-1].Kind == most && out[n-1].X+out[n-1].Width == float64(at) {
			out[n-1].Width++
		} else if most != "" {
			out = append(out, stripe{bar{float64(at), 1}, most})
		}
	}
	return out
}

type tracePage struct {
	ID, Session string
	Agent       string // whose turn it is
	Started     time.Time
	Wall        time.Duration
	Aside       time.Duration // until the end of work that outlived the turn
	Steps       int
	Failed      int
	Running     bool
	Spent       inspect.Cost
	Why         []string
	Explain     string // the address with the explanation, which takes a while
	Notes       []string
	Overview    []stripe
	Window      [2]float64 // of the view in the overview, thousandths
	Ticks       []string
	Rows        []traceRow
	At, Total   int // the first of the rows, and how many the view has
	Depth, Deep int // of the view, and of the trace
	Zoomed      bool
	WallMS      float64
	State       address.State
	Earlier     string
	Later       string
	Views       []link
	Links       []traceLink
	Step        *stepPage
	Hangs       []inspect.OpenWork
}

type traceLink struct {
	inspect.TraceLink
	Words, To string
}

// StepAddress is the page with a step beside the rows.
func (p tracePage) StepAddress(span string) string {
	return p.State.With("step", span).String() + "#step"
}

func (u *UI) trace(r request) (string, any, error) {
	id := strings.ToLower(r.PathValue("id"))
	s, err := u.loadTrace(r.Context(), id, r.Now)
	if err != nil {
		return "", nil, err
	}
	v := s.view(r.State.Get)
	rows := s.rows(v)
	p := tracePage{
		ID: s.Trace.ID, Session: s.Trace.Session, Started: s.Started, Wall: time.Duration(s.WallMS * 1e6), WallMS: s.WallMS, Steps: len(s.Spans), Running: s.running,
		Notes: s.Notes, Overview: s.overview(), Ticks: s.ticks(v), Total: len(rows), Depth: v.depth, Zoomed: v.zoomed, State: r.State,
	}
	start, end := s.Waterfall.Times()
	whole := traceView{from: start, to: end}
	p.Window = whole.at(v.from, v.to, 2)
	for i := range s.Spans {
		p.Deep = max(p.Deep, s.Spans[i].Depth+1)
		if s.Spans[i].Status == "error" {
			p.Failed++
		}
	}
	for _, n := range s.Tree.Roots() {
		if c := s.Trace.Spent(n.ID); n.Parent() == nil {
			p.Spent = p.Spent.Plus(c)
		}
	}
	if roots := s.Tree.Roots(); len(roots) > 0 && roots[0].Kind == blame.Run {
		p.Agent = s.Works[roots[0].ID].Actor()
		if took := time.Duration(roots[0].Wall()); len(roots) == 1 && took < p.Wall && inspect.Span(took) != inspect.Span(p.Wall) && s.Works[roots[0].ID].Status != "running" {
			p.Wall, p.Aside = took, p.Wall
		}
	}
	if len(s.Spans) <= explained || r.State.Get("why") != "" {
		p.Why = s.why()
	} else {
		p.Explain = r.State.With("why", "yes").String()
	}
	if at := number(r.Request, "row"); at > 0 {
		p.At = min(at, max(0, len(rows)-1))
	}
	if span := r.State.Get("step"); span != "" {
		if p.Step, err = u.stepOf(r, s, span); err != nil {
			return "", nil, err
		}
		if at := s.place(rows, span); at >= 0 && r.State.Get("row") == "" {
			p.At = max(0, at-20)
		}
	}
	var links []inspect.TraceLink
	group, ctx := errgroup.WithContext(r.Context())
	group.Go(func() (err error) { p.Rows, err = s.page(ctx, u.q, v, rows, p.At); return err })
	group.Go(func() (err error) { links, err = s.Links(ctx, u.q); return err })
	if s.running {
		group.Go(func() (err error) {
			p.Hangs, err = hangs(ctx, u.q, inspect.Condition{SQL: "trace_id = {of:String}", Params: map[string]string{"of": s.Trace.ID}})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return "", nil, err
	}
	if p.At > 0 {
		p.Earlier = r.State.With("row", strconv.Itoa(max(p.At-rowsOnPage, 0)), "step", "").String()
	}
	if last := p.At + len(p.Rows); last < len(rows) {
		p.Later = r.State.With("row", strconv.Itoa(last), "step", "").String()
	}
	for _, o := range []struct{ name, only string }{{"all steps", ""}, {"critical path", "critical"}, {"failed", "failed"}} {
		l := link{Name: o.name}
		if v.only != o.only {
			l.To = r.State.With("only", o.only, "row", "").String()
		}
		p.Views = append(p.Views, l)
	}
	for _, l := range links {
		if l.TraceID == s.Trace.ID {
			continue
		}
		words := map[string]string{"previous_turn": "‹ the turn before", "next_turn": "the next turn ›", "delegation": "the call that caused it", "traceparent": "the caller's trace"}[l.What]
		if words == "" {
			words = "linked: " + inspect.Clip(l.What, 30)
		}
		p.Links = append(p.Links, traceLink{l, words, stepAddress(l.TraceID, l.SpanID)})
	}
	return "", p, nil
}

// traceAnswer is a page of rows for the script.
type traceAnswer struct {
	Total  int        `json:"total"`
	At     int        `json:"at"`
	Ticks  []string   `json:"ticks"`
	Window [2]float64 `json:"window"`
	Step   int        `json:"step"` // the row of ?step in the view; -1 when it is not there
	Rows   []traceRow `json:"rows"`
}

// traceRows answers with the rows of a view from ?at on, of which the page that has ?step begins a little before it.
func (u *UI) traceRows(w http.ResponseWriter, r *http.Request) {
	s, err := u.loadTrace(r.Context(), strings.ToLower(r.PathValue("id")), time.Now())
	if err != nil {
		http.Error(w, err.Error(), failure(err))
		return
	}
	v := s.view(r.FormValue)
	rows := s.rows(v)
	at := number(r, "at")
	start, end := s.Waterfall.Times()
	answer := traceAnswer{Total: len(rows), At: at, Ticks: s.ticks(v), Window: traceView{from: start, to: end}.at(v.from, v.to, 2), Step: s.place(rows, r.FormValue("step"))}
	if answer.Rows, err = s.page(r.Context(), u.q, v, rows, at); err != nil {
		http.Error(w, err.Error(), failure(err))
		return
	}
	b, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, fmt.Sprint("rows: ", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b) // the browser has gone away
}

// Depths are those that can be picked.
func (p tracePage) Depths() (out []int) {
	for n := 1; n < min(p.Deep, 13); n++ {
		out = append(out, n)
	}
	return out
}
