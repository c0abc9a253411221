package opencode

import (
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/decodertest"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestTokens: the sum of the usage messages is that of the steps, in both equations of the
// total, and each step has one; so is the cost.
func TestTokens(t *testing.T) {
	for name, want := range map[string]msg.Tokens{
		"turn":   {Input: 1600, Output: 122, CacheRead: 3600, CacheWrite: 20, Reasoning: 40, Provenance: msg.Provider, Stated: 37_500_000_000},
		"export": {Input: 13168, Output: 604, CacheRead: 24064, Reasoning: 201, Provenance: msg.Provider, Stated: 50_000_000_000},
		// as the rows of the sessions add them up, without the part that the fork repeats
		"kept": {Input: 345 + 30 + 50 + 30 + 33, Output: 89 + 4 + 6 + 5 + 4, CacheRead: 30, CacheWrite: 5, Reasoning: 8, Provenance: msg.Provider, Stated: 18_000_000_000},
		// a fork whose copies come before its session
		"forked_rows": {Input: 100 + 110 + 120, Output: 20 + 21 + 22, Provenance: msg.Provider, Stated: 960_000_000},
		"kept-export": {Input: 90, Output: 14, Reasoning: 2, Provenance: msg.Provider, Stated: 5_000_000_000},
	} {
		var sum msg.Tokens
		for _, m := range decodertest.Play(t, New(), name) {
			sum = sum.Add(m.Usage)
		}
		if sum != want {
			t.Errorf("%s: got %+v, want %+v", name, sum, want)
		}
	}
}

// TestTree: each session of a sub-agent is a run below its call, and each call has one result.
func TestTree(t *testing.T) {
	parents, links, results := make(map[string]string), make(map[string]string), make(map[string]int)
	for _, m := range decodertest.Play(t, New(), "agents") {
		if m.ParentRun != "" {
			parents[m.Run] = m.ParentRun + " " + m.ParentCall
		}
		if m.Signal == msg.Link {
			links[m.Tool.CallID] = m.Delegation.ChildRun
		}
		if m.Kind == msg.DelegationResult {
			results[m.Tool.CallID]++
		}
	}
	const run, one, two = "msg_7a02c004f001OrchardGate2x", "ses_7a02c003f001OrchardGate2x", "ses_7a02c024f001OrchardGate2x"
	for _, d := range []string{
		cmp.Diff(map[string]string{one: run + " call_PearTaskOne", two: run + " call_PearTaskBack"}, parents),
		cmp.Diff(map[string]string{"call_PearTaskOne": one, "call_PearTaskBack": two}, links),
		cmp.Diff(map[string]int{"call_PearTaskOne": 1, "call_PearTaskBack": 1}, results),
	} {
		if d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// TestOthersAreUnknown: what only looks like a message, a session, a part or a row is kept as it is, and is none.
func TestOthersAreUnknown(t *testing.T) {
	for _, in := range []string{
		`{"role":"user","content":"a message of another format"}`,
		`{"messages":[{"info":{"id":"msg_1","role":"user"},"parts":[]}]}`,
		`{"id":"prt_1","type":"text","text":"a part of no message"}`,
		`{"type":"message.updated","properties":{"sessionID":"ses_1"}}`,
		`{"type":"message.part.updated","properties":{"sessionID":"ses_1","part":{"type":"text","text":"of no message"}}}`,
		`{"table":"message","row":{"id":"msg_1","session_id":"ses_1","data":"no JSON of a message"}}`,
		`{"table":"todo","row":{"session_id":"ses_1","content":"count the hives"}}`,
		`{"table":"session","row":"no row"}`,
	} {
		d, err := New().New(decoder.Stream{})
		if err != nil {
			t.Fatal(err)
		}
		var out decoder.Output
		if err := d.Decode(&frame.Frame{Data: []byte(in)}, &out); err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) != 1 || out.Messages[0].Kind != msg.Unknown || out.Messages[0].Content.String() != in {
			t.Errorf("%s: %+v", in, out.Messages)
		}
	}
}

// TestCost: the costs of the requests of a session of version 2 are the sum that OpenCode has in the row of the session.
func TestCost(t *testing.T) {
	spent := make(map[string]float64)
	for _, m := range msg.Fold(decodertest.Play(t, New(), "kept")) {
		if cost, err := strconv.ParseFloat(m.Attr("cost"), 64); err == nil {
			spent[m.Session] += cost
		}
	}
	const agents = 0.001 + 0.001
	for session, want := range map[string]float64{"ses_7d30c001f001FerryBoat01": 0.014 + agents, "ses_7d30c004f001FerryBoat04": 0.002} {
		if math.Abs(spent[session]-want) > 1e-9 {
			t.Errorf("%s: %g, want %g", session, spent[session], want)
		}
	}
}
