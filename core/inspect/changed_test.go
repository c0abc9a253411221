package inspect

import (
	"bytes"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/change"
)

// TestNoChangeIsNoAnswerWithoutRuns: where there were too few runs to compare, it does not say that there was no change.
func TestNoChangeIsNoAnswerWithoutRuns(t *testing.T) {
	for looks, want := range map[int][]string{
		0: {"nothing to compare since", "None has the runs that a comparison needs: 25 before a new version or the end of a day, and 12 after or in it."},
		3: {"nothing changed since"},
	} {
		var out bytes.Buffer
		c := Changed{Runs: 7, Budget: 1, Looks: change.Looks{Series: 18, Recent: looks}}
		if err := c.Write(&out, Style{}); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%d looks: no %q in\n%s", looks, w, &out)
			}
		}
		if looks > 0 == strings.Contains(out.String(), "None has") {
			t.Errorf("%d looks:\n%s", looks, &out)
		}
	}
}
