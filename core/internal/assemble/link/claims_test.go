package link

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
)

// exchangeOf has the messages of one exchange of a provider's format: the prompt, and an answer
// or an error under the response id.
func exchangeOf(run, response string, kind msg.Kind) []msg.Message {
	return []msg.Message{
		{Session: "s", Run: run, Kind: msg.User, Key: "prompt:" + run, Signal: msg.RunStart},
		{Session: "s", Run: run, Kind: kind, Key: response + "/text", ParentKey: "prompt:" + run, ResponseID: response},
	}
}

// claimed returns run, key, parent and response id after the claims.
func claimed(c *Claims, stream uint64, list []msg.Message) (out []string) {
	for _, m := range list {
		c.Claim(&m, stream, func(string, uint64) bool { return false })
		out = append(out, strings.Join([]string{m.Run, m.Key, m.ParentKey, m.ResponseID}, " "))
	}
	return out
}

func TestClaims(t *testing.T) {
	one, two, three := SuffixOf(1), SuffixOf(2), SuffixOf(3)
	for _, c := range []struct {
		name   string
		first  msg.Kind
		closed bool
		run    string
		resp   string
		want   []string
	}{
		{"answered, and asked again", msg.Assistant, true, "r", "x", []string{"r" + two + " prompt:r" + two + "  ", "r" + two + " x/text" + two + " prompt:r" + two + " x" + two}},
		{"failed, and tried again", msg.Error, true, "r", "y", []string{"r prompt:r  ", "r y/text prompt:r y"}},
		{"asked twice at once", msg.Error, false, "r", "y", []string{"r" + two + " prompt:r" + two + "  ", "r" + two + " y/text" + two + " prompt:r" + two + " y"}},
		{"another prompt, the same id", msg.Assistant, true, "q", "x", []string{"q prompt:q  ", "q x/text" + two + " prompt:q x" + two}},
	} {
		var ids Claims
		if got := strings.Join(claimed(&ids, 1, exchangeOf("r", "x", c.first)), "|"); strings.Contains(got, one) {
			t.Errorf("%s: the first stream got %s", c.name, got)
		}
		if c.closed {
			ids.Close(1)
		}
		again, err := json.Marshal(ids)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time from the stored state
			if got, want := strings.Join(claimed(&ids, 2, exchangeOf(c.run, c.resp, msg.Assistant)), "|"), strings.Join(c.want, "|"); got != want {
				t.Errorf("%s:\n got %s\nwant %s", c.name, got, want)
			}
			ids = Claims{}
			if err := json.Unmarshal(again, &ids); err != nil {
				t.Fatal(err)
			}
		}
	}

	// Results belong to the run whose call they answer.
	var ids Claims
	call := func(stream uint64) msg.Message {
		list := exchangeOf("r", "x", msg.ToolCall)
		list[1].Key, list[1].Tool.CallID = "call:c", "c"
		return last(t, &ids, stream, list)
	}
	a := call(1)
	ids.Close(1)
	b := call(2)
	ids.Close(2)
	result := last(t, &ids, 3, []msg.Message{{Session: "s", Run: "r", Kind: msg.ToolResult, Key: "result:c", ParentKey: "call:c", Tool: msg.Tool{CallID: "c"}}})
	if a.Tool.CallID != "c" || b.Tool.CallID != "c"+two || result.Tool.CallID != b.Tool.CallID || result.Run != b.Run || result.ParentKey != b.Key || strings.Contains(result.Key, three) {
		t.Errorf("calls %q of %q and %q of %q, result of %q in %q below %q", a.Tool.CallID, a.Run, b.Tool.CallID, b.Run, result.Tool.CallID, result.Run, result.ParentKey)
	}
}

func last(t *testing.T, c *Claims, stream uint64, list []msg.Message) (m msg.Message) {
	t.Helper()
	for _, m = range list {
		c.Claim(&m, stream, func(string, uint64) bool { return false })
	}
	return m
}

// TestClaimsAreBounded uses more ids than Claims remembers.
func TestClaimsAreBounded(t *testing.T) {
	var ids Claims
	for i := range uint64(2 * maxClaims) {
		claimed(&ids, i, exchangeOf(fmt.Sprint("r", i), fmt.Sprint("x", i), msg.Assistant))
	}
	if n := len(ids.Responses.Of); n != maxClaims || len(ids.Runs.Of) != maxClaims || len(ids.Streams.Of) != maxClaims {
		t.Errorf("%d responses, %d runs, %d streams", n, len(ids.Runs.Of), len(ids.Streams.Of))
	}
}

// TestRunsOfOneStreamKeepTheirNames: a stream of several runs that is decoded again has the names that it
// had, also the one that another stream had before.
func TestRunsOfOneStreamKeepTheirNames(t *testing.T) {
	runs := make(map[string]uint64)
	var ids Claims
	read := func(stream uint64) (names []string) {
		for _, run := range []string{"r", "q", "p"} {
			for _, m := range exchangeOf(run, fmt.Sprint(run, stream), msg.Assistant) {
				ids.Claim(&m, stream, func(run string, stream uint64) bool { return runs[run] == stream })
				runs[m.Run] = stream
				names = append(names, m.Run)
			}
		}
		ids.Close(stream)
		return names
	}
	one, two := read(1), read(2)
	for _, again := range [][2][]string{{one, read(1)}, {two, read(2)}, {one, read(1)}} {
		if got, want := strings.Join(again[1], " "), strings.Join(again[0], " "); got != want {
			t.Errorf("decoded again: %s, before %s", got, want)
		}
	}
	if two[0] != "r"+SuffixOf(2) || Unclaimed(two[0], 2) != "r" {
		t.Errorf("the second stream has %v", two)
	}
}
