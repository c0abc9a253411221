package copilot

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder/decodertest"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestTokensAreTheTotals: the sum of the usage messages is that of the last session.shutdown,
// which is cumulative, or of
// each run of the program, and may be repeated.
func TestTokensAreTheTotals(t *testing.T) {
	for name, want := range map[string]msg.Tokens{
		"turn":   {Input: 21006 + 1100, Output: 199 + 30, CacheRead: 41648 + 800, CacheWrite: 100},
		"agents": {Input: 3000 + 3000 + 894, Output: 100 + 69 + 6, CacheRead: 2000},
		"copies": {Input: 850, Output: 23, CacheRead: 2600, CacheWrite: 50},
		"twice":  {Input: 400, Output: 24, CacheRead: 300},
		// A version whose totals begin again with each run of the program.
		// The pieces of a response repeat its tokens, and auto names no model.
		"chunks": {Input: 400, Output: 60, CacheRead: 500},
		// Each response has a record of its own, in the runs of the program, of sub-agents and before it is killed.
		"usage":        {Input: 160 + 70, Output: 45 + 7, CacheRead: 140, Reasoning: 5},
		"usage_agents": {Input: 250 + 64 + 44, Output: 40 + 6 + 4},
		"usage_killed": {Input: 80, Output: 8},
		"resumed":      {Input: 400 + 600 + 80, Output: 25 + 34 + 3, CacheRead: 600 + 900},
	} {
		var sum msg.Tokens
		for _, m := range decodertest.Play(t, New(), name) {
			sum = sum.Add(m.Usage)
		}
		if sum.Provenance = msg.NoProvenance; sum != want {
			t.Errorf("%s: got %+v, want %+v", name, sum, want)
		}
	}
}

// tree returns the parents of the runs in a case, and the number of the results of each delegation.
func tree(t *testing.T, name string) (parents map[string]string, results map[string]int) {
	parents, results = make(map[string]string), make(map[string]int)
	for _, m := range decodertest.Play(t, New(), name) {
		if m.ParentRun != "" {
			parents[m.Run] = m.ParentRun + " " + m.ParentCall
		}
		if m.Kind == msg.DelegationResult {
			results[m.Tool.CallID]++
		}
	}
	return parents, results
}

// TestTree: each sub-agent is a run below the call that began it, also one of a sub-agent, and
// each call has one result.
func TestTree(t *testing.T) {
	parents, results := tree(t, "agents")
	const run, one, two, nested = "66af33da-0016-4501-af7f-8794b02deec1", "toolu_BuoyAgentOne", "toolu_BuoyAgentTwo", "toolu_BuoyNested"
	for _, d := range []string{
		cmp.Diff(map[string]string{one: run + " " + one, two: run + " " + two, nested: one + " " + nested}, parents),
		cmp.Diff(map[string]int{one: 1, two: 1, nested: 1}, results),
	} {
		if d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// TestNamedAgents: an agent that has another id than its call is below it, and below the agent that it names, or the
// main one, where the log lacks the call.
func TestNamedAgents(t *testing.T) {
	parents, results := tree(t, "named")
	const run = "66af33da-0016-4501-af7f-8794b02d0b01"
	for _, d := range []string{
		cmp.Diff(map[string]string{"chart-1": run + " toolu_ShoalChart", "lead-2": "chart-1 ", "watch-3": run + " "}, parents),
		cmp.Diff(map[string]int{"toolu_ShoalChart": 1}, results),
	} {
		if d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// TestOrigin: a path names the session where the log does not.
func TestOrigin(t *testing.T) {
	for path, want := range map[string]string{
		"/home/ada/.copilot/session-state/0c0f/events.jsonl": "0c0f",
		`C:\Users\ada\0c0f\events.jsonl.1`:                   "0c0f",
		"recorded/0c0f.jsonl":                                "0c0f",
		"":                                                   "",
	} {
		if got := sessionOf(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}
