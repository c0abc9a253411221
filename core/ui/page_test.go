package ui

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/inspect"
	"github.com/earshot-dev/earshot/core/price"
)

// TestThePagesShareTheirState: the range of time and the filters of one page are in the links to the
// others, and a bad range is reported as such.
func TestThePagesShareTheirState(t *testing.T) {
	body := get(t, canned{}, local, "/tools?from=now-2d&to=now&agent=pilot&x=y").Body.String()
	for _, want := range []string{
		`href="/now?agent=pilot&amp;from=now-2d&amp;to=now"`, "Last 2 days", `href="/tools?agent=pilot&amp;from=now-6h&amp;to=now&amp;x=y"`,
		`name="from" value="now-2d"`, `<a class="chip" href="/tools?from=now-2d&amp;to=now&amp;x=y"`, `aria-current="page">Tools`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	if w := get(t, canned{}, local, "/tools?from=tomorrow"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "is no time: write it as") {
		t.Errorf("%d\n%s", w.Code, w.Body)
	}
}

// TestLongNamesDiffer: names of many parts are cut where they are alike.
func TestLongNamesDiffer(t *testing.T) {
	u, err := New(canned{}, &price.Table{})
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	values := []string{"mcp__harbour_inventory_and_logistics__count_the_buoys_in_sector_17", "mcp__harbour_inventory_and_logistics__count_the_buoys_in_sector_18"}
	if err := u.fails.ExecuteTemplate(&page, "filters", filters{Choices: []choice{{Name: "tool", Label: "tool", Values: values}}}); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"sector_17<", "sector_18<"} {
		if !strings.Contains(page.String(), end) {
			t.Errorf("no %s in\n%s", end, page.String())
		}
	}
}

// TestThemeIsKept: the button works without a script, and leads nowhere but to the page it is on.
func TestThemeIsKept(t *testing.T) {
	u, err := New(canned{}, &price.Table{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ to, back, wantBack, wantTheme string }{
		{"dark", "/tools?agent=a", "/tools?agent=a", `data-theme="dark"`},
		{"light", "//evil.example", "/", `data-theme="light"`},
		{"light", `/\evil.example`, "/", `data-theme="light"`},
		{"auto", "https://evil.example", "/", `<html lang="en">`},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://"+local+"/theme", strings.NewReader(url.Values{"to": {c.to}, "back": {c.back}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		u.ServeHTTP(w, r)
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != c.wantBack {
			t.Errorf("%+v: %d to %q", c, w.Code, w.Header().Get("Location"))
		}
		r = httptest.NewRequest(http.MethodGet, "http://"+local+"/tools", nil)
		for _, cookie := range w.Result().Cookies() {
			r.AddCookie(cookie)
		}
		w = httptest.NewRecorder()
		if u.ServeHTTP(w, r); !strings.Contains(w.Body.String(), c.wantTheme) {
			t.Errorf("%+v: no %s", c, c.wantTheme)
		}
	}
}

// gate answers no query before it is opened, and then with an error.
type gate struct {
	canned
	open chan struct{}
}

func (g gate) Each(ctx context.Context, _ string, _ map[string]string, _ func([]any) error) error {
	select {
	case <-g.open:
		return errors.New("the store is down")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestAPageShowsItsHeadFirst: while the data is being loaded a person sees where they are, and afterwards why
// it cannot be loaded.
func TestAPageShowsItsHeadFirst(t *testing.T) {
	g := gate{open: make(chan struct{})}
	u, err := New(g, &price.Table{})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(u)
	defer s.Close()
	defer http.DefaultClient.CloseIdleConnections()
	for _, p := range u.pages {
		if p.title == "" || p.template == "boards.html" || p.template == "search.html" || strings.HasSuffix(p.pattern, "$}") { // the former two ask nothing
			continue
		}
		g.open = make(chan struct{})
		u.q = g
		r, err := http.Get(s.URL + strings.ReplaceAll(p.pattern, "{id}", "4bf92f35"))
		if err != nil {
			t.Fatal(err)
		}
		var body strings.Builder
		buffer := make([]byte, 4096)
		for !strings.Contains(body.String(), "<h1>"+p.title) {
			n, err := r.Body.Read(buffer)
			if body.Write(buffer[:n]); err != nil {
				t.Fatalf("%s: %v after\n%s", p.pattern, err, &body)
			}
		}
		close(g.open)
		rest, err := io.ReadAll(r.Body)
		if err != nil || r.Body.Close() != nil {
			t.Error(err)
		}
		body.Write(rest)
		if got := body.String(); !strings.Contains(string(rest), "the store is down") || !strings.HasSuffix(strings.TrimSpace(got), "</html>") || strings.Count(got, "<h1>") != 1 {
			t.Errorf("%s:\n%s", p.pattern, got)
		}
	}
}

// whenFlushed calls then when a part of the answer is sent.
type whenFlushed struct {
	*httptest.ResponseRecorder
	then func()
}

func (w whenFlushed) Flush() {
	w.ResponseRecorder.Flush()
	w.then()
}

// TestForeignIDsArePrintable: the id in the address of a page is an agent's own, and does not turn the text around it,
// neither in the title that is shown while the page is loaded nor in the error that follows.
func TestForeignIDsArePrintable(t *testing.T) {
	const id = "gr\u00fc\u00df\u202egnp.exe"
	g := gate{open: make(chan struct{})}
	u, err := New(g, &price.Table{})
	if err != nil {
		t.Fatal(err)
	}
	loading := httptest.NewRequest(http.MethodGet, "http://"+local+"/session/"+url.PathEscape(id), nil)
	w := whenFlushed{httptest.NewRecorder(), sync.OnceFunc(func() { close(g.open) })}
	defer time.AfterFunc(10*time.Second, w.then).Stop() // if the head is never sent
	u.ServeHTTP(w, loading)
	if !strings.Contains(w.Body.String(), "<h1>"+inspect.Clip("Conversation gr\u00fc\u00df\u202egnp", 100)) {
		t.Errorf("while it is loaded:\n%s", w.Body)
	}
	for name, body := range map[string]string{"while it is loaded": w.Body.String(), "unknown": get(t, canned{}, local, "/session/"+url.PathEscape(id)).Body.String()} {
		if strings.ContainsRune(body, '\u202e') || !utf8.ValidString(body) {
			t.Errorf("%s:\n%s", name, body)
		}
	}
}

// TestAssetsAreKept: a browser asks for them again when they have changed, and not before.
func TestAssetsAreKept(t *testing.T) {
	address := regexp.MustCompile(`/assets/style\.css\?v=\w{16}`).FindString(get(t, canned{}, local, "/tools").Body.String())
	for path, want := range map[string]string{address: "max-age=31536000, immutable", "/assets/style.css": "no-store", "/assets/style.css?v=other": "no-store", "/tools": "no-store"} {
		if w := get(t, canned{}, local, path); w.Code != http.StatusOK || w.Header().Get("Cache-Control") != want {
			t.Errorf("%s: %d, kept %q, want %q", path, w.Code, w.Header().Get("Cache-Control"), want)
		}
	}
}

// TestNoSuchPage: a reader of pages has no use for the names of commands.
func TestNoSuchPage(t *testing.T) {
	for path, want := range map[string]string{"/session/nope": "No conversation has this id", "/trace/4bf92f35": "No trace or step has this id", "/trace/4bf92f35/step/00f067aa": "No trace or step has this id"} {
		if body := get(t, canned{}, "localhost", path).Body.String(); !strings.Contains(body, want) || strings.Contains(body, "`") {
			t.Errorf("%s:\n%s", path, body)
		}
	}
}
