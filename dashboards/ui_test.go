package dashboards

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/ui"
	"github.com/earshot-dev/earshot/exporters/clickhouse"

	"github.com/earshot-dev/earshot/core/price"
)

// rowsOf lets the pages read as the command does.
type rowsOf struct{ *clickhouse.Conn }

func (c rowsOf) Each(ctx context.Context, sql string, params map[string]string, row func([]any) error) error {
	return c.read(ctx, sql, params, func([]string) {}, row)
}

func (c rowsOf) Table(ctx context.Context, sql string, head func([]string), row func([]any) error) error {
	return c.read(ctx, sql, nil, head, row)
}

func (c rowsOf) read(ctx context.Context, sql string, params map[string]string, head func([]string), row func([]any) error) error {
	rows, err := c.Query(ctx, sql, params)
	if err != nil {
		return err
	}
	var names []string
	for _, c := range rows.Columns {
		names = append(names, c.Name)
	}
	head(names)
	for rows.Next() {
		if err := row(rows.Values()); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// TestPagesShowTheSame: the pages for who has no Grafana, over the same store.
func TestPagesShowTheSame(t *testing.T) {
	pages, err := ui.New(rowsOf{theWorld(t).reader(t)}, &price.Table{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{
		"/":             {`href="/session/` + lighthouse + `"`, "Lamps of the piers"},
		"/?search=pier": {lighthouse},
		"/cost":         {"By project", "/srv/lighthouse", "By tool", "Waits for people"},
		"/changes":      {"false alarm in 30 days"},
		"/compare":      {"surveyor"},
		"/compare?a=" + lighthouse + "&b=" + lighthouse: {"The steps are the same."},
		"/session/" + lighthouse:                        {"Turn 6", "On pier 6 the keeper has to change 6 lamps.", "→ <b>surveyor</b>", "56s", "count-lamps 3", `<li class="tool critical"`},
		"/session/tides":                                {"running", "tide reader"},
		"/tools":                                        {"Bash", `class="share"`},
		"/sessions?from=now-1h&to=now&format=claude-code&agent=surveyor&project=%2Fsrv%2Flighthouse": {lighthouse, "agent: surveyor", "Last hour"},
		"/sessions?agent=surveyor&search=pier":                                                       {lighthouse, `name="agent" value="surveyor"`},
		"/sessions?agent=surveyor&format=legion":                                                     {"has all of these filters"},
		"/sessions?from=now-9d&to=now-8d":                                                            {"No conversation had messages in the range"},
		"/now?from=now-2h&to=now&agent=surveyor":                                                     {"Last 2 hours", "agent: surveyor", "that has all of these filters is running"},
		"/now?from=now-9d&to=now-8d":                                                                 {"2 stuck", "No message is in this range", `<option value="tide reader">`},
		"/now":                                                                                       {"Sources", "unaccounted", "2 stuck", "tide reader", "On pier 6 the keeper"},
	} {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1"+path, nil))
		if w.Code != 200 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		for _, s := range want {
			if !strings.Contains(w.Body.String(), s) {
				t.Errorf("%s: no %q", path, s)
			}
		}
	}
}
