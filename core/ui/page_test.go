package ui

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

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
