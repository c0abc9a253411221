package legion

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
)

// The key of a line without an id is a hash of its facts, however its text is escaped.
func TestKeyIsAHashOfWhatTheLineSays(t *testing.T) {
	for _, c := range []struct{ line, typ, at, text string }{
		{`{"type":"user","content":"caf\u00e9 \"noir\"","timestamp":1772442000.25}`, "user", "1772442000.25", `café "noir"`},
		{`{"timestamp":1772442000.25, "type":"user", "content":"café \"noir\""}`, "user", "1772442000.25", `café "noir"`},
		{`{"type":"assistant","content":"x","timestamp":"2026-03-02T09:00:00+00:00"}`, "assistant/text", "2026-03-02T09:00:00+00:00", "x"},
		{`{"type":"assistant","content":"x"}`, "assistant/text", "", "x"},
		{`{"type":"assistant","metadata":{"thinking_content":"hm"},"timestamp":1772442000}`, "assistant/thinking", "1772442000", "hm"},
	} {
		got := play(t, decoder.Stream{}, c.line)
		if want := msg.HashKey(c.typ, c.at, c.text); len(got) != 1 || got[0].Key != want {
			t.Errorf("%s: %+v, want key %s", c.line, got, want)
		}
	}
}

func TestOrigin(t *testing.T) {
	for path, want := range map[string]origin{
		"":                                       {"legion", "legion"},
		"-":                                      {"legion", "legion"},
		"/data/sessions/s1/messages.jsonl":       {"s1", "s1"},
		"sessions/s1/messages.jsonl.1.gz":        {"s1", "s1"},
		"messages.jsonl":                         {"legion", "legion"},
		"/tmp/talk.jsonl":                        {"talk", "talk"},
		"C:\\data\\sessions\\s1\\messages.jsonl": {"s1", "s1"},
		"data/legions/l1/minions/m1/comms.jsonl": {"m1", "l1"},
		"/data/legions/l1/channels/c1/comms.jsonl":       {"c1", "l1"},
		"wss://host:8000/ws/session/s2?token=not-for-us": {"s2", "s2"},
	} {
		if got := originOf(path); got != want {
			t.Errorf("%q: got %+v, want %+v", path, got, want)
		}
	}
}

func TestHeadline(t *testing.T) {
	for text, want := range map[string]commHead{
		"**📋 Task from Minion #ada:** s\n\nc":                 {"task", "ada", ""},
		"**❓ Question from Minion #ada in channel #docs:** s": {"question", "ada", "docs"},
		"**💬 Message from Minion #old crow:** s":              {"message", "old crow", ""},
		"**🚨 System Error:**\n\nno":                           {"system", systemName, ""},
		"**Note:** from Minion #ada":                          {},
		"**Task from Minion #:** s":                           {},
		"**Task\nfrom Minion #ada:** s":                       {},
		"Task from Minion #ada: s":                            {},
		"**":                                                  {},
		"":                                                    {},
	} {
		if got, ok := headline([]byte(text)); ok != (want != commHead{}) || ok && got != want {
			t.Errorf("%q: got %+v %v, want %+v", text, got, ok, want)
		}
	}
}

// The result line repeats the turn's last text, perhaps escaped in another way.
func TestResultRepeatsTheLastText(t *testing.T) {
	long := strings.Repeat("é", 4096)
	for _, c := range []struct{ said, told, want string }{
		{`"a\u00e9"`, `"aé"`, ""},
		{`"a"`, `"b"`, "b"},
		{`"` + long + `"`, `"` + long + `"`, ""},
		{`"` + long + `"`, `"` + strings.ReplaceAll(long, "é", `\u00e9`) + `"`, ""},
		{`"` + long + `"`, `"` + long + `!"`, long + "!"},
	} {
		got := play(t, decoder.Stream{},
			`{"type":"user","content":"?"}`,
			`{"type":"assistant","content":`+c.said+`}`,
			`{"type":"result","content":`+c.told+`,"metadata":{"subtype":"success"}}`)
		if stop := got[len(got)-1]; stop.Kind != msg.Stop || stop.Content.String() != c.want {
			t.Errorf("said %.20s, told %.20s: %s with %.20q", c.said, c.told, stop.Kind, stop.Content.String())
		}
	}
}

// A response that its records do not name counts once for each record, and a
// record that is written twice counts once.
func TestTokensOfUnnamedResponses(t *testing.T) {
	line := `{"_type":"AssistantMessage","timestamp":%d,"data":{"content":[{"text":"x"}],"usage":{"input_tokens":1,"output_tokens":%d}}}`
	var lines []string
	for i := range 3 {
		same := fmt.Sprintf(line, 1772442000+i, 1+i)
		lines = append(lines, same, same)
	}
	got := play(t, decoder.Stream{}, lines...)
	last := got[len(got)-1]
	if want := (msg.Tokens{Input: 3, Output: 6, Provenance: msg.TranscriptPartial}); last.Usage != want {
		t.Errorf("got %+v, want %+v", last.Usage, want)
	}
}

// A call or a session that is evicted loses no tokens.
func TestForgettingLosesNoTokens(t *testing.T) {
	const sessions, agents = maxSessions + 10, conversation.MaxCalls + conversation.MaxEnded + 10
	var lines []string
	for i := range sessions {
		lines = append(lines, fmt.Sprintf(`{"_type":"AssistantMessage","session_id":"s%d","timestamp":%d,"data":{"content":[],"message_id":"m","usage":{"input_tokens":1}}}`, i, 1772442000+i))
	}
	for i := range agents {
		lines = append(lines, fmt.Sprintf(`{"_type":"AssistantMessage","session_id":"s0","timestamp":%d,"data":{"content":[],"message_id":"m%d","parent_tool_use_id":"t%d","usage":{"input_tokens":1}}}`, 1772443000+i, i, i))
	}
	var sum uint64
	for _, m := range play(t, decoder.Stream{}, lines...) {
		sum += m.Usage.Input
	}
	if sum != sessions+agents {
		t.Errorf("%d tokens of %d", sum, sessions+agents)
	}
}

// A call for which another one is evicted, with the tokens of its sub-agent, is a delegation
// like any other.
func TestEvictionLeavesTheNewCall(t *testing.T) {
	d := open(t, decoder.Stream{})
	for i := range conversation.MaxCalls + 10 {
		got := step(t, d, fmt.Appendf(nil, `{"_type":"AssistantMessage","data":{"message_id":"m%[1]d","content":[{"id":"c%[1]d","name":"Task","input":{"subagent_type":"a"}}]}}`, i))
		kinds := make(map[msg.Kind]int)
		for _, m := range got {
			kinds[m.Kind]++
		}
		if kinds[msg.Delegation] != 1 || (kinds[msg.Usage] == 1) != (i >= conversation.MaxCalls) {
			t.Fatalf("call %d: %v", i, kinds)
		}
		step(t, d, fmt.Appendf(nil, `{"_type":"AssistantMessage","data":{"message_id":"n%[1]d","parent_tool_use_id":"c%[1]d","content":[{"text":"x"}],"usage":{"input_tokens":1}}}`, i))
	}
}

// Calls and sessions that a peer leaves open are evicted beyond the limits.
func TestMemoryIsBounded(t *testing.T) {
	d := open(t, decoder.Stream{})
	size := func() int {
		b, err := d.(decoder.Snapshotter).Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		return len(b)
	}
	half := 0
	const rounds = 4 * conversation.MaxCalls
	for i := range rounds {
		for _, line := range []string{
			`{"type":"user","session_id":"s%[2]d","content":"prompt %[1]d"}`,
			`{"_type":"AssistantMessage","session_id":"s%[2]d","data":{"message_id":"m%[1]d","content":[{"id":"c%[1]d","name":"Task","input":{"subagent_type":"a%[1]d"}}],"usage":{"input_tokens":1}}}`,
			`{"_type":"AssistantMessage","session_id":"s%[2]d","data":{"message_id":"n%[1]d","parent_tool_use_id":"c%[1]d","content":[{"text":"x"}],"usage":{"input_tokens":1}}}`,
			`{"_type":"UserMessage","session_id":"s%[2]d","data":{"content":[{"tool_use_id":"lost%[1]d","content":"x"}]}}`,
			`{"type":"permission_request","session_id":"s%[2]d","metadata":{"tool_name":"Task","request_id":"r%[1]d"}}`,
		} {
			step(t, d, fmt.Appendf(nil, line, i, i%(2*maxSessions)))
		}
		if i == rounds/2 {
			half = size()
		}
	}
	if full := size(); full > half+half/10 {
		t.Errorf("the snapshot grew from %d to %d bytes", half, full)
	}
}

func TestRestoreRefusesWhatItCannotRead(t *testing.T) {
	for _, in := range []string{``, `x`, `{"sessions":{}}`, `{"Version":3,"Sessions":[null]}`, `{"Version":3,"Sessions":[{"Calls":{"Open":[null]}}]}`, `{"Version":3,"Sessions":3}`} {
		if err := open(t, decoder.Stream{}).(decoder.Snapshotter).Restore([]byte(in)); err == nil {
			t.Errorf("%s: taken", in)
		}
	}
}

// The decoders of a process share their scratch memory, and nothing else.
func TestDecodersOfOneFactoryWorkAtOnce(t *testing.T) {
	f := New()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			d, err := f.New(decoder.Stream{})
			if err != nil {
				t.Error(err)
				return
			}
			for i := range 500 {
				text := fmt.Sprintf("text %d of %d: %s", i, g, strings.Repeat(`"`, g))
				line, err := json.Marshal(map[string]any{"type": "assistant", "content": text, "timestamp": 1772442000 + i})
				if err != nil {
					t.Error(err)
					return
				}
				var out decoder.Output
				if err := d.Decode(&frame.Frame{Data: line}, &out); err != nil {
					t.Error(err)
					return
				}
				if m := out.Messages[0]; m.Content.String() != text || m.Key != msg.HashKey("assistant/text", fmt.Sprint(1772442000+i), text) {
					t.Errorf("%s: got %s %s", text, m.Key, m.Content)
				}
			}
		})
	}
	wg.Wait()
}

// Keys are unique among the messages of a line.
func TestPartsOfALineHaveTheirOwnKeys(t *testing.T) {
	for _, line := range []string{
		`{"type":"assistant","timestamp":1,"content":"x","metadata":{"thinking_blocks":[{"content":"x"},{"content":"x"}]}}`,
		`{"_type":"AssistantMessage","message_id":"i","data":{"content":[{"text":"x"},{"text":"x"},{"thinking":"x"},{"thinking":"x"}]}}`,
		`{"_type":"UserMessage","message_id":"i","data":{"content":[{"text":"x"},{"text":"x"}]}}`,
	} {
		d := open(t, decoder.Stream{})
		keys := make(map[string]bool)
		got := step(t, d, []byte(line))
		for _, m := range got {
			keys[m.Key] = true
		}
		if len(keys) != len(got) || len(got) != bytes.Count([]byte(line), []byte(`"x"`)) {
			t.Errorf("%s: %d messages, %d keys", line, len(got), len(keys))
		}
	}
}
