package dashboards

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/dashboards/internal/boards"
	"github.com/earshot-dev/earshot/dashboards/internal/grafana"
)

// TestFilesAreAsWritten fails when a file and the Go that writes it differ, or a
// file is left over.
func TestFilesAreAsWritten(t *testing.T) {
	files, err := boards.Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what is written today (error %v): go generate ./dashboards", name, err)
		}
	}
	for name := range boardFiles(t) {
		if _, written := files["dashboards/"+name]; !written {
			t.Errorf("nothing writes dashboards/%s", name)
		}
	}
}

var uid = regexp.MustCompile(`^[a-z0-9-]{8,40}$`)

func TestDashboardsAreSound(t *testing.T) {
	uids := make(map[string]string)
	for name, d := range boardFiles(t) {
		if !uid.MatchString(d.UID) || uids[d.UID] != "" {
			t.Errorf("%s: uid %q is not one, or is that of %s as well", name, d.UID, uids[d.UID])
		}
		uids[d.UID] = name
		if d.ID != nil || d.SchemaVersion != 42 || d.Title == "" || d.Description == "" || d.Time.From == "" || !slices.Contains(d.Tags, "earshot") {
			t.Errorf("%s: something is missing in its head: %+v", name, d)
		}
		if len(d.Templating.List) == 0 || d.Templating.List[0].Name != "datasource" || d.Templating.List[0].Query != grafana.PluginID {
			t.Errorf("%s: its first variable is not the data source", name)
		}
		panels(t, name, d)
	}
}

func panels(t *testing.T, name string, d *grafana.Dashboard) {
	ids := make(map[int]bool)
	var taken [24][]bool // by column, the lines
	for _, p := range d.Panels {
		where := name + ": " + p.Title
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("%s: id %d is not its own", where, p.ID)
		}
		ids[p.ID] = true
		g := p.GridPos
		if g.X < 0 || g.W <= 0 || g.H <= 0 || g.X+g.W > 24 {
			t.Errorf("%s: does not fit the grid: %+v", where, g)
			continue
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				for len(taken[x]) <= y {
					taken[x] = append(taken[x], false)
				}
				if taken[x][y] {
					t.Fatalf("%s: lies over another panel at %d, %d", where, x, y)
				}
				taken[x][y] = true
			}
		}
		if p.Title == "" {
			t.Errorf("%s: panel %d has no title", name, p.ID)
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || p.FieldConfig.Defaults.Unit == "" || p.FieldConfig.Defaults.NoValue == "" {
			t.Errorf("%s: no description, unit or text for when there is nothing", where)
		}
		if !ours(p.Datasource) || len(p.Targets) == 0 {
			t.Errorf("%s: not the data source of the variable, or no query", where)
		}
		refs := make(map[string]bool)
		for _, q := range p.Targets {
			if !ours(q.Datasource) || q.EditorType != "sql" || q.RefID == "" || refs[q.RefID] {
				t.Errorf("%s: query %q: %+v", where, q.RefID, q)
			}
			refs[q.RefID] = true
		}
	}
	// No holes: every line of the grid is full.
	bottom := 0
	for _, lines := range taken {
		bottom = max(bottom, len(lines))
	}
	for x, lines := range taken {
		if len(lines) != bottom || slices.Contains(lines, false) {
			t.Errorf("%s: column %d of the grid has a hole", name, x)
		}
	}
}

func ours(r *grafana.Ref) bool {
	return r != nil && r.Type == grafana.PluginID && r.UID == "${datasource}"
}

var link = regexp.MustCompile(`"url": "(/d/[^"]*)"`)

// TestLinksLead holds every link against the dashboards and variables there are.
func TestLinksLead(t *testing.T) {
	variables := make(map[string][]string)
	all := boardFiles(t)
	for _, d := range all {
		for _, v := range d.Templating.List {
			variables[d.UID] = append(variables[d.UID], v.Name)
		}
	}
	n := 0
	for name := range all {
		b, err := Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(b, -1) {
			n++
			path, query, _ := strings.Cut(strings.TrimPrefix(string(m[1]), "/d/"), "?")
			if variables[path] == nil {
				t.Errorf("%s: %s leads nowhere", name, m[1])
			}
			for _, pair := range strings.Split(query, "&") {
				v, _, isVar := strings.Cut(pair, "=")
				if isVar && !slices.Contains(variables[path], strings.TrimPrefix(v, "var-")) {
					t.Errorf("%s: %s sets %s, which the other dashboard does not have", name, m[1], v)
				}
			}
			if !strings.Contains(query, "${__url_time_range}") || !strings.Contains(query, "var-datasource=${datasource}") {
				t.Errorf("%s: %s forgets the range or the data source", name, m[1])
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d links", n)
	}
}

// TestAlertsAreSound: each rule has a runbook entry, and conditions that refer to
// existing queries.
func TestAlertsAreSound(t *testing.T) {
	b, err := os.ReadFile("../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	anchors := make(map[string]bool)
	for _, line := range strings.Split(string(b), "\n") {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			anchors[strings.ReplaceAll(strings.ToLower(title), " ", "-")] = true
		}
	}
	uids := make(map[string]bool)
	for _, r := range alertRules(t) {
		if !uid.MatchString(r.UID) || uids[r.UID] || r.Title == "" || r.For == "" || r.Labels["severity"] == "" {
			t.Errorf("%s: something is missing in its head: %+v", r.UID, r)
		}
		uids[r.UID] = true
		page, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "#")
		if !strings.HasSuffix(page, "/docs/runbook.md") || !anchors[anchor] {
			t.Errorf("%s: the runbook has no entry %q", r.UID, anchor)
		}
		if s := r.Annotations["summary"]; s == "" || strings.Contains(s, "$") {
			t.Errorf("%s: summary %q", r.UID, s)
		}
		if len(r.Data) != 2 || r.Condition != r.Data[1].RefID || r.Data[1].DatasourceUID != "__expr__" || r.Data[1].Model.Expression != r.Data[0].RefID {
			t.Errorf("%s: the condition does not stand on the query", r.UID)
		}
		if r.Data[0].DatasourceUID != boards.SourceUID || r.Data[0].RelativeTimeRange.From <= 0 {
			t.Errorf("%s: data source %s, window %+v", r.UID, r.Data[0].DatasourceUID, r.Data[0].RelativeTimeRange)
		}
	}
	for _, want := range []string{"earshot-delegation-p95", "earshot-delegation-errors", "earshot-stuck", "earshot-loss", "earshot-lag", "earshot-cost"} {
		if !uids[want] {
			t.Errorf("no rule %s among %v", want, slices.Sorted(maps.Keys(uids)))
		}
	}
}
