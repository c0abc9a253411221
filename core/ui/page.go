package ui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/ui/address"
)

// page is one page.
type page struct {
	name     string // in the navigation; empty: it is not there
	pattern  string // of its address, as net/http has it
	title    string // where it does not depend on the data: the head is sent before data that takes long
	template string // in pages
	style    string // files of its own in assets, separated by spaces
	script   string // the same
	// Without a range of time in the address the page shows this one; none is all of time.
	since address.Range
	// A streamed page is sent as it is rendered, for data that takes long to load: .Flush sends the part that is rendered.
	streamed bool
	// untimed pages show the same in every range of time, and offer none.
	untimed bool

	// load returns the title of the page, where that depends on the data, and the data of its template.
	load func(request) (title string, data any, err error)
}

// path is the address of a page that takes nothing from it.
func (p page) path() string { return strings.TrimSuffix(p.pattern, "{$}") }

// request is a request for a page.
type request struct {
	*http.Request
	State address.State
	Now   time.Time
}

// view is the data of a template.
type view struct {
	Title   string
	State   address.State
	Data    any
	Nav     []place
	Find    *address.State // the page that searches, if there is one
	Timed   bool           // the range of time can be picked
	Theme   theme
	Styles  []string
	Scripts []string
	Zone    string
	Version string // of the assets

	flush func()
}

// Flush sends the part that is rendered, if the page is streamed.
func (v view) Flush() string {
	if v.flush != nil {
		v.flush()
	}
	return ""
}

// place is a page in the navigation.
type place struct {
	Name, Address string
	Here          bool
}

// invalid is an error of the address, which asking again does not mend.
type invalid struct{ error }

// early sends the head of a page whose data takes long, so that a person sees at once which page is being loaded.
type early struct {
	mu          sync.Mutex
	begun, over bool
}

// send sends the head, unless the data is there by now.
func (e *early) send(w http.ResponseWriter, t *template.Template, v view) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b bytes.Buffer
	if e.over || t.ExecuteTemplate(&b, "head", v) != nil {
		return
	}
	e.begun = true
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // the browser has gone away
	_ = http.NewResponseController(w).Flush()
}

// end reports whether the head was sent; later it is not.
func (e *early) end() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	return e.begun
}

// serve loads and renders a page; it sends nothing before the whole page is rendered, unless the page is streamed
// or its data takes long. An error of the latter has the status of success, for that was sent.
func (u *UI) serve(p page, t *template.Template) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context()) // ends the queries that a page does not wait for
		defer cancel()
		r = r.WithContext(ctx)
		v, asked, err := u.view(p, r)
		var head early
		if err == nil {
			if v.Title = p.title; v.Title != "" {
				if id := []rune(r.PathValue("id")); len(id) > 0 {
					v.Title += " " + inspect.Clip(string(id[:min(len(id), 8)]), 8) // an agent's own, which may have any characters
				}
				bare := v
				timer := time.AfterFunc(u.soon, func() { head.send(w, t, bare) })
				defer timer.Stop()
			}
			var title string
			if title, v.Data, err = p.load(asked); title != "" {
				v.Title = title
			}
		}
		begun := head.end()
		status, t := http.StatusOK, t
		if err == nil && p.streamed {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			v.flush = func() { _ = http.NewResponseController(w).Flush() }
			if err := t.ExecuteTemplate(w, "shell", v); err != nil && r.Context().Err() == nil {
				fmt.Fprintf(w, "<p>%s</p>", template.HTMLEscapeString(err.Error()))
			}
			return
		}
		if err != nil {
			status, t = failure(err), u.fails
			v.Title, v.Data, v.Styles, v.Scripts = http.StatusText(status), clean(words(err)), nil, nil
		}
		var b bytes.Buffer
		for _, part := range []string{"head", "content", "foot"} {
			if part == "head" && begun {
				continue
			}
			if err := t.ExecuteTemplate(&b, part, v); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		if begun {
			_, _ = w.Write(b.Bytes()) // the browser has gone away
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write(b.Bytes()) // the browser has gone away
	}
}

// words is an error for a reader of pages: a terminal's hints name commands.
func words(err error) string {
	switch {
	case errors.Is(err, inspect.ErrNoSession):
		return "No conversation has this id, or it is older than rows are kept."
	case errors.Is(err, inspect.ErrNoTrace):
		return "No trace or step has this id, or it is older than rows are kept."
	}
	return err.Error()
}

func failure(err error) int {
	var bad invalid
	switch {
	case errors.Is(err, inspect.ErrNoSession), errors.Is(err, inspect.ErrNoTrace), errors.Is(err, errNoBoard):
		return http.StatusNotFound
	case errors.As(err, &bad), errors.Is(err, inspect.ErrSeveral):
		return http.StatusBadRequest
	}
	return http.StatusBadGateway
}

// view returns the page without its data, and the request of it. The head of the page is there with an error, too.
func (u *UI) view(p page, r *http.Request) (view, request, error) {
	now := time.Now()
	state, err := address.Parse(r.URL, now)
	if err != nil {
		state = state.In(address.Range{})
	}
	state = state.Or(p.since)
	v := view{
		State: state, Timed: !p.untimed, Theme: themeOf(r), Styles: strings.Fields(p.style), Scripts: strings.Fields(p.script), Zone: now.Local().Format("MST"), Version: u.version,
	}
	for _, other := range u.pages {
		if other.pattern == "/search" {
			find := carried(state, p, other)
			v.Find = &find
		}
		if other.name != "" {
			v.Nav = append(v.Nav, place{other.name, carried(state, p, other).String(), other.name == p.name || other.template == p.template})
		}
	}
	if err != nil {
		return v, request{}, invalid{err}
	}
	return v, request{r, state, now}, nil
}

// carried is the address of another page with the range of time that a person picked: a page's own default
// is not carried to the next.
func carried(state address.State, from, to page) address.State {
	next := state.To(to.path())
	if state.Range() == from.since {
		next = next.In(address.Range{})
	}
	return next
}
