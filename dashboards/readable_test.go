package dashboards

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
)

// reading is a value of an alert as its texts see it.
type reading struct{ Value float64 }

var (
	labelUsed   = regexp.MustCompile(`\.Labels\.(\w+)`)
	addressUsed = regexp.MustCompile(`https://\S+`)
)

// TestAlertsAreReadable fills in the texts of every alert as Grafana does: the summary has the labels and the value in
// a sentence, the description leads to a dashboard that has the panel and the variables.
func TestAlertsAreReadable(t *testing.T) {
	functions := template.FuncMap{
		"externalURL":        func() string { return "https://quay.example/" },
		"humanizeDuration":   func(v float64) string { return fmt.Sprintf("%.0fm", v/60) },
		"humanizePercentage": func(v float64) string { return fmt.Sprintf("%.4g%%", v*100) },
		"humanize1024":       func(v float64) string { return fmt.Sprintf("%.4gki", v/1024) },
	}
	boards := boardFiles(t)
	for _, r := range alertRules(t) {
		sql := r.Data[0].Model.RawSQL
		labels := map[string]string{}
		var who []string
		for _, m := range labelUsed.FindAllStringSubmatch(r.Annotations["summary"], -1) {
			labels[m[1]] = "the " + m[1] + " Ölmühle & Sohn"
			who = append(who, m[1])
		}
		fill := func(text string, values map[string]reading) string {
			for _, m := range labelUsed.FindAllStringSubmatch(text, -1) {
				if !strings.Contains(sql, " AS "+m[1]+",") && !strings.Contains(sql, "SELECT "+m[1]+",") && !strings.Contains(sql, ", "+m[1]+",") {
					t.Errorf("%s: the query has no column %s", r.Title, m[1])
				}
				labels[m[1]] = "the " + m[1] + " Ölmühle & Sohn"
			}
			tmpl, err := template.New(r.Title).Option("missingkey=invalid").Funcs(functions).Parse(text)
			if err != nil {
				t.Fatalf("%s: %v", r.Title, err)
			}
			var b strings.Builder
			if err := tmpl.Execute(&b, map[string]any{"Labels": labels, "Values": values}); err != nil {
				t.Errorf("%s: %v", r.Title, err)
			}
			return b.String()
		}
		value := 1234.0
		if strings.Contains(r.Annotations["summary"], "humanizePercentage") {
			value = 0.1234
		}
		summary := fill(r.Annotations["summary"], map[string]reading{"A": {value}})
		for _, name := range who {
			if !strings.Contains(summary, labels[name]) {
				t.Errorf("%s: %q does not say which %s", r.Title, summary, name)
			}
		}
		if len(who) == 0 && !strings.HasPrefix(summary, "Earshot ") {
			t.Errorf("%s: %q says of nobody", r.Title, summary)
		}
		if !regexp.MustCompile(`1234|12\.34%|21m|1\.205ki`).MatchString(summary) || !strings.HasSuffix(summary, ".") || len(summary) > 240 {
			t.Errorf("%s: %q does not say how much, in a sentence", r.Title, summary)
		}
		description := fill(r.Annotations["description"], map[string]reading{"A": {value}})
		where, err := url.Parse(addressUsed.FindString(description))
		if err != nil || where.Host != "quay.example" || !strings.HasPrefix(where.Path, "/d/") {
			t.Errorf("%s: %q leads nowhere (%v)", r.Title, description, err)
			continue
		}
		uid := strings.TrimPrefix(where.Path, "/d/")
		board := boards[strings.TrimPrefix(uid, "earshot-")+".json"]
		if board == nil || uid != r.DashboardUID {
			t.Errorf("%s: leads to %s, and its dashboard is %q", r.Title, where, r.DashboardUID)
			continue
		}
		panel := -1
		for i, p := range board.Panels {
			if p.ID == r.PanelID && p.Type != "row" {
				panel = i
			}
		}
		if panel < 0 {
			t.Errorf("%s: %s has no panel %d", r.Title, uid, r.PanelID)
		}
		if query := where.Query(); query.Get("from") == "" || query.Get("to") != "now" {
			t.Errorf("%s: %s has no range of time", r.Title, where)
		}
		for name, values := range where.Query() {
			name, is := strings.CutPrefix(name, "var-")
			if !is {
				continue
			}
			found := false
			for _, v := range board.Templating.List {
				found = found || v.Name == name
			}
			if !found || !slices.Equal(values, []string{labels[name]}) {
				t.Errorf("%s: sets %s to %q", r.Title, name, values)
			}
		}
		texts := []string{summary, description}
		if r.NoDataState == "Alerting" { // texts are filled in without a value, or with one that is none
			texts = append(texts, fill(r.Annotations["summary"], map[string]reading{"A": {math.NaN()}}), fill(r.Annotations["summary"], nil))
		}
		for _, s := range texts {
			if strings.Contains(s, "no value") || strings.Contains(s, "NaN") || strings.ContainsAny(s, "${}") {
				t.Errorf("%s: %q", r.Title, s)
			}
		}
		if words := strings.Fields(r.Title); len(words) < 2 || len(words) > 8 {
			t.Errorf("%s: no title", r.Title)
		}
	}
}
