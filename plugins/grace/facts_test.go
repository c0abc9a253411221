package grace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// rowAt is a message of the conversation "harbour", n seconds into it.
func rowAt(role, action, status, task string, n int, content, list string) string {
	if list == "" {
		list = "[]"
	}
	return fmt.Sprintf(`{"role":%q,"uuid":"","status":%q,"content":%q,"comments":"","memorized":"","timestamp":%d,"type":"","meta":{"pid":"","task_id":%q,"action_type":%q,"filepath":"","url":"","json":%s,"content":"","is_active":true}}`,
		role, status, content, 1772445600000+int64(n)*1000, task, action, list)
}

const (
	taskA, taskB = "1772445601_0001", "1772445601_00010"
	planOfTwo    = `[{"id":"` + taskA + `","title":"Sound the bay","requirement":"Sound it from pier to pier","status":"pending"},{"id":"` + taskB + `","title":"Draw the chart","status":"pending"}]`
	chart        = `[{"filepath":"/workspace/chart.pdf","filename":"chart.pdf","url":"chart.pdf","filesize":7}]`
)

// survey is a turn of two tasks, the first of which is interrupted by the messages in between.
func survey(words ...string) []string {
	out := []string{
		rowAt("assistant", "auto_reply", "success", "", 0, "I will survey it.", ""),
		rowAt("assistant", "plan", "success", "", 1, "", planOfTwo),
		tool("running", "u1", taskA, 2, "lead.sh"), tool("success", "u1", taskA, 5, "12 m"),
	}
	out = append(out, words...)
	return append(out,
		tool("running", "u2", taskA, 8, "lead.sh -n"), tool("success", "u2", taskA, 9, "14 m"),
		rowAt("assistant", "task", "completed", taskA, 10, "Sounded", "{}"),
		tool("running", "u3", taskB, 11, "draw.sh"), tool("failure", "u3", taskB, 12, ""),
		rowAt("assistant", "error", "failed", taskB, 13, "No ink", "{}"),
		rowAt("assistant", "finish_summery", "success", "", 14, "Half of it is done.", ""))
}

func tool(status, uuid, task string, n int, content string) string {
	return strings.Replace(rowAt("assistant", "terminal_run", status, task, n, content, ""), `"uuid":""`, `"uuid":"`+uuid+`"`, 1)
}

// TestTasksAreNamedByTheirTitle: the run of a task is named by the task's title, and the agent
// delegates to that name, from the task's first message to its end, which has the result.
func TestTasksAreNamedByTheirTitle(t *testing.T) {
	got := decodeFrames(t, lines(survey()...))
	const turn = "turn-1772445600000"
	agents := make(map[string]map[string]bool)
	type handed struct {
		To, Task, Run string
		From, Until   int64
		Failed        bool
		Result        string
	}
	tasks := make(map[string]handed)
	for _, m := range got {
		if m.Kind != msg.User {
			if agents[m.Run] == nil {
				agents[m.Run] = make(map[string]bool)
			}
			agents[m.Run][m.Agent.Name] = true
		}
		h := tasks[m.Tool.CallID]
		switch second := m.Time/1e9 - 1772445600; m.Kind {
		case msg.Delegation:
			h.To, h.Task, h.Run, h.From = m.Delegation.To, m.Delegation.Task.String(), m.Delegation.ChildRun, second
		case msg.DelegationResult:
			h.Until, h.Failed, h.Result = second, m.IsError, m.Content.String()
		default:
			continue
		}
		tasks[m.Tool.CallID] = h
		if m.Run != turn {
			t.Errorf("%s is of run %s", m.Key, m.Run)
		}
	}
	if d := cmp.Diff(map[string]map[string]bool{
		turn: {"grace": true}, turn + "/" + taskA: {"Sound the bay": true}, turn + "/" + taskB: {"Draw the chart": true},
	}, agents); d != "" {
		t.Errorf("agents by run (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]handed{
		turn + "/" + taskA: {"Sound the bay", "Sound it from pier to pier", turn + "/" + taskA, 2, 10, false, "Sounded"},
		turn + "/" + taskB: {"Draw the chart", "Draw the chart", turn + "/" + taskB, 11, 13, true, "No ink"},
	}, tasks); d != "" {
		t.Errorf("tasks (-want +got):\n%s", d)
	}
}

// TestRepeatedPlanDelegatesOnce: a repeated plan does not delegate a task again, and a task that a
// revision adds has its title.
func TestRepeatedPlanDelegatesOnce(t *testing.T) {
	revised := `{"mode":"append","tasks":[{"id":"1772445601_0003","title":"Mix ink"}]}`
	got := decodeFrames(t, lines(survey(
		rowAt("assistant", "continue", "success", "", 6, "", planOfTwo),
		rowAt("assistant", "task", "revise_plan", taskA, 7, "More to do", revised),
		tool("running", "u9", "1772445601_0003", 7, "mix.sh"))...))
	var to []string
	for _, m := range got {
		if m.Kind == msg.Delegation {
			to = append(to, m.Delegation.To)
		}
	}
	if d := cmp.Diff([]string{"Sound the bay", "Mix ink", "Draw the chart"}, to); d != "" {
		t.Errorf("tasks (-want +got):\n%s", d)
	}
}

// TestFilesOfEveryAnswer: the files of a message of the agent are kept, whichever action it
// has, on the stream and in a row.
func TestFilesOfEveryAnswer(t *testing.T) {
	for _, action := range []string{"chat", "question", "progress", "finish_summery"} {
		got := decodeFrames(t, lines(rowAt("assistant", action, "success", "", 1, "Here it is.", chart)))
		row := strings.Replace(rowAt("assistant", action, "success", "", 1, "Here it is.", chart), `"pid":""`, `"pid":"41"`, 1)
		got = append(got, decodeFrames(t, []frame.Frame{{Kind: frame.Body, Data: []byte(`{"data":[` + strings.Replace(row, `{"role"`, `{"id":42,"conversation_id":"harbour","role"`, 1) + `]}`)}})...)
		files := 0
		for _, m := range got {
			for _, a := range m.Attachments {
				if a.Name == "chart.pdf" && a.Size == 7 {
					files++
				}
			}
		}
		if files != 2 {
			t.Errorf("%s: the file was kept %d times of 2:\n%s", action, files, rowsOf(t, got))
		}
	}
}

// TestTaskIsNoSession: a question, chat or progress message of the agent that names a task
// belongs to the task; the session stays, the task ends, and its calls stay with it.
func TestTaskIsNoSession(t *testing.T) {
	for _, action := range []string{"question", "progress", "chat"} {
		for name, first := range map[string][]string{"after the plan": nil, "before anything": {rowAt("assistant", action, "success", taskA, -1, "Ahoy", "")}} {
			frames := lines(append(first, survey(rowAt("assistant", action, "success", taskA, 6, "Which pier?", ""))...)...)
			d := newStream(t, "http://h/api/agent/run")
			var out decoder.Output
			for i := range frames {
				if err := d.Decode(&frames[i], &out); err != nil {
					t.Fatal(err)
				}
			}
			ended := make(map[string]bool)
			asked := ""
			for _, m := range out.Messages {
				if strings.Contains(m.Session, taskA) {
					t.Errorf("%s %s: %s is of session %s", action, name, m.Key, m.Session)
				}
				if m.Tool.CallID == "u2" && !strings.HasSuffix(m.Run, "/"+taskA) {
					t.Errorf("%s %s: the call is of run %s", action, name, m.Run)
				}
				if m.Content.String() == "Which pier?" {
					asked = m.Run
				}
				if m.Signal == msg.RunEnd {
					ended[m.Run[strings.LastIndexByte(m.Run, '/')+1:]] = true
				}
			}
			if !strings.HasSuffix(asked, "/"+taskA) {
				t.Errorf("%s %s: it is of run %q", action, name, asked)
			}
			if !ended[taskA] || !ended[taskB] {
				t.Errorf("%s %s: ended %v", action, name, ended)
			}
		}
	}
}

// TestUnansweredQuestionIsEmitted: a question without an answer is emitted when the stream is
// flushed, is not lost when the next one arrives, and joins the turn once it is answered.
func TestUnansweredQuestionIsEmitted(t *testing.T) {
	ask := func(n int, text string) string { return rowAt("user", "question", "success", "harbour", n, text, "") }
	prompts := func(frames []frame.Frame) (out []string) {
		for _, m := range decodeFrames(t, frames) {
			if m.Kind == msg.User {
				out = append(out, fmt.Sprint(m.Content, " ", m.Complete, " ", m.Run, " ", m.Time/1e9-1772445600))
			}
		}
		return out
	}
	reply := rowAt("assistant", "auto_reply", "success", "", 5, "Deep.", "")
	for name, c := range map[string]struct {
		frames []frame.Frame
		want   []string
	}{
		"one":      {lines(ask(0, "How deep?")), []string{"How deep? partial  0"}},
		"answered": {lines(ask(0, "How deep?"), reply), []string{"How deep? complete turn-1772445605000 0"}},
		"two":      {lines(ask(0, "How deep?"), ask(1, "And how wide?"), reply), []string{"How deep? partial  0", "And how wide? complete turn-1772445605000 1"}},
		"rows":     {[]frame.Frame{{Kind: frame.Body, Data: []byte(`{"data":[` + ask(0, "How deep?") + `,` + ask(1, "And how wide?") + `]}`)}}, []string{"How deep? partial  0", "And how wide? partial  1"}},
		"requests": {[]frame.Frame{
			{Kind: frame.Request, Name: "POST /api/agent/run", Data: []byte(`{"question":"How deep?","conversation_id":"harbour"}`)},
			{Kind: frame.Request, Name: "POST /api/agent/run", Data: []byte(`{"question":"And how wide?","conversation_id":"harbour"}`)},
		}, []string{"How deep? partial  -1772445600", "And how wide? partial  -1772445600"}},
	} {
		if d := cmp.Diff(c.want, prompts(c.frames)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestTaskOfTheTurnIsKept: a message of the turn that names a task has it as an attribute.
func TestTaskOfTheTurnIsKept(t *testing.T) {
	for _, action := range []string{"auto_reply", "plan", "coding", "finish_summery", "stop"} {
		for _, m := range decodeFrames(t, lines(rowAt("assistant", action, "success", taskA, 1, "Aye.", ""))) {
			if m.Attr("task_id") != taskA || strings.Contains(m.Run, taskA) {
				t.Errorf("%s: task %q, run %q", action, m.Attr("task_id"), m.Run)
			}
		}
	}
}
