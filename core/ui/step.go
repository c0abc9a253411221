package ui

import (
	"fmt"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/inspect"
)

// stepTexts is how many characters of each text of a step are shown.
const stepTexts = 40_000

// stepPage is a step with its arguments and results.
type stepPage struct {
	Trace, Span, Session string
	Kind, Name, Who, To  string
	Model, Status, Error string
	Link                 string
	Started              time.Time
	After, Took, OnPath  time.Duration
	Running              bool
	Tokens               inspect.Tokens // its own
	Tier                 string         // of the service that they are billed by
	SeenBy               []string       // formats, where several show it
	From                 inspect.Origins
	Conflict             string
	Spent                inspect.Cost // by it and everything below
	Below                int
	Events               []stepEvent
	Findings             []string
	Bodies               []body
	Cut                  bool
	Up                   []stepWay // the steps above
}

type stepEvent struct {
	inspect.Event
	After time.Duration
}

type stepWay struct{ Name, To string }

func (u *UI) step(r request) (string, any, error) {
	s, err := u.loadTrace(r.Context(), strings.ToLower(r.PathValue("id")), r.Now)
	if err != nil {
		return "Step", nil, err
	}
	p, err := u.stepOf(r, s, r.PathValue("span"))
	if err == nil && p == nil {
		err = fmt.Errorf("step %s: %w", inspect.Clip(r.PathValue("span"), 40), inspect.ErrNoTrace)
	}
	if err != nil {
		return "Step", nil, err
	}
	return p.Kind + " " + inspect.Clip(p.Name, 60), p, nil
}

// stepOf reads a step; nil when the trace has none with the id.
func (u *UI) stepOf(r request, s *shownTrace, span string) (*stepPage, error) {
	n, w := s.Tree.Node(span), s.Works[span]
	if n == nil || w == nil {
		return nil, nil
	}
	row := &s.Spans[n.Number()]
	start, _ := s.Waterfall.Times()
	from, to := row.Times()
	p := &stepPage{
		Trace: s.Trace.ID, Span: span, Session: w.Session, Kind: row.Kind, Name: row.Name, Who: w.Actor(), To: row.DelegateTo, Model: w.Model, Status: w.Status, Error: w.Error,
		Link: w.Link, Started: time.Unix(0, from), After: time.Duration(from - start), Took: time.Duration(to - from), OnPath: time.Duration(row.CriticalMS * 1e6), Running: w.Status == "running",
		SeenBy: w.SeenBy, From: w.From, Conflict: w.Conflict, Tokens: w.Tokens, Tier: w.Tier, Spent: s.Trace.Spent(span), Below: row.Below, Findings: w.Findings,
	}
	if w.Tokens == (inspect.Tokens{}) { // that of a call is of the request that has its result
		p.Tier = ""
	}
	if p.Kind == "run" && p.Name == "" {
		p.Name = row.Label()
	}
	for _, e := range w.Events {
		p.Events = append(p.Events, stepEvent{e, time.Duration(e.Time - from)})
	}
	for up := n.Parent(); up != nil && len(p.Up) < 12; up = up.Parent() {
		p.Up = append([]stepWay{{up.Kind.String() + " " + up.Label(), stepAddress(s.Trace.ID, up.ID)}}, p.Up...)
	}
	list, err := s.Messages(r.Context(), u.q, span, stepTexts)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		p.Bodies = append(p.Bodies, bodies(m)...)
		p.Cut = p.Cut || m.Bytes > stepTexts && len(m.Content) >= stepTexts
	}
	return p, nil
}
