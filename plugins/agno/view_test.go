package agno

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/frame/fixture"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestTurn: a chat that shows the prompt, each delegation with its task and result, and the
// answer needs only the messages that are not hidden, in their order, in both forms.
func TestTurn(t *testing.T) {
	want := []string{
		"20:26:40 ? Is the north pier safe to moor at tonight?",
		"20:26:42 Harbour Office → Survey Team: Judge the north pier for tonight",
		"20:26:44 Survey Team → Weather Desk: Forecast for the north pier, tonight",
		"20:26:45 Weather Desk → Gauge Reader: Read the wind gauge",
		"20:26:51 Weather Desk ← Gauge Reader: 11 knots, gusts of 17.",
		"20:26:53 Survey Team ← Weather Desk: 11 knots, gusts of 17.Calm night.",
		"20:26:54 Survey Team → Diver Ebba: Look at the pilings",
		"20:26:57 Survey Team ← Diver Ebba: Pilings are sound.",
		"20:26:59 Harbour Office ← Survey Team: First the weather. 11 knots, gusts of 17.Calm night.Pilings are sound.Calm, and the pilings hold.",
		"20:27:01 ! Yes: calm, and the pilings are sound.",
	}
	for _, file := range []string{"frames.jsonl", "reload.json"} {
		if got := view(play(t, frames(t, "testdata/team_nested/"+file)...)); !slices.Equal(got, want) {
			t.Errorf("%s:", file)
			for i := range max(len(got), len(want)) {
				t.Errorf("\n got %q\nwant %q", at(got, i), at(want, i))
			}
		}
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

// view returns the visible lines of a turn.
func view(messages []msg.Message) []string {
	var out []string
	for i := range messages {
		m := &messages[i]
		at := m.Row().TS
		if len(at) > 19 {
			at = at[11:19]
		}
		switch {
		case m.Hidden:
		case m.Kind == msg.User:
			out = append(out, fmt.Sprintf("%s ? %s", at, m.Content))
		case m.Kind == msg.Delegation:
			out = append(out, fmt.Sprintf("%s %s → %s: %s", at, m.Agent.Name, m.Delegation.To, m.Delegation.Task))
		case m.Kind == msg.DelegationResult:
			out = append(out, fmt.Sprintf("%s %s ← %s: %s", at, m.Agent.Name, m.Delegation.To, m.Content))
		case m.Kind == msg.Assistant && m.ParentRun == "" && m.FinishReason != "":
			out = append(out, fmt.Sprintf("%s ! %s", at, m.Content))
		}
	}
	return out
}

// frames reads a recorded stream.
func frames(t *testing.T, file string) []frame.Frame {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := fixture.TransportOf(file)
	if err != nil {
		t.Fatal(err)
	}
	list, err := fixture.Read(transport, b)
	if err != nil {
		t.Fatal(err)
	}
	return list
}
