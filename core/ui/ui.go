// Package ui is a page for who has no Grafana: the conversations, one of them
// turn by turn with the work between prompt and answer folded away, its waterfall
// and critical path, the tools, the boards, and the work in progress.
//
// Pages are made on the server and work without JavaScript; the little there is
// moves between lines by keyboard and draws charts. Everything shown is foreign text: templates
// escape it, and the content security policy lets no script or style of a page
// run.
//
// # A new page
//
// A page NAME is
//
//   - NAME.go: a method of *UI with the signature of page.load, which reads rows and returns the
//     data of the template, and the title where that depends on them;
//   - pages/NAME.html: a template with the block "content". It sees a view: .Data is what load
//     returned, .State the address. {{template "filters" ...}} and the other blocks of
//     pages/parts.html are there;
//   - a line in list.go, with its title and its place in the navigation.
//
// Styles that no other page has are in assets/NAME.css, a script in assets/NAME.js; both are named in
// the line. There are no style attributes and no inline scripts: the policy forbids them. Data for a
// script is in <script type="application/json">, which is not run.
//
// The range of time and the filters are in the address, and package address parses them. A page's
// query takes its conditions from State.Where, and its links are State.With (this page with something
// else) and State.To (another page). All that a person can set is in the address; no page keeps
// state elsewhere but the theme, which is a cookie.
package ui

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/loopback"
	"github.com/earshot-dev/earshot/core/price"
	"github.com/earshot-dev/earshot/core/ui/address"
	"github.com/earshot-dev/earshot/core/ui/chart"
)

//go:embed pages
var pages embed.FS

//go:embed assets
var assets embed.FS

// headWait is when the head of a page is sent, before its data: at once, unless the request is refused before any query.
const headWait = 3 * time.Millisecond

// Querier reads the tables.
type Querier interface {
	inspect.Querier
	// Table reads the rows of a query whose columns are not known beforehand: it calls head with
	// their names before the first row. A row's slice may be reused afterwards.
	Table(ctx context.Context, sql string, head func(columns []string), row func([]any) error) error
}

// UI serves the pages. It is for loopback: it does not authenticate.
type UI struct {
	q      Querier
	prices *price.Table
	traces traces
	slots  chan struct{} // of panels whose queries run
	wait   time.Duration // how long a board waits for its panels
	soon   time.Duration // how long a page waits for its data before its head is sent
	pages  []page
	fails  *template.Template // the page of an error
	mux    *http.ServeMux

	version string // of the assets, in their addresses: a browser keeps them until they change
}

// New returns the pages over the tables that q reads; costs are by the prices.
func New(q Querier, prices *price.Table) (*UI, error) {
	u := &UI{q: q, prices: prices, slots: make(chan struct{}, panelsAtOnce), wait: panelsWait, soon: headWait, mux: http.NewServeMux()}
	var err error
	if u.version, err = version(); err != nil {
		return nil, err
	}
	u.pages = u.list()
	shell, err := template.New("").Funcs(functions).ParseFS(pages, "pages/shell.html", "pages/parts.html", "pages/body.html")
	if err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	for _, p := range u.pages {
		t, err := parse(shell, p.template)
		if err != nil {
			return nil, err
		}
		u.mux.HandleFunc("GET "+p.pattern, u.serve(p, t))
	}
	if u.fails, err = parse(shell, "error.html"); err != nil {
		return nil, err
	}
	u.mux.HandleFunc("GET /trace/{id}/rows", u.traceRows)
	u.mux.HandleFunc("GET /live/{id...}", u.live)
	u.mux.HandleFunc("POST /theme", setTheme)
	u.mux.Handle("GET /favicon.ico", http.RedirectHandler("/assets/icon.svg", http.StatusMovedPermanently)) // a browser asks, of what is no page
	u.mux.HandleFunc("GET /assets/{name}", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("v") == u.version {
			w.Header().Set("Cache-Control", "max-age=31536000, immutable")
		}
		http.ServeFileFS(w, r, assets, "assets/"+r.PathValue("name"))
	})
	return u, nil
}

// parse adds a page's template to those that all pages have.
func parse(shell *template.Template, name string) (*template.Template, error) {
	t, err := shell.Clone()
	if err == nil {
		t, err = t.ParseFS(pages, "pages/"+name)
	}
	if err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	return t, nil
}

// version is a hash of all assets.
func version() (string, error) {
	h := sha256.New()
	files, err := assets.ReadDir("assets")
	for _, f := range files {
		var b []byte
		if b, err = assets.ReadFile("assets/" + f.Name()); err != nil {
			break
		}
		_, _ = fmt.Fprintf(h, "%s %d\n%s", f.Name(), len(b), b) // a hash takes everything
	}
	if err != nil {
		return "", fmt.Errorf("ui: assets: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// ServeHTTP implements http.Handler. It refuses requests that were not made to
// this machine by name, which is how a page from elsewhere would read this one.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !loopback.Is(r.Host) {
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

var functions = template.FuncMap{
	"span":         inspect.Span,
	"conversation": conversation,
	"follow":       follow,
	"stepAddress":  stepAddress,
	"length":       func(ms float64) string { return inspect.Span(millis(ms)) },
	"signed":       func(a, b float64) string { return inspect.Signed(b - a) },
	"clip":         inspect.Clip,
	"middle":       inspect.Middle,
	"base":         inspect.Base,
	"cut":          func(s string, n int) string { return cut(clean(s), n) },
	"when":         func(t time.Time) string { return when(t, time.Now()) },
	"rfc":          func(t time.Time) string { return t.Format(time.RFC3339) },
	"exact":        func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05.000 MST") },
	"presets":      address.Presets,
	"plain":        clean,
	"markdown":     markdown,
	"lines":        unified,
	"join":         strings.Join,
	"unit":         chart.Format,
	"exactly":      chart.Exact,
	"in":           func(p *panel, d *drawing) panelDrawing { return panelDrawing{p, d} },
	"short":        short,
	"plus":         func(a, b int) int { return a + b },
	"least":        func(a, b int) int { return min(a, b) },
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
