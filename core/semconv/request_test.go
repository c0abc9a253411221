package semconv

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestProvider has the evidence for a provider, from the best to the weakest: a chat and a
// run always have one.
func TestProvider(t *testing.T) {
	for _, c := range []struct {
		span msg.Span
		want string
	}{
		{msg.Span{Format: "letta", Provider: "groq", AskedModel: "openai/gpt-5"}, "groq"},
		{msg.Span{Format: "letta", AskedModel: "openai/gpt-5"}, "openai"},
		{msg.Span{Format: "letta", Model: "anthropic/tern-2"}, "anthropic"},
		{msg.Span{Format: "letta", AskedModel: "google_ai/tern"}, "gcp.gemini"},
		{msg.Span{Format: "letta", AskedModel: "harbour/tern"}, "letta"},
		{msg.Span{Format: "letta"}, "letta"},
		{msg.Span{Format: "grace"}, "grace"},
		{msg.Span{Format: "llm-message"}, "llm-message"},
		{msg.Span{Format: "codex-exec"}, "openai"},
	} {
		for _, kind := range []msg.SpanKind{msg.SpanChat, msg.SpanRun} {
			c.span.Kind = kind
			if got := rendered(profile(t, GenAI141), &c.span)[KeyProvider]; got != c.want {
				t.Errorf("%s %+v: provider %q, want %q", kind, c.span, got, c.want)
			}
		}
		c.span.Kind = msg.SpanTool
		if got := rendered(profile(t, ""), &c.span)[KeyProvider]; got != "" {
			t.Errorf("a tool has the provider %q", got)
		}
	}
	if got := rendered(profile(t, GenAILatest), &msg.Span{Kind: msg.SpanRun, Format: "letta"})[KeyProvider]; got != "" {
		t.Errorf("the newest names have %q on a run, want none", got)
	}
}

// TestAgentID has the ids of agents that stay as gen_ai.agent.id, and those of instances
// under our own name alone.
func TestAgentID(t *testing.T) {
	s := msg.Span{Kind: msg.SpanRun, Format: "agno", Agent: msg.Agent{ID: "tide-team", Name: "Tide Team"}}
	got := rendered(profile(t, GenAI141), &s)
	if got[KeyAgentID] != "tide-team" || got[KeyAgentName] != "Tide Team" || got[KeyAgentOwnID] != "tide-team" {
		t.Errorf("agno: %v", got)
	}
	for _, format := range []string{"claude-code", "codex", "a stranger's"} {
		s.Format = format
		if got := rendered(profile(t, GenAI141), &s); got[KeyAgentID] != "" || got[KeyAgentOwnID] != "tide-team" {
			t.Errorf("%s: %v", format, got)
		}
	}
}

// TestModels separates the requested model from the responding one.
func TestModels(t *testing.T) {
	heard := []msg.Attr{{Key: msg.ParamStream, Value: "false"}}
	for _, c := range []struct {
		span          msg.Span
		asked, answer string
	}{
		{msg.Span{AskedModel: "tern", Model: "tern-2026", Request: heard}, "tern", "tern-2026"},
		{msg.Span{AskedModel: "tern", Model: "tern", Request: heard}, "tern", "tern"},
		{msg.Span{AskedModel: "tern", Model: "tern"}, "tern", ""},
		{msg.Span{AskedModel: "tern"}, "tern", ""},
		{msg.Span{Model: "tern-2026"}, "", "tern-2026"},
		{msg.Span{Format: "agno", AskedModel: "tern", Model: "tern"}, "tern", ""},
		{msg.Span{Format: "codex", Model: "tern"}, "tern", ""},
		{msg.Span{Format: "claude-stream", AskedModel: "tern", Model: "tern"}, "tern", "tern"},
		{msg.Span{Format: "claude-code", Model: "tern-2026"}, "", "tern-2026"},
	} {
		c.span.Kind = msg.SpanChat
		got := rendered(profile(t, ""), &c.span)
		if got[KeyRequestModel] != c.asked || got[KeyResponseModel] != c.answer {
			t.Errorf("%+v: asked %q, answered %q", c.span, got[KeyRequestModel], got[KeyResponseModel])
		}
	}
}

// TestRequestParameters has every parameter with its type, and those that are not of it.
func TestRequestParameters(t *testing.T) {
	s := msg.Span{Kind: msg.SpanChat, Request: []msg.Attr{
		{Key: msg.ParamStream, Value: "true"}, {Key: msg.ParamMaxTokens, Value: "1024"}, {Key: msg.ParamTemperature, Value: "0.2"},
		{Key: msg.ParamTopP, Value: "1"}, {Key: msg.ParamTopK, Value: "40"}, {Key: msg.ParamSeed, Value: "7"},
		{Key: msg.ParamFrequencyPenalty, Value: "0.5"}, {Key: msg.ParamPresencePenalty, Value: "-1"},
		{Key: msg.ParamStopSequences, Value: `["ebb","flow"]`}, {Key: msg.ParamChoices, Value: "3"}, {Key: msg.ParamOutputType, Value: "json"},
		{Key: msg.ParamReasoning, Value: "low"}, {Key: "request.moon", Value: "full"},
	}}
	of := func(version string, s *msg.Span) map[string]Value {
		out := make(map[string]Value)
		profile(t, version).Attributes(s, func(k string, v Value) {
			if strings.HasPrefix(k, "gen_ai.request.") || k == KeyOutputType {
				out[k] = v
			}
		})
		return out
	}
	want := map[string]Value{
		KeyRequestStream: {Kind: BoolValue, Bool: true}, KeyMaxTokens: {Kind: IntValue, Int: 1024}, KeyTemperature: {Kind: FloatValue, Float: 0.2},
		KeyTopP: {Kind: FloatValue, Float: 1}, KeyTopK: {Kind: FloatValue, Float: 40}, KeySeed: {Kind: IntValue, Int: 7},
		KeyFrequencyPenalty: {Kind: FloatValue, Float: 0.5}, KeyPresencePenalty: {Kind: FloatValue, Float: -1},
		KeyStopSequences: {Kind: StringsValue, Strings: []string{"ebb", "flow"}}, KeyChoiceCount: {Kind: IntValue, Int: 3},
		KeyOutputType: {Kind: StringValue, Str: "json"},
	}
	if d := cmp.Diff(want, of(GenAI141, &s)); d != "" {
		t.Errorf("released (-want +got):\n%s", d)
	}
	want[KeyTopK], want[KeyReasoningLevel] = Value{Kind: IntValue, Int: 40}, Value{Kind: StringValue, Str: "low"}
	if d := cmp.Diff(want, of(GenAILatest, &s)); d != "" {
		t.Errorf("newest (-want +got):\n%s", d)
	}
	s.Request = []msg.Attr{{Key: msg.ParamStream, Value: "false"}, {Key: msg.ParamChoices, Value: "1"}, {Key: msg.ParamMaxTokens, Value: "many"}, {Key: msg.ParamStopSequences, Value: "ebb"}}
	if got := of(GenAI141, &s); len(got) != 0 {
		t.Errorf("defaults and wrong types give %v", got)
	}
}

func TestServer(t *testing.T) {
	for address, want := range map[string][2]string{
		"api.harbour.internal:443": {"api.harbour.internal", "443"}, "[::1]:7777": {"::1", "7777"}, "": {}, "harbour": {},
	} {
		for _, kind := range []msg.SpanKind{msg.SpanChat, msg.SpanRun} {
			got := rendered(profile(t, ""), &msg.Span{Kind: kind, Server: address})
			if got[KeyServerAddress] != want[0] || got[KeyServerPort] != want[1] {
				t.Errorf("%q: %q %q", address, got[KeyServerAddress], got[KeyServerPort])
			}
		}
	}
}

// TestConversationID is there for a session that the protocol names, and ours in any case.
func TestConversationID(t *testing.T) {
	s := msg.Span{Kind: msg.SpanRun, Session: "s1"}
	if got := rendered(profile(t, ""), &s); got[KeyConversation] != "s1" || got[KeySession] != "s1" {
		t.Errorf("named: %v", got)
	}
	s.Unnamed = true
	if got := rendered(profile(t, ""), &s); got[KeyConversation] != "" || got[KeySession] != "s1" {
		t.Errorf("unnamed: %v", got)
	}
}

// TestRunsSayHowTheyEnded keeps the state of a run apart from why its model stopped.
func TestRunsSayHowTheyEnded(t *testing.T) {
	s := msg.Span{Kind: msg.SpanRun, Ended: "completed", FinishReasons: []string{"end_turn"}}
	got := rendered(profile(t, ""), &s)
	if got[KeyFinishReasons] != `["end_turn"]` || got[KeyEnded] != "completed" {
		t.Errorf("%v", got)
	}
}
