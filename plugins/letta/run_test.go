package letta

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestUsageGoesToItsRun: a count belongs to the run that it names, if that has a message, and
// to the last run otherwise.
func TestUsageGoesToItsRun(t *testing.T) {
	message := func(run string) string {
		return `{"message_type":"assistant_message","id":"m-` + run + `","run_id":"` + run + `","step_id":"s-` + run + `","content":"tick"}`
	}
	for _, c := range []struct{ name, ids, want string }{
		{"the last", `["b"]`, "b"},
		{"one before", `["a"]`, "a"},
		{"both", `["b","a"]`, "b"},
		{"one without a message", `["c"]`, "b"},
		{"none", `null`, "b"},
		{"no id", `[7,null,{}]`, "b"},
	} {
		got, _ := play(t, open(t, ""), events(message("a"), message("b"),
			`{"message_type":"usage_statistics","prompt_tokens":3,"completion_tokens":2,"run_ids":`+c.ids+`}`))
		var counts []string
		for _, m := range got {
			if m.Kind == msg.Usage {
				counts = append(counts, m.Key+" of "+m.Run)
			}
		}
		if diff := cmp.Diff([]string{"usage:" + c.want + " of " + c.want}, counts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestEndsOfItsRun: a stop reason and a count name no run. They are of the run whose stream the request
// resumes, and a stop reason after the error that answered a request is of the request.
func TestEndsOfItsRun(t *testing.T) {
	const stop, usage = `{"message_type":"stop_reason","stop_reason":"end_turn"}`,
		`{"message_type":"usage_statistics","prompt_tokens":3,"completion_tokens":2,"run_ids":null}`
	asked := func(path, body string) frame.Frame {
		return frame.Frame{Kind: frame.Request, Name: "POST " + path, FromClient: true, Data: []byte(body)}
	}
	for _, c := range []struct {
		name   string
		frames []frame.Frame
		want   []string
	}{
		{"the rest of a stream", append([]frame.Frame{asked("/v1/runs/run-1/stream", `{"starting_after":9}`)}, events(stop, usage, "[DONE]")...),
			[]string{"unknown ", "stop run-1", "usage run-1"}},
		{"a stream of which nothing is left", append([]frame.Frame{
			asked("/v1/agents/agent-1/messages/stream", `{"input":"Tick?"}`), events(`{"message_type":"ping","run_id":"run-1"}`)[0],
			asked("/v1/runs/run-1/stream", `{"starting_after":1}`),
		}, events(stop, "[DONE]")...), []string{"user run-1", "stop run-1"}},
		{"an error before any run", append([]frame.Frame{asked("/v1/agents/agent-1/messages/stream", `{"input":"Tick?"}`)},
			events(`{"message_type":"error_message","error_type":"late","message":"Too late"}`, `{"message_type":"stop_reason","stop_reason":"llm_api_error"}`, "[DONE]")...),
			[]string{"user asked", "error asked", "stop asked"}},
	} {
		got, _ := play(t, open(t, ""), c.frames)
		var ends []string
		for _, m := range got {
			run := m.Run
			if strings.HasPrefix(run, "request:") {
				run = "asked"
			}
			ends = append(ends, m.Kind.String()+" "+run)
		}
		if diff := cmp.Diff(c.want, ends); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestTokens: the classes of the protocol contain each other, those of a message do not; and
// an unreported count is not 0.
func TestTokens(t *testing.T) {
	for _, c := range []struct {
		counts     string
		want       msg.Tokens
		unreported string
	}{
		{`"prompt_tokens":100,"completion_tokens":40,"cached_input_tokens":60,"cache_write_tokens":10,"reasoning_tokens":15`,
			msg.Tokens{Input: 30, Output: 25, CacheRead: 60, CacheWrite: 10, Reasoning: 15}, ""},
		{`"prompt_tokens":100,"completion_tokens":40,"cached_input_tokens":0,"cache_write_tokens":null`,
			msg.Tokens{Input: 100, Output: 40}, "cache_write reasoning"},
		{`"prompt_tokens":100,"completion_tokens":40,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":15}`,
			msg.Tokens{Input: 40, Output: 25, CacheRead: 60, Reasoning: 15}, "cache_write"},
		{`"prompt_tokens":10,"completion_tokens":4,"cached_input_tokens":60,"cache_write_tokens":10,"reasoning_tokens":15`, // more than there is
			msg.Tokens{CacheRead: 10, Reasoning: 4}, ""},
		{`"prompt_tokens":10,"completion_tokens":"4"`, // a text is a count too
			msg.Tokens{Input: 10, Output: 4}, "cache_read cache_write reasoning"},
	} {
		got, _ := play(t, open(t, ""), events(`{"message_type":"usage_statistics",`+c.counts+`}`))
		c.want.Provenance = msg.Provider
		if diff := cmp.Diff(c.want, got[0].Usage); diff != "" || got[0].Attr("unreported") != c.unreported {
			t.Errorf("%s: unreported %q, want %q (-want +got):\n%s", c.counts, got[0].Attr("unreported"), c.unreported, diff)
		}
	}
}
