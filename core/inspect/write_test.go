package inspect

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestEndedOnce: a reason that is the status is there once.
func TestEndedOnce(t *testing.T) {
	for _, c := range [][3]string{{"cancelled", "cancelled", "cancelled"}, {"error", "error", "error"}, {"error", "timeout", "error timeout"}, {"error", "", "error"}, {"", "stuck", "stuck"}} {
		if got := new(printer).ended(&Step{Status: c[0], Error: c[1]}); got != c[2] {
			t.Errorf("%q %q: %q", c[0], c[1], got)
		}
	}
}

// TestNarrowTurn: no line of a turn is wider than the terminal, whatever the names of its tools, and each fact of it is there.
func TestNarrowTurn(t *testing.T) {
	long := "mcp__" + strings.Repeat("潮汐", 60)
	turn := &Turn{TraceID: strings.Repeat("4bf9", 8), Agent: "claude-code", Prompt: long, Answer: long, Started: time.Unix(1_800_000_000, 0), Root: &Step{Duration: 3 * time.Minute, Tokens: Tokens{Input: 131_000}}}
	turn.Steps = []*Step{{Kind: "tool", Name: long, Input: long, Output: long, Duration: time.Second, Status: "error", Error: "tool_error", Started: turn.Started}}
	for _, width := range []int{60, 80, 120} {
		var out bytes.Buffer
		p := printer{w: &out, Style: Style{Width: width}}
		p.turn(turn, 1)
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range []string{"turn 1", "claude-code", "131k tokens", "trace 4bf94bf9", "1.0s · error tool_error"} {
			if !strings.Contains(text, want) {
				t.Errorf("width %d: no %q in\n%s", width, want, &out)
			}
		}
		for line := range strings.Lines(out.String()) {
			if n := Visible(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("width %d: %d columns: %s", width, n, line)
			}
		}
	}
}
