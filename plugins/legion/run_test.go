package legion

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestLaunchIsInNoTurn: a client that is launched again the day after does not prolong the turn that broke off.
func TestLaunchIsInNoTurn(t *testing.T) {
	for _, m := range play(t, decoder.Stream{},
		`{"type":"user","content":"Count the boats.","timestamp":1772442000}`,
		`{"type":"assistant","content":"One, two,","timestamp":1772442001}`,
		`{"type":"system","content":"Claude Code Launched","timestamp":"2026-03-03T09:00:00+00:00","metadata":{"subtype":"client_launched"}}`,
	) {
		if inTurn := m.Kind != msg.Status; inTurn != (m.Run != "") {
			t.Errorf("%s %q is of run %q", m.Kind, m.Content, m.Run)
		}
	}
}

// TestInterruptedTurnHasItsLastRecords: the last words of the model arrive after the acknowledgement of the interrupt. It
// belongs to the interrupted turn, which the result line ends, and whose tokens count once. A turn after that line
// is another one.
func TestInterruptedTurnHasItsLastRecords(t *testing.T) {
	got := play(t, decoder.Stream{},
		`{"type":"user","content":"Count the boats.","timestamp":1772442000}`,
		`{"_type":"AssistantMessage","timestamp":1772442001,"data":{"content":[{"text":"One,"}],"message_id":"m1","usage":{"input_tokens":10,"output_tokens":1}}}`,
		`{"type":"system","content":"Interrupted","timestamp":1772442002,"metadata":{"subtype":"interrupt_success"}}`,
		`{"_type":"AssistantMessage","timestamp":1772442003,"data":{"content":[{"text":"two,"}],"message_id":"m1","usage":{"input_tokens":10,"output_tokens":2}}}`,
		`{"_type":"ResultMessage","timestamp":1772442004,"data":{"subtype":"error_during_execution","is_error":true,"usage":{"input_tokens":12,"output_tokens":4}}}`,
		`{"_type":"AssistantMessage","timestamp":1772442009,"data":{"content":[{"text":"The count is done."}],"message_id":"m2"}}`)
	turn, last := got[0].Run, got[len(got)-1]
	var used msg.Tokens
	for _, m := range got[:len(got)-1] {
		if m.Run != turn {
			t.Errorf("%s %q is of run %q, want %q", m.Kind, m.Content, m.Run, turn)
		}
		used.Input, used.Output = used.Input+m.Usage.Input, used.Output+m.Usage.Output
	}
	if used.Input != 12 || used.Output != 4 {
		t.Errorf("%d and %d tokens, want 12 and 4", used.Input, used.Output)
	}
	if last.Run == turn || last.Run == "" {
		t.Errorf("%q is of run %q", last.Content, last.Run)
	}
}

// TestRepeatedResponsesCountOnce: a file that has its lines twice, one after the other or all of them again, has the
// tokens of its sub-agents once.
func TestRepeatedResponsesCountOnce(t *testing.T) {
	said := func(id, call string) string {
		return `{"_type":"AssistantMessage","timestamp":177244200` + id + `,"data":{"content":[{"text":"` + id + `"}],"message_id":"m` + id + `","parent_tool_use_id":` + call + `,"usage":{"input_tokens":10,"output_tokens":1}}}`
	}
	ask := `{"type":"user","content":"Count the boats.","timestamp":1772442000}`
	task := `{"_type":"AssistantMessage","timestamp":1772442001,"data":{"content":[{"id":"t1","name":"Task","input":{"prompt":"Count","subagent_type":"counter"}}],"message_id":"m1"}}`
	done := `{"_type":"UserMessage","timestamp":1772442004,"data":{"content":[{"tool_use_id":"t1","content":"Two"}]}}`
	a, b, c := said("2", `"t1"`), said("3", `"t1"`), said("5", "null")
	for name, lines := range map[string][]string{
		"once":           {ask, task, a, b, done, c},
		"in the run":     {ask, task, a, b, a, b, done, c},
		"after its end":  {ask, task, a, b, done, a, b, c},
		"the whole file": {ask, task, a, b, done, c, ask, task, a, b, done, c},
	} {
		used := make(map[string]uint64)
		for _, m := range play(t, decoder.Stream{}, lines...) {
			used[m.Run] += m.Usage.Input
		}
		if used["t1"] != 20 || len(used) != 2 {
			t.Errorf("%s: tokens by run %v, want 20 of t1", name, used)
		}
		delete(used, "t1")
		for run, n := range used {
			if n != 10 {
				t.Errorf("%s: %d tokens of %s, want 10", name, n, run)
			}
		}
	}
}

// TestNumberedCalls: a server may count the calls of each response. A call that begins after the end of one with its number is another,
// in each generation; a state of a call, or a line that is there twice, is not.
func TestNumberedCalls(t *testing.T) {
	block := func(second, n int) string {
		return fmt.Sprintf(`{"_type":"AssistantMessage","timestamp":%d,"data":{"content":[{"id":"call_0","name":"Tide","input":{"n":%d}}],"message_id":"m%d"}}`, 1772442000+second, n, n)
	}
	result := func(second, n int) string {
		return fmt.Sprintf(`{"_type":"UserMessage","timestamp":%d,"data":{"content":[{"tool_use_id":"call_0","content":"%d"}]}}`, 1772442000+second, n)
	}
	state := func(second, n int, status string) string {
		return fmt.Sprintf(`{"type":"tool_call","timestamp":%d,"tool_use_id":"call_0","name":"Tide","input":{"n":%d},"created_at":%d,"status":%q,"result":"%d"}`, 1772442000+second, n, 1772442001+3*n, status, n)
	}
	ask := `{"type":"user","content":"When is high tide?","timestamp":1772442000}`
	for name, lines := range map[string][]string{
		"blocks":             {ask, block(4, 1), result(5, 1), block(4, 1), result(5, 1), block(7, 2), result(8, 2)},
		"states":             {ask, state(4, 1, "pending"), state(4, 1, "running"), state(5, 1, "completed"), state(7, 2, "pending"), state(8, 2, "completed")},
		"blocks with states": {ask, block(4, 1), state(4, 1, "pending"), result(5, 1), state(5, 1, "completed"), block(7, 2), state(8, 2, "completed"), result(8, 2)},
	} {
		var calls, results []string
		for _, m := range play(t, decoder.Stream{}, lines...) {
			switch m.Kind {
			case msg.ToolCall:
				calls = append(calls, m.Tool.CallID+m.Tool.Arguments.String()+m.Tool.ProtocolID)
			case msg.ToolResult:
				results = append(results, m.Tool.CallID+`{"n":`+m.Content.String()+`}`+m.Tool.ProtocolID)
			}
		}
		if len(calls) != 2 || !strings.HasSuffix(calls[1], `{"n":2}call_0`) || !slices.Equal(calls, results) {
			t.Errorf("%s: the calls %v have the results %v", name, calls, results)
		}
	}
}

// TestTaskThatEndsAfterAnInterrupt wakes the agent: its words then are a turn of their own, and the interrupted one has its tokens.
func TestTaskThatEndsAfterAnInterrupt(t *testing.T) {
	for name, task := range map[string][]string{
		"a sub-agent":     {`{"type":"system","content":"","timestamp":1772442090,"metadata":{"subtype":"task_notification","task_id":"a1","tool_use_id":"toolu_1","status":"completed","summary":"Nine."}}`},
		"an unknown task": {`{"type":"system","content":"","timestamp":1772442090,"metadata":{"subtype":"task_notification","task_id":"b7","status":"completed","summary":"Nine."}}`},
		"a text":          {`{"type":"user","content":"<task-notification>Nine.</task-notification>","timestamp":1772442090}`},
		"and a killed one": {`{"type":"system","content":"","timestamp":1772442089,"metadata":{"subtype":"task_notification","task_id":"b7","status":"completed","summary":"Nine."}}`,
			`{"type":"system","content":"","timestamp":1772442090,"metadata":{"subtype":"task_notification","task_id":"a1","tool_use_id":"toolu_1","status":"killed","summary":"Killed."}}`},
	} {
		got := play(t, decoder.Stream{}, slices.Concat([]string{
			`{"type":"user","content":"Count the boats.","timestamp":1772442000}`,
			`{"_type":"AssistantMessage","timestamp":1772442001,"data":{"content":[{"id":"toolu_1","name":"Task","input":{"prompt":"Look.","subagent_type":"gull","run_in_background":true}}],"message_id":"m1","usage":{"input_tokens":10,"output_tokens":1}}}`,
			`{"_type":"UserMessage","timestamp":1772442002,"data":{"content":[{"tool_use_id":"toolu_1","content":"Async agent launched successfully."}],"tool_use_result":{"status":"async_launched","agentId":"a1"}}}`,
			`{"type":"system","content":"Interrupted","timestamp":1772442003,"metadata":{"subtype":"interrupt_success"}}`,
		}, task, []string{
			`{"_type":"AssistantMessage","timestamp":1772442091,"data":{"content":[{"text":"There are nine."}],"message_id":"m2","usage":{"input_tokens":20,"output_tokens":2}}}`,
			`{"_type":"ResultMessage","timestamp":1772442092,"data":{"subtype":"success","usage":{"input_tokens":20,"output_tokens":2}}}`,
		})...)
		used := make(map[string]int64)
		for _, m := range got {
			if m.Kind == msg.Usage {
				used[m.Run] += int64(m.Usage.Input)
			}
		}
		if first, last := got[0].Run, got[len(got)-1].Run; first == last || used[first] != 10 || used[last] != 20 {
			t.Errorf("%s: tokens %v of the runs %q and %q", name, used, first, last)
		}
	}
}
