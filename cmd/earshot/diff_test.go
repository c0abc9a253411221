package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/inspect"
)

// ferry writes a transcript of one turn: calls of tools, each with its seconds.
func ferry(t *testing.T, session, version string, at time.Time, calls ...any) string {
	t.Helper()
	var text strings.Builder
	line := func(id, kind, message string) {
		fmt.Fprintf(&text, `{"parentUuid":null,"isSidechain":false,"sessionId":%q,"version":%q,"cwd":"/srv/quay","uuid":"%s-%s","timestamp":%q,"type":%q,"message":%s}`+"\n",
			session, version, session, id, at.Format("2006-01-02T15:04:05.000Z"), kind, message)
	}
	line("ask", "user", `{"role":"user","content":"Is the ferry late?"}`)
	for i := 0; i < len(calls); i += 3 {
		at = at.Add(time.Second)
		line(fmt.Sprint("call", i), "assistant", fmt.Sprintf(`{"model":"claude-opus-4-5","id":"msg_%s_%d","role":"assistant","content":[{"type":"tool_use","id":"toolu_%s_%d","name":%q,"input":{"command":%q}}],"stop_reason":"tool_use","usage":{"input_tokens":10,"output_tokens":5}}`,
			session, i, session, i, calls[i], calls[i+1]))
		at = at.Add(time.Duration(calls[i+2].(int)) * time.Second)
		line(fmt.Sprint("result", i), "user", fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%s_%d","content":"done"}]}`, session, i))
	}
	at = at.Add(time.Second)
	line("answer", "assistant", fmt.Sprintf(`{"model":"claude-opus-4-5","id":"msg_%s_end","role":"assistant","content":[{"type":"text","text":"It is."}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":5}}`, session))
	path := filepath.Join(t.TempDir(), session+".jsonl")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sum adds up the differences of parts.
func sum(parts []inspect.TimePart) (ms float64) {
	for _, p := range parts {
		ms += p.Delta
	}
	return ms
}

// TestDiff compares two sessions and their versions: a call more, one with other arguments, and
// one that takes 40 seconds more.
func TestDiff(t *testing.T) {
	h := newHome(t)
	at := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	h.decoded("claude-code",
		ferry(t, "5ea1", "2.1.38", at, "Read", "timetable", 1, "Bash", "tide", 2, "Bash", "wind north", 1),
		ferry(t, "5ea2", "2.1.39", at.Add(time.Minute), "Read", "timetable", 1, "Grep", "ferry", 1, "Bash", "tide", 42, "Bash", "wind south", 1))
	var d inspect.Difference
	h.json(&d, "diff", "5ea1", "5ea2")
	var steps []string
	for _, r := range d.Rows {
		if r.Kind == "tool" {
			steps = append(steps, r.Mark+r.Name)
		}
	}
	if want := []string{"=Read", "+Grep", "=Bash", "~Bash"}; !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
	if d.Diverges < 0 || d.Rows[d.Diverges].Name != "Grep" {
		t.Errorf("diverges at %d", d.Diverges)
	}
	if delta := d.B.DurationMS - d.A.DurationMS; delta != 42_000 || math.Abs(sum(d.Time)-delta) > 1e-6 || d.Time[0].Name != "Bash" || d.Time[0].Delta != 40_000 {
		t.Errorf("the duration differs by %g ms, and the parts by %g: %+v", delta, sum(d.Time), d.Time)
	}
	if a, b := d.A.Spent.Tokens.Total(), d.B.Spent.Tokens.Total(); a != 60 || b != 75 || d.B.Spent.CostUSD <= d.A.Spent.CostUSD {
		t.Errorf("%d and %d tokens, $%g and $%g", a, b, d.A.Spent.CostUSD, d.B.Spent.CostUSD)
	}
	out, _ := h.run("diff", d.A.ID, d.Rows[0].B.TraceID) // a trace is compared with the session
	for _, want := range []string{"Time +42s: +40s in tool Bash", "Tokens +15", "diverge at step 5", "← the first difference", "in A: {\"command\":\"wind north\"}"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	var changes struct{ Changes []inspect.Change }
	h.json(&changes, "diff", "--versions", "2.1.38,2.1.39")
	c := changes.Changes[0]
	if c.Kind != "agent" || c.DeltaMS != 42_000 || math.Abs(sum(c.Time)-c.DeltaMS) > 1e-6 || c.Time[0].Name != "Bash" {
		t.Errorf("the first change: %+v", c)
	}
	out, _ = h.run("diff", "--versions", "2.1.38,2.1.39")
	for _, want := range []string{"p95 +42s: +40s in tool Bash", "in B only", "A  version 2.1.38, ", "B  version 2.1.39, "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	out, _ = h.run("diff", "--versions", "2.1.39,2.1.99")
	if a, b, _ := strings.Cut(out, "\nB  version 2.1.99, "); strings.Contains(a, "nothing ran") || !strings.Contains(b, ": nothing ran; ") {
		t.Errorf("of a version that no agent has:\n%s", out)
	}
	if out, _ = h.run("diff", "5ea1", "5ea1"); !strings.Contains(out, "The steps are the same.") {
		t.Errorf("a session differs from itself:\n%s", out)
	}
	for _, args := range [][]string{{"diff", "5ea1"}, {"diff", "--versions", "2.1.38"}, {"diff", "5ea1", "5ea2", "--since", "1h"}, {"diff", "-o", "text"}} {
		if _, _, err := h.try(args...); !isUsage(err) {
			t.Errorf("%v: error %v", args, err)
		}
	}
}
