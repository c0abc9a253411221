package link

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

const sec = int64(1e9)

func site(call string, start, end int64) CallSite {
	return CallSite{Format: "f", Session: "caller", Run: "r", Call: call, Start: start * sec, End: end * sec}
}

func candidate(run, agent string, start int64) Candidate {
	return Candidate{Format: "g", Session: "s" + run, Run: run, Agent: agent, Start: start * sec}
}

// TestPairs adds calls and runs in any order: the pairs are the same.
func TestPairs(t *testing.T) {
	async := func(c CallSite) CallSite { c.Async = true; return c }
	inferred := func(r Candidate) Candidate { r.Inferred = true; return r }
	same := func(r Candidate) Candidate { r.Format, r.Session = "f", "caller"; return r }
	const hour = 3600
	for _, c := range []struct {
		name  string
		by    msg.LinkMethod
		calls []CallSite
		runs  []Candidate
		want  map[string]Pair // by run
	}{
		{"one of each", msg.ByPrompt, []CallSite{site("a", 100, 200)}, []Candidate{candidate("x", "", 110)}, map[string]Pair{"x": {0, 80}}},
		{"by id it is certain", msg.ByNativeID, []CallSite{site("a", 100, 200)}, []Candidate{candidate("x", "", 110)}, map[string]Pair{"x": {0, 0}}},
		{"clocks differ a little", msg.ByPrompt, []CallSite{site("a", 100, 200)}, []Candidate{candidate("x", "", 96)}, map[string]Pair{"x": {0, 80}}},
		{"before the call", msg.ByPrompt, []CallSite{site("a", 100, 200)}, []Candidate{candidate("x", "", 80)}, map[string]Pair{"x": {-1, 0}}},
		{"after the call", msg.ByPrompt, []CallSite{site("a", 100, 200)}, []Candidate{candidate("x", "", 300)}, map[string]Pair{"x": {-1, 0}}},
		{"while the call is open", msg.ByPrompt, []CallSite{site("a", 100, 0)}, []Candidate{candidate("x", "", 5*hour), candidate("y", "", 7*hour)}, map[string]Pair{"x": {0, 80}, "y": {-1, 0}}},
		{"never of its own session", msg.ByPrompt, []CallSite{site("a", 100, 200)}, []Candidate{same(candidate("x", "", 110))}, map[string]Pair{"x": {-1, 0}}},
		{"the same prompt twice", msg.ByPrompt, []CallSite{site("a", 100, 200), site("b", 101, 200)}, []Candidate{candidate("x", "", 110), candidate("y", "", 111)}, map[string]Pair{"x": {0, 40}, "y": {1, 40}}},
		{"one call to two agents", msg.ByPrompt, []CallSite{site("a", 100, 200)}, []Candidate{candidate("x", "owl", 110), candidate("y", "wren", 111)}, map[string]Pair{"x": {0, 80}, "y": {0, 80}}},
		{"one thread, called again", msg.ByNativeID, []CallSite{site("a", 100, 200), site("b", 300, 400)}, []Candidate{candidate("x", "", 110), candidate("y", "", 310)}, map[string]Pair{"x": {0, 0}, "y": {1, 0}}},
		{"one thread of unknown times, by order", msg.ByNativeID, []CallSite{site("a", 100, 200), site("b", 300, 400)}, []Candidate{inferred(candidate("x", "", 5000)), inferred(candidate("y", "", 5001))}, map[string]Pair{"x": {0, 0}, "y": {1, 0}}},
		{"an agent that was busy", msg.ByPrompt, []CallSite{async(site("a", 100, 101))}, []Candidate{candidate("x", "", 400)}, map[string]Pair{"x": {0, 40}}},
		{"an agent that was busy, twice", msg.ByPrompt, []CallSite{async(site("a", 100, 101)), async(site("b", 101, 102))}, []Candidate{candidate("x", "", 400), candidate("y", "", 401)}, map[string]Pair{"x": {0, 40}, "y": {1, 40}}},
		{"in the time of two", msg.ByPrompt, []CallSite{async(site("a", 50, 60)), async(site("b", 55, 56))}, []Candidate{candidate("x", "", 58)}, map[string]Pair{"x": {0, 40}}},
		{"an agent that was busy for too long", msg.ByPrompt, []CallSite{async(site("a", 100, 101))}, []Candidate{candidate("x", "", 2*hour)}, map[string]Pair{"x": {-1, 0}}},
	} {
		for seed := range uint64(5) {
			r := rand.New(rand.NewPCG(seed, 1))
			calls, runs := append([]CallSite(nil), c.calls...), append([]Candidate(nil), c.runs...)
			r.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
			r.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
			co := Correlation{Link: c.by}
			for _, s := range calls {
				co.AddCall(s)
				co.AddCall(s) // a later version replaces the first
			}
			for _, s := range runs {
				co.AddRun(s)
			}
			got := make(map[string]Pair)
			for i, p := range co.Pairs() {
				got[co.Runs[i].Run] = p
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.name, d)
			}
		}
	}
}

func TestCorrelationsAreBounded(t *testing.T) {
	c := Correlation{Link: msg.ByPrompt}
	for i := range 2 * maxCorrelated {
		c.AddCall(site(fmt.Sprint(i), int64(i), 0))
		c.AddRun(candidate(fmt.Sprint(i), "", int64(i)))
	}
	if len(c.Calls) != maxCorrelated || len(c.Runs) != maxCorrelated || c.Runs[0].Run != fmt.Sprint(maxCorrelated) {
		t.Errorf("%d calls, %d runs from %s on", len(c.Calls), len(c.Runs), c.Runs[0].Run)
	}
	if !c.HasRun("g", "s100", "100") || c.HasRun("f", "s100", "100") {
		t.Error("a run is known by more than its id")
	}
}
