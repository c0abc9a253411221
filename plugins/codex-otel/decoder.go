// Package codexotel decodes the OpenTelemetry of Codex: its log events, and its spans.
//
// Facts of the format that are easy to get wrong:
//
//   - A log record's time is "0", its body null, its eventName a line of a source file; the name and the time are
//     attributes, and the records of an export are in no order.
//   - tool_token_count is the total, not the tokens of tools. The cached tokens are in the input, the
//     reasoning is in the output.
//   - A request that only warms the cache has a record without output tokens: it is no response.
//   - The same tokens are in log records, in the spans of responses and in the sum of the turn's span, and no id is
//     shared: of a session that kind counts that arrives first.
//   - Each log event has the model of the session, those of calls too.
//   - Logs have neither the id of a turn nor the parent of a sub-agent's thread, which is a session of its own.
package codexotel

import (
	_ "embed"
	"strings"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/sdk/otlp"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return (&otlp.Profile{
		Name: "codex-otel", Revision: 3, Provider: "openai",
		Summary: "OpenTelemetry of Codex: log events and spans.",
		Names:   names, Direct: true, OneSource: true,
		Rules: rules, Event: event, LeavesOut: leavesOut,
	}).Factory()
}

const sums = "codex.turn.token_usage."

var names = map[otlp.Field][]string{
	otlp.Session:         {"conversation.id", "thread.id", "thread_id", "gen_ai.conversation.id"},
	otlp.Run:             {"turn.id"},
	otlp.ModelField:      {"model", "gen_ai.response.model", "gen_ai.request.model"},
	otlp.ResponseID:      {"gen_ai.response.id"},
	otlp.InputTokens:     {"input_token_count", "gen_ai.usage.input_tokens", sums + "input_tokens"},
	otlp.OutputTokens:    {"output_token_count", "gen_ai.usage.output_tokens", sums + "output_tokens"},
	otlp.CacheRead:       {"cached_token_count", "gen_ai.usage.cache_read.input_tokens", sums + "cached_input_tokens"},
	otlp.CacheWrite:      {"cache_write_token_count", sums + "cache_write_tokens"},
	otlp.ReasoningTokens: {"reasoning_token_count", "codex.usage.reasoning_output_tokens", sums + "reasoning_output_tokens"},
	otlp.TotalTokens:     {"tool_token_count", sums + "total_tokens"},
	otlp.CallID:          {"call_id"},
	otlp.ToolName:        {"tool_name"},
	otlp.ToolServer:      {"mcp_server"},
	otlp.Arguments:       {"arguments"},
	otlp.Result:          {"output"},
	otlp.Input:           {"prompt"},
	otlp.ErrorMessage:    {"error.message"},
	otlp.Duration:        {"duration_ms"},
	otlp.EventName:       {"event.name"},
	otlp.Timestamp:       {"event.timestamp"},
}

// rules sets the kind of a span.
func rules(s *otlp.Span) {
	switch s.Name {
	case "session_task.turn":
		s.Kind, s.Agent = otlp.Agent, "codex"
	case "handle_responses":
		s.Kind, s.Run = otlp.Step, ""
		if s.Counted {
			s.Kind = otlp.Chat
		}
		if s.Tool != "" {
			s.Attr("tool_name", s.Tool)
		}
	case "session_loop", "submission_dispatch":
		s.Kind, s.Run = otlp.Step, ""
	default:
		s.Kind, s.Run, s.Counted = otlp.Other, "", false
	}
}

// event completes a log event.
func event(s *otlp.Span, name string, body otlp.Value) bool {
	if body.Exists() {
		s.Attr("body", body.Text())
	}
	switch name {
	case "codex.user_prompt":
		s.Kind = otlp.Prompt
	case "codex.sse_event":
		if s.Has("event.kind") != "response.completed" || s.Counts.Output == 0 {
			s.Counted = false
			return false
		}
		s.Kind = otlp.Chat
	case "codex.tool_result":
		called(s)
		s.Succeeded("success")
	case "codex.tool_decision":
		decision := s.Has("decision")
		if s.Call == "" || !strings.HasPrefix(decision, "denied") && decision != "abort" && decision != "reject" {
			return false
		}
		called(s)
		s.Failed, s.ErrorType = true, "denied"
	default:
		return false
	}
	return true
}

// called makes the event that of a call. Its model is that of the session and names no response, which a call with a model would be
// a part of.
func called(s *otlp.Span) {
	s.Attr("model", s.Model)
	s.Kind, s.Model = otlp.Tool, ""
}
