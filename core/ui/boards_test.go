package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/earshot-dev/earshot/dashboards/board"

	"github.com/earshot-dev/earshot/core/price"
	"github.com/earshot-dev/earshot/core/ui/address"
	"github.com/earshot-dev/earshot/core/ui/chart"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slowStore answers every panel, one with an error and one when the reader has gone away.
type slowStore struct {
	canned
	failing, hanging string
}

func (s slowStore) Table(ctx context.Context, sql string, head func([]string), row func([]any) error) error {
	switch {
	case strings.Contains(sql, s.failing):
		return errors.New("the engine has no memory left")
	case strings.Contains(sql, s.hanging):
		<-ctx.Done()
		return ctx.Err()
	}
	head([]string{"n"})
	return row([]any{uint64(4711)})
}

// TestAPanelFailsAlone: an error is where its panel is, a late panel has a link, and the page has its head
// before any of them.
func TestAPanelFailsAlone(t *testing.T) {
	u, err := New(slowStore{failing: "AS p50", hanging: "AS running"}, &price.Table{})
	if err != nil {
		t.Fatal(err)
	}
	u.wait = 2 * time.Second // the others answer at once
	s := httptest.NewServer(u)
	defer s.Close()
	r, err := http.Get(s.URL + "/boards/delegations?from=1770000000000&to=1770003600000&agent=a%26b")
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer r.Body.Close()
	var body strings.Builder
	buffer := make([]byte, 4096)
	early := 0
	for {
		n, err := r.Body.Read(buffer)
		body.Write(buffer[:n])
		if early == 0 && strings.Contains(body.String(), "<h1>Delegations</h1>") && !strings.Contains(body.String(), "</main>") {
			early = body.Len()
		}
		if err != nil {
			break
		}
	}
	got := body.String()
	for want, times := range map[string]int{
		`<data value="4711">`: 3, "the engine has no memory left": 2, `data-late="/boards/delegations/5?agent=a%26b&amp;from=1770000000000&amp;to=1770003600000"`: 1, "</html>": 1,
	} {
		if n := strings.Count(got, want); n < times {
			t.Errorf("%d times %s, want %d", n, want, times)
		}
	}
	if n := strings.Count(got, "data-late"); n != 1 {
		t.Errorf("%d panels are left out", n)
	}
	if early == 0 {
		t.Error("nothing of the page came before all of it")
	}
	for path, want := range map[string]int{"/boards": 200, "/boards/nothing": 404, "/boards/delegations/1": 200, "/boards/delegations/999": 404, "/boards/delegations/x": 404, "/boards/sessions?from=x": 400} {
		w := httptest.NewRecorder()
		u.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://"+local+path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}

// TestEveryPlaceHasAStyle: style attributes are forbidden, so the places of panels are classes.
func TestEveryPlaceHasAStyle(t *testing.T) {
	css, err := os.ReadFile("assets/board.css")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range board.All() {
		for _, p := range b.Panels {
			if p.Kind != board.Heading && (!strings.Contains(string(css), fmt.Sprintf(".w%d {", p.Width)) || !strings.Contains(string(css), fmt.Sprintf(".h%d >", p.Height))) {
				t.Errorf("%s / %s: no style for %d by %d", b.Name, p.Title, p.Width, p.Height)
			}
		}
	}
}

// TestAWaitEnds: a value that is loaded is returned even after the deadline.
func TestAWaitEnds(t *testing.T) {
	ready := start(time.Now().Add(-time.Hour), func() int { return 7 })
	<-ready.done
	if v := ready.Wait(); v == nil || *v != 7 {
		t.Error("a value that is there was not returned")
	}
	block := make(chan struct{})
	defer close(block)
	if v := start(time.Now().Add(10*time.Millisecond), func() int { <-block; return 0 }).Wait(); v != nil {
		t.Error("a value that is not there was returned")
	}
}

// TestLinksKeepTheTenant: of two conversations with one id, that of the row is linked to, where the table names tenants.
func TestLinksKeepTheTenant(t *testing.T) {
	state, err := address.Parse(&url.URL{Path: "/boards/tokens"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p := board.Panel{Kind: board.Table, Fields: map[string]board.Field{"Session": {Board: "sessions", Sets: "session"}}}
	for _, c := range []struct {
		columns []string
		want    []string
	}{
		{[]string{"Session", "Tenant"}, []string{"/session/thread-1?tenant=canal", "/session/thread-1?tenant=quay"}},
		{[]string{"Session", "Agent"}, []string{"/session/thread-1", "/session/thread-1"}},
	} {
		f := chart.Frame{Columns: c.columns, Rows: [][]any{{"thread-1", "canal"}, {"thread-1", "quay"}}}
		d := newDrawing(p, []chart.Frame{f}, board.Look{}, time.Minute, linker(state, board.Board{Name: "tokens"}, p))
		for i, row := range d.Table.Rows {
			if row[0].Link != c.want[i] || row[1].Link != "" {
				t.Errorf("%v: row %d leads to %q and %q, want %q", c.columns, i, row[0].Link, row[1].Link, c.want[i])
			}
		}
	}
}
