package interchange_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/interchange"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestSFT writes a conversation with parallel calls, a call without a result, a compaction and
// a sub-agent: each agent is a chat of its own, and results follow their calls at once.
func TestSFT(t *testing.T) {
	row := func(kind, run, call, text string) msg.Row {
		r := msg.Row{SessionID: "quay", Kind: kind, RunID: run, ToolCallID: call, Content: text}
		switch kind {
		case "tool_call", "delegation":
			r.ToolName, r.ToolArguments, r.Content = "tide", text, ""
			r.Attributes = map[string]string{"response_id": "r-" + run}
		}
		return r
	}
	child := row("user", "crane", "", "Which berth?")
	child.ParentRunID, child.Attributes = "harbour", map[string]string{"parent_call_id": "c-2"}
	compacted := row("system", "harbour", "", "So far: berth 2.")
	compacted.Hidden, compacted.Attributes = true, map[string]string{"signal": "compaction"}
	chats := interchange.SFT(interchange.ATIF([]msg.Row{
		row("user", "harbour", "", "Plan \"the\" day."), row("tool_call", "harbour", "c-1", `{"at":1}`), row("delegation", "harbour", "c-2", "not json"), row("tool_call", "harbour", "c-3", ""),
		child, row("assistant", "crane", "", "2"), row("delegation_result", "harbour", "c-2", "berth 2"), row("tool_result", "harbour", "c-1", "low"),
		compacted, row("assistant", "harbour", "", "Berth 2."),
	}, nil))
	var got strings.Builder
	for _, c := range chats {
		for _, m := range c.Messages {
			fmt.Fprintf(&got, "%s %q", m.Role, m.Content)
			for _, call := range m.ToolCalls {
				fmt.Fprintf(&got, " %s(%s)", call.ID, call.Function.Arguments)
			}
			fmt.Fprintln(&got, "", m.ToolCallID)
		}
		fmt.Fprintln(&got, "--")
	}
	const want = `user "Plan \"the\" day." 
assistant "" c-1({"at":1}) c-2({"input":"not json"}) 
tool "low" c-1
tool "berth 2" c-2
--
system "So far: berth 2." 
assistant "Berth 2." 
--
user "Which berth?" 
assistant "2" 
--
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}
