package anomaly

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sec = int64(1e9)

// story plays results: "tool args result", with ! before a tool that failed, and
// | between those that begin when the one before has ended; results without |
// before them were begun together with the one before.
func story(s *State, steps string, again int) string {
	var out []string
	now := 1000 * sec
	for range again {
		for _, wave := range strings.Split(steps, "|") {
			begun := now
			for _, step := range strings.Split(wave, "&") {
				f := strings.Fields(step)
				now += sec
				r := Result{Call: fmt.Sprint(now), Tool: strings.TrimPrefix(f[0], "!"), Failed: f[0][0] == '!', Begun: begun, Ended: now}
				r.Arguments, r.Content = hash(f[1]), hash(f[2])
				for _, f := range s.Result(r) {
					out = append(out, fmt.Sprintf("%s %s %d", f.Kind, f.Tool, f.Count))
				}
			}
		}
	}
	return strings.Join(out, ", ")
}

func TestResults(t *testing.T) {
	for _, c := range []struct {
		name, steps string
		again       int
		want        string
	}{
		{"repeat", "poll x wait", 5, "repeat poll 5"},
		{"not yet", "poll x wait", 4, ""},
		{"doubled", "poll x wait", 41, "repeat poll 5, repeat poll 10, repeat poll 20, repeat poll 40"},
		{"a poll that makes progress", "poll x 10%|poll x 20%|poll x 30%|poll x 40%|poll x 50%|poll x 60%", 1, ""},
		{"other arguments", "read a text|read b text|read c text|read d text|read e text|read f text", 1, ""},
		{"repeats with work between", "poll x wait|read a text", 2, ""},
		{"ping-pong", "read a text|write a ok", 3, "ping_pong write 6"},
		{"ping-pong, doubled", "read a text|write a ok", 6, "ping_pong write 6, ping_pong write 12"},
		{"edit and test", "edit a ok|test x 5_fail|edit a ok|test x 4_fail|edit a ok|test x 3_fail|edit a ok|test x 2_fail", 1, ""},
		{"three in turn", "read a text|write a ok|list . a", 6, "ping_pong list 9, ping_pong list 18"},
		{"three in turn, not yet", "read a text|write a ok|list . a|read a text|write a ok|list . a|read a text|write a ok", 1, ""},
		{"four in turn", "read a text|write a ok|list . a|run x ok", 3, "ping_pong run 12"},
		{"three in turn with a new result", "read a text|write a ok|list . a|read a text|write a ok|list . b", 3, ""},
		{"twice and once", "edit a no|edit a no|read a text", 3, "ping_pong read 9"},
		{"twice and once, and once more", "edit a no|edit a no|read a text|edit a no|edit a no|read a text|edit a no|edit a no|edit a no", 1, ""},
		{"two, and then another two", "read a text|write a ok|read a text|write a ok|read a text|list . a|read a text|list . a|read a text|list . a", 1, "ping_pong list 6"},
		{"error storm", "!fetch a 503|!fetch b 503|!fetch c 503|!fetch d 503|!fetch e 503", 1, "error_storm fetch 5"},
		{"errors side by side", "!read a none&!read b none&!read c none&!read d none&!read e none&!read f none", 1, ""},
		{"a success between", "!fetch a 503|!fetch b 503|!fetch c 503|fetch d ok|!fetch e 503|!fetch f 503", 1, ""},
		{"errors of several tools", "!fetch a 1|!read a 2|!fetch b 3|!read b 4|!fetch c 5|!read c 6|!fetch d 7", 1, ""},
		{"the same error again", "!fetch a 503", 5, "repeat fetch 5, error_storm fetch 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := story(&State{}, c.steps, c.again); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestRepeatedResult: a transcript that is resumed repeats its last calls.
func TestRepeatedResult(t *testing.T) {
	var s State
	for range 20 {
		if found := s.Result(Result{Call: "c1", Tool: "poll"}); found != nil {
			t.Errorf("found %+v", found)
		}
	}
}

// counts are the counts of findings.
func counts(found []Finding) (n []int64) {
	for _, f := range found {
		n = append(n, f.Count)
	}
	return n
}

func TestFanOut(t *testing.T) {
	var s State
	var got []int64
	delegate := func(atWork int) { got = append(got, counts(s.Delegated("Task", atWork, sec))...) }
	for range 100 { // one after the other
		delegate(1)
	}
	for n := range 40 {
		delegate(n + 1)
	}
	delegate(32) // some ended, and it is 32 again
	if d := cmp.Diff([]int64{16, 32}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for n := range 16 {
		delegate(n + 1)
	}
	if d := cmp.Diff([]int64{16, 32, 16}, got); d != "" {
		t.Errorf("a new wave (-want +got):\n%s", d)
	}
}

func TestSilence(t *testing.T) {
	var got []int64
	for _, gap := range [][2]int64{
		{0, 1000}, // no message before
		{1000, 1299}, {1000, 1300},
		{2000, 1000}, // a transcript whose times run backwards
	} {
		got = append(got, counts(Gap(gap[0]*sec, gap[1]*sec))...)
	}
	if d := cmp.Diff([]int64{300}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestRestart stores and reloads the state between any two results.
func TestRestart(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var whole, cut State
		var a, b []Finding
		for i := range 60 {
			x := Result{Call: fmt.Sprint(i - r.IntN(2)), Tool: string(rune('a' + r.IntN(2))), Arguments: uint64(r.IntN(2)), Failed: r.IntN(2) == 0, Begun: int64(i), Ended: int64(i + r.IntN(3))}
			a, b = append(a, whole.Result(x)...), append(b, cut.Result(x)...)
			kept, err := json.Marshal(cut)
			if err != nil {
				t.Fatal(err)
			}
			cut = State{}
			if err := json.Unmarshal(kept, &cut); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(a, b); d != "" {
			t.Fatalf("(-whole +cut):\n%s", d)
		}
	}
}

// TestOlderState: a state without a tail continues a loop of two calls.
func TestOlderState(t *testing.T) {
	var s State
	story(&s, "read a text|write a ok", 2)
	s.Tail, s.Cycles, s.Calls, s.Turns = nil, nil, nil, 4
	if got := story(&s, "read a text|write a ok", 1); got != "ping_pong write 6" {
		t.Errorf("got %q", got)
	}
}
