package ui

import (
	"fmt"
	"net/http"
	"time"

	"github.com/earshot-dev/earshot/core/inspect"
)

type sessionsPage struct {
	Title, Search string
	List          []inspect.Session
}

func (u *UI) sessions(r *http.Request) (any, error) {
	search := r.FormValue("search")
	list, err := inspect.Sessions(r.Context(), u.q, inspect.Filter{Search: search, Limit: 200})
	return sessionsPage{"Conversations", search, list}, err
}

type sessionPage struct {
	Title   string
	Session inspect.Session
	Turns   []turnPage
}

func (u *UI) session(r *http.Request) (any, error) {
	c, err := inspect.Load(r.Context(), u.q, r.PathValue("id"), inspect.LongTexts)
	if err != nil {
		return nil, err
	}
	p := sessionPage{Title: c.Session.ID, Session: c.Session}
	for i := range c.Turns {
		p.Turns = append(p.Turns, newTurn(i+1, &c.Turns[i]))
	}
	return p, nil
}

// Tool is how a tool did.
type Tool struct {
	Name                    string
	Calls, Errors           uint64
	P50, P95, Max, Together time.Duration
	Share                   int // of the time in tools, percent
}

type toolsPage struct {
	Title string
	List  []Tool
}

func (u *UI) tools(r *http.Request) (any, error) {
	p := toolsPage{Title: "Tools"}
	var all time.Duration
	err := u.q.Each(r.Context(), `
		SELECT tool_name, count() AS calls, countIf(status = 'error') AS errors,
			quantileExact(0.5)(duration_ms) AS p50, quantileExact(0.95)(duration_ms) AS p95, max(duration_ms) AS longest, sum(duration_ms) AS together
		FROM v_tool_calls
		WHERE status != 'running' AND NOT is_delegation
		GROUP BY tool_name
		ORDER BY together DESC, tool_name
		LIMIT 200`, nil, func(v []any) error {
		t := Tool{}
		var ms [4]float64
		if err := scan(v, &t.Name, &t.Calls, &t.Errors, &ms[0], &ms[1], &ms[2], &ms[3]); err != nil {
			return err
		}
		t.P50, t.P95, t.Max, t.Together = millis(ms[0]), millis(ms[1]), millis(ms[2]), millis(ms[3])
		all += t.Together
		p.List = append(p.List, t)
		return nil
	})
	for i := range p.List {
		if all > 0 {
			p.List[i].Share = int(100 * p.List[i].Together / all)
		}
	}
	return p, err
}

// Open is work that runs now.
type Open struct {
	Kind, Name, Agent, Session string
	Age, Silent                time.Duration
	Stuck                      bool
}

type nowPage struct {
	Title string
	List  []Open
}

// stuckAfter is when silent work is called stuck.
const stuckAfter = 5 * time.Minute

func (u *UI) now(r *http.Request) (any, error) {
	p := nowPage{Title: "Running now"}
	err := u.q.Each(r.Context(), `
		SELECT kind, name, agent_name, session_id, age_ms, silent_ms, toString(span_id) NOT IN (SELECT parent_span_id FROM v_open_spans) AS leaf
		FROM v_open_spans
		ORDER BY silent_ms DESC, span_id
		LIMIT 500`, nil, func(v []any) error {
		o := Open{}
		var age, silent int64
		var leaf uint8
		if err := scan(v, &o.Kind, &o.Name, &o.Agent, &o.Session, &age, &silent, &leaf); err != nil {
			return err
		}
		o.Age, o.Silent = time.Duration(age)*time.Millisecond, time.Duration(silent)*time.Millisecond
		o.Stuck = leaf == 1 && o.Silent > stuckAfter
		p.List = append(p.List, o)
		return nil
	})
	return p, err
}

func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// scan copies a row's values into pointers to the types that the query gives.
func scan(values []any, into ...any) error {
	if len(values) != len(into) {
		return fmt.Errorf("ui: %d columns, want %d", len(values), len(into))
	}
	for i, v := range values {
		ok := false
		switch p := into[i].(type) {
		case *string:
			*p, ok = v.(string)
		case *uint64:
			*p, ok = v.(uint64)
		case *int64:
			*p, ok = v.(int64)
		case *uint8:
			*p, ok = v.(uint8)
		case *float64:
			*p, ok = v.(float64)
		}
		if !ok {
			return fmt.Errorf("ui: column %d is %T", i, v)
		}
	}
	return nil
}
