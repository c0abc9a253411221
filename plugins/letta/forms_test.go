package letta

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// TestFiveForms: one turn as a stream of pieces, a stream of whole messages, an answer, a
// list and a file of lines has the same messages in the same order: keys, contents,
// arguments, times, runs and responses. A list lacks the run's own records, a list and an
// answer lack the start of a response, and a stream without its request lacks the user's
// messages.
func TestFiveForms(t *testing.T) {
	cases, err := conformance.Load(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	forms := make(map[string][]string)
	add := func(name string, s decoder.Stream, frames []frame.Frame) {
		d, err := New().New(s)
		if err != nil {
			t.Fatal(err)
		}
		messages, _ := play(t, d, frames)
		for i := range messages {
			m := &messages[i]
			switch m.Kind {
			case msg.User, msg.Stop, msg.Usage, msg.Status:
				continue
			}
			forms[name] = append(forms[name], fmt.Sprintln(m.Key, m.Kind, m.Session, m.Run, m.ResponseID, m.Agent, m.Time, m.Precision,
				m.Content, m.Tool.Name, m.Tool.CallID, m.Tool.Arguments, m.Attrs))
		}
	}
	for _, c := range cases {
		switch c.Name {
		case "turn":
			add("pieces", c.Stream, c.Frames)
			add("list", c.ReloadStream, c.Reload)
		case "turn_whole", "turn_answer", "turn_lines":
			s := c.Stream
			if c.Name == "turn_answer" { // its request names the agent
				s.Origin = ""
			}
			add(c.Name, s, c.Frames)
		}
	}
	if len(forms) != 5 || len(forms["pieces"]) != 5 {
		t.Fatalf("%d forms, of %d messages", len(forms), len(forms["pieces"]))
	}
	for name, got := range forms {
		if diff := cmp.Diff(forms["pieces"], got); diff != "" {
			t.Errorf("%s (-pieces +%s):\n%s", name, name, diff)
		}
	}
}

// TestPromptHasOneKeyInAllForms: a prompt has another key than the same prompt in another
// run, and one key in the request and in the list.
func TestPromptHasOneKeyInAllForms(t *testing.T) {
	ask := func(run string) []frame.Frame {
		return append([]frame.Frame{{Kind: frame.Request, Name: "POST /v1/agents/a/messages/stream", Data: []byte(`{"messages":[{"role":"user","content":"yes"}]}`)}},
			events(`{"message_type":"ping","run_id":"`+run+`"}`, `{"message_type":"assistant_message","id":"m-`+run+`","run_id":"`+run+`","step_id":"s-`+run+`","content":"done"}`, `[DONE]`)...)
	}
	keys := func(frames []frame.Frame) []string {
		var out []string
		messages, _ := play(t, open(t, "/v1/agents/a/messages"), frames)
		for _, m := range messages {
			if m.Kind == msg.User {
				out = append(out, m.Session+" "+m.Key)
			}
		}
		return out
	}
	first, second := keys(ask("run-1")), keys(ask("run-2"))
	list := keys([]frame.Frame{{Kind: frame.Body, Data: []byte(`[
		{"message_type":"user_message","id":"u1","run_id":"run-1","content":"yes"},{"message_type":"assistant_message","id":"m1","run_id":"run-1","content":"done"},
		{"message_type":"user_message","id":"u2","run_id":"run-2","content":[{"type":"text","text":"yes"}]},{"message_type":"assistant_message","id":"m2","run_id":"run-2","content":"done"}]`)}})
	if diff := cmp.Diff(append(first, second...), list); diff != "" {
		t.Errorf("keys of prompts (-requests +list):\n%s", diff)
	}
	if len(first) != 1 || first[0] == second[0] {
		t.Errorf("two prompts of the same words have the keys %v and %v", first, second)
	}
}

func TestNewestFirst(t *testing.T) {
	const second = `"date":"2026-04-02T09:00:00+00:00"`
	for _, c := range []struct {
		name, list string
		want       bool
	}{
		{"empty", `[]`, false},
		{"one", `[{"id":"a"}]`, false},
		{"up", `[{"date":"2026-04-02T09:00:00+00:00"},{"date":"2026-04-02T09:00:01+00:00"}]`, false},
		{"down", `[{"date":"2026-04-02T09:00:01+00:00"},{"date":"2026-04-02T09:00:00+00:00"}]`, true},
		{"down, with one that has no date", `[{"date":"2026-04-02T09:00:02+00:00"},{"date":null},{"date":"2026-04-02T09:00:01+00:00"}]`, true},
		{"up, with one out of order", `[{"date":"2026-04-02T09:00:00+00:00"},{"date":"2026-04-02T09:00:02+00:00"},{"date":"2026-04-02T09:00:01+00:00"},{"date":"2026-04-02T09:00:03+00:00"}]`, false},
		{"blocks up", `[{"id":"a","otid":"00",` + second + `},{"id":"a","otid":"01",` + second + `}]`, false},
		{"blocks down", `[{"id":"a","otid":"01",` + second + `},{"id":"a","otid":"00",` + second + `}]`, true},
		{"prompt first", `[{"message_type":"user_message"},{"message_type":"assistant_message"}]`, false},
		{"prompt last", `[{"message_type":"assistant_message"},{"message_type":"user_message"}]`, true},
		{"result last", `[{"message_type":"tool_call_message"},{"message_type":"tool_return_message"}]`, false},
		{"result first", `[{"message_type":"tool_return_message"},{"message_type":"tool_call_message"}]`, true},
		{"nothing tells", `[{"message_type":"assistant_message"},{"message_type":"assistant_message"}]`, false},
	} {
		var doc jsonv.Doc
		if err := doc.Parse([]byte(c.list)); err != nil {
			t.Fatal(err)
		}
		var list []jsonv.Value
		for v := range doc.Root().Elems() {
			list = append(list, v)
		}
		if got := newestFirst(list); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestAgentMessageOf(t *testing.T) {
	for in, want := range map[string]agentMessage{
		"[Incoming message from agent with ID 'agent-1' - your response will be delivered to the sender] Wind it.":           {"agent-1", "Wind it."},
		"[Incoming message from agent with ID 'agent-1' - your response will be delivered to the sender] Wind it.\nwind it.": {"agent-1", "Wind it."},
		"[Incoming message from agent with ID 'agent-1' - x] wind it.\nwind it":                                              {"agent-1", "wind it.\nwind it"},
		"[Incoming message from agent with ID 'agent-1' - x] a\na":                                                           {"agent-1", "a"},
		"[Incoming message from agent with ID 'agent-1' - x] [see] this":                                                     {"agent-1", "[see] this"},
		"[Incoming message from external Letta agent - x] hello":                                                             {"", "hello"},
		"[Incoming message from agent with ID 'agent-1' - x]":                                                                {},
		"Incoming message from agent with ID 'agent-1'":                                                                      {},
		"": {},
	} {
		var got agentMessage
		if l := agentMessageOf(in); l != nil {
			got = *l
		}
		if got != want {
			t.Errorf("%q: got %+v, want %+v", in, got, want)
		}
	}
}

// TestRepeatedWordIsNoRepetition: two equal pieces without numbers are two pieces.
func TestRepeatedWordIsNoRepetition(t *testing.T) {
	const piece = `{"message_type":"assistant_message","id":"m","otid":"o","content":"ha"}`
	got, _ := play(t, open(t, ""), events(piece, piece, piece))
	if s := got[len(got)-1].Content.String(); s != strings.Repeat("ha", 3) {
		t.Errorf("got %q", s)
	}
}

// TestTwoRunsInTurns: runs with interleaved frames do not cut each other off.
func TestTwoRunsInTurns(t *testing.T) {
	piece := func(run, text string) string {
		return `{"message_type":"assistant_message","id":"m-` + run + `","otid":"o-` + run + `","run_id":"` + run + `","step_id":"s-` + run + `","content":"` + text + `"}`
	}
	got, _ := play(t, open(t, ""), events(piece("a", "tick"), piece("b", "ding"), piece("a", " tock"), piece("b", " dong"), `[DONE]`))
	texts := make(map[string]string)
	for _, m := range got {
		if m.Kind == msg.Assistant {
			texts[m.Run] = m.Content.String()
		}
	}
	if want := map[string]string{"a": "tick tock", "b": "ding dong"}; !cmp.Equal(texts, want) {
		t.Errorf("got %v, want %v", texts, want)
	}
}

// TestFieldsBesideTheTextAreKept: the fields beside the text of an object, a dict or a
// decision are kept, and so is an unknown field.
func TestFieldsBesideTheTextAreKept(t *testing.T) {
	const date = `"date":"2026-04-02T09:15:00+00:00","run_id":"run-1"`
	for name, c := range map[string]struct {
		frames []frame.Frame
		want   []string
	}{
		"packed prompt": {
			events(`{"message_type":"user_message","id":"message-1",` + date + `,"content":"{\"type\":\"user_message\",\"message\":\"Wind it.\",\"time\":\"2026-04-02 09:15:00 AM\",\"location\":\"the upper gallery\"}"}`),
			[]string{"Wind it.", "2026-04-02 09:15:00 AM", `{"location":"the upper gallery"}`},
		},
		"alert": {
			events(`{"message_type":"user_message","id":"message-2",` + date + `,"content":"{\"type\":\"system_alert\",\"message\":\"Damp.\",\"time\":\"9:15\",\"place\":\"the lower gallery\"}"}`),
			[]string{"Damp.", "9:15", "the lower gallery"},
		},
		"answer of another agent": {
			events(`{"message_type":"tool_return_message","id":"message-3","name":"` + askTool + `",` + date + `,"tool_call_id":"call_1","status":"success","tool_return":"{'agent_id': 'agent-9', 'response': ['Yes.'], 'note': 'spoken in a whisper'}"}`),
			[]string{"Yes.", "agent-9", "spoken in a whisper"},
		},
		"picture that a client's tool returned": {
			[]frame.Frame{{Kind: frame.Request, Name: "POST /v1/agents/agent-1/messages", Data: []byte(
				`{"messages":[{"type":"approval","approvals":[{"type":"tool","tool_call_id":"call_2","status":"success","tool_return":[{"type":"image","source":{"type":"url","url":"https://clocks.invalid/dial.png"}}]}]}]}`)}},
			[]string{"https://clocks.invalid/dial.png"},
		},
		"unknown field of a piece": {
			events(`{"message_type":"assistant_message","id":"message-4",` + date + `,"content":"Tick.","mood":"rather melancholic"}`),
			[]string{"Tick.", "rather melancholic"},
		},
	} {
		frames := append(c.frames, frame.Frame{Kind: frame.Close})
		messages, problems := play(t, open(t, ""), frames)
		if len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
		var all strings.Builder
		for i := range messages {
			m := &messages[i]
			fmt.Fprintln(&all, m.Content, m.Delegation.To, m.Attrs, m.Attachments)
		}
		for _, want := range c.want {
			if !strings.Contains(all.String(), want) {
				t.Errorf("%s: %q is not in %s", name, want, all.String())
			}
		}
	}
}
