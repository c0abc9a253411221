package dashboards

import (
	"os"
	"strings"
	"testing"
)

// TestQuestionsAreAnswered runs the SQL of docs/questions.md as it is written
// there. All have an answer in the data of the tests.
func TestQuestionsAreAnswered(t *testing.T) {
	b, err := os.ReadFile("../docs/questions.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(b), "\n## ")[1:]
	if len(sections) != 11 {
		t.Errorf("there are %d questions", len(sections))
	}
	c := theWorld(t).reader(t)
	for _, s := range sections {
		title, rest, _ := strings.Cut(s, "\n")
		_, rest, found := strings.Cut(rest, "```sql\n")
		sql, _, closed := strings.Cut(rest, "\n```")
		if !found || !closed {
			t.Errorf("%s: no SQL", title)
			continue
		}
		r, err := run(t, c, sql)
		switch {
		case err != nil:
			t.Errorf("%s: %v", title, err)
		case len(r.rows) == 0:
			t.Errorf("%s: no rows", title)
		}
	}
}
