package llmmessage

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// decodeEvents decodes events, with a restart before each, and returns the folded messages.
func decodeEvents(t *testing.T, events ...string) []msg.Message {
	t.Helper()
	var all []msg.Message
	d := newStream(t, "")
	for i, e := range events {
		e = strings.Replace(e, "{", fmt.Sprintf(`{"session_id":"s","timestamp":"2026-03-02T10:00:%02d","seq":%d,"event_id":"c-%[2]d",`, i, i+1), 1)
		state, err := d.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		d = newStream(t, "")
		if i > 0 {
			if err := d.Restore(state); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range decode(t, d, frame.Text, e) {
			if err := m.Validate(); err != nil {
				t.Error(err)
			}
			all = append(all, m)
		}
	}
	return msg.Fold(all)
}

// snapshotEvent is a snapshot of a memory.
func snapshotEvent(state, response string, messages ...string) string {
	final := "null"
	if response != "" {
		final = fmt.Sprintf("%q", response)
	}
	return fmt.Sprintf(`{"event":"agent.llm_message","content":{"messages":[%s],"total_messages":%d},"metadata":{"agent_name":"pilot","agent_state":%q,"final_response":%s}}`,
		strings.Join(messages, ","), len(messages), state, final)
}

func userItem(text string) string      { return fmt.Sprintf(`{"role":"user","content":%q}`, text) }
func assistantItem(text string) string { return fmt.Sprintf(`{"role":"assistant","content":%q}`, text) }
func callItem(id, tool, args string) string {
	return fmt.Sprintf(`{"role":"assistant","content":"","tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}`, id, tool, args)
}
func toolItem(id, tool, text string) string {
	return fmt.Sprintf(`{"role":"tool","content":%q,"name":%q,"tool_call_id":%q}`, text, tool, id)
}
func callEvent(n int, tool, args string) string {
	return fmt.Sprintf(`{"event":"agent.tool_call","content":"","step_id":"step_%d_%s","metadata":{"tool":%[2]q,"args":%s,"status":"running"}}`, n, tool, args)
}
func resultEvent(n int, tool, text string) string {
	return fmt.Sprintf(`{"event":"agent.tool_result","content":%q,"step_id":"step_%d_%s","metadata":{"tool":%[3]q,"status":"success","error":null}}`, text, n, tool)
}

// rows formats the messages of some kinds: kind, call id, text, seconds.
func rows(list []msg.Message, kinds ...msg.Kind) (out []string) {
	for i := range list {
		m := &list[i]
		for _, k := range kinds {
			if m.Kind != k {
				continue
			}
			text := m.Content.String()
			if k == msg.ToolCall || k == msg.Delegation {
				text = m.Tool.Arguments.String()
			}
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %ds", k, m.Row().ToolCallID, text, m.Time/1e9%60)))
		}
	}
	return out
}

// TestCallsHaveTheModelsIDs: the id of a call is the model's (call_7), in every order of its
// events, which do not have it, and its snapshots, which have nothing else; it is one call,
// with the times of the events and the id of the snapshots.
func TestCallsHaveTheModelsIDs(t *testing.T) {
	begin, end := callEvent(0, "tide", `{"port": "Lerrin"}`), resultEvent(0, "tide", "06:12")
	asked, called, result := userItem("When?"), callItem("call_7", "tide", `{"port":"Lerrin"}`), toolItem("call_7", "tide", "Observed output of cmd `tide` executed:\n06:12")
	for name, c := range map[string]struct {
		events []string
		want   []string
	}{
		"snapshot alone":   {[]string{snapshotEvent("RUNNING", "", asked, called, result)}, []string{`tool_call call_7 {"port":"Lerrin"} 0s`, "tool_result call_7 06:12 0s"}},
		"events first":     {[]string{snapshotEvent("RUNNING", "", asked), begin, end, snapshotEvent("RUNNING", "", asked, called, result)}, []string{`tool_call call_7 {"port":"Lerrin"} 1s`, "tool_result call_7 06:12 2s"}},
		"snapshot between": {[]string{snapshotEvent("RUNNING", "", asked), begin, snapshotEvent("RUNNING", "", asked, called), end, snapshotEvent("RUNNING", "", asked, called, result)}, []string{`tool_call call_7 {"port":"Lerrin"} 1s`, "tool_result call_7 06:12 3s"}},
		"snapshot first":   {[]string{snapshotEvent("RUNNING", "", asked, called), begin, end, snapshotEvent("RUNNING", "", asked, called, result)}, []string{`tool_call call_7 {"port": "Lerrin"} 1s`, "tool_result call_7 06:12 2s"}},
	} {
		if d := cmp.Diff(c.want, rows(decodeEvents(t, c.events...), msg.ToolCall, msg.ToolResult)); d != "" {
			t.Errorf("%s: -want +got:\n%s", name, d)
		}
	}
}

// TestLostWrapperEvent: a result gets the model's id also if the end of a wrapper is lost.
func TestLostWrapperEvent(t *testing.T) {
	got := decodeEvents(t, callEvent(0, "tide", `{}`), callEvent(1, "tide", `{}`), resultEvent(1, "tide", "06:12"),
		snapshotEvent("RUNNING", "", userItem("When?"), callItem("call_7", "tide", `{}`), toolItem("call_7", "tide", "06:12")))
	want := []string{"tool_call call_7 {} 0s", "tool_result call_7 06:12 2s"}
	if d := cmp.Diff(want, rows(got, msg.ToolCall, msg.ToolResult)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestModelsThatRepeatTheirIDs: some number their calls from 0 in every response; two
// calls stay two.
func TestModelsThatRepeatTheirIDs(t *testing.T) {
	first := []string{userItem("When?"), callItem("call_0", "tide", `{"day":1}`), toolItem("call_0", "tide", "06:12")}
	second := append(first[:3:3], callItem("call_0", "tide", `{"day":2}`), toolItem("call_0", "tide", "07:01"))
	third := append(second[:5:5], callItem("call_0", "tide", `{"day":1}`), toolItem("call_0", "tide", "06:13"))
	got := decodeEvents(t, snapshotEvent("RUNNING", "", first...), snapshotEvent("RUNNING", "", second...), snapshotEvent("RUNNING", "", third...))
	want := []string{
		`tool_call call_0 {"day":1} 0s`, "tool_result call_0 06:12 0s", `tool_call call_0 {"day":2} 1s`, "tool_result call_0 07:01 1s",
		`tool_call call_0 {"day":1} 2s`, "tool_result call_0 06:13 2s",
	}
	if d := cmp.Diff(want, rows(got, msg.ToolCall, msg.ToolResult)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	ids := make(map[string]bool)
	for _, m := range got {
		if m.Kind == msg.ToolCall {
			ids[m.Tool.CallID] = true
		}
	}
	if len(ids) != 3 {
		t.Errorf("calls %v", ids)
	}
}

// TestFinishedEndsTheRun: a snapshot of an agent that is FINISHED ends its turn, and one
// that is RUNNING does not; with the final answer as well, in either order, it ends once.
func TestFinishedEndsTheRun(t *testing.T) {
	memory := []string{userItem("When?"), assistantItem("At noon.")}
	answer := `{"event":"agent.final_answer","content":"At noon.","metadata":{}}`
	for name, c := range map[string]struct {
		events []string
		ends   int
	}{
		"finished":               {[]string{snapshotEvent("FINISHED", "At noon.", memory...)}, 1},
		"running":                {[]string{snapshotEvent("RUNNING", "", memory...)}, 0},
		"finished twice":         {[]string{snapshotEvent("FINISHED", "", memory...), snapshotEvent("FINISHED", "", memory...)}, 1},
		"answer, then finished":  {[]string{snapshotEvent("RUNNING", "", memory[0]), answer, snapshotEvent("FINISHED", "At noon.", memory...)}, 1},
		"finished, then answer":  {[]string{snapshotEvent("FINISHED", "At noon.", memory...), answer}, 1},
		"two turns":              {[]string{snapshotEvent("FINISHED", "", memory...), snapshotEvent("FINISHED", "", append(memory[:2:2], userItem("And the ebb?"), assistantItem("At six."))...)}, 2},
		"a solver of a pipeline": {[]string{`{"event":"solver.start","content":{"task":{"id":1,"title":"tide"}}}`, snapshotEvent("FINISHED", "", memory...)}, 0},
	} {
		ends := 0
		for _, m := range decodeEvents(t, c.events...) {
			if m.Signal == msg.RunEnd {
				ends++
				if m.FinishReason != "stop" || m.Kind != msg.Stop || m.IsError {
					t.Errorf("%s: it ends by %s %q", name, m.Kind, m.FinishReason)
				}
			}
		}
		if ends != c.ends {
			t.Errorf("%s: the turn ends %d times, want %d", name, ends, c.ends)
		}
	}
}

// TestFinalResponseIsTheAnswer: the answer in the metadata is emitted once, whether or not the
// memory, an event or the next snapshot has it too.
func TestFinalResponseIsTheAnswer(t *testing.T) {
	ask := userItem("When?")
	answer := `{"event":"agent.final_answer","content":"At noon.","metadata":{}}`
	next := []string{ask, assistantItem("At noon."), userItem("And the ebb?")}
	for name, c := range map[string]struct {
		events []string
		want   []string
	}{
		"the memory lacks it":   {[]string{snapshotEvent("FINISHED", "At noon.", ask)}, []string{"assistant  At noon. 0s"}},
		"the memory has it":     {[]string{snapshotEvent("FINISHED", "At noon.", ask, assistantItem("At noon."))}, []string{"assistant  At noon. 0s"}},
		"an event had it":       {[]string{snapshotEvent("RUNNING", "", ask), answer, snapshotEvent("FINISHED", "At noon.", ask)}, []string{"assistant  At noon. 1s"}},
		"an event has it later": {[]string{snapshotEvent("FINISHED", "At noon.", ask), answer}, []string{"assistant  At noon. 1s"}},
		"before it is finished": {[]string{snapshotEvent("RUNNING", "At noon.", ask), answer}, []string{"assistant  At noon. 1s"}},
		"the next memory has it": {[]string{snapshotEvent("FINISHED", "At noon.", ask), snapshotEvent("RUNNING", "At noon.", next...), snapshotEvent("FINISHED", "At six.", next...)},
			[]string{"assistant  At noon. 0s", "assistant  At six. 2s"}},
		"the same answer again": {[]string{snapshotEvent("FINISHED", "At noon.", ask), snapshotEvent("FINISHED", "At noon.", next...)}, []string{"assistant  At noon. 0s", "assistant  At noon. 1s"}},
	} {
		if d := cmp.Diff(c.want, rows(decodeEvents(t, c.events...), msg.Assistant)); d != "" {
			t.Errorf("%s: -want +got:\n%s", name, d)
		}
	}
}

// TestTaskIsADelegation: the tool task runs a sub-agent.
func TestTaskIsADelegation(t *testing.T) {
	const args = `{"description":"Sound the fairway.","subagent_type":"surveyor"}`
	called, result := callItem("call_3", "task", args), toolItem("call_3", "task", "Four fathoms.")
	for name, events := range map[string][]string{
		"events":   {callEvent(0, "task", args), resultEvent(0, "task", "Four fathoms.")},
		"snapshot": {snapshotEvent("RUNNING", "", userItem("How deep?"), called, result)},
		"both":     {callEvent(0, "task", args), resultEvent(0, "task", "Four fathoms."), snapshotEvent("RUNNING", "", userItem("How deep?"), called, result)},
	} {
		got := decodeEvents(t, events...)
		var begun, ended []string
		for _, m := range got {
			switch m.Kind {
			case msg.Delegation:
				begun = append(begun, m.Delegation.To+": "+m.Delegation.Task.String())
			case msg.DelegationResult:
				ended = append(ended, m.Delegation.To+": "+m.Content.String())
			case msg.ToolCall, msg.ToolResult:
				t.Errorf("%s: a %s", name, m.Kind)
			}
		}
		if d := cmp.Diff([]string{"surveyor: Sound the fairway.", "surveyor: Four fathoms."}, append(begun, ended...)); d != "" {
			t.Errorf("%s: -want +got:\n%s", name, d)
		}
	}
	if got := rows(decodeEvents(t, callEvent(0, "task", `{"id":4}`)), msg.Delegation); len(got) > 0 {
		t.Errorf("another tool of that name is a delegation: %v", got)
	}
}

// TestPlanAgain: a plan that starts again ends the one before it, so that the run of none stays open.
func TestPlanAgain(t *testing.T) {
	start := `{"event":"plan.start","content":{"question":"How deep?"}}`
	var got []string
	for _, m := range decodeEvents(t, start, start, `{"event":"plan.completed","content":{"plan_summary":"Sound it."}}`) {
		if m.Signal == msg.RunStart || m.Signal == msg.RunEnd {
			_, run, _ := strings.Cut(m.Run, "/")
			got = append(got, fmt.Sprint(run, " ", m.Signal, " ", m.FinishReason))
		}
	}
	want := []string{" run_start ", "plan run_start ", "plan run_end cancelled", "plan#2 run_start ", "plan#2 run_end stop"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestRefusedPrompt: a prompt that the server refuses is a turn that the refusal ends. While the agent works on another
// prompt, that turn goes on, with the calls that are open. Where the prompt is not on the wire, no turn ends.
func TestRefusedPrompt(t *testing.T) {
	const running, closed = "Agent is currently running, please try again later", "Session is closed"
	ask := func(text string) string { return fmt.Sprintf(`{"event":"user.message","content":%q}`, text) }
	refusal := func(text string) string { return fmt.Sprintf(`{"event":"agent.error","content":%q}`, text) }
	const answer = `{"event":"agent.final_answer","content":"Two."}`
	for name, c := range map[string]struct {
		events []string
		want   map[string]string // by the prompt of the run: how it ends, and the number of its messages
	}{
		"while the agent works": {
			[]string{ask("Count"), callEvent(0, "count", `{}`), ask("Faster"), refusal(running), resultEvent(0, "count", "2"), answer},
			map[string]string{"Count": "stop 5", "Faster": "refused 2"},
		},
		"with an event of the work in between": {
			[]string{ask("Count"), ask("Faster"), callEvent(0, "count", `{}`), refusal(running), resultEvent(0, "count", "2"), answer},
			map[string]string{"Count": "stop 3", "Faster": "refused 4"},
		},
		"of a closed session":  {[]string{ask("Count"), answer, ask("Again"), refusal(closed)}, map[string]string{"Count": "stop 3", "Again": "refused 2"}},
		"twice":                {[]string{ask("Count"), ask("Faster"), refusal(running), ask("Now"), refusal(running), answer}, map[string]string{"Count": "stop 3", "Faster": "refused 2", "Now": "refused 2"}},
		"two at once":          {[]string{ask("Count"), ask("Faster"), ask("Now"), refusal(running), refusal(running), answer}, map[string]string{"Count": "stop 3", "Faster": " 1", "Now": "refused 2"}},
		"of another message":   {[]string{ask("Count"), callEvent(0, "count", `{}`), refusal("Missing step_id in user response"), answer}, map[string]string{"Count": "stop 4"}},
		"without its prompt":   {[]string{callEvent(0, "count", `{}`), refusal(running), answer}, map[string]string{"": "stop 3"}},
		"of an earlier answer": {[]string{ask("Count"), answer, refusal(running)}, map[string]string{"Count": "stop 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			prompts, ends, messages := make(map[string]string), make(map[string]string), make(map[string]int)
			for _, m := range decodeEvents(t, c.events...) {
				if m.Run == "" {
					continue
				}
				messages[m.Run]++
				if m.Kind == msg.User {
					prompts[m.Run] = m.Content.String()
				}
				if m.Signal == msg.RunEnd {
					ends[m.Run] += m.FinishReason
				}
			}
			got := make(map[string]string)
			for run, n := range messages {
				got[prompts[run]] = fmt.Sprint(ends[run], " ", n)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("runs (-want +got):\n%s", d)
			}
		})
	}
}

// TestProgressWithStatistics: a notice of progress is of its task, also if the calls of the model are with it.
func TestProgressWithStatistics(t *testing.T) {
	const one, other = `{"id":1,"title":"north"}`, `{"id":2,"title":"south"}`
	var got []string
	for _, m := range decodeEvents(t, `{"event":"solver.start","content":{"task":`+one+`}}`, `{"event":"solver.start","content":{"task":`+other+`}}`,
		`{"event":"solver.progress","content":{"task":`+one+`},"metadata":{"statistics":[{"id":1,"input_tokens":3,"output_tokens":4}]}}`) {
		if m.Attr("type") == "solver.progress" {
			_, run, _ := strings.Cut(m.Run, "/")
			got = append(got, run+" "+m.Attr("task_id"))
		}
	}
	if d := cmp.Diff([]string{"task:1 1"}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
