package conversation

import (
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// TestDelegation: a call that hands work over, and its result, name the agent; the result has its run. One
// that does not is a call of a tool.
func TestDelegation(t *testing.T) {
	var doc jsonv.Doc
	if err := doc.Parse([]byte(`"count the hives"`)); err != nil {
		t.Fatal(err)
	}
	var called, ended msg.Message
	d := Delegation{Call: Call{ID: "1/2", Name: "task", ProtocolID: "2"}, Task: true, To: "scout", Async: true}
	d.Called(&called, msg.Plain("{}"), doc.Root())
	d.Child = "run"
	d.Result(&ended)
	if called.Kind != msg.Delegation || called.Delegation.Task.String() != "count the hives" || called.Delegation.To != "scout" || called.Tool.ProtocolID != "2" {
		t.Errorf("the call is %+v", called)
	}
	if ended.Kind != msg.DelegationResult || ended.Delegation.ChildRun != "run" || ended.Delegation.To != "scout" || ended.ParentKey != "call:1/2" {
		t.Errorf("the result is %+v", ended)
	}
	var tool, result msg.Message
	plain := Delegation{Call: Call{ID: "3", Name: "mcp__bees__count"}, To: "scout"}
	plain.Called(&tool, msg.Plain("{}"), doc.Root())
	plain.Result(&result)
	if tool.Kind != msg.ToolCall || tool.Tool.Server != "bees" || result.Kind != msg.ToolResult || result.Delegation.To != "" {
		t.Errorf("the call of a tool is %+v, its result %+v", tool, result)
	}
}
