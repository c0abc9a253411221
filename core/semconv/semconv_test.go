package semconv

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	otel "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/earshot-dev/earshot/core/msg"
)

func profile(t *testing.T, name string) *Profile {
	t.Helper()
	p, err := New(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func rendered(p *Profile, s *msg.Span) map[string]string {
	out := make(map[string]string)
	p.Attributes(s, func(k string, v Value) {
		if _, twice := out[k]; twice {
			out[k] = "TWICE"
			return
		}
		out[k] = string(v.AppendText(nil))
	})
	return out
}

func TestKeysAreThoseOfTheRelease(t *testing.T) {
	for ours, theirs := range map[string]string{
		KeyOperation:          string(otel.GenAIOperationNameKey),
		KeyProvider:           string(otel.GenAIProviderNameKey),
		KeyConversation:       string(otel.GenAIConversationIDKey),
		KeyAgentName:          string(otel.GenAIAgentNameKey),
		KeyAgentID:            string(otel.GenAIAgentIDKey),
		KeyInputMessages:      string(otel.GenAIInputMessagesKey),
		KeyInstructions:       string(otel.GenAISystemInstructionsKey),
		KeyToolDefinitions:    string(otel.GenAIToolDefinitionsKey),
		KeyRequestStream:      string(otel.GenAIRequestStreamKey),
		KeyServerAddress:      string(otel.ServerAddressKey),
		KeyServerPort:         string(otel.ServerPortKey),
		KeyWorkflowName:       string(otel.GenAIWorkflowNameKey),
		KeyRequestModel:       string(otel.GenAIRequestModelKey),
		KeyResponseModel:      string(otel.GenAIResponseModelKey),
		KeyResponseID:         string(otel.GenAIResponseIDKey),
		KeyFinishReasons:      string(otel.GenAIResponseFinishReasonsKey),
		KeyTimeToFirstChunk:   string(otel.GenAIResponseTimeToFirstChunkKey),
		KeyToolName:           string(otel.GenAIToolNameKey),
		KeyToolType:           string(otel.GenAIToolTypeKey),
		KeyToolCallID:         string(otel.GenAIToolCallIDKey),
		KeyToolArguments:      string(otel.GenAIToolCallArgumentsKey),
		KeyToolResult:         string(otel.GenAIToolCallResultKey),
		KeyOutputMessages:     string(otel.GenAIOutputMessagesKey),
		KeyUsageInput:         string(otel.GenAIUsageInputTokensKey),
		KeyUsageOutput:        string(otel.GenAIUsageOutputTokensKey),
		KeyUsageCacheRead:     string(otel.GenAIUsageCacheReadInputTokensKey),
		KeyUsageCacheCreation: string(otel.GenAIUsageCacheCreationInputTokensKey),
		KeyUsageReasoning:     string(otel.GenAIUsageReasoningOutputTokensKey),
		KeyMCPMethod:          string(otel.McpMethodNameKey),
		KeyErrorType:          string(otel.ErrorTypeKey),
		KeyService:            string(otel.ServiceNameKey),
	} {
		if ours != theirs {
			t.Errorf("key %q, want %q", ours, theirs)
		}
	}
	if got := profile(t, "").SchemaURL(); got != otel.SchemaURL {
		t.Errorf("schema URL %q, want %q", got, otel.SchemaURL)
	}
	for op, want := range map[msg.SpanKind]string{
		msg.SpanRun:        otel.GenAIOperationNameInvokeAgent.Value.AsString(),
		msg.SpanChat:       otel.GenAIOperationNameChat.Value.AsString(),
		msg.SpanTool:       otel.GenAIOperationNameExecuteTool.Value.AsString(),
		msg.SpanDelegation: otel.GenAIOperationNameExecuteTool.Value.AsString(),
		msg.SpanWorkflow:   "invoke_workflow",
	} {
		if got := Operation(op); got != want {
			t.Errorf("operation of %s: %q, want %q", op, got, want)
		}
	}
}

func TestUnknownProfile(t *testing.T) {
	_, err := New("genai-9")
	if err == nil || !strings.Contains(err.Error(), GenAI141) {
		t.Fatalf("error %v, want one that names the profiles", err)
	}
}

func TestNames(t *testing.T) {
	agent := msg.Agent{Name: "pilot"}
	for _, c := range []struct {
		span      msg.Span
		name, dev string
		kind      Kind
	}{
		{msg.Span{Kind: msg.SpanRun, Agent: agent}, "invoke_agent pilot", "invoke_agent pilot", Internal},
		{msg.Span{Kind: msg.SpanRun}, "invoke_agent", "invoke_agent", Internal},
		{msg.Span{Kind: msg.SpanChat, Agent: agent, Model: "tern-2"}, "chat tern-2", "chat tern-2", Client},
		{msg.Span{Kind: msg.SpanChat, AskedModel: "tern", Model: "tern-2"}, "chat tern", "chat tern", Client},
		{msg.Span{Kind: msg.SpanChat, Agent: agent}, "chat", "chat", Client},
		{msg.Span{Kind: msg.SpanTool, Tool: msg.Tool{Name: "tides"}}, "execute_tool tides", "execute_tool tides", Internal},
		{
			msg.Span{Kind: msg.SpanDelegation, Tool: msg.Tool{Name: "Task"}, Delegate: msg.Delegate{To: "scout"}},
			"execute_tool Task", "execute_tool Task scout", Internal,
		},
		{msg.Span{Kind: msg.SpanWorkflow, Agent: msg.Agent{Name: "daily"}}, "invoke_workflow daily", "invoke_workflow daily", Internal},
	} {
		if got := profile(t, GenAI141).Name(&c.span); got != c.name {
			t.Errorf("name %q, want %q", got, c.name)
		}
		if got := profile(t, GenAILatest).Name(&c.span); got != c.dev {
			t.Errorf("name of the dev profile %q, want %q", got, c.dev)
		}
		if got := profile(t, GenAI141).Kind(&c.span); got != c.kind {
			t.Errorf("%s: kind %s, want %s", c.name, got, c.kind)
		}
	}
}

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		outcome msg.Outcome
		kind    string
		code    Code
		want    map[string]string // of the attributes that depend on it
	}{
		{msg.OutcomeUnset, "", Unset, map[string]string{}},
		{msg.OutcomeOK, "", Unset, map[string]string{KeyOutcome: "ok"}},
		{msg.OutcomeError, "timeout", Error, map[string]string{KeyOutcome: "error", KeyErrorType: "timeout"}},
		{msg.OutcomeError, "", Error, map[string]string{KeyOutcome: "error", KeyErrorType: "_OTHER"}},
		{msg.OutcomeCancelled, "no_result", Unset, map[string]string{KeyOutcome: "cancelled", KeyCancelReason: "no_result"}},
	} {
		s := msg.Span{Kind: msg.SpanTool, Outcome: c.outcome, ErrorType: c.kind, StatusMessage: "because"}
		code, text := profile(t, "").Status(&s)
		if code != c.code || (text != "") != (code == Error) {
			t.Errorf("%s: status %s %q, want %s", c.outcome, code, text, c.code)
		}
		got := rendered(profile(t, ""), &s)
		for _, k := range []string{KeyOutcome, KeyErrorType, KeyCancelReason} {
			if got[k] != c.want[k] {
				t.Errorf("%s: %s = %q, want %q", c.outcome, k, got[k], c.want[k])
			}
		}
	}
}

func TestUsageIsInclusive(t *testing.T) {
	chat := msg.Span{Kind: msg.SpanChat, Usage: msg.Tokens{
		Input: 10, Output: 20, CacheRead: 300, CacheWrite: 4000, Reasoning: 5, Provenance: msg.Provider,
	}}
	run := chat
	run.Kind = msg.SpanRun
	released := map[string]string{
		KeyUsageInput: "4310", KeyUsageOutput: "25", KeyUsageCacheRead: "300", KeyUsageCacheCreation: "4000",
		KeyUsageReasoning: "5", KeyProvenance: "provider",
	}
	for _, c := range []struct {
		name    string
		profile string
		span    msg.Span
		want    map[string]string
	}{
		{"chat", GenAI141, chat, released},
		{"run", GenAI141, run, released},
		{"chat, dev", GenAILatest, chat, map[string]string{
			KeyUsageInput: "4310", KeyUsageOutput: "25", KeyUsageCacheRead: "300", KeyUsageCacheWrite: "4000",
			KeyUsageReasoning: "5", KeyProvenance: "provider",
		}},
		{"run, dev", GenAILatest, run, map[string]string{
			KeyUsageInput: "4310", KeyUsageOutput: "25", KeyUsageReasoning: "5", KeyProvenance: "provider",
		}},
		{"none", GenAI141, msg.Span{Kind: msg.SpanChat}, map[string]string{}},
	} {
		got := make(map[string]string)
		for k, v := range rendered(profile(t, c.profile), &c.span) {
			if strings.Contains(k, "usage") {
				got[k] = v
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestDelegation(t *testing.T) {
	s := msg.Span{
		Kind: msg.SpanDelegation, State: msg.SpanClosed, Tenant: "default", Source: "harbour", Format: "legion",
		Session: "s1", Run: "r1", Agent: msg.Agent{Name: "lead", Kind: msg.KindTeam},
		Tool:          msg.Tool{Name: "Task", CallID: "c1", Server: "dock"},
		ArgumentBytes: 12, ResultBytes: 7,
		Delegate: msg.Delegate{To: "scout", ChildRun: "r2", Link: msg.ByPrompt, Confidence: 80},
		Outcome:  msg.OutcomeOK,
	}
	want := map[string]string{
		KeyOperation: "execute_tool", KeyConversation: "s1", KeyAgentName: "lead", KeyToolName: "Task", KeyToolCallID: "c1",
		KeyToolType: "extension", KeyMCPMethod: "tools/call", KeyMCPServer: "dock", KeyArgumentBytes: "12", KeyResultBytes: "7",
		KeyDelegateTo: "scout", KeyChildRun: "r2", KeyLinkMethod: "prompt", KeyConfidence: "80", KeyOutcome: "ok",
		KeyTenant: "default", KeySource: "harbour", KeyFormat: "legion", KeySession: "s1", KeyRun: "r1", KeyAgentKind: "team", KeyState: "closed",
	}
	if d := cmp.Diff(want, rendered(profile(t, GenAI141), &s)); d != "" {
		t.Errorf("released (-want +got):\n%s", d)
	}
	want[KeyTransferTarget], want[KeyTransferMode], want[KeyTransferType] = "scout", "return_to_caller", "agent"
	if d := cmp.Diff(want, rendered(profile(t, GenAILatest), &s)); d != "" {
		t.Errorf("dev (-want +got):\n%s", d)
	}
	s.Delegate.Async = true
	if got := rendered(profile(t, GenAILatest), &s); got[KeyTransferMode] != "" || got[KeyDelegateAsync] != "true" {
		t.Errorf("a caller that goes on: mode %q, async %q", got[KeyTransferMode], got[KeyDelegateAsync])
	}
}

func TestFirstChunk(t *testing.T) {
	s := msg.Span{Kind: msg.SpanChat, Start: 1_000_000_000, FirstToken: 1_250_000_000, FinishReasons: []string{"stop", `a"b`}}
	got := rendered(profile(t, ""), &s)
	if got[KeyTimeToFirstChunk] != "0.25" || got[KeyFinishReasons] != `["stop","a\"b"]` {
		t.Errorf("got %v", got)
	}
	s.FirstToken = s.Start - 1
	if got := rendered(profile(t, ""), &s); got[KeyTimeToFirstChunk] != "" {
		t.Errorf("a first chunk before the request gave %q", got[KeyTimeToFirstChunk])
	}
}

func TestAttributesDoNotAllocate(t *testing.T) {
	p := profile(t, "")
	s := msg.Span{
		Kind: msg.SpanChat, Session: "s", Run: "r", Model: "tern-2", FinishReasons: []string{"stop"}, FirstToken: 5,
		Usage: msg.Tokens{Input: 1}, Outcome: msg.OutcomeOK,
	}
	n := 0
	add := func(string, Value) { n++ }
	if got := testing.AllocsPerRun(100, func() { p.Attributes(&s, add) }); got != 0 || n == 0 {
		t.Errorf("%v allocations for %d attributes", got, n)
	}
}

// TestSeenBy: the formats that show a span are an attribute where they are several.
func TestSeenBy(t *testing.T) {
	p := profile(t, GenAI141)
	for _, c := range []struct {
		by   []string
		want string
	}{{nil, ""}, {[]string{"claude-code"}, ""}, {[]string{"claude-code", "claude-code-otel"}, `["claude-code","claude-code-otel"]`}} {
		if got := rendered(p, &msg.Span{Seen: msg.Seen{By: c.by}})[KeySeenBy]; got != c.want {
			t.Errorf("%v: %s, want %s", c.by, got, c.want)
		}
	}
	list := []msg.SeenMessage{{ID: msg.ID{1}, By: []string{"claude-code", "claude-code-otel"}}}
	got := rendered(p, &msg.Span{Seen: msg.Seen{Messages: list}})[KeySeenMessages]
	if want := `{"01000000000000000000000000000000":["claude-code","claude-code-otel"]}`; got != want {
		t.Errorf("messages: %s, want %s", got, want)
	}
}
