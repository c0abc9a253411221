package ui

import (
	"net/url"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/ui/address"
)

// searchBudget is how long a search takes at most, about.
const searchBudget = 3 * time.Second

type searchPage struct {
	Text    string
	Result  *inspect.SearchResult
	Picked  []address.Pair // filters that are set
	State   address.State
	Earlier address.State // the same, before the range that was searched
	Widen   address.State // the same, in all time
	Ranged  bool          // the range was picked
}

// messageColumns are the filters of messages.
var messageColumns = address.Columns{"agent": "agent_name", "tool": "tool_name", "model": "model", "format": "format", "tenant": "tenant"}

func (u *UI) search(r request) (string, any, error) {
	p := searchPage{Text: r.State.Get("q"), State: r.State, Picked: r.State.Picked(), Ranged: !r.State.Range().All()}
	from, to := r.State.Times()
	q := inspect.SearchQuery{Text: p.Text, To: to, Budget: searchBudget}
	if p.Ranged {
		q.From = from
	}
	sql, params := r.State.In(address.Range{}).Where(messageColumns)
	q.Where = inspect.Condition{SQL: sql, Params: params}
	var err error
	p.Result, err = inspect.Search(r.Context(), u.q, q)
	if err != nil {
		return "", p, err
	}
	p.Earlier = r.State.With("from", "", "to", p.Result.From.UTC().Format(time.RFC3339Nano))
	p.Widen = r.State.In(address.Range{})
	return "", p, nil
}

// Names are the conversations, traces, agents, tools and files that have the text in their id or name.
func (p searchPage) Names() []nameList {
	var out []nameList
	add := func(title string, list []inspect.NameHit, to func(inspect.NameHit) string) {
		if len(list) == 0 {
			return
		}
		l := nameList{Title: title}
		for _, h := range list {
			l.Rows = append(l.Rows, nameRow{h, to(h)})
		}
		out = append(out, l)
	}
	session := func(h inspect.NameHit) string { return conversation(h.Session) }
	add("Conversations with this id", p.Result.Sessions, session)
	add("Traces with this id", p.Result.Traces, func(h inspect.NameHit) string { return stepAddress(h.Name, h.Span) })
	add("Agents", p.Result.Agents, func(h inspect.NameHit) string { return p.State.To("/slow").With("delegate", h.Name).String() })
	add("Tools", p.Result.Tools, func(h inspect.NameHit) string { return p.State.To("/tools").With("tool", h.Name).String() })
	add("Files in the arguments of calls", p.Result.Files, func(h inspect.NameHit) string {
		if h.What != "" { // its trace
			return stepAddress(h.What, h.Span)
		}
		return session(h)
	})
	return out
}

type nameList struct {
	Title string
	Rows  []nameRow
}

type nameRow struct {
	inspect.NameHit
	To string
}

// stepAddress is the address of a step in its trace, or of the trace.
func stepAddress(trace, span string) string {
	u := url.URL{Path: "/trace/" + trace}
	if span != "" {
		u.RawQuery = url.Values{"step": {span}}.Encode()
	}
	return u.String()
}

// MessageAddress is the step that has a message, or its conversation.
func (p searchPage) MessageAddress(h inspect.Hit) string {
	if h.Trace != "" && h.Span != "" {
		return stepAddress(h.Trace, h.Span)
	}
	return conversation(h.Session)
}

// Words are those of the text.
func (p searchPage) Words() []string { return strings.Fields(p.Text) }
