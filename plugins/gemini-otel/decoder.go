// Package geminiotel decodes the OpenTelemetry of Gemini CLI: its log events, and its spans.
//
// Facts of the format that are easy to get wrong:
//
//   - The cached tokens are in the input; the thoughts are not in the output; tool_token_count is of the request, and
//     beside its input.
//   - Each response has two records, api_response and gen_ai.client.inference.operation.details: the first one counts.
//     Spans have it a third time: of a session that kind counts that arrives first.
//   - finish_reasons are those of the conventions: error is a call that the model could not write, content_filter an answer that
//     was blocked. Both are an api_response, and no api_error.
//   - tool_call has no id of the call. The span of a call has it in gen_ai.tool.call_id.
//   - A sub-agent's prompt_id is <agent>#<turn>; that of the main agent has eight of the sign.
//   - The name of an event is an attribute; the body is for people.
package geminiotel

import (
	_ "embed"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/otlp"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return (&otlp.Profile{
		Name: "gemini-otel", Revision: 4, Provider: "gcp.gemini",
		Summary: "OpenTelemetry of Gemini CLI: log events and spans.",
		Names:   names, Outside: true, Direct: true, OneSource: true, Rootless: true,
		Rules: rules, Event: event, LeavesOut: leavesOut,
	}).Factory()
}

var names = otlp.With(map[otlp.Field][]string{
	otlp.Session:         {"session.id"},
	otlp.Run:             {"prompt_id"},
	otlp.AgentID:         {"agent_id"},
	otlp.AgentName:       {"agent_name"},
	otlp.ModelField:      {"model"},
	otlp.Finish:          {"finish_reasons"},
	otlp.InputTokens:     {"input_token_count"},
	otlp.OutputTokens:    {"output_token_count"},
	otlp.CacheRead:       {"cached_content_token_count"},
	otlp.ReasoningTokens: {"thoughts_token_count"},
	otlp.ToolName:        {"function_name"},
	otlp.ToolServer:      {"mcp_server_name"},
	otlp.Arguments:       {"function_args"},
	otlp.Input:           {"prompt"},
	otlp.Output:          {"response_text"},
	otlp.ErrorType:       {"error_type"},
	otlp.ErrorMessage:    {"error", "error.message", "error_message"},
	otlp.Duration:        {"duration_ms"},
}, otlp.GenAI)

// rules sets the kind of a span.
func rules(s *otlp.Span) {
	op := s.Op
	if op == "" {
		op = s.Name
	}
	switch op {
	case "llm_call", "generate_content", "chat":
		s.Kind = otlp.Chat
	case "tool_call", "execute_tool":
		s.Kind = otlp.Tool
	case "user_prompt", "agent_call", "invoke_agent":
		s.Kind = otlp.Agent
	case "system_prompt", "schedule_tool_calls":
		s.Kind = otlp.Step
	default:
		if s.Session != "" {
			s.Kind = otlp.Step
		}
	}
	s.Run = ""
}

// event completes a log event.
func event(s *otlp.Span, name string, body otlp.Value) bool {
	if body.Exists() {
		s.Attr("body", body.Text())
	}
	if agent, _, one := strings.Cut(s.Run, "#"); one && strings.Count(s.Run, "#") == 1 {
		s.Attr("prompt_id", s.Run)
		s.Run, s.AgentID, s.Above = agent, agent, msg.UnknownRun
	}
	switch name {
	case "gemini_cli.user_prompt":
		s.Kind = otlp.Prompt
		if s.Above != "" {
			return false
		}
	case "gemini_cli.api_response":
		s.Kind = otlp.Chat
		s.AddInput("tool_token_count")
		if s.Finish == "error" || s.Finish == "content_filter" {
			s.Failed, s.ErrorType = true, s.Finish
		}
	case "gemini_cli.api_error":
		s.Kind, s.Failed = otlp.Chat, true
	case "gemini_cli.tool_call":
		s.Kind = otlp.Tool
		if s.Succeeded("success"); s.Has("decision") == "reject" {
			s.Failed, s.ErrorType = true, "denied"
		}
	default:
		s.Counted = false
		return false
	}
	return true
}
