package board

import (
	"strings"
	"testing"
	"time"
)

// TestPickedValuesStayText: no query has the text of a link as it is, and a variable
// with options has one of them.
func TestPickedValuesStayText(t *testing.T) {
	const hostile = `x') OR 1=1 -- \' ${session} $__fromTime`
	n := 0
	for _, b := range All() {
		look := Look{From: time.Unix(1_770_000_000, 0), To: time.Unix(1_770_003_600, 0), Picked: make(map[string][]string)}
		for _, v := range b.Variables {
			look.Picked[v.Name] = []string{hostile, hostile}
		}
		marks, err := b.Moments(look)
		if err != nil {
			t.Errorf("%s: marks: %v", b.Name, err)
		}
		for _, sql := range marks {
			if strings.Contains(sql, "1=1 --") || strings.Contains(sql, "${") || strings.Contains(sql, "$__") {
				t.Errorf("%s, marks:\n%s", b.Name, sql)
			}
		}
		for _, p := range b.Panels {
			list, width, err := b.Expand(p, look, 100)
			if err != nil {
				t.Errorf("%s / %s: %v", b.Name, p.Title, err)
			}
			if width < p.least || p.least == time.Minute && width != time.Minute {
				t.Errorf("%s / %s: a point of %s", b.Name, p.Title, width)
			}
			for _, sql := range list {
				n++
				if strings.Contains(sql, "1=1 --") || strings.Contains(sql, "${") || strings.Contains(sql, "$__") {
					t.Errorf("%s / %s:\n%s", b.Name, p.Title, sql)
				}
			}
		}
	}
	if n < 90 {
		t.Errorf("only %d queries", n)
	}
}

// TestEveryPanelIsDescribed: no setting of the definition is lost.
func TestEveryPanelIsDescribed(t *testing.T) {
	links, gauges, bad, steps, bars := 0, 0, 0, 0, 0
	names := make(map[string]bool)
	for _, b := range All() {
		names[b.Name] = true
		for _, p := range b.Panels {
			if p.Kind != Heading && (p.Description == "" || p.Unit == "" || p.Empty == "" || len(p.Queries) == 0) {
				t.Errorf("%s / %s: %+v", b.Name, p.Title, p)
			}
			steps += len(p.Steps)
			if p.Stacked {
				bars++
			}
			for _, f := range p.Fields {
				if f.Gauge {
					gauges++
				}
				if f.Board != "" && f.Sets != "" {
					links++
				}
				bad += len(f.Red)
			}
		}
	}
	if !names["delegations"] || !names["trace"] || links < 20 || gauges < 8 || bad < 5 || steps < 10 || bars < 5 {
		t.Errorf("%v: %d links, %d gauges, %d bad values, %d steps, %d bars", names, links, gauges, bad, steps, bars)
	}
}
