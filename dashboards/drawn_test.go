package dashboards

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/price"
	"github.com/earshot-dev/earshot/core/ui"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

var (
	drawnNumber = regexp.MustCompile(`<data value="([^"]*)">`)
	drawnFigure = regexp.MustCompile(`(?s)<script type="application/json">(.*?)</script>`)
	drawnWidth  = regexp.MustCompile(`<figure [^>]*data-width="([^"]*)"`)
	moving      = regexp.MustCompile(`\bnow(64)?\(|v_open_spans|system\.parts`)
	drawnBucket = regexp.MustCompile(`<title>[^<]*, up to [^<]*: ([^<]*)</title>`)
)

// servePages serves the pages over the tables that c reads, and returns their address.
func servePages(t *testing.T, c *clickhouse.Conn) string {
	t.Helper()
	pages, err := ui.New(rowsOf{c}, &price.Table{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)
	return server.URL
}

// TestBothRenderingsHaveTheSameNumbers shows every panel on the page, and compares the drawn numbers
// with the rows that Grafana gets for the same panel of its file.
func TestBothRenderingsHaveTheSameNumbers(t *testing.T) {
	w := theWorld(t)
	c := w.reader(t)
	pages := servePages(t, c)
	from, to := w.began.Add(-6*time.Hour), w.began.Add(time.Hour)
	compared, began := 0, time.Now()
	defer func() { t.Logf("%d queries in %s", compared, time.Since(began)) }()
	for name, d := range boardFiles(t) {
		address := pages + "/boards/" + strings.TrimSuffix(name, ".json")
		query := fmt.Sprintf("?from=%d&to=%d&trace_id=%s", from.UnixMilli(), to.UnixMilli(), w.turn)
		page := getPage(t, address+query)
		for _, p := range d.Panels {
			if p.Type == "row" {
				continue
			}
			where := name + " / " + p.Title
			section := sectionOf(t, page, p.ID)
			if strings.Contains(section, "data-late") {
				section = sectionOf(t, getPage(t, fmt.Sprint(address, "/", p.ID, query)), p.ID)
			}
			if strings.Contains(section, "failed-panel") {
				t.Errorf("%s: %s", where, section)
				continue
			}
			for i, target := range p.Targets {
				q := w.all(asked{board: name, title: p.Title, kind: p.Type, ref: target.RefID, sql: target.RawSQL, least: time.Second})
				q.From, q.To = from, to
				if m := drawnWidth.FindStringSubmatch(section); m != nil {
					width, err := time.ParseDuration(m[1] + "s")
					if err != nil {
						t.Fatal(err)
					}
					q.Interval = width
				}
				sql, err := q.Expand(target.RawSQL)
				if err != nil {
					t.Fatal(err)
				}
				if moving.MatchString(sql) {
					continue // the numbers move between two looks
				}
				want, err := run(t, c, sql)
				if err != nil {
					t.Fatalf("%s: %v", where, err)
				}
				sameNumbers(t, where, p.Type, i, section, want)
				compared++
			}
		}
	}
	if compared < 75 {
		t.Errorf("only %d queries were compared", compared)
	}
}

// halves are the two queries of a stat that is compared with the period before.
func halves(sql string) (before, current string, compared bool) {
	before, current, compared = strings.Cut(strings.TrimPrefix(sql, "WITH (\n"), "\n) AS before, (\n")
	current, _, _ = strings.Cut(current, "\n) AS current\n")
	return before, current, compared
}

// TestComparedWithThePeriodBefore: the number that a stat is compared with is the one that it shows in that period,
// and both renderings have it.
func TestComparedWithThePeriodBefore(t *testing.T) {
	w := theWorld(t)
	c := w.reader(t)
	pages := servePages(t, c)
	from, to := w.began.Add(-50*time.Minute), w.began.Add(5*time.Minute)
	stats, changes := 0, 0
	for name, d := range boardFiles(t) {
		for _, p := range d.Panels {
			if p.Type == "row" {
				continue
			}
			_, alone, compared := halves(p.Targets[0].RawSQL)
			if !compared {
				continue
			}
			stats++
			where := name + " / " + p.Title
			ask := func(sql string, from, to time.Time) result {
				q := w.all(asked{board: name, title: p.Title, kind: p.Type, least: time.Second})
				q.From, q.To = from, to
				expanded, err := q.Expand(sql)
				if err != nil {
					t.Fatal(err)
				}
				r, err := run(t, c, expanded)
				if err != nil {
					t.Fatalf("%s: %v", where, err)
				}
				return r
			}
			both, want := ask(p.Targets[0].RawSQL, from, to), ask(alone, from.Add(-to.Sub(from)), from)
			got, before := number(both.rows[0][0]), math.NaN()
			if len(want.rows) > 0 {
				before = number(want.rows[0][0])
			}
			if changed := !math.IsInf(got, 0); changed {
				changes++
				if got != before || got == 0 {
					t.Errorf("%s: is compared with %v, and was %v", where, got, before)
				}
			} else if before == before && before != 0 && !isNull(both.rows[1][0]) {
				t.Errorf("%s: is not compared with %v", where, before)
			}
			page := getPage(t, fmt.Sprintf("%s/boards/%s/%d?from=%d&to=%d", pages, strings.TrimSuffix(name, ".json"), p.ID, from.UnixMilli(), to.UnixMilli()))
			sameNumbers(t, where, p.Type, 0, sectionOf(t, page, p.ID), both)
		}
	}
	if t.Logf("%d stats are compared, %d have a change", stats, changes); stats < 20 || changes < 10 {
		t.Errorf("%d stats are compared, %d have a change", stats, changes)
	}
}

// sectionOf is the part of a page that has the panel.
func sectionOf(t *testing.T, page string, id int) string {
	t.Helper()
	_, after, found := strings.Cut(page, fmt.Sprintf(`id="panel-%d"`, id))
	section, _, ends := strings.Cut(after, "</article>")
	if !found || !ends {
		t.Fatalf("there is no panel %d in\n%s", id, page)
	}
	return section
}

func sameNumbers(t *testing.T, where, kind string, query int, section string, want result) {
	t.Helper()
	var got, numbers []float64
	read := func(matches [][]string) {
		for _, m := range matches {
			n, err := strconv.ParseFloat(strings.TrimSuffix(m[1], "k"), 64)
			if err != nil {
				t.Errorf("%s: %q is no number", where, m[1])
			}
			got = append(got, n)
		}
	}
	collect := func(skip ...string) {
		for _, row := range want.rows {
			for i, v := range row {
				if class(want.columns[i].Type) != "number" || isNull(v) || slices.Contains(skip, want.columns[i].Name) {
					continue
				}
				n, err := strconv.ParseFloat(fmt.Sprint(reflect.Indirect(reflect.ValueOf(v))), 64)
				if err != nil {
					t.Errorf("%s: %v", where, err)
				}
				if n == n && !math.IsInf(n, 0) {
					numbers = append(numbers, n)
				}
			}
		}
	}
	switch kind {
	case "stat", "bargauge", "table":
		read(drawnNumber.FindAllStringSubmatch(section, -1))
		collect()
	case "traces":
		read(drawnNumber.FindAllStringSubmatch(section, -1))
		collect("startTime", "statusCode")
	case "heatmap":
		read(drawnBucket.FindAllStringSubmatch(section, -1))
		collect()
		numbers = slices.DeleteFunc(numbers, func(n float64) bool { return n == 0 })
	case "nodeGraph":
		if nodes := strings.Count(section, "<circle"); query == 0 && nodes != len(want.rows) {
			t.Errorf("%s: %d nodes, want %d", where, nodes, len(want.rows))
		}
		if edges := strings.Count(section, `class="edge`); query == 1 && edges != len(want.rows) {
			t.Errorf("%s: %d edges, want %d", where, edges, len(want.rows))
		}
		return
	case "timeseries":
		m := drawnFigure.FindStringSubmatch(section)
		if m == nil {
			if len(want.rows) > 0 {
				t.Errorf("%s: there is no chart", where)
			}
			return
		}
		_, after, _ := strings.Cut(m[1], `"values":[`)
		_, lines, _ := strings.Cut(after, "],")
		for _, text := range strings.FieldsFunc(lines, func(r rune) bool { return strings.ContainsRune("[]{},", r) }) {
			if n, err := strconv.ParseFloat(text, 64); err == nil {
				got = append(got, n)
			}
		}
		collect()
	default:
		t.Errorf("%s: no comparison for a %s", where, kind)
	}
	slices.Sort(got)
	slices.Sort(numbers)
	if !slices.EqualFunc(got, numbers, func(a, b float64) bool { return a == b }) {
		t.Errorf("%s: drawn %v\nwant %v", where, got, numbers)
	}
}

func getPage(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v\n%s", url, r.StatusCode, err, b)
	}
	return string(b)
}
