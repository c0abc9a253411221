package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/change"
	"github.com/earshot-dev/earshot/core/inspect"
)

// TestChanges has turns of 20 days, and since version 2.1.224 the tool Bash takes 20 % longer.
func TestChanges(t *testing.T) {
	h := newHome(t)
	r := rand.New(rand.NewPCG(7, 7))
	seconds := func(median float64) int { return int(math.Round(median * math.Exp(0.15*r.NormFloat64()))) }
	const turns, before = 160, 100
	start := time.Now().UTC().Truncate(24 * time.Hour).Add(-20 * 24 * time.Hour)
	var paths []string
	var released time.Time
	for i := range turns {
		at := start.Add(time.Duration(i) * 3 * time.Hour)
		version, median := "2.1.223", 200.0
		if i >= before {
			version, median = "2.1.224", 240
		}
		if i == before {
			released = at
		}
		paths = append(paths, ferry(t, fmt.Sprintf("turn-%03d", i), version, at, "Read", "timetable", seconds(30), "Bash", "tide", seconds(median)))
	}
	h.decoded("claude-code", paths...)
	var got inspect.Changed
	h.json(&got, "changes", "--since", "14d")
	if got.Runs != turns {
		t.Errorf("%d runs, want %d", got.Runs, turns)
	}
	seen := map[string]inspect.ChangePoint{}
	for _, c := range got.Changes {
		seen[c.Kind+" "+c.Name+" "+c.Metric] = c
		if len(c.Since) != 1 || c.Since[0] != "client 2.1.224" || !c.At.Equal(released) || c.Test != change.Release {
			t.Errorf("%s: %s since %v at %s, want a release at %s", c.Title(), c.Test, c.Since, c.At, released)
		}
	}
	bash, agent := seen["tool Bash duration"], seen["agent  duration"]
	if len(seen) != 2 || bash.Low > 1.2 || bash.High < 1.2 || bash.A.Runs != before || bash.B.Runs != turns-before {
		t.Errorf("%d changes, of Bash %+v", len(seen), bash.Change)
	}
	if agent.Turns == 0 || agent.Time[0].Name != "Bash" {
		t.Fatalf("the agent's time: %+v", agent.Time)
	}
	// The parts of p95 add up to the difference of the two percentiles.
	if d := agent.B.P95 - agent.A.P95; math.Abs(sum(agent.P95Time)-d) > 1e-6 {
		t.Errorf("p95 differs by %g ms, its parts by %g: %+v", d, sum(agent.P95Time), agent.P95Time)
	}
	out, _ := h.run("changes", "--since", "14d")
	for _, want := range []string{"tool Bash", "since client 2.1.224", "100 runs before, 60 after", "in tool Bash"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	site := h.site()
	site.has("/changes?from=now-14d&to=now", "since client 2.1.224", "Where the time is", "100</td>", "/compare?a=")
	site.has("/changes?from=now-14d&to=now&agent=nobody", "Nothing changed")
	cfg, err := (&configFile{path: h.config}).load(false)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // again, and there is no row more
		if n, err := storeChanges(t.Context(), cfg, h.x, time.Unix(max(agent.Found.Unix(), bash.Found.Unix()), 0).Add(time.Hour)); err != nil || n == 0 {
			t.Fatalf("%d stored: %v", n, err)
		}
	}
	if stored, _ := h.run("query", "SELECT kind, name, more, since FROM v_changes WHERE metric = 'duration' ORDER BY kind", "--format", "TSV"); stored != "agent\t\ttrue\t['client 2.1.224']\ntool\tBash\ttrue\t['client 2.1.224']\n" {
		t.Errorf("stored %q", stored)
	}
	versions, _ := h.run("query", "SELECT agent_version, runs FROM v_agent_versions ORDER BY first_run", "--format", "TSV")
	if versions != "2.1.223\t100\n2.1.224\t60\n" {
		t.Errorf("versions %q", versions)
	}
	for _, args := range [][]string{{"changes", "--since", "1s"}, {"changes", "--budget", "0"}, {"changes", "x"}} {
		if _, _, err := h.try(args...); !isUsage(err) {
			t.Errorf("%v: error %v", args, err)
		}
	}
}
