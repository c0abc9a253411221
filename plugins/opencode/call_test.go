package opencode

import (
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/decodertest"
	"github.com/earshot-dev/earshot/core/frame"
)

// TestCallWithoutBeginning: a call of which a piece of the arguments is read first has the name of its tool, which the
// pieces do not have.
func TestCallWithoutBeginning(t *testing.T) {
	var frames []frame.Frame
	for _, l := range []string{
		`{"id":"evt_1","type":"session.next.tool.input.delta","properties":{"sessionID":"ses_well","assistantMessageID":"msg_well","callID":"call_of_the_well","delta":"epth\":7}"}}`,
		`{"id":"evt_2","type":"session.next.tool.called","properties":{"sessionID":"ses_well","assistantMessageID":"msg_well","callID":"call_of_the_well","tool":"sound","input":{"depth":7}}}`,
		`{"id":"evt_3","type":"session.next.tool.success","properties":{"sessionID":"ses_well","assistantMessageID":"msg_well","callID":"call_of_the_well","content":[{"type":"text","text":"Water."}]}}`,
	} {
		frames = append(frames, frame.Frame{Kind: frame.Event, Data: []byte(l)})
	}
	messages := decodertest.Messages(t, New(), decoder.Stream{}, frames)
	if len(messages) != 2 {
		t.Errorf("%d messages, want the call and its result", len(messages))
	}
	for _, m := range messages {
		if m.Tool.Name != "sound" {
			t.Errorf("%s is of the tool %q", m.Key, m.Tool.Name)
		}
	}
}
