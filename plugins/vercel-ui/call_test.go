package vercelui

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
			`{"type":"start","messageId":"WHICH"}`,
			`{"type":"start-step"}`,
			`{"type":"tool-input-available","toolCallId":"functions.search:1","toolName":"search","input":{"for":"WHICH"}}`,
			`{"type":"tool-output-available","toolCallId":"functions.search:1","output":"the WHICH"}`,
			`{"type":"finish-step"}`,
			`{"type":"finish"}`,
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
