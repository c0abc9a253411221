package ui

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	paths "path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/inspect"
)

// Bounds that a browser renders without delay.
const (
	most       = 500  // steps of a turn
	stepsShown = 2000 // steps of all turns on a page together
	turnsShown = 200
	hangsShown = 5 // steps that are stuck, and as many that wait
)

type sessionPage struct {
	Session        inspect.Session
	Turns          []turnPage
	All            int  // turns that the conversation has, and parts outside of any
	Count          int  // of the turns alone
	One            bool // one turn of them was asked for
	Tail           bool // it is shown to its end, and may go on
	Earlier, Later string
	Hangs          []inspect.OpenWork
	Tenants        []link // of which each has a conversation with this id, where none was picked

	tenant string // that was picked
}

func (u *UI) session(r request) (string, any, error) {
	c, err := inspect.Load(r.Context(), u.q, inspect.Ref{Tenant: r.FormValue("tenant"), ID: conversationOf(r.Request)}, inspect.LongTexts)
	var several *inspect.AmbiguousError
	if errors.As(err, &several) {
		p := sessionPage{Session: inspect.Session{ID: several.ID}}
		for _, tenant := range several.Tenants {
			p.Tenants = append(p.Tenants, link{tenant, p.to("tenant", tenant)})
		}
		return "", p, nil
	}
	if err != nil {
		return "", nil, err
	}
	p := newSession(c, r.Request)
	p.Tail = !p.One && p.Later == "" && r.Now.Sub(c.Session.Last) < tailed
	if slices.ContainsFunc(c.Turns, goesOn) {
		p.Hangs, err = hangs(r.Context(), u.q, inspect.Condition{
			SQL: "session_id = {of:String} AND tenant = {owner:String}", Params: map[string]string{"of": c.Session.ID, "owner": c.Session.Tenant},
		})
	}
	return "", p, err
}

// goesOn reports whether a step of the turn runs, also one in the background of a turn that has ended.
func goesOn(t inspect.Turn) bool {
	if t.Root != nil {
		return runs(t.Root)
	}
	return slices.ContainsFunc(t.Steps, runs)
}

func runs(s *inspect.Step) bool { return s.Status == "running" || slices.ContainsFunc(s.Steps, runs) }

// hangs are the steps with this condition that are stuck or wait for a person: the page Now says no more of them.
func hangs(ctx context.Context, q Querier, where inspect.Condition) ([]inspect.OpenWork, error) {
	list, err := inspect.OpenWorks(ctx, q, where, true, hangsShown)
	return slices.DeleteFunc(list, func(w inspect.OpenWork) bool { return w.State != inspect.Stuck && w.State != inspect.Waiting }), err
}

// tailed is how long after its last message a conversation may go on.
const tailed = time.Hour

// live answers with a token that changes when the conversation has something new, so that its page asks
// for the conversation only then.
func (u *UI) live(w http.ResponseWriter, r *http.Request) {
	token, err := inspect.Version(r.Context(), u.q, conversationOf(r))
	if err != nil {
		http.Error(w, err.Error(), failure(err))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, token) // the browser has gone away
}

// newSession shows a conversation behind the turns ?skip, or of its turn ?turn the
// steps from ?step on, or ?only those that failed or are longest on the critical path.
func newSession(c *inspect.Conversation, r *http.Request) sessionPage {
	p := sessionPage{Session: c.Session, All: len(c.Turns), tenant: r.FormValue("tenant")}
	numbers := make([]int, len(c.Turns)) // of each part, as people count: the turns alone
	for i := range c.Turns {
		if !c.Turns[i].Outside() {
			p.Count++
		}
		numbers[i] = p.Count
	}
	if n := number(r, "turn"); n > 0 {
		p.One = true
		if n <= len(c.Turns) {
			p.Turns = []turnPage{p.turn(n, numbers[n-1], &c.Turns[n-1], window{number(r, "step"), most, r.FormValue("only")})}
			p.Turns[0].Open = true
		}
		return p
	}
	from := min(number(r, "skip"), len(c.Turns))
	left := stepsShown
	for i := from; i < min(from+turnsShown, len(c.Turns)); i++ {
		t := p.turn(i+1, numbers[i], &c.Turns[i], window{size: min(most, left)})
		left -= len(t.Steps)
		p.Turns = append(p.Turns, t)
	}
	if from > 0 {
		p.Earlier = p.to("skip", max(from-turnsShown, 0))
	}
	if from+turnsShown < len(c.Turns) {
		p.Later = p.to("skip", from+turnsShown)
	}
	return p
}

// turn is the n-th part of the conversation, a turn with a number, and the ways from one part of it to the others.
func (p *sessionPage) turn(n, number int, t *inspect.Turn, w window) turnPage {
	out := newTurn(number, t, w)
	if out.Strip == nil && w.from == 0 {
		return out
	}
	for _, v := range []struct{ name, only string }{{"all in order", ""}, {"longest on the critical path", "longest"}, {"failed", "failed"}} {
		l := link{Name: v.name}
		if v.only != w.only || !p.One {
			l.To = p.to("turn", n, "only", v.only)
		}
		out.Views = append(out.Views, l)
	}
	if w.only != "" {
		return out
	}
	if out.From > 0 {
		out.Earlier = p.to("turn", n, "step", max(out.From-most, 0))
	}
	if last := out.From + len(out.Steps); last < out.All {
		out.Later = p.to("turn", n, "step", last)
	}
	return out
}

// to is the address of a part of the conversation; empty and zero parameters are left out.
func (p *sessionPage) to(query ...any) string {
	v := url.Values{}
	for i := 0; i < len(query); i += 2 {
		switch value := query[i+1].(type) {
		case string:
			if value != "" {
				v.Set(query[i].(string), value)
			}
		case int:
			if value > 0 {
				v.Set(query[i].(string), strconv.Itoa(value))
			}
		}
	}
	path, id := conversationPath(p.Session.ID)
	if id != "" {
		v.Set("id", id)
	}
	if p.tenant != "" {
		v.Set("tenant", p.tenant)
	}
	return (&url.URL{Path: path, RawQuery: v.Encode()}).String()
}

// conversation is the address of a conversation's page.
func conversation(id string) string {
	path, asked := conversationPath(id)
	u := url.URL{Path: path}
	if asked != "" {
		u.RawQuery = url.Values{"id": {asked}}.Encode()
	}
	return u.String()
}

// follow is the address that answers whether a conversation has something new.
func follow(id string) string { return "/live/" + strings.TrimPrefix(conversation(id), "/session/") }

// conversationPath is the path of a conversation's page, and its id for the query where a path
// cannot have it: browsers and servers take empty and dotted segments away.
func conversationPath(id string) (path, asked string) {
	const root = "/session/"
	if slash := strings.HasSuffix(id, "/"); slash || paths.Clean(root+id) != root+id {
		return root, id
	}
	return root + id, ""
}

// conversationOf is the id in a request for a conversation.
func conversationOf(r *http.Request) string {
	if id := r.PathValue("id"); id != "" {
		return id
	}
	return r.URL.Query().Get("id")
}

// number is a number of the query; 0 when it is none.
func number(r *http.Request, name string) int {
	n, err := strconv.Atoi(r.FormValue(name))
	if err != nil {
		return 0
	}
	return max(n, 0)
}
