package assemble

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	anthropicsse "github.com/earshot-dev/earshot/plugins/anthropic-sse"
	openairesponses "github.com/earshot-dev/earshot/plugins/openai-responses"
)

// observed is one exchange with a provider: who asks by its headers, the request, and the response.
type observed struct {
	headers  map[string]string
	request  string
	response string
}

// exchanges applies exchanges, each of which is a stream, through their decoder, and returns the parent of each span.
func exchanges(t *testing.T, factory decoder.Factory, list []observed) []string {
	t.Helper()
	w := newHarness(t)
	w.a.settings.LocalIDs = func(string) bool { return true }
	at := t0
	for i, x := range list {
		d, err := factory.New(decoder.Stream{Source: "tap"})
		if err != nil {
			t.Fatal(err)
		}
		ids, err := json.Marshal(x.headers)
		if err != nil {
			t.Fatal(err)
		}
		for n, f := range []frame.Frame{
			{Kind: frame.Request, Name: "POST /v1", ID: string(ids), FromClient: true, Data: []byte(x.request)},
			{Kind: frame.Body, Data: []byte(x.response)}, {Kind: frame.Close},
		} {
			var out decoder.Output
			if err := d.Decode(&f, &out); err != nil || len(out.Problems) > 0 {
				t.Fatal(err, out.Problems)
			}
			for _, m := range out.Messages {
				at += int64(time.Millisecond)
				m.Time, m.Precision = at, msg.Inferred
				m.Host = msg.Host{Tenant: "default", Format: factory.Info().Name, Source: "tap", Ver: uint64(n*100 + 1)}
				if _, err := w.a.Apply(&m, uint64(i+1), 1, time.Unix(0, at), at); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if len(w.replay) > 0 {
		t.Errorf("streams are to be decoded again: %+v", w.replay)
	}
	w.commit()
	rows := w.rowsOf()
	names := make(map[msg.SpanID]string)
	for _, s := range rows {
		names[s.ID] = strings.TrimSpace(fmt.Sprintf("%s %s %s", s.Kind, s.Agent.ID, s.Tool.CallID))
	}
	var tree []string
	traces := make(map[msg.TraceID]bool)
	for _, s := range rows {
		if traces[s.TraceID] = true; s.Kind != msg.SpanChat {
			tree = append(tree, fmt.Sprintf("%s < %s", names[s.ID], names[s.Parent]))
		}
	}
	if len(traces) != 1 {
		t.Errorf("%d traces", len(traces))
	}
	slices.Sort(tree)
	return tree
}

// TestParallelAgentsOfClaudeCode: a parent and two sub-agents that work side by side, and one below them, by provider traffic alone.
func TestParallelAgentsOfClaudeCode(t *testing.T) {
	by := func(agent, above string) map[string]string {
		h := map[string]string{"x-claude-code-session-id": "harbour", "x-claude-code-newer": "kept as it is"}
		if agent != "" {
			h["x-claude-code-agent-id"], h["x-claude-code-agent-type"] = agent, "pilot"
		}
		if above != "" {
			h["x-claude-code-parent-agent-id"] = above
		}
		return h
	}
	request := func(messages string) string { return `{"model":"m","max_tokens":9,"messages":[` + messages + `]}` }
	prompt := func(text string) string { return `{"role":"user","content":"` + text + `"}` }
	call := func(id, text string) string {
		return `{"type":"tool_use","id":"` + id + `","name":"Agent","input":{"subagent_type":"pilot","prompt":"` + text + `"}}`
	}
	response := func(id, content, stop string) string {
		return `{"type":"message","id":"` + id + `","model":"m","content":[` + content + `],"stop_reason":"` + stop + `","usage":{"input_tokens":3,"output_tokens":1}}`
	}
	text := `{"type":"text","text":"Done."}`
	calls := call("toolu_east", "Sound the east side") + "," + call("toolu_west", "Sound the west side")
	result := func(id string) string {
		return `{"type":"tool_result","tool_use_id":"` + id + `","content":"Done."}`
	}
	got := exchanges(t, anthropicsse.New(), []observed{
		{by("", ""), request(prompt("Sound both sides")), response("msg_1", calls, "tool_use")},
		{by("west-1", ""), request(prompt("Sound the west side")), response("msg_2", call("toolu_deep", "Dive"), "tool_use")},
		{by("east-1", ""), request(prompt("Sound the east side")), response("msg_3", text, "end_turn")},
		{by("diver-1", "west-1"), request(prompt("Dive")), response("msg_4", text, "end_turn")},
		{by("west-1", ""), request(prompt("Sound the west side") + `,{"role":"assistant","content":[` + call("toolu_deep", "Dive") + `]},{"role":"user","content":[` + result("toolu_deep") + `]}`), response("msg_5", text, "end_turn")},
		{by("", ""), request(prompt("Sound both sides") + `,{"role":"assistant","content":[` + calls + `]},{"role":"user","content":[` + result("toolu_east") + "," + result("toolu_west") + `]}`), response("msg_6", text, "end_turn")},
	})
	want := []string{
		"delegation  toolu_east < run", "delegation  toolu_west < run", "delegation west-1 toolu_deep < run west-1",
		"run < ", "run diver-1 < delegation west-1 toolu_deep", "run east-1 < delegation  toolu_east", "run west-1 < delegation  toolu_west",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestParallelAgentsOfCodex is the same for Codex, whose two sub-agents are asked the same: their threads are named by the results.
func TestParallelAgentsOfCodex(t *testing.T) {
	by := func(thread string) map[string]string {
		h := map[string]string{"session-id": "root-thread", "thread-id": thread, "originator": "codex_exec"}
		if thread != "root-thread" {
			h["x-codex-parent-thread-id"], h["x-openai-subagent"] = "root-thread", "collab_spawn"
		}
		return h
	}
	request := func(input string) string { return `{"model":"m","input":[` + input + `]}` }
	prompt := func(text string) string { return `{"type":"message","role":"user","content":"` + text + `"}` }
	call := func(id string) string {
		return `{"type":"function_call","id":"fc_` + id + `","call_id":"` + id + `","name":"spawn_agent","arguments":"{\"message\":\"Count the boats\",\"agent_type\":\"counter\"}"}`
	}
	response := func(id, output string) string {
		return `{"object":"response","id":"` + id + `","model":"m","status":"completed","output":[` + output + `],"usage":{"input_tokens":3,"output_tokens":1,"total_tokens":4}}`
	}
	result := func(id, agent string) string {
		return `{"type":"function_call_output","call_id":"` + id + `","output":"{\"agent_id\":\"` + agent + `\"}"}`
	}
	text := `{"type":"message","id":"m1","role":"assistant","content":[{"type":"output_text","text":"Three."}]}`
	got := exchanges(t, openairesponses.New(), []observed{
		{by("root-thread"), request(prompt("Count twice")), response("resp_1", call("call_one")+","+call("call_two"))},
		{by("root-thread"), request(prompt("Count twice") + "," + call("call_one") + "," + call("call_two") + "," + result("call_one", "thread-b") + "," + result("call_two", "thread-a")), response("resp_2", text)},
		{by("thread-a"), request(prompt("Count the boats")), response("resp_3", text)},
		{by("thread-b"), request(prompt("Count the boats")), response("resp_4", text)},
	})
	want := []string{
		"delegation  call_one < run", "delegation  call_two < run", "run < ",
		"run thread-a < delegation  call_two", "run thread-b < delegation  call_one",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
