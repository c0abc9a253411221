package link

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

func TestHopNames(t *testing.T) {
	name := func(tool, server, arguments string) HopName {
		return ArgumentsHop(tool, server, msg.Plain(arguments))
	}
	for _, c := range []struct {
		name string
		a, b HopName
		same bool
	}{
		{"the same call, in the words of both sides", name("mcp__lamp__turn", "lamp", `{"a": 1, "b": [2]}`), name("turn", "Lamp Room", `{"b":[2],"a":1}`), true},
		{"a server whose name begins as the prefix", name("mcp__m__turn", "m", "{}"), name("turn", "", ""), true},
		{"other arguments", name("turn", "", `{"a":1}`), name("turn", "", `{"a":2}`), false},
		{"long numbers", name("turn", "", `{"a":12345678901234567890}`), name("turn", "", `{"a":12345678901234567891}`), false},
		{"another tool", name("turn", "", "{}"), name("wind", "", "{}"), false},
		{"a span in a traceparent", TraceparentHop("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), SpanHop("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"), true},
		{"a text, trimmed", TextHop(msg.Plain("Where is the tide now?\n")), TextHop(msg.Plain("Where is the tide now?")), true},
	} {
		if (c.a == c.b) != c.same || c.a == "" || c.b == "" {
			t.Errorf("%s: %q and %q", c.name, c.a, c.b)
		}
	}
	for _, none := range []HopName{TraceparentHop("00-1-2-3"), TextHop(msg.Plain("yes")), SessionHop("main"), CallHop("")} {
		if none != "" {
			t.Errorf("%q is no evidence", none)
		}
	}
}

// TestHopsThatAreAlike pairs by time alone where it leaves no choice.
func TestHopsThatAreAlike(t *testing.T) {
	const s = int64(1e9)
	for _, c := range []struct {
		name  string
		calls [][2]int64 // seconds; no end while one lasts
		runs  []int64
		want  []Pair
	}{
		{"one of each", [][2]int64{{10, 20}}, []int64{12}, []Pair{{0, 90}}},
		{"before and behind the call", [][2]int64{{10, 20}}, []int64{5, 30}, []Pair{{-1, 0}, {-1, 0}}},
		{"one after the other", [][2]int64{{10, 20}, {30, 40}}, []int64{12, 32}, []Pair{{0, 90}, {1, 90}}},
		{"at once", [][2]int64{{10, 20}, {10, 20}}, []int64{12, 13}, []Pair{{0, 60}, {1, 60}}},
		{"one too many", [][2]int64{{10, 20}}, []int64{12, 13}, []Pair{{-1, 0}, {-1, 0}}},
		{"one too few", [][2]int64{{10, 20}, {11, 20}}, []int64{12}, []Pair{{-1, 0}}},
		{"one that lasts", [][2]int64{{10, 0}}, []int64{1000}, []Pair{{0, 90}}},
	} {
		at := Correlation{Hops: true, Link: msg.ByPrompt}
		for i, times := range c.calls {
			at.AddCause(CallSite{Format: "f", Session: "s", Call: string(rune('a' + i)), Start: times[0] * s, End: times[1] * s})
		}
		for i, start := range c.runs {
			at.AddHop(Candidate{Format: "g", Session: "r", Run: string(rune('a' + i)), Start: start * s})
		}
		if d := cmp.Diff(c.want, at.Pairs()); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}

	// Beyond the limit the oldest are forgotten with the hops that they caused, which stay.
	at := Correlation{Hops: true, Link: msg.ByPrompt}
	for i := range int64(3 * maxHops) {
		at.AddCause(CallSite{Format: "f", Session: "s", Call: msg.HashKey(string(rune(i))), Start: i * 10 * s, End: (i*10 + 5) * s})
		at.AddHop(Candidate{Format: "g", Session: "r", Run: msg.HashKey(string(rune(i))), Start: (i*10 + 2) * s})
		for n, p := range at.Pairs() {
			if p.Call < 0 {
				t.Fatalf("call %d: run %d of %d is of no call of %d", i, n, len(at.Runs), len(at.Calls))
			}
		}
	}
	if len(at.Calls) > maxHops || len(at.Runs) > maxHops {
		t.Errorf("%d calls, %d runs", len(at.Calls), len(at.Runs))
	}
}

// TestCrowdedHops: of more calls alike and at once than are remembered none is paired, and each is marked so; those
// of another time are.
func TestCrowdedHops(t *testing.T) {
	const s = int64(1e9)
	for _, n := range []int{100, maxHops, maxHops + 1, 2 * maxHops} {
		for _, first := range []string{"calls", "hops"} {
			at := Correlation{Hops: true, Link: msg.ByPrompt}
			crowded := make(map[string]bool)
			add := func(calls bool) {
				for i := range n {
					var lost []Candidate
					if calls {
						lost = at.AddCause(CallSite{Format: "f", Session: "s", Call: fmt.Sprintf("c%04d", i), Start: 100*s + int64(i), End: 110 * s})
					} else {
						lost = at.AddHop(Candidate{Format: "g", Session: "r", Run: fmt.Sprintf("r%04d", i), Start: 102*s + int64(i)})
					}
					for _, r := range lost {
						crowded[r.Run] = true
					}
				}
			}
			add(first == "calls")
			add(first != "calls")
			lost := at.AddCause(CallSite{Format: "f", Session: "s", Call: "later", Start: 300 * s, End: 310 * s})
			for _, r := range append(lost, at.AddHop(Candidate{Format: "g", Session: "r", Run: "later", Start: 302 * s})...) {
				crowded[r.Run] = true
			}
			paired := 0
			for i, p := range at.Pairs() {
				r := &at.Runs[i]
				switch {
				case p.Call >= 0 && at.Calls[p.Call].Call[1:] != r.Run[1:]:
					t.Fatalf("%d, %s first: %s is of %s", n, first, r.Run, at.Calls[p.Call].Call)
				case p.Call >= 0:
					paired++
				case at.Crowded(r):
					crowded[r.Run] = true
				}
			}
			if n < maxHops && (paired != n+1 || len(crowded) != 0) || n > maxHops && (paired != 1 || len(crowded) != n) {
				t.Errorf("%d, %s first: %d are paired, %d crowded", n, first, paired, len(crowded))
			}
		}
	}
}

// TestInner: of two recordings of a request, one is inside of the other. Where there is a choice, none is.
func TestInner(t *testing.T) {
	const s = int64(1e9)
	hop := func(session, request string, from, to int64) Candidate {
		return Candidate{Format: "mcp", Session: session, Run: "r" + fmt.Sprint(from), Request: request, Start: from * s, End: to * s}
	}
	for _, c := range []struct {
		name string
		runs []Candidate
		want []int64 // of each, in the order of time
	}{
		{"both sides", []Candidate{hop("here", "a", 10, 20), hop("there", "a", 12, 17)}, []int64{5 * s, 0}},
		{"the clock is wrong by less than a second", []Candidate{hop("here", "a", 10, 20), hop("there", "a", 11, 20)}, []int64{9 * s, 0}},
		{"one side", []Candidate{hop("here", "a", 10, 20)}, []int64{0}},
		{"not answered", []Candidate{hop("here", "a", 10, 20), hop("there", "a", 12, 0)}, []int64{0, 0}},
		{"another request", []Candidate{hop("here", "a", 10, 20), hop("there", "b", 12, 17)}, []int64{0, 0}},
		{"the same recording", []Candidate{hop("here", "a", 10, 20), hop("here", "a", 12, 17)}, []int64{0, 0}},
		{"a choice", []Candidate{hop("here", "a", 10, 20), hop("there", "a", 12, 17), hop("there", "a", 13, 18)}, []int64{0, 0, 0}},
		{"outside", []Candidate{hop("here", "a", 10, 20), hop("there", "a", 30, 31)}, []int64{0, 0}},
	} {
		at := Correlation{Hops: true, Link: msg.ByNativeID}
		at.AddCause(CallSite{Format: "f", Session: "s", Call: "c", Start: 9 * s, End: 40 * s})
		for _, r := range c.runs {
			at.AddHop(r)
		}
		var got []int64
		pairs := at.Pairs()
		for i := range at.Runs {
			got = append(got, at.Inner(i, pairs))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}
