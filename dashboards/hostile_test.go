package dashboards

import (
	"cmp"
	"regexp"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/dashboards/internal/macro"
)

// hostile are names that an agent may choose for itself, and values that a link may carry.
var hostile = []string{
	`x\') UNION ALL SELECT 'INJECTED' -- `, `x') UNION ALL SELECT 'INJECTED' -- `, `\`, `'`, `\'`, `x\\') OR 1=1 -- `, `$__timeFilter(a)`,
	`%27) UNION ALL SELECT 'INJECTED' -- `, `%5C%27`, "a\nb", `${agent}`, `/*`, `"ü€🦊`,
}

var reference = regexp.MustCompile(`\$\{\w+(:\w+)?\}|\$[A-Za-z]\w*`)

// With any value of a variable a query asks the same as before: every panel's runs with one of them, each table's with
// three more, in turn, and the engine reads the value as the text that it is.
func TestVariablesStayText(t *testing.T) {
	w := theWorld(t)
	c := w.reader(t)
	for n, a := range queries(t) {
		if a.kind == "alert" {
			continue
		}
		used := false
		for _, at := range reference.FindAllStringIndex(a.sql, -1) {
			m := a.sql[at[0]:at[1]]
			encoded := strings.HasSuffix(m, ":percentencode}") && a.sql[at[0]-1] == '\'' && a.sql[at[1]] == '\''
			name := strings.HasPrefix(a.sql[at[1]:], ")") && strings.HasSuffix(a.sql[:at[0]], ", ") // of $__conditionalAll, which does not write the value
			if !encoded && !name {
				t.Errorf("%s: %s may break out of the query", a, m)
			}
			used = used || encoded
		}
		if !used {
			continue
		}
		for i, v := range hostile {
			q := w.all(a)
			for name, old := range q.Variables {
				q.Variables[name] = macro.Value{Single: old.Single, Items: []string{v}}
			}
			sql, err := q.Expand(a.sql)
			if err != nil {
				t.Fatalf("%s with %q: %v", a, v, err)
			}
			if strings.Contains(sql, "INJECTED'") {
				t.Fatalf("%s with %q:\n%s", a, v, sql)
			}
			if turn := (i + n) % len(hostile); turn > 0 && (a.kind != "table" || turn > 3) {
				continue
			}
			if _, err := run(t, c, sql); err != nil {
				t.Fatalf("%s with %q: %v\n%s", a, v, err, sql)
			}
		}
	}
}

// The engine gets back the value of a text box, and each of the choices.
func TestVariablesKeepTheirValues(t *testing.T) {
	w := theWorld(t)
	c := w.reader(t)
	box, list := "", ""
	for _, a := range queries(t) {
		box = cmp.Or(box, call(a.sql, "decodeURLComponent('${search"))
		list = cmp.Or(list, call(a.sql, "arrayPushBack(splitByChar(',', replaceRegexpOne(decodeURLComponent('${agent"))
	}
	for _, v := range append(hostile, "a,b", "(claude-code)", "plain") {
		q := macro.Query{Variables: map[string]macro.Value{"search": macro.Text(v), "agent": macro.Of("other", v)}}
		if strings.Contains(v, ",") {
			q.Variables["agent"] = macro.Of(v) // one with a comma is found alone
		}
		sql, err := q.Expand("SELECT " + box + " AS box, " + list + " AS list")
		if err != nil {
			t.Fatal(err)
		}
		r, err := run(t, c, sql)
		if err != nil {
			t.Fatalf("%q: %v\n%s", v, err, sql)
		}
		got, found := r.rows[0][0].(string), false
		for _, item := range r.rows[0][1].([]string) {
			found = found || item == v
		}
		if got != v || !found {
			t.Errorf("%q is %q in a text box, and of the choices %q", v, got, r.rows[0][1])
		}
	}
}

// call returns the call in a query that begins so, up to its last bracket.
func call(sql, begin string) string {
	at := strings.Index(sql, begin)
	if at < 0 {
		return ""
	}
	depth := 0
	for i := at; i < len(sql); i++ {
		switch sql[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return sql[at : i+1]
			}
		}
	}
	return ""
}
