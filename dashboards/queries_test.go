package dashboards

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/dashboards/internal/grafana"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

// result is the result of a query.
type result struct {
	columns []clickhouse.Column
	rows    [][]any
}

func run(t *testing.T, c *clickhouse.Conn, sql string) (result, error) {
	t.Helper()
	rows, err := c.Query(t.Context(), sql, nil)
	if err != nil {
		return result{}, err
	}
	r := result{columns: rows.Columns}
	for rows.Next() {
		r.rows = append(r.rows, slices.Clone(rows.Values()))
	}
	return r, errors.Join(rows.Err(), rows.Close())
}

// TestEveryQueryAnswers runs the query of every panel, variable and alert as the
// user that Grafana has, and checks the result against the needs of the panel.
func TestEveryQueryAnswers(t *testing.T) {
	w := theWorld(t)
	c := w.reader(t)
	list := queries(t)
	if len(list) < 80 {
		t.Fatalf("only %d queries were found", len(list))
	}
	slices.SortFunc(list, func(a, b asked) int { return strings.Compare(a.String(), b.String()) })
	var table strings.Builder
	for _, a := range list {
		sql, err := w.all(a).Expand(a.sql)
		if err != nil {
			t.Errorf("%s: %v", a, err)
			continue
		}
		began := time.Now()
		r, err := run(t, c, sql)
		if err != nil {
			t.Errorf("%s: %v\n%s", a, err, sql)
			continue
		}
		fmt.Fprintf(&table, "%-70s %6d rows %6d ms\n", a, len(r.rows), time.Since(began).Milliseconds())
		if err := fits(a, r); err != nil {
			t.Errorf("%s: %v\n%s", a, err, sql)
		}
	}
	t.Logf("\n%s", &table)
}

// mayBeEmpty are the panels whose emptiness is the good news, and which the data
// of the tests does not contradict.
var mayBeEmpty = []string{"Findings"}

// fits returns the first mismatch of a result with its panel.
func fits(a asked, r result) error {
	if len(r.rows) == 0 {
		if slices.Contains(mayBeEmpty, a.title) {
			return nil
		}
		return errors.New("no rows")
	}
	names := make(map[string]string)
	for _, c := range r.columns {
		if names[c.Name] != "" {
			return fmt.Errorf("two columns %s", c.Name)
		}
		names[c.Name] = class(c.Type)
		if strings.ContainsAny(c.Name, "()'$") {
			return fmt.Errorf("column %q has no name", c.Name)
		}
	}
	need := func(class string, columns ...string) error {
		for _, n := range columns {
			if names[n] != class {
				return fmt.Errorf("column %s is %q, want a %s", n, names[n], class)
			}
		}
		return nil
	}
	numbers := func() (n int) {
		for _, c := range r.columns {
			if class(c.Type) == "number" {
				n++
			}
		}
		return n
	}
	if want := formatOf(a.kind); a.format != want {
		return fmt.Errorf("format %d, want %d", a.format, want)
	}
	switch a.kind {
	case "timeseries", "heatmap":
		if r.columns[0].Name != "time" || numbers() == 0 {
			return errors.New("want a column time and numbers")
		}
		if a.kind == "heatmap" && numbers() != len(r.columns)-1 {
			return errors.New("want numbers only")
		}
		for i := 1; i < len(r.rows); i++ { // else the plugin refuses to pivot
			if r.rows[i][0].(time.Time).Before(r.rows[i-1][0].(time.Time)) {
				return fmt.Errorf("row %d goes back in time", i)
			}
		}
		return need("time", "time")
	case "stat":
		want := 1
		if _, _, compared := halves(a.sql); compared {
			want = 2 // the number of the period before, and that of the range
		}
		if len(r.rows) != want || len(r.columns) != 1 || numbers() != 1 {
			return fmt.Errorf("want %d rows with a number, got %d rows of %v", want, len(r.rows), r.columns)
		}
		if isNull(r.rows[want-1][0]) {
			return errors.New("the number is null")
		}
	case "bargauge":
		if len(r.columns) != 2 || class(r.columns[0].Type) != "text" || numbers() != 1 {
			return fmt.Errorf("want a text and a number, got %v", r.columns)
		}
	case "alert":
		if numbers() != 1 {
			return fmt.Errorf("want one number in a row, got %v", r.columns)
		}
		for _, c := range r.columns {
			if k := class(c.Type); k != "number" && k != "text" {
				return fmt.Errorf("column %s is %s", c.Name, k)
			}
		}
	case "annotation":
		return errors.Join(need("time", "time"), need("text", "text"))
	case "variable":
		if len(r.columns) != 1 || class(r.columns[0].Type) != "text" {
			return fmt.Errorf("want one column of texts, got %v", r.columns)
		}
	case "nodeGraph":
		if a.ref == "nodes" {
			return errors.Join(need("text", "id", "title"), need("number", "mainstat", "arc__ok", "arc__failed"))
		}
		return errors.Join(need("text", "id", "source", "target"), need("number", "mainstat", "thickness"))
	case "traces":
		return errors.Join(need("text", "traceID", "spanID", "parentSpanID", "serviceName", "operationName", "statusMessage", "kind"),
			need("number", "startTime", "duration", "statusCode"), need("list", "tags", "serviceTags", "logs", "references"))
	case "table":
		for _, c := range r.columns {
			if k := class(c.Type); k == "list" || k == "" {
				return fmt.Errorf("column %s is %s: a table shows no such thing", c.Name, c.Type)
			}
			if strings.EqualFold(c.Name, "trace_id") || strings.EqualFold(c.Name, "traceid") {
				return fmt.Errorf("the data source takes over the links of column %s", c.Name)
			}
		}
	default:
		return fmt.Errorf("no rule for panels of type %s", a.kind)
	}
	return nil
}

func formatOf(kind string) grafana.Format {
	switch kind {
	case "timeseries", "heatmap":
		return grafana.AsSeries
	case "traces":
		return grafana.AsTraces
	}
	return grafana.AsTable
}

// class is Grafana's class of a type.
func class(kind string) string {
	for _, wrap := range []string{"Nullable(", "LowCardinality(", "Nullable("} {
		if rest, ok := strings.CutPrefix(kind, wrap); ok {
			kind = strings.TrimSuffix(rest, ")")
		}
	}
	switch {
	case strings.HasPrefix(kind, "Date"):
		return "time"
	case strings.HasPrefix(kind, "UInt"), strings.HasPrefix(kind, "Int"), strings.HasPrefix(kind, "Float"), strings.HasPrefix(kind, "Decimal"):
		return "number"
	case kind == "String", strings.HasPrefix(kind, "FixedString"), strings.HasPrefix(kind, "Enum"):
		return "text"
	case kind == "Bool":
		return "truth"
	case strings.HasPrefix(kind, "Array"), strings.HasPrefix(kind, "Map"), strings.HasPrefix(kind, "Tuple"):
		return "list"
	}
	return ""
}

func isNull(v any) bool {
	switch v := v.(type) {
	case *float64:
		return v == nil
	case *int64:
		return v == nil
	case *uint64:
		return v == nil
	case *string:
		return v == nil
	}
	return v == nil
}
