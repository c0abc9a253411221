package inspect

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// TestSpendingOfBoth: no side has spent 0 tokens, or a cost of none: where a record has no tokens they are not known.
func TestSpendingOfBoth(t *testing.T) {
	known, dear := Cost{Tokens: Tokens{Input: 1500}, CostUSD: 0.25}, Cost{Tokens: Tokens{Input: 2000}, CostUSD: 0.5, Unpriced: 500}
	odd := Cost{Tokens: Tokens{Output: 7}, Unpriced: 7}
	for _, c := range []struct {
		a, b Cost
		want string
	}{
		{Cost{}, Cost{}, "Tokens and cost are not known."},
		{Cost{}, known, "Tokens and cost of A are not known; B has 1500 tokens, cost $0.25."},
		{known, Cost{}, "A has 1500 tokens, cost $0.25; tokens and cost of B are not known."},
		{known, dear, "Tokens +500 (1500 tokens in A, 2000 tokens in B), cost $0.25 in A, $0.50+ (500 tokens have no price) in B."},
		{known, known, "Tokens the same, 1500 tokens, cost $0.25 in A, $0.25 in B."},
		{odd, known, "Tokens +1493 (7 tokens in A, 1500 tokens in B), cost not known in A, $0.25 in B."},
	} {
		if got := spending(c.a, c.b); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		var out bytes.Buffer
		d := Difference{A: DiffSide{Spent: c.a}, B: DiffSide{Spent: c.b}, Diverges: -1}
		if err := d.Write(&out, Style{}); err != nil || strings.Contains(out.String(), "no cost") || strings.Contains(out.String(), " 0 tokens") {
			t.Errorf("%v in\n%s", err, &out)
		}
	}
}

// TestNarrowDifference: on a terminal of 60 columns no line of a difference is longer, whatever the names, and elsewhere none is cut.
func TestNarrowDifference(t *testing.T) {
	long := strings.Repeat("潮汐", 40)
	step := func(text string) *DiffStep { return &DiffStep{DurationMS: 4_100_000, Arguments: text} }
	d := Difference{A: DiffSide{ID: "c0ffee00-51d2-4f0b-8a3e-9d7b6c5a4e21"}, B: DiffSide{ID: "3602fe3c-ef9e-4f13-881d-9768f559912f"}, Diverges: 1, Rows: []DiffRow{
		{Kind: "run", Name: "pilot", Mark: "=", A: step(""), B: step("")},
		{Kind: "tool", Name: "mcp__harbour__" + long, Mark: "~", Depth: 1, A: step(long), B: step("other " + long)},
		{Kind: "delegation", Name: "diver", Mark: "+", Depth: 30, B: step("dive at the north pier and report all that is there")},
		{Kind: "tool", Name: "Bash", Mark: "~", Depth: 3, A: step("wind north"), B: step("wind south")},
	}, Time: []TimePart{{Bucket: "tool", Name: long, A: 1, B: 9_000, Delta: 8_999}}}
	list := []Change{{Kind: "delegation", Name: long, To: long, A: Stats{Count: 3, P50: 1, P95: 2}, B: Stats{Count: 4, P50: 3, P95: 9}, DeltaMS: 7, Time: []TimePart{{Bucket: "tool", Name: "Bash", Delta: 7}}}}
	for _, width := range []int{0, 60, 80, 120} {
		var out, changes bytes.Buffer
		if err := errors.Join(d.Write(&out, Style{Width: width}), WriteChanges(&changes, Sample{Version: "2.1.230"}, Sample{Version: long}, list, Style{Width: width})); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"c0ffee00-51d2-4f0b-8a3e-9d7b6c5a4e21", "run pilot", "delegation diver", "tool Bash", "in A: wind north", "←"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("width %d: no %q in\n%s", width, want, &out)
			}
		}
		for line := range strings.Lines(out.String() + changes.String()) {
			if line = strings.TrimRight(line, "\n"); width > 0 && Visible(line) > width {
				t.Errorf("width %d: %d columns: %s", width, Visible(line), line)
			}
		}
	}
}

// TestNamesOfOneAgent: an agent whose name one of the two did not get to know is no other one; agents of two formats are.
func TestNamesOfOneAgent(t *testing.T) {
	for _, c := range []struct {
		a, b string
		mark string
	}{{"claude-code", "claude-code", "="}, {"claude-code", "(claude-code)", "="}, {"(claude-code)", "claude-code", "="}, {"claude-code", "(legion)", "~"}, {"pilot", "diver", "~"}} {
		var d Difference
		d.pair([]*diffNode{{kind: "run", name: c.a}}, []*diffNode{{kind: "run", name: c.b}}, 0)
		if len(d.Rows) != 1 || d.Rows[0].Mark != c.mark || d.Rows[0].Name != c.b {
			t.Errorf("%s and %s: %+v", c.a, c.b, d.Rows)
		}
	}
}
