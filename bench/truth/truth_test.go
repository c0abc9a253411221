package truth

import (
	"testing"

	"github.com/earshot-dev/earshot/plugins"
)

// TestTruth holds Earshot to every conversation: each call and each link with precision and recall 1, no token more or
// less, no text missing or repeated, and no time off.
func TestTruth(t *testing.T) {
	for _, c := range Written() {
		t.Run(c.Format+"/"+c.Name, func(t *testing.T) {
			got, err := Rehearse(plugins.Bundled()[c.Format](), c.Streams)
			if err != nil {
				t.Fatal(err)
			}
			s := Compare(c.Truth, got)
			for _, n := range s.Notes {
				t.Error(n)
			}
		})
	}
}
