package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestRooCodeTask reads the documents of a task with a sub-task, which Roo Code writes again at each step: everything is there once, the
// tokens are those of the requests, and the sub-task, whose file names no parent, is below its call.
func TestRooCodeTask(t *testing.T) {
	h := newHome(t).configure("sources:", files("roo-code", "tasks/*/{ui_messages,history_item}.json"))
	const task, sub = "0198c0de-0001-7000-8000-00000000b0a7", "0198c0de-0002-7000-8000-00000000b0a8"
	document := func(name string) string {
		text, err := os.ReadFile("../../plugins/roo-code/testdata/" + name + "/in.json")
		h.must(err)
		return string(text)
	}
	whole := document("roo")
	part, _, _ := strings.Cut(whole, `"subtask_result"`) // while the sub-task works
	part = part[:strings.LastIndex(part, "},")] + "}]"
	h.write("tasks/"+sub+"/ui_messages.json", document("child")) // read before its caller, as any of many old tasks may be
	h.write("tasks/"+sub+"/history_item.json", document("item"))
	h.drain()
	h.write("tasks/"+task+"/ui_messages.json", part)
	h.drain()
	h.write("tasks/"+task+"/ui_messages.json", whole)
	h.drain()

	const parent, child = "input 780 output 405 cache 12280", "input 1890 output 50 cache 0"
	got := h.query("SELECT concat('input ', toString(sum(input_tokens)), ' output ', toString(sum(output_tokens)), ' cache ', toString(sum(cache_read_tokens + cache_write_tokens))) FROM v_usage GROUP BY session_id ORDER BY session_id")
	if fmt.Sprint(got) != fmt.Sprint([]string{parent, child}) {
		t.Errorf("tokens %q", got)
	}
	if got := h.query("SELECT content FROM v_messages WHERE kind IN ('user', 'assistant', 'reasoning') GROUP BY content, run_id HAVING count() != 1"); len(got) > 0 {
		t.Errorf("not once: %q", got)
	}
	if got := h.query("SELECT concat(status, ' ', child_run_id, ' ', link_method) FROM v_delegations"); fmt.Sprint(got) != fmt.Sprint([]string{"ok " + sub + " prompt"}) {
		t.Errorf("delegations: %q", got)
	}
	if got := h.query("SELECT p.kind FROM v_spans AS s JOIN v_spans AS p ON p.span_id = s.parent_span_id WHERE s.kind = 'run' AND s.run_id = '" + sub + "'"); fmt.Sprint(got) != "[delegation]" {
		t.Errorf("the sub-task is below %q", got)
	}
	if got := h.query("SELECT concat(tool_name, ' ', status) FROM v_tool_calls WHERE session_id = '" + task + "' ORDER BY ts"); fmt.Sprint(got) != "[readFile ok updateTodoList ok ask_followup_question ok execute_command ok newTask ok next_ebb ok appliedDiff error]" {
		t.Errorf("calls %q", got)
	}
	if got := h.query("SELECT count() FROM v_spans WHERE kind = 'run' AND session_id = '" + task + "' AND status = 'ok'"); fmt.Sprint(got) != "[2]" {
		t.Errorf("runs that ended well: %q", got)
	}
}
