// Package ui is a page for who has no Grafana: the conversations, one of them
// turn by turn with the work between prompt and answer folded away, its waterfall
// and critical path, the tools, and what runs now.
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

	"github.com/earshot-dev/earshot/core/inspect"
)

//go:embed pages
var pages embed.FS

//go:embed assets
var assets embed.FS

// UI serves the pages. It is for loopback: it asks nobody who they are.
type UI struct {
	q         inspect.Querier
	templates *template.Template
	mux       *http.ServeMux
}

// New returns the pages over what q reads.
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
	u.mux.Handle("GET /assets/style.css", http.FileServerFS(assets))
	u.mux.Handle("GET /assets/keys.js", http.FileServerFS(assets))
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
	h.Set("Content-Security-Policy", "default-src 'none'; connect-src 'self'; style-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
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

// page renders what load returns; nothing is sent before all of it is made.
func (u *UI) page(name string, load func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, err := load(r)
		status := http.StatusOK
		if err != nil {
			status = http.StatusBadGateway
			if errors.Is(err, inspect.ErrNoSession) {
				status = http.StatusNotFound
			}
			name, data = "error.html", map[string]any{"Title": http.StatusText(status), "Error": err.Error()}
		}
		var b bytes.Buffer
		if err := u.templates.ExecuteTemplate(&b, name, data); err != nil {
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
	"clock": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
	"join":  strings.Join,
	"count": func(n any, what string) string {
		if s := fmt.Sprint(n); s != "1" {
			return s + " " + what + "s"
		}
		return "1 " + what
	},
}
