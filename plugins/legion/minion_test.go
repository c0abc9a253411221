package legion

import (
	"fmt"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestSentAndHeardHaveOneName: a call of send_comm and the prompt that it becomes at the
// other minion have one name, as each version of the writer has written it; messages of the
// user, the system or a channel have none, and neither have messages to them.
func TestSentAndHeardHaveOneName(t *testing.T) {
	call := func(tool, to, summary, content string) msg.Message {
		line := fmt.Sprintf(`{"type":"assistant","timestamp":1772442000,"metadata":{"tool_uses":[{"id":"t","name":"mcp__legion__%s","input":{"to_minion_name":%q,"channel_name":%q,"summary":%q,"content":%q}}]}}`,
			tool, to, to, summary, content)
		for _, m := range play(t, decoder.Stream{}, line) {
			if m.Tool.CallID == "t" {
				return m
			}
		}
		t.Fatal("no call")
		return msg.Message{}
	}
	heard := func(text string) string {
		return play(t, decoder.Stream{}, fmt.Sprintf(`{"type":"user","timestamp":1772442001,"content":%q}`, text))[0].Delegation.CorrelationPrompt
	}
	long := strings.Repeat("Mind the mud. ", 9)
	for _, c := range []struct{ summary, content, headline, footer string }{
		{"Count", "Count the boats\n\nbehind the mole.", "Count", ""},
		{"", long, long[:50] + "...", ""},
		{"", "Ebb?", "Ebb?", ""},
		{"Only a summary", "", "Only a summary", ""},
		{"Count", " Count.\n", "Count", "\n\n---\nAlways send messages to Minion #heron using the `send_comm` tool."},
		{"Count", "Count.", "Count", "\n\n---\nAttached files (use Read tool to access):\n- a.png (1.0 KB): /a.png\n\n---\nAlways send messages to Minion #heron using the `send_comm` tool."},
	} {
		m := call("send_comm", "wren", c.summary, c.content)
		if m.Kind != msg.Delegation || !m.Delegation.Async || m.Delegation.To != "wren" || m.Delegation.CorrelationPrompt == "" {
			t.Errorf("%+v: %s %+v", c, m.Kind, m.Delegation)
		}
		text := "**📋 Task from Minion #heron:** " + c.headline + "\n\n" + c.content + c.footer
		if got := heard(text); got != m.Delegation.CorrelationPrompt {
			t.Errorf("%q is %q, but was sent as %q", text, got, m.Delegation.CorrelationPrompt)
		}
	}
	for _, text := range []string{
		"Count.", "**🚨 System Error:**\n\nCount.", "**📋 Task from Minion #heron in channel #pond:** Count\n\nCount.",
		"**📋 Task from Minion #user:** Count\n\nCount.\n\n---\n**Please respond using the `send_comm` tool to send your reply back to Minion #user.**",
	} {
		if got := heard(text); got != "" {
			t.Errorf("%q may be of the call %q", text, got)
		}
	}
	if m := call("send_comm", "user", "", "Count."); m.Kind != msg.ToolCall || m.Delegation.CorrelationPrompt != "" {
		t.Errorf("what is told to the user is a %s with %+v", m.Kind, m.Delegation)
	}
	if m := call("send_comm_to_channel", "pond", "", "Count."); m.Kind != msg.Delegation || m.Delegation.CorrelationPrompt != "" {
		t.Errorf("what is told to a channel is a %s with %+v", m.Kind, m.Delegation)
	}
}

// TestStateNamesTheMinion: state.json beside the file names the minion of the session, no
// other member is kept, and the message is the same however often the file is rewritten.
func TestStateNamesTheMinion(t *testing.T) {
	state := func(text string) []msg.Message {
		var out decoder.Output
		d := open(t, decoder.Stream{Origin: "/data/sessions/s-1/state.json"})
		if err := d.Decode(&frame.Frame{Kind: frame.Body, Data: []byte(text)}, &out); err != nil || len(out.Problems) > 0 {
			t.Fatal(err, out.Problems)
		}
		own(t, out.Messages)
		return out.Messages
	}
	const fixed = `"session_id":"s-1","name":"heron","created_at":"2026-03-02T09:00:00+00:00","secret_fetch_token":"hush","system_prompt":"hush"`
	for _, text := range []string{`{` + fixed + `,"is_processing":true}`, "{\n  " + fixed + `,"is_minion":true,"latest_message":"hush"}`} {
		got := state(text)
		if len(got) != 1 || got[0].Run != "" || got[0].Session != "s-1" || got[0].Agent != (msg.Agent{ID: "s-1", Name: "heron", Kind: msg.KindAgent}) || got[0].Time != 1772442000e9 || !got[0].Hidden {
			t.Errorf("%s: %+v", text, got)
		}
		if strings.Contains(fmt.Sprintf("%+v", got), "hush") {
			t.Errorf("%s: kept", text)
		}
	}
	if got := state(`{"session_id":"s-1","name":"Fix the sluice","is_minion":false}`); len(got) != 0 {
		t.Errorf("a title is taken for a name: %+v", got)
	}
	if got := state(`{"version":1}`); len(got) != 1 || got[0].Kind != msg.Unknown {
		t.Errorf("another file: %+v", got)
	}
}
