package assemble

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestResultBeforeItsCall has results that are read before their calls, as it happens when a
// conversation is in several streams: the calls' rows are the same.
func TestResultBeforeItsCall(t *testing.T) {
	call := func(id string, at int64) msg.Message {
		return msg.Message{Run: "a", Kind: msg.ToolCall, ResponseID: "r", Tool: msg.Tool{CallID: id, Name: "look"}, Time: at}
	}
	result := func(id string, at int64, failed bool) msg.Message {
		return msg.Message{Run: "a", Kind: msg.ToolResult, Tool: msg.Tool{CallID: id}, Time: at, IsError: failed, Content: msg.Plain("x")}
	}
	prompt := msg.Message{Run: "a", Kind: msg.User, Time: 1}
	task := msg.Message{Run: "a", Kind: msg.Delegation, ResponseID: "r", Tool: msg.Tool{CallID: "3", Name: "Task"}, Delegation: msg.Delegate{To: "b"}, Time: 4}
	done := msg.Message{Run: "a", Kind: msg.DelegationResult, Tool: msg.Tool{CallID: "3"}, Time: 9}
	stop := msg.Message{Run: "a", Kind: msg.Stop, Signal: msg.RunEnd, Time: 10}
	in := newHarness(t)
	in.apply(prompt, call("1", 2), call("2", 3), task, result("1", 5, false), result("2", 6, true), done, stop)
	calls := func(w *harness) (out []string) {
		for l := range strings.Lines(w.tree()) {
			if l = strings.TrimSpace(l); strings.HasPrefix(l, "tool") || strings.HasPrefix(l, "delegation") {
				out = append(out, l)
			}
		}
		return out
	}
	want := calls(in)
	if len(want) != 3 {
		t.Fatal(want)
	}
	for name, list := range map[string][]msg.Message{
		"results first": {result("1", 5, false), result("2", 6, true), done, prompt, call("1", 2), call("2", 3), task},
		"mixed":         {prompt, result("2", 6, true), call("1", 2), done, call("2", 3), result("1", 5, false), task},
	} {
		for _, restart := range []bool{false, true} {
			out := newHarness(t)
			for _, m := range append(list, stop) {
				out.apply(m)
				if restart {
					out.restart()
				}
			}
			if diff := cmp.Diff(want, calls(out)); diff != "" {
				t.Errorf("%s, restart %v (-want +got):\n%s", name, restart, diff)
			}
		}
	}
}
