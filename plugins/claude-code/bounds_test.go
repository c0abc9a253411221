package claudecode

import (
	"fmt"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
)

// TestMemoryIsBounded: open state of a transcript (calls without results,
// sub-agents that never end, notices, responses) is forgotten beyond the limits.
func TestMemoryIsBounded(t *testing.T) {
	d := open(t, "/p/s.jsonl")
	var out decoder.Output
	feed := func(format string, args ...any) {
		t.Helper()
		out.Reset()
		if err := d.Decode(&frame.Frame{Data: fmt.Appendf(nil, format, args...)}, &out); err != nil {
			t.Fatal(err)
		}
		if len(out.Problems) > 0 || len(out.Messages) == 0 {
			t.Fatalf("%d messages, problems %v", len(out.Messages), out.Problems)
		}
	}
	size := 0
	const rounds = 2400
	for i := range rounds {
		feed(`{"type":"user","uuid":"p%d","sessionId":"s","message":{"content":"prompt"}}`, i)
		feed(`{"type":"assistant","uuid":"a%d","parentUuid":"p%d","sessionId":"s","message":{"id":"m%d","content":[{"type":"tool_use","id":"c%d","name":"Task","input":{"prompt":"task %d"}}],"usage":{"output_tokens":1}}}`, i, i, i, i, i)
		feed(`{"type":"user","uuid":"x%d","isSidechain":true,"sessionId":"s","message":{"content":"task %d"}}`, i, i)
		feed(`{"type":"assistant","uuid":"y%d","parentUuid":"x%d","isSidechain":true,"sessionId":"s","message":{"id":"n%d","content":[{"type":"text","text":"x"}],"usage":{"output_tokens":1}}}`, i, i, i)
		feed(`{"type":"queue-operation","operation":"enqueue","sessionId":"s","content":"<task-notification><task-id>t%d</task-id></task-notification>"}`, i)
		if i != rounds/2 {
			continue
		}
		b, err := d.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		size = len(b)
	}
	b, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > size+size/10 {
		t.Errorf("snapshot of %d bytes after %d rounds, %d after %d", size, rounds/2, len(b), rounds)
	}
	for what, n := range map[string][2]int{
		"lanes": {len(d.Lanes), 64}, "calls": {len(d.Calls.Open), conversation.MaxCalls},
		"responses": {len(d.Recent), 32}, "notices": {d.Notified.Len(), maxNotified},
	} {
		if n[0] > n[1] {
			t.Errorf("%d %s are remembered, want %d at most", n[0], what, n[1])
		}
	}
	// The main conversation was not evicted.
	feed(`{"type":"assistant","uuid":"last","parentUuid":"p%d","sessionId":"s","message":{"id":"mlast","content":[{"type":"text","text":"x"}]}}`, rounds-1)
	if got, want := out.Messages[len(out.Messages)-1].Run, fmt.Sprintf("p%d", rounds-1); got != want {
		t.Errorf("the main conversation is in run %q, want %q", got, want)
	}
}

// TestLongIdsAreNotRemembered: an id is as long as its sender likes.
func TestLongIdsAreNotRemembered(t *testing.T) {
	d := open(t, "/p/s.jsonl")
	long := strings.Repeat("x", 1<<14)
	var out decoder.Output
	for i := range 50 {
		for _, format := range []string{
			`{"type":"user","uuid":"u%[1]d%[2]s","sessionId":"%[1]d%[2]s","message":{"content":"prompt"}}`,
			`{"type":"assistant","uuid":"a%[1]d%[2]s","requestId":"%[1]d%[2]s","sessionId":"%[1]d%[2]s","message":{"id":"%[1]d%[2]s","model":"%[2]s","stop_reason":"%[2]s","content":[{"type":"tool_use","id":"%[1]d%[2]s","name":"Task","input":{"subagent_type":"%[2]s","prompt":"%[2]s"}}],"usage":{"output_tokens":1}}}`,
			`{"type":"user","uuid":"x%[1]d%[2]s","isSidechain":true,"agentId":"%[1]d%[2]s","sessionId":"%[1]d%[2]s","message":{"content":"task"}}`,
		} {
			out.Reset()
			if err := d.Decode(&frame.Frame{Data: fmt.Appendf(nil, format, i, long)}, &out); err != nil {
				t.Fatal(err)
			}
		}
	}
	b, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 1<<18 {
		t.Errorf("the snapshot has %d bytes", len(b))
	}
}
