package grace

import (
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
)

// TestEveryActionIsKnown: each action that the documents or the sources name produces messages
// of a kind of its own, with a uuid and without.
func TestEveryActionIsKnown(t *testing.T) {
	for action, want := range map[string]msg.Kind{
		"plan": msg.Plan, "task": msg.Task, "auto_reply": msg.Assistant, "finish": msg.Status, "search": msg.ToolCall, "file": msg.ToolCall,
		"terminal": msg.ToolCall, "todo": msg.ToolCall, "browser": msg.ToolCall, "question": msg.Assistant, "finish_summery": msg.Assistant,
		"progress": msg.Status, "write_code": msg.ToolCall, "read_file": msg.ToolCall, "terminal_run": msg.ToolCall, "error": msg.Error,
		"stop": msg.Stop, "coding": msg.Status, "update_status": msg.Status, "web_search": msg.ToolCall, "document_query": msg.ToolCall,
		"document_upload": msg.ToolCall, "mcp_tool": msg.ToolCall, "continue": msg.Plan, "chat": msg.Assistant, "coding_complete": msg.Status,
		"write_file": msg.ToolCall, "evaluation": msg.ToolCall, "patch_code": msg.ToolCall,
	} {
		for _, uuid := range []string{"", "u-1"} {
			got := decodeFrames(t, lines(sent(t, action, "success", uuid, "9_0001", "text")))
			if len(got) == 0 || got[0].Kind != want {
				t.Errorf("%s with uuid %q: %s", action, uuid, rowsOf(t, got))
			}
		}
	}
	// Of the names of tools there is no list: a uuid and a status make one.
	if got := decodeFrames(t, lines(sent(t, "sonar", "running", "u-2", "", "ping"))); got[0].Kind != msg.ToolCall || got[0].Tool.Name != "sonar" {
		t.Errorf("a tool that nobody knows: %s", rowsOf(t, got))
	}
	if got := decodeFrames(t, lines(sent(t, "sonar", "success", "", "", "ping"))); got[0].Kind != msg.Unknown {
		t.Errorf("an action that nobody knows: %s", rowsOf(t, got))
	}
}

// TestTasksAreChildRuns: a message with a task belongs to a child run of the turn, which begins
// with the first such message and ends with the task message.
func TestTasksAreChildRuns(t *testing.T) {
	turn := ""
	ends := make(map[string]string)
	for _, m := range decodeFrames(t, load(t, "agent", "frames.jsonl")) {
		if turn == "" {
			turn = m.Run
		}
		task := m.Attr("task_id")
		switch {
		case m.Run == "": // the request
		case task == "" || m.Tool.Internal:
			if m.Run != turn || m.ParentRun != "" {
				t.Errorf("%s is in run %s below %q, want the turn", m.Key, m.Run, m.ParentRun)
			}
		case m.Run != turn+"/"+task || m.ParentRun != turn || m.Delegation.Link != msg.ByParent:
			t.Errorf("%s is in run %s below %q", m.Key, m.Run, m.ParentRun)
		}
		if m.Signal == msg.RunEnd {
			ends[m.Run] = m.FinishReason
		}
	}
	if len(ends) != 3 || ends[turn] != "stop" || ends[turn+"/1772445601_0002"] != "completed" {
		t.Errorf("the runs end so: %v", ends)
	}
}

// TestErrorsAreJudgedByTheirAction: an error whose status is success is an error.
func TestErrorsAreJudgedByTheirAction(t *testing.T) {
	got := decodeFrames(t, lines(sent(t, "auto_reply", "success", "", "", "On it."), sent(t, "error", "success", "", "", "out of fuel")))
	if m := got[1]; !m.IsError || m.Kind != msg.Error || m.Signal != msg.RunEnd || m.Run != got[0].Run {
		t.Errorf("an error with the status success: %s", rowsOf(t, got))
	}
}

// TestRepeatedFramesChangeNothing: frames that are repeated, or that change places, add and
// lose no message.
func TestRepeatedFramesChangeNothing(t *testing.T) {
	var run, done string
	for _, uuid := range []string{"", "u-1"} {
		run, done = sent(t, "read_file", "running", uuid, "1", "log.txt"), sent(t, "read_file", "success", uuid, "1", "ahoy")
		want := rowsOf(t, decodeFrames(t, lines(run, done)))
		for name, p := range map[string][]string{
			"running twice": {run, run, done}, "result twice": {run, done, done}, "all twice": {run, done, run, done}, "everything twice": {run, run, done, done},
		} {
			if got := rowsOf(t, decodeFrames(t, lines(p...))); got != want {
				t.Errorf("uuid %q, %s:\n%swant\n%s", uuid, name, got, want)
			}
		}
	}
	swapped := decodeFrames(t, lines(done, run))
	kinds := []msg.Kind{msg.ToolCall, msg.ToolResult, msg.Status}
	if len(swapped) != 3 {
		t.Fatalf("changed places:\n%s", rowsOf(t, swapped))
	}
	for i, m := range swapped {
		if m.Kind != kinds[i] || m.Tool.CallID != "u-1" {
			t.Errorf("changed places: message %d is %s of call %q", i, m.Kind, m.Tool.CallID)
		}
	}
	if got := swapped[2].Content.String(); got != "log.txt" {
		t.Errorf("the description that came late is %q", got)
	}
	for _, c := range []string{"agent", "failures", "websocket", "odd", "specialist", "logs"} {
		for _, file := range []string{"frames.jsonl", "in.ws.jsonl", "in.sse", "in.jsonl"} {
			if !exists(c, file) {
				continue
			}
			frames := load(t, c, file)
			var twice []frame.Frame
			for _, f := range frames {
				twice = append(twice, f, f)
			}
			if want, got := rowsOf(t, decodeFrames(t, frames)), rowsOf(t, decodeFrames(t, twice)); got != want {
				t.Errorf("%s: each frame twice:\n%swant\n%s", c, got, want)
			}
		}
	}
}

// TestMemoryIsBounded: calls, intents and questions that stay open are evicted beyond the
// limits.
func TestMemoryIsBounded(t *testing.T) {
	d := newStream(t, "x.jsonl")
	var out decoder.Output
	feed := func(frames ...frame.Frame) {
		t.Helper()
		for i := range frames {
			out.Reset()
			if err := d.Decode(&frames[i], &out); err != nil {
				t.Fatal(err)
			}
		}
	}
	long := strings.Repeat("x", 1<<12)
	size := 0
	const rounds = 6000
	for i := range rounds {
		id := strings.Repeat("i", 8) + string(rune('a'+i%26)) + long[:i%300]
		n := id + string(rune(i))
		feed(lines(
			sent(t, "read_file", "running", n, n, long), sent(t, "browser", "running", "", n, n),
			sent(t, "web_search", "success", n+"!", n, "x"),
			sent(t, "auto_reply", "success", "", "", "<write_code><path>"+n+"</path></write_code>"),
			`{"role":"assistant","timestamp":1772445600000,"status":"success","content":"","meta":{"action_type":"plan","json":[{"id":"`+n+`","title":"`+long+`"}]}}`,
		)...)
		feed(frame.Frame{Kind: frame.Request, Name: "POST /api/agent/run", Data: []byte(`{"question":"` + n + `"}`)})
		if i == rounds/2 {
			size = snapshotSize(t, d)
		}
	}
	if n := snapshotSize(t, d); n > size+size/10 {
		t.Errorf("snapshot of %d bytes after %d rounds, %d after %d", size, rounds/2, n, rounds)
	}
	feed(lines("__lemon_mode__{\"mode\":\"chat\"}")...)
	for range 600 {
		feed(frame.Frame{Kind: frame.Text, Data: []byte(strings.Repeat("潮", 1<<10))})
	}
	if n := snapshotSize(t, d); n > 2*maxText {
		t.Errorf("a snapshot of %d bytes keeps an answer", n)
	}
	feed(lines("__lemon_out_end__{\"message_id\":\"2\",\"pid\":\"1\"}")...)
	m := out.Messages[len(out.Messages)-1]
	if want := 600*3<<10 - m.Content.Len(); m.Attr("truncated_bytes") != conversation.NonZero(want) {
		t.Errorf("%s bytes are left out of an answer according to truncated_bytes, want %d", m.Attr("truncated_bytes"), want)
	}
}

func snapshotSize(t *testing.T, d stateful) int {
	t.Helper()
	b, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return len(b)
}
