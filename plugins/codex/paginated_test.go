package codex

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// facts are the messages of a file that are no statuses.
func facts(list []msg.Message) (out []msg.Message) {
	for _, m := range list {
		if m.Kind != msg.Status {
			m.Frame = 0
			m.Content, m.Tool.Arguments = msg.Plain(m.Content.String()), msg.Plain(m.Tool.Arguments.String())
			out = append(out, m)
		}
	}
	return out
}

// TestPaginatedIsTheSame: a thread whose history is paginated has items in the place of
// events, before or after the records of the model, and the same messages.
func TestPaginatedIsTheSame(t *testing.T) {
	whole, paginated := facts(playCase(t, "turn")), facts(playCase(t, "paginated"))
	if d := cmp.Diff(whole, paginated, cmp.AllowUnexported(msg.Text{})); d != "" {
		t.Errorf("-whole +paginated:\n%s", d)
	}
}

// TestWindowsAreOneThread: a later window of the history is a file of the same thread, and a
// command whose item has another id than its call is one call.
func TestWindowsAreOneThread(t *testing.T) {
	first, next := playCase(t, "paginated"), playCase(t, "paginated_window")
	calls := make(map[string]int)
	for _, m := range next {
		if m.Session != first[0].Session {
			t.Errorf("%s is in session %q", m.Key, m.Session)
		}
		if m.Kind == msg.ToolCall || m.Kind == msg.Delegation {
			calls[m.Tool.CallID]++
		}
	}
	if want := map[string]int{"call_plums1": 1, "ws_2": 1, "call_helper1": 1, "dyn_1": 1, "img_1": 1}; !cmp.Equal(want, calls) {
		t.Errorf("calls %v, want %v", calls, want)
	}
	bare := play(t, "/s/rollout-2026-03-04T10-10-11-019cb81c-a538-7000-8000-0000000000a1_2.jsonl", text(`{"type":"event_msg","payload":{"type":"shutdown_complete"}}`))
	if bare[0].Session != first[0].Session {
		t.Errorf("without a session_meta, the window is in session %q", bare[0].Session)
	}
}
