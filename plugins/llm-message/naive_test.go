package llmmessage

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/frame"
)

// TestSnapshotsAreStoredOnce decodes a conversation of 60 turns, each of which sends the whole
// conversation so far: the stored bytes are those of the conversation, not the sum of the
// snapshots.
func TestSnapshotsAreStoredOnce(t *testing.T) {
	type item struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	d := newStream(t, "")
	decode(t, d, frame.Text, `{"event":"agent.session_created","timestamp":"2026-03-02T09:00:00.1","session_id":"s","content":"Session created successfully","metadata":{"agent_name":"keeper"},"seq":1}`)
	var memory []item
	var sent, stored, unique int
	for turn := range 60 {
		for _, m := range []item{
			{"user", fmt.Sprintf("question %d: %s", turn, strings.Repeat("how deep is it here? ", 20))},
			{"assistant", fmt.Sprintf("answer %d: %s", turn, strings.Repeat("four metres at low water. ", 40))},
		} {
			memory = append(memory, m)
			unique += len(m.Content)
		}
		b, err := json.Marshal(memory)
		if err != nil {
			t.Fatal(err)
		}
		sent += len(b)
		for _, m := range decode(t, d, frame.Text, fmt.Sprintf(`{"event":"agent.llm_message","timestamp":"2026-03-02T09:%02d:00.5","session_id":"s","content":{"messages":%s,"total_messages":%d},"seq":%d}`,
			turn, b, len(memory), turn+2)) {
			stored += m.Content.Len()
		}
	}
	t.Logf("the conversation has %d bytes; %d were sent, %d are stored: 1/%d of those sent", unique, sent, stored, sent/max(stored, 1))
	if stored < unique*9/10 || stored > unique*11/10 {
		t.Errorf("%d bytes are stored of a conversation of %d", stored, unique)
	}
	if sent < 20*stored {
		t.Errorf("%d bytes were sent and %d stored: the conversation is too short to show anything", sent, stored)
	}
}
