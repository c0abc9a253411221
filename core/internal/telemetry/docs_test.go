package telemetry

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestTheListIsDocumented: the table of docs/metrics.md is the list.
func TestTheListIsDocumented(t *testing.T) {
	const page = "../../../docs/metrics.md"
	m := New()
	touch(m)
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if all := reflect.TypeFor[Metrics]().NumField() - 1; len(families) != all { // the registry is none
		t.Fatalf("touch gives %d of %d metrics a value", len(families), all)
	}
	var table strings.Builder
	table.WriteString("| metric | type | labels | what |\n|---|---|---|---|\n")
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, " "), f.GetHelp())
	}
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text, got, _ := strings.Cut(string(b), "| metric |")
	if got = "| metric |" + got; got == table.String() {
		return
	}
	if !*update {
		t.Fatalf("the table is not the list; go test ./core/internal/telemetry -update writes it:\n%s", table.String())
	}
	if err := os.WriteFile(page, []byte(text+table.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
