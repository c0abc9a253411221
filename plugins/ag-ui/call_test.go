package agui

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/decodertest"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestCallsOfTwoRuns: a provider that counts the calls of a response names them by the tool and the number, so that two runs
// have the same names.
func TestCallsOfTwoRuns(t *testing.T) {
	var frames []frame.Frame
	for _, run := range []string{"run-of-the-morning", "run-of-the-evening"} {
		for _, l := range []string{
			`{"type":"RUN_STARTED","threadId":"thread-of-the-quay","runId":"WHICH"}`,
			`{"type":"TOOL_CALL_START","toolCallId":"functions.search:1","toolCallName":"search"}`,
			`{"type":"TOOL_CALL_ARGS","toolCallId":"functions.search:1","delta":"{\"for\":\"WHICH\"}"}`,
			`{"type":"TOOL_CALL_END","toolCallId":"functions.search:1"}`,
			`{"type":"TOOL_CALL_RESULT","messageId":"result of WHICH","toolCallId":"functions.search:1","content":"the WHICH"}`,
			`{"type":"RUN_FINISHED","threadId":"thread-of-the-quay","runId":"WHICH"}`,
		} {
			frames = append(frames, frame.Frame{Kind: frame.Event, Data: []byte(strings.ReplaceAll(l, "WHICH", run))})
		}
	}
	calls := make(map[string]string)
	for _, m := range decodertest.Messages(t, New(), decoder.Stream{Origin: "quay"}, frames) {
		if m.Kind == msg.ToolCall || m.Kind == msg.ToolResult {
			calls[m.Tool.CallID] += m.Run + " "
			if m.Tool.ProtocolID != "functions.search:1" {
				t.Errorf("%s has the protocol's id %q", m.Key, m.Tool.ProtocolID)
			}
		}
	}
	want := map[string]string{
		"run-of-the-morning/functions.search:1": "run-of-the-morning run-of-the-morning ",
		"run-of-the-evening/functions.search:1": "run-of-the-evening run-of-the-evening ",
	}
	if d := cmp.Diff(want, calls); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestResultOfTheNextRun: a result of a tool of the user interface is in the request of the next run, and is that of the call
// of the run before.
func TestResultOfTheNextRun(t *testing.T) {
	request := `{"threadId":"thread-of-the-quay","runId":"run-of-the-evening","parentRunId":"run-of-the-morning","messages":[
		{"id":"message-of-the-quay","role":"assistant","toolCalls":[{"id":"functions.search:1","function":{"name":"search","arguments":"{}"}}]},
		{"id":"result-of-the-quay","role":"tool","toolCallId":"functions.search:1","content":"two ships"}]}`
	start := `{"type":"RUN_STARTED","threadId":"thread-of-the-quay","runId":"run-of-the-morning"}`
	asked := frame.Frame{Kind: frame.Request, Name: "POST /", Data: []byte(request)}
	for name, frames := range map[string][]frame.Frame{
		"alone": {asked}, "after the run": {{Kind: frame.Event, Data: []byte(start)}, asked},
	} {
		for _, m := range decodertest.Messages(t, New(), decoder.Stream{Origin: "quay"}, frames) {
			if want := "run-of-the-morning/functions.search:1"; m.Kind == msg.ToolResult && (m.Tool.CallID != want || m.Run != "run-of-the-evening") {
				t.Errorf("%s: the result is of %s in %s", name, m.Tool.CallID, m.Run)
			}
		}
	}
}
