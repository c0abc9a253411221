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

// TestReconnected: a page that is loaded again while an answer is written asks for the stream of its chat, whose id is in the address
// alone, and gets it from the beginning: its messages are those of the stream before.
func TestReconnected(t *testing.T) {
	var events []frame.Frame
	for _, l := range []string{
		`{"type":"start","messageId":"message-of-the-tide"}`,
		`{"type":"start-step"}`,
		`{"type":"text-start","id":"0"}`,
		`{"type":"text-delta","id":"0","delta":"It rises."}`,
		`{"type":"text-end","id":"0"}`,
	} {
		events = append(events, frame.Frame{Kind: frame.Event, Data: []byte(l)})
	}
	ask := func(body string) frame.Frame {
		return frame.Frame{Kind: frame.Request, Name: "POST /api/chat", Data: []byte(body)}
	}
	const prompt = `"messages":[{"id":"prompt-of-the-tide","role":"user","parts":[{"type":"text","text":"Does it rise?"}]}]}`
	for _, c := range []struct {
		name, origin string
		frames       []frame.Frame
		want         string
	}{
		{"asked", "http://127.0.0.1:3000/api/chat", append([]frame.Frame{ask(`{"id":"chat-of-the-tide",` + prompt)}, events...), "chat-of-the-tide"},
		{"again", "http://127.0.0.1:3000/api/chat/chat-of-the-tide/stream", events, "chat-of-the-tide"},
		{"again with a query", "http://127.0.0.1:3000/api/chat/chat-of-the-tide/stream?n=1", events, "chat-of-the-tide"},
		{"a route of that name", "http://127.0.0.1:3000/api/stream", append([]frame.Frame{ask("{" + prompt)}, events...), "http://127.0.0.1:3000/api/stream"},
	} {
		for _, m := range decodertest.Messages(t, New(), decoder.Stream{Origin: c.origin}, c.frames) {
			if m.Kind == msg.Assistant && (m.Session != c.want || m.Key != "message-of-the-tide/1/0") {
				t.Errorf("%s: %s is in the session %s", c.name, m.Key, m.Session)
			}
		}
	}
}
