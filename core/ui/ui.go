// Package ui is a page for who has no Grafana: the conversations, one of them
// turn by turn with the work between prompt and answer folded away, its waterfall
// and critical path, the tools, and the work in progress.
//
// Pages are made on the server and work without JavaScript; the little there is
// moves between lines by keyboard. Everything shown is foreign text: templates
// escape it, and the content security policy lets no script or style of a page
// run.
package ui

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/inspect"
)

//go:embed pages
var pages embed.FS

//go:embed assets
var assets embed.FS

// UI serves the pages. It is for loopback: it does not authenticate.
type UI struct {
	q         inspect.Querier
	templates *template.Template
	mux       *http.ServeMux
}

// New returns the pages over the tables that q reads.
func New(q inspect.Querier) (*UI, error) {
	t, err := template.New("").Funcs(functions).ParseFS(pages, "pages/*.html")
	if err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	u := &UI{q: q, templates: t, mux: http.NewServeMux()}
	u.mux.HandleFunc("GET /{$}", u.page("sessions.html", u.sessions))
	u.mux.HandleFunc("GET /session/{id...}", u.page("session.html", u.session))
	u.mux.HandleFunc("GET /tools", u.page("tools.html", u.tools))
	u.mux.HandleFunc("GET /now", u.page("now.html", u.now))
	for _, name := range []string{"style.css", "keys.js", "icon.svg"} {
		u.mux.Handle("GET /assets/"+name, http.FileServerFS(assets))
	}
	return u, nil
}

// ServeHTTP implements http.Handler. It refuses requests that were not made to
// this machine by name, which is how a page from elsewhere would read this one.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !loopback(r.Host) {
		http.Error(w, "this page is served to this machine only", http.StatusMisdirectedRequest)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; connect-src 'self'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	u.mux.ServeHTTP(w, r)
}

func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// head is the part that every page has: its title and its place among the pages.
type head struct{ Title, Here string }

type errorPage struct {
	head
	Error string
}

// page renders the result of load; it sends nothing before the whole page is rendered.
func (u *UI) page(name string, load func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, err := load(r)
		status, shown := http.StatusOK, name
		if err != nil {
			status = http.StatusBadGateway
			if errors.Is(err, inspect.ErrNoSession) {
				status = http.StatusNotFound
			}
			shown, data = "error.html", errorPage{head{http.StatusText(status), ""}, err.Error()}
		}
		var b bytes.Buffer
		if err := u.templates.ExecuteTemplate(&b, shown, data); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write(b.Bytes()) // the browser has gone away
	}
}

var functions = template.FuncMap{
	"span":  inspect.Span,
	"clip":  inspect.Clip,
	"cut":   func(s string, n int) string { return cut(inspect.Plain(s), n) },
	"when":  func(t time.Time) string { return when(t, time.Now()) },
	"exact": func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05.000 MST") },
	"zone":  func() string { return time.Now().Local().Format("MST") },
	"plain": inspect.Plain,
	"join":  strings.Join,
	"short": short,
	"plus":  func(a, b int) int { return a + b },
	"least": func(a, b int) int { return min(a, b) },
	"count": func(n any, what string) string {
		if s := fmt.Sprint(n); s != "1" {
			return s + " " + what + "s"
		}
		return "1 " + what
	},
}

// when formats a time as briefly as its age allows.
func when(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	switch {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format("15:04:05")
	case t.Year() == now.Year():
		return t.Format("Jan 2 15:04")
	}
	return t.Format("2006-01-02")
}

// short is a count of which only the size matters.
func short(n uint64) string {
	switch {
	case n < 10_000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.0fk", float64(n)/1e3)
	case n < 10_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.0fM", float64(n)/1e6)
}

// cut ends a text after n bytes, between two characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
