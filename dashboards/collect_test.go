package dashboards

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/earshot-dev/earshot/dashboards/internal/grafana"
	"github.com/earshot-dev/earshot/dashboards/internal/macro"
)

// rulesFile has the alert rules.
const rulesFile = "../deploy/grafana/provisioning/alerting/earshot.yaml"

// asked is a query as a file has it.
type asked struct {
	board, title string
	kind         string // of the panel; variable or alert
	ref          string
	format       grafana.Format
	sql          string
	least        time.Duration // width of a point
	window       time.Duration // of an alert
	above        float64       // where an alert begins
}

func (a asked) String() string { return fmt.Sprintf("%s / %s %s", a.board, a.title, a.ref) }

// boards reads the dashboards as they are checked in, not as they are in Go.
func boardFiles(t *testing.T) map[string]*grafana.Dashboard {
	t.Helper()
	names, err := fs.Glob(Files, "*.json")
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]*grafana.Dashboard)
	for _, n := range names {
		b, err := Files.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		var d grafana.Dashboard
		if err := json.Unmarshal(b, &d); err != nil {
			t.Fatalf("%s: %v", n, err)
		}
		out[n] = &d
	}
	return out
}

// queries returns every query of the files: panels, variables, annotations, alerts.
func queries(t *testing.T) []asked {
	t.Helper()
	var out []asked
	for name, d := range boardFiles(t) {
		for _, v := range d.Templating.List {
			if v.Type != "query" {
				continue
			}
			q, ok := v.Query.(map[string]any)
			if !ok {
				t.Fatalf("%s: variable %s has no query", name, v.Name)
			}
			out = append(out, asked{board: name, title: v.Name, kind: "variable", format: grafana.AsTable, sql: q["rawSql"].(string)})
		}
		for _, m := range d.Annotations.List {
			out = append(out, asked{board: name, title: m.Name, kind: "annotation", ref: m.Target.RefID, format: m.Target.Format, sql: m.Target.RawSQL})
		}
		for _, p := range d.Panels {
			a := asked{board: name, title: p.Title, kind: p.Type, least: time.Minute}
			if p.Interval != "" {
				var err error
				if a.least, err = time.ParseDuration(p.Interval); err != nil {
					t.Fatalf("%s: %s: %v", name, p.Title, err)
				}
			}
			for _, q := range p.Targets {
				a.ref, a.format, a.sql = q.RefID, q.Format, q.RawSQL
				out = append(out, a)
			}
		}
	}
	for _, r := range alertRules(t) {
		q := r.Data[0]
		out = append(out, asked{
			board: "alerts", title: r.Title, kind: "alert", ref: q.RefID, format: grafana.Format(q.Model.Format), sql: q.Model.RawSQL,
			window: time.Duration(q.RelativeTimeRange.From) * time.Second, above: r.Data[1].Model.Conditions[0].Evaluator.Params[0],
		})
	}
	return out
}

type alertRule struct {
	UID, Title, Condition, For string
	DashboardUID               string `yaml:"dashboardUid"`
	PanelID                    int    `yaml:"panelId"`
	NoDataState                string `yaml:"noDataState"`
	ExecErrState               string `yaml:"execErrState"`
	Annotations, Labels        map[string]string
	Data                       []struct {
		RefID             string                 `yaml:"refId"`
		DatasourceUID     string                 `yaml:"datasourceUid"`
		RelativeTimeRange struct{ From, To int } `yaml:"relativeTimeRange"`
		Model             struct {
			RawSQL     string `yaml:"rawSql"`
			Format     int
			Type       string
			Expression string
			Conditions []struct{ Evaluator struct{ Params []float64 } }
		}
	}
}

func alertRules(t *testing.T) []alertRule {
	t.Helper()
	b, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		APIVersion int `yaml:"apiVersion"`
		Groups     []struct{ Rules []alertRule }
	}
	if err := yaml.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	if f.APIVersion != 1 || len(f.Groups) != 1 || len(f.Groups[0].Rules) == 0 {
		t.Fatalf("%s has no rules: %+v", rulesFile, f)
	}
	return f.Groups[0].Rules
}

// all is a query over everything that the world has, with nothing picked.
func (w *world) all(a asked) macro.Query {
	q := macro.Query{
		From: w.began.Add(-6 * time.Hour), To: w.began.Add(time.Hour), Interval: max(a.least, time.Minute),
		Variables: map[string]macro.Value{
			"format": {All: true}, "agent": {All: true}, "model": {All: true}, "tenant": {All: true}, "project": {All: true}, "version": {All: true}, "tool": {All: true},
			"trace_id": macro.Text(w.turn), "session": macro.Text(""), "search": macro.Text(""), "steps": macro.Text("0"),
		},
	}
	if a.kind == "alert" { // they know no variables
		q.Variables, q.From = nil, w.began.Add(-max(a.window, 3*time.Hour))
	}
	return q
}
