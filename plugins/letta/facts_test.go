package letta

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// second is the n-th second of the tests' morning.
func second(n int) time.Time { return time.Date(2026, 5, 4, 7, 0, n, 0, time.UTC) }

// frameOf is a frame of a run in its n-th second.
func frameOf(kind, run, step, otid string, n int, rest string) string {
	return fmt.Sprintf(`{"message_type":%q,"id":"message-%s","otid":%q,"step_id":"step-%s","run_id":"run-%s","date":%q,%s}`,
		kind, step, otid, step, run, second(n).Format(time.RFC3339), rest)
}

func textOf(run, step, otid string, n int, text string) string {
	return frameOf("assistant_message", run, step, otid, n, fmt.Sprintf(`"content":%q`, text))
}

func request(agent, text string) frame.Frame {
	return frame.Frame{Kind: frame.Request, Name: "POST /v1/agents/" + agent + "/messages/stream", Data: fmt.Appendf(nil, `{"messages":[{"role":"user","content":%q}]}`, text)}
}

// all returns every emitted message of the frames, flushed after each if flush is set.
func all(t *testing.T, d decoder.Decoder, frames []frame.Frame, flush bool) []msg.Message {
	t.Helper()
	var out decoder.Output
	for i := range frames {
		if err := d.Decode(&frames[i], &out); err != nil {
			t.Fatal(err)
		}
		if flush {
			if err := d.Flush(&out); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out.Messages
}

func only(list []msg.Message, keep func(*msg.Message) bool) (out []msg.Message) {
	for i := range list {
		if keep(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

func ofKind(kind msg.Kind) func(*msg.Message) bool {
	return func(m *msg.Message) bool { return m.Kind == kind }
}

// TestTurnBeginsWithItsFirstPiece: the first message of a run has the date of its first
// piece, and so has the first token of each response, although the first block is complete
// much later. Flushes change neither that nor any complete message.
func TestTurnBeginsWithItsFirstPiece(t *testing.T) {
	frames := events(
		frameOf("reasoning_message", "r", "s1", "o1", 3, `"reasoning":"The barometer"`),
		frameOf("reasoning_message", "r", "s1", "o1", 10, `"reasoning":" falls."`),
		frameOf("tool_call_message", "r", "s1", "o2", 11, `"tool_call":{"name":"forecast","tool_call_id":"c1"}`),
		frameOf("tool_call_message", "r", "s1", "o2", 12, `"tool_call":{"arguments":"{\"days\":2}","tool_call_id":"c1"}`),
		frameOf("tool_return_message", "r", "s1", "o3", 15, `"tool_return":"rain","status":"success","tool_call_id":"c1"`),
		textOf("r", "s2", "o4", 17, "Take"), textOf("r", "s2", "o4", 23, " a coat."),
		`{"message_type":"stop_reason","stop_reason":"end_turn"}`,
	)
	complete := func(m *msg.Message) bool { return m.Complete == msg.Complete }
	plain := all(t, open(t, "agent-1.sse"), frames, false)
	often := all(t, open(t, "agent-1.sse"), frames, true)
	if d := cmp.Diff(only(plain, complete), only(often, complete), cmp.AllowUnexported(msg.Text{})); d != "" {
		t.Errorf("complete messages (-once +flushed after every frame):\n%s", d)
	}
	for name, list := range map[string][]msg.Message{"once": plain, "flushed": often} {
		if got := time.Unix(0, list[0].Time).UTC(); !got.Equal(second(3)) || list[0].Run != "run-r" {
			t.Errorf("%s: run %q begins at %s, want %s", name, list[0].Run, got, second(3))
		}
		first := make(map[string]time.Time)
		for _, m := range list {
			if m.Signal == msg.FirstToken {
				first[m.ResponseID] = time.Unix(0, m.Time).UTC()
			}
		}
		if d := cmp.Diff(map[string]time.Time{"step-s1": second(3), "step-s2": second(17)}, first); d != "" {
			t.Errorf("%s: first tokens (-want +got):\n%s", name, d)
		}
	}
}

// TestPromptHasTheTimeOfItsRun: a request has no date. Its messages have the time at which
// its run began, whenever the stream is read.
func TestPromptHasTheTimeOfItsRun(t *testing.T) {
	frames := append([]frame.Frame{request("agent-1", "Will it rain?")}, events(
		`{"message_type":"ping","id":"ping","run_id":"run-r","date":"`+second(1).Format(time.RFC3339)+`"}`,
		textOf("r", "s1", "o1", 4, "Yes."), `[DONE]`)...)
	got := only(all(t, open(t, ""), frames, false), ofKind(msg.User))
	if len(got) != 1 || got[0].Time != second(1).UnixNano() || got[0].Precision != msg.Inferred {
		t.Errorf("got %+v", got)
	}
}

// TestCallsInTurns: the model writes two calls at once; their pieces interleave, each with
// the otid of its call, and only the first has its name.
func TestCallsInTurns(t *testing.T) {
	piece := func(otid, call string) string {
		return frameOf("tool_call_message", "r", "s1", otid, 1, `"tool_call":{`+call+`}`)
	}
	frames := events(
		piece("o1", `"name":"tide","tool_call_id":"c1"`), piece("o2", `"name":"wind","tool_call_id":"c2"`),
		piece("o1", `"arguments":"{\"port\":","tool_call_id":"c1"`), piece("o2", `"arguments":"{\"at\":","tool_call_id":"c2"`),
		piece("o1", `"arguments":" \"Brest\"}"`), piece("o2", `"arguments":" \"noon\"}"`),
		frameOf("tool_return_message", "r", "s1", "o3", 3, `"tool_return":"high","status":"success","tool_call_id":"c1"`),
		frameOf("tool_return_message", "r", "s1", "o4", 3, `"tool_return":"west","status":"success","tool_call_id":"c2"`),
		textOf("r", "s2", "o5", 4, "High tide, wind from the west."), `[DONE]`)
	for _, flush := range []bool{false, true} {
		got := make(map[string]string)
		for _, m := range only(msg.Fold(all(t, open(t, ""), frames, flush)), func(m *msg.Message) bool { return m.Kind == msg.ToolCall || m.Kind == msg.Unknown }) {
			got[m.Tool.CallID] = fmt.Sprint(m.Tool.Name, " ", m.Tool.Arguments, " ", m.Complete)
		}
		want := map[string]string{"c1": `tide {"port":"Brest"} complete`, "c2": `wind {"at":"noon"} complete`}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("flushed %v (-want +got):\n%s", flush, d)
		}
	}
}

// TestCallWhoseIDComesLater: the first piece of a call may have its name alone.
func TestCallWhoseIDComesLater(t *testing.T) {
	piece := func(call string) string {
		return frameOf("tool_call_message", "r", "s1", "o1", 1, `"tool_call":{`+call+`}`)
	}
	frames := events(piece(`"name":"tide"`), piece(`"arguments":"{\"port\":","tool_call_id":"c1"`), piece(`"arguments":"1}","tool_call_id":"c1"`), `[DONE]`)
	for _, flush := range []bool{false, true} {
		got := only(msg.Fold(all(t, open(t, ""), frames, flush)), ofKind(msg.ToolCall))
		if len(got) != 1 || got[0].Key != "call:c1" || got[0].Tool.Name != "tide" || got[0].Tool.Arguments.String() != `{"port":1}` {
			t.Errorf("flushed %v: got %+v", flush, got)
		}
	}
}

// TestTwoSpeechesOfAMessage: calls of send_message are texts of the response, each with a key.
func TestTwoSpeechesOfAMessage(t *testing.T) {
	speak := func(call, words string) string {
		return fmt.Sprintf(`{"name":"send_message","tool_call_id":%q,"arguments":"{\"message\":\"%s\"}"}`, call, words)
	}
	got := make(map[string]string)
	for _, m := range all(t, open(t, ""), events(frameOf("tool_call_message", "r", "s1", "o1", 1, `"tool_calls":[`+speak("c1", "Ebb.")+`,`+speak("c2", "Flood.")+`]`)), false) {
		if m.Kind == msg.Assistant {
			got[m.Key] = m.Content.String()
		}
	}
	if d := cmp.Diff(map[string]string{"step-s1/text": "Ebb.", "step-s1/text/1": "Flood."}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestWholeCallSentTwice: a stream that is resumed without numbers repeats a call that is open.
func TestWholeCallSentTwice(t *testing.T) {
	call := frameOf("tool_call_message", "r", "s1", "o1", 1, `"tool_call":{"name":"tide","arguments":"{\"port\": 1}","tool_call_id":"c1"}`)
	got := only(all(t, open(t, ""), events(call, call, `[DONE]`, call), false), ofKind(msg.ToolCall))
	if len(got) != 1 || got[0].Tool.Arguments.String() != `{"port":1}` {
		t.Errorf("got %+v", got)
	}
}

// TestPackedPrompt: older servers store a prompt as JSON with its time; the message is its
// text, as in the request, and under the same key. Notices of the server in such JSON are not
// prompts.
func TestPackedPrompt(t *testing.T) {
	live := only(all(t, open(t, ""), append([]frame.Frame{request("agent-1", "Is it \"calm\"?")}, events(textOf("r", "s1", "o1", 2, "Yes."), `[DONE]`)...), false), ofKind(msg.User))
	list := `[{"message_type":"user_message","id":"message-u","run_id":"run-r","date":"2026-05-04T07:00:00+00:00","content":"{\"type\": \"user_message\", \"message\": \"Is it \\\"calm\\\"?\", \"time\": \"2026-05-04 07:00:00 AM UTC+0000\", \"name\": \"Ada\"}"},
		{"message_type":"user_message","id":"message-h","run_id":"run-r","content":"{\"type\": \"heartbeat\", \"reason\": \"go on\", \"time\": \"now\"}"},
		{"message_type":"user_message","id":"message-j","run_id":"run-r","content":"{\"type\": \"order\", \"message\": \"two\"}"}]`
	stored := only(all(t, open(t, "/v1/agents/agent-1/messages"), []frame.Frame{{Kind: frame.Body, Data: []byte(list)}}, false), ofKind(msg.User))
	if len(live) != 1 || len(stored) != 2 {
		t.Fatalf("%d prompts live, %d stored", len(live), len(stored))
	}
	if m := stored[0]; m.Content.String() != `Is it "calm"?` || m.Key != live[0].Key || m.Session != live[0].Session || m.Agent.Name != "Ada" {
		t.Errorf("stored %q of %q under %s, live %q under %s", m.Content, m.Agent.Name, m.Key, live[0].Content, live[0].Key)
	}
	if s := stored[1].Content.String(); s != `{"type": "order", "message": "two"}` {
		t.Errorf("another prompt that is JSON became %q", s)
	}
}

// incomingList is the list of an agent whose run began with a message of another agent.
func incomingList(run, from, text string) frame.Frame {
	list := fmt.Sprintf(`[{"message_type":"system_message","id":"message-l","run_id":"run-%s","date":%q,"content":%q},
		{"message_type":"assistant_message","id":"message-a","step_id":"step-%s","run_id":"run-%s","date":%q,"content":"Done."}]`,
		run, second(5).Format(time.RFC3339), "[Incoming message from agent with ID '"+from+"' - your response goes to the sender] "+text, run, run, second(6).Format(time.RFC3339))
	return frame.Frame{Kind: frame.Body, Data: []byte(list)}
}

// TestMessageToAgentIsCorrelatedWithItsRun: a call that sends a message to another agent, or
// to many, and each run that it begins there have the same correlation prompt; a message with
// another text, or to another agent, has another one.
func TestMessageToAgentIsCorrelatedWithItsRun(t *testing.T) {
	names := func(frames []frame.Frame, origin string) (out []string) {
		for _, m := range all(t, open(t, origin), frames, true) {
			if m.Delegation.CorrelationPrompt != "" && !slices.Contains(out, m.Delegation.CorrelationPrompt) {
				out = append(out, m.Delegation.CorrelationPrompt)
			}
		}
		return out
	}
	call := func(tool, args string) []string {
		return names(events(frameOf("tool_call_message", "p", "s1", "o1", 4, fmt.Sprintf(`"tool_call":{"name":%q,"arguments":%q,"tool_call_id":"c1"}`, tool, args)), `[DONE]`), "/v1/agents/agent-1/messages")
	}
	run := func(agent, from, text string) []string {
		return names([]frame.Frame{incomingList("q", from, text)}, "/v1/agents/"+agent+"/messages")
	}
	for _, c := range []struct {
		name, tool, args, agent, from, text string
		meet                                bool
	}{
		{"one", askTool, `{"message":"Sound the horn.","other_agent_id":"agent-2"}`, "agent-2", "agent-1", "Sound the horn.", true},
		{"one, without waiting", asyncTool, `{"message":"Sound the horn.","other_agent_id":"agent-2"}`, "agent-2", "agent-1", "Sound the horn.", true},
		{"many", tagsTool, `{"message":"Sound the horn.","match_all":["pier"],"match_some":[]}`, "agent-3", "agent-1", "Sound the horn.", true},
		{"a group", groupTool, `{"message":"Sound the horn."}`, "agent-3", "agent-1", "Sound the horn.", true},
		{"another text", askTool, `{"message":"Sound the horn.","other_agent_id":"agent-2"}`, "agent-2", "agent-1", "Sound the bell.", false},
		{"another agent", askTool, `{"message":"Sound the horn.","other_agent_id":"agent-2"}`, "agent-3", "agent-1", "Sound the horn.", false},
		{"another sender", tagsTool, `{"message":"Sound the horn.","match_all":["pier"],"match_some":[]}`, "agent-2", "agent-9", "Sound the horn.", false},
	} {
		calls, runs := call(c.tool, c.args), run(c.agent, c.from, c.text)
		if len(calls) != 1 || slices.Contains(runs, calls[0]) != c.meet {
			t.Errorf("%s: the call has the prompts %v, the run %v", c.name, calls, runs)
		}
	}
}

// TestAgentIsNamed: the messages of an agent have its display name where a message has one,
// else its id, and its user's messages have neither.
func TestAgentIsNamed(t *testing.T) {
	frames := append([]frame.Frame{request("agent-1", "Who is there?")}, events(
		textOf("r", "s1", "o1", 1, "I am."),
		strings.Replace(textOf("r", "s2", "o2", 2, "And I."), "{", `{"sender_id":"agent-2","name":"Pilot",`, 1),
		strings.Replace(frameOf("tool_return_message", "r", "s2", "o3", 2, `"tool_return":"x","status":"success","tool_call_id":"c"`), "{", `{"sender_id":"agent-2","name":"chart",`, 1),
		strings.Replace(textOf("r", "s3", "o4", 3, "Me too."), "{", `{"sender_id":"agent-3",`, 1),
		`{"message_type":"stop_reason","stop_reason":"end_turn"}`, `{"message_type":"usage_statistics","prompt_tokens":1,"completion_tokens":1,"run_ids":["run-r"]}`)...)
	got := make(map[string]bool)
	for _, m := range all(t, open(t, ""), frames, true) {
		if m.Kind == msg.User {
			if m.Agent.Name != "" {
				t.Errorf("the user is called %q", m.Agent.Name)
			}
			continue
		}
		got[m.Agent.ID+" "+m.Agent.Name] = true
	}
	if d := cmp.Diff(map[string]bool{"agent-1 agent-1": true, "agent-2 Pilot": true, "agent-3 agent-3": true}, got); d != "" {
		t.Errorf("agents (-want +got):\n%s", d)
	}
}

// TestSleeptimeRunIsLinked: a run in another run's count is an asynchronous delegation of it;
// its own messages, in any session, have the same correlation id.
func TestSleeptimeRunIsLinked(t *testing.T) {
	const usage = `{"message_type":"usage_statistics","prompt_tokens":9,"completion_tokens":4,"run_ids":["run-r","run-z"]}`
	parent := all(t, open(t, "agent-1.sse"), events(textOf("r", "s1", "o1", 1, "Noted."), `{"message_type":"stop_reason","stop_reason":"end_turn"}`, usage, usage, `[DONE]`), true)
	calls, results := only(parent, ofKind(msg.Delegation)), only(parent, ofKind(msg.DelegationResult))
	if len(calls) != 1 || len(results) != 1 {
		t.Fatalf("%d delegations, %d results", len(calls), len(results))
	}
	m := calls[0]
	if m.Run != "run-r" || m.Delegation.ChildRun != "run-z" || !m.Delegation.Async || m.Delegation.Link != msg.ByNativeID || m.Time != second(1).UnixNano() || results[0].Tool.CallID != m.Tool.CallID {
		t.Errorf("got %+v", m)
	}
	child := all(t, open(t, "/v1/runs/run-z/stream"), events(textOf("z", "s2", "o2", 2, "Remembered.")), true)
	if got := child[0].Delegation.CorrelationID; got == "" || got != m.Delegation.CorrelationID {
		t.Errorf("the run has the correlation id %q, the call %q", got, m.Delegation.CorrelationID)
	}
}

// TestUndatedRecordsOfAStoredStream: stop reasons, usage, errors and unknown records have no
// date. They have the time of the last dated frame of their run, a ping included, with
// precision inferred.
func TestUndatedRecordsOfAStoredStream(t *testing.T) {
	frames := events(
		textOf("r", "s1", "o1", 1, "Reef"), textOf("r", "s1", "o1", 9, " the sail."),
		`{"message_type":"ping","id":"ping","run_id":"run-r","date":"`+second(11).Format(time.RFC3339)+`"}`,
		`{"message_type":"ballast","load":3}`, `{"message_type":"stop_reason","stop_reason":"llm_api_error"}`,
		`{"message_type":"error_message","run_id":"run-r","error_type":"x","message":"gone"}`,
		`{"message_type":"usage_statistics","prompt_tokens":1,"completion_tokens":1,"run_ids":["run-r"]}`, `[DONE]`)
	n := 0
	for _, m := range all(t, open(t, ""), frames, true) {
		if m.Time == 0 {
			t.Errorf("%s %s has no time", m.Kind, m.Key)
		}
		switch m.Kind {
		case msg.Unknown, msg.Stop, msg.Error, msg.Usage:
			n++
			if m.Time != second(11).UnixNano() || m.Precision != msg.Inferred {
				t.Errorf("%s at %s, %s", m.Kind, time.Unix(0, m.Time).UTC(), m.Precision)
			}
		}
	}
	if n != 4 {
		t.Errorf("%d records without a date", n)
	}
}

// TestRunWithoutAnIDEndsAtItsLastFrame: a server that names no run has dates all the same.
func TestRunWithoutAnIDEndsAtItsLastFrame(t *testing.T) {
	piece := func(n int, text string) string {
		return fmt.Sprintf(`{"message_type":"assistant_message","id":"m","otid":"o","date":%q,"content":%q}`, second(n).Format(time.RFC3339), text)
	}
	got := only(all(t, open(t, ""), events(piece(1, "Reef"), piece(9, " the sail."), `[DONE]`), true), ofKind(msg.Stop))
	if len(got) != 1 || got[0].Time != second(9).UnixNano() {
		t.Errorf("got %+v", got)
	}
}

// TestResumedThroughATap: a background run breaks off and is resumed by another request,
// whose recording begins with the earlier frames. In either order of decoding, both
// recordings are one run of one session, with its text once.
func TestResumedThroughATap(t *testing.T) {
	piece := func(seq, n int, text string) string {
		return strings.Replace(textOf("r", "s1", "o1", n, text), "{", fmt.Sprintf(`{"seq_id":%d,`, seq), 1)
	}
	ping := strings.Replace(frameOf("ping", "r", "s1", "o1", 1, `"name":null`), "{", `{"seq_id":1,`, 1)
	began := append([]frame.Frame{request("agent-1", "Count.")}, events(ping, piece(2, 2, "One,"), piece(3, 3, " two,"))...)
	const ended, count = `{"message_type":"stop_reason","stop_reason":"end_turn"}`, `{"message_type":"usage_statistics","prompt_tokens":3,"completion_tokens":3,"run_ids":["run-r"]}`
	rest := events(piece(3, 3, " two,"), piece(4, 4, " three."), ended, count, `[DONE]`)
	for name, resumed := range map[string][]frame.Frame{
		"GET":  nil,
		"POST": {{Kind: frame.Request, Name: "POST /v1/runs/run-r/stream", Data: []byte(`{"starting_after":2}`)}},
	} {
		decode := func(origin string, parts ...[]frame.Frame) []msg.Message {
			return all(t, open(t, origin), append(slices.Concat(parts...), frame.Frame{Kind: frame.Close, Name: frame.Lost}), true)
		}
		first := decode("http://h/v1/agents/agent-1/messages/stream", began)
		second := decode("http://h/v1/runs/run-r/stream?starting_after=2", began, resumed, rest)
		for order, list := range map[string][]msg.Message{"first, second": slices.Concat(first, second), "second, first": slices.Concat(second, first)} {
			var got []string
			for _, m := range msg.Fold(list) {
				if m.Session != "agent-1" || m.Run != "run-r" {
					t.Errorf("%s, %s: %s is of run %s in session %s", name, order, m.Key, m.Run, m.Session)
				}
				if m.Kind == msg.Assistant || m.Kind == msg.User || m.Kind == msg.Unknown {
					got = append(got, fmt.Sprint(m.Kind, " ", m.Content, " ", m.Complete))
				}
			}
			if d := cmp.Diff([]string{"user Count. complete", "assistant One, two, three. complete"}, got); d != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, order, d)
			}
		}
	}
}

// TestNumberedCalls: a server may count the calls of each response. The calls of two responses are two in each form, in one run or in
// two, and each has its result; a repetition of the stream is none.
func TestNumberedCalls(t *testing.T) {
	call := func(run, step string, n int) string {
		return frameOf("tool_call_message", run, step, "o-"+step, n, fmt.Sprintf(`"tool_call":{"name":"tide","tool_call_id":"call_0","arguments":"{\"n\":%d}"}`, n))
	}
	result := func(run, step string, n int) string {
		return frameOf("tool_return_message", run, step, "r-"+step, n+1, fmt.Sprintf(`"tool_return":"%d","status":"success","tool_call_id":"call_0"`, n))
	}
	stored := []string{call("a", "s1", 1), result("a", "s1", 1), call("a", "s2", 3), result("a", "s2", 3), call("b", "s3", 5), result("b", "s3", 5)}
	const stop = `{"message_type":"stop_reason","stop_reason":"end_turn"}`
	first := slices.Concat(stored[:4], []string{stop})
	for form, frames := range map[string][]frame.Frame{
		"stream":         events(slices.Concat(first, stored[4:], []string{stop})...),
		"repeated":       events(slices.Concat(first, first, stored[4:], []string{stop})...),
		"list":           {{Kind: frame.Body, Data: []byte("[" + strings.Join(stored, ",") + "]")}},
		"list backwards": {{Kind: frame.Body, Data: []byte("[" + stored[5] + "," + stored[4] + "," + stored[3] + "," + stored[2] + "," + stored[1] + "," + stored[0] + "]")}},
	} {
		got := make(map[string]string)
		for _, m := range msg.Fold(all(t, open(t, "agent-1.sse"), frames, false)) {
			switch m.Kind {
			case msg.ToolCall:
				got[m.Key] = m.Tool.Arguments.String() + m.Tool.ProtocolID
			case msg.ToolResult:
				got[m.Key] = m.Content.String() + m.ParentKey
			}
		}
		want := map[string]string{
			"call:step-s1/call_0": `{"n":1}call_0`, "result:step-s1/call_0": "1call:step-s1/call_0",
			"call:step-s2/call_0": `{"n":3}call_0`, "result:step-s2/call_0": "3call:step-s2/call_0",
			"call:step-s3/call_0": `{"n":5}call_0`, "result:step-s3/call_0": "5call:step-s3/call_0",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", form, d)
		}
	}
}

// TestNumberedCallsWait: a decision names the call that waits by its number, and so does its result, in another run.
func TestNumberedCallsWait(t *testing.T) {
	ask := func(step string, n int) string {
		return frameOf("approval_request_message", "a", step, "o-"+step, n, `"tool_call":{"name":"tide","tool_call_id":"call_0","arguments":"{}"}`)
	}
	decide := frame.Frame{Kind: frame.Request, Name: "POST /v1/agents/agent-1/messages/stream", Data: []byte(`{"messages":[{"type":"approval","approvals":[{"type":"approval","tool_call_id":"call_0","approve":true}]}]}`)}
	const stop = `{"message_type":"stop_reason","stop_reason":"requires_approval"}`
	frames := append(events(ask("s1", 1), stop), decide)
	frames = append(frames, events(frameOf("tool_return_message", "b", "s2", "r1", 2, `"tool_return":"ebb","status":"success","tool_call_id":"call_0"`), ask("s3", 3), stop)...)
	frames = append(frames, decide)
	frames = append(frames, events(frameOf("tool_return_message", "c", "s4", "r2", 4, `"tool_return":"flood","status":"success","tool_call_id":"call_0"`))...)
	var got []string
	for _, m := range all(t, open(t, ""), frames, false) {
		if m.Tool.CallID != "" && m.Signal != msg.FirstToken {
			got = append(got, strings.TrimSpace(m.Key+" "+m.Content.String()))
		}
	}
	want := []string{"call:step-s1/call_0", "wait:step-s1/call_0", "waited:step-s1/call_0", "result:step-s1/call_0 ebb",
		"call:step-s3/call_0", "wait:step-s3/call_0", "waited:step-s3/call_0", "result:step-s3/call_0 flood"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
