// Package claudecodeotel decodes the OpenTelemetry of Claude Code: its log events, and the spans of its beta.
//
// Facts of the format that are easy to get wrong:
//
//   - The cached tokens are beside the input.
//   - gen_ai.response.id has the id of the request (req_…), as request_id has.
//   - Numbers and booleans of tool_result and user_prompt are strings.
//   - There is no span of a sub-agent: its requests and calls name it in agent_id, and are below the call
//     that caused it. An agent that the main one runs has no parent_agent_id. Log events of newer versions name the
//     sub-agent too, and not the call.
//   - tool.blocked_on_user has the time of the decision on each call: a person decided only if its source is one.
//   - After the first prompt of a session the span of the interaction may be missing, and each request and call is then a
//     root of a trace of its own: they are of the turn of their session.
//   - A rejected call has a tool_decision and no tool_result; its span has no tool.execution below it.
//   - subagent_completed has the tokens of the last request, not a sum.
package claudecodeotel

import (
	"cmp"
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
		Name: "claude-code-otel", Revision: 5, Provider: "anthropic",
		Summary: "OpenTelemetry of Claude Code: log events, and the spans of its beta.",
		Names:   names, Beside: true, Direct: true, Rootless: true,
		Rules: rules, Event: event, LeavesOut: leavesOut,
	}).Factory()
}

var names = map[otlp.Field][]string{
	otlp.Session:      {"session.id"},
	otlp.Run:          {"prompt.id"},
	otlp.Operation:    {"span.type"},
	otlp.AgentID:      {"agent_id"},
	otlp.AgentName:    {"agent.name"},
	otlp.ParentAgent:  {"parent_agent_id"},
	otlp.ModelField:   {"model", "gen_ai.request.model"},
	otlp.ResponseID:   {"request_id", "gen_ai.response.id"},
	otlp.Finish:       {"stop_reason"},
	otlp.InputTokens:  {"input_tokens"},
	otlp.OutputTokens: {"output_tokens"},
	otlp.CacheRead:    {"cache_read_tokens"},
	otlp.CacheWrite:   {"cache_creation_tokens"},
	otlp.CallID:       {"tool_use_id", "gen_ai.tool.call.id"},
	otlp.ToolName:     {"tool_name"},
	otlp.Delegate:     {"subagent_type"},
	otlp.Arguments:    {"tool_input", "tool_parameters", "full_command", "file_path"},
	otlp.Input:        {"prompt", "user_prompt"},
	otlp.Output:       {"response"},
	otlp.ErrorType:    {"error_type", "error_class"},
	otlp.ErrorMessage: {"error"},
	otlp.Duration:     {"duration_ms"},
	otlp.FirstChunk:   {"ttft_ms"},
	otlp.EventName:    {"event.name"},
	otlp.Timestamp:    {"event.timestamp"},
}

// rules sets the kind of a span.
func rules(s *otlp.Span) {
	typ := strings.TrimPrefix(s.Op, "claude_code.")
	if typ == "" {
		typ, _ = strings.CutPrefix(s.Name, "claude_code.")
	}
	s.Succeeded("success")
	switch typ {
	case "interaction":
		s.Kind, s.Agent = otlp.Agent, "claude-code"
	case "llm_request":
		s.Kind = otlp.Chat
	case "tool":
		s.Kind = otlp.Tool
		delegate(s)
	case "tool.blocked_on_user":
		s.Kind, s.Waits = otlp.Step, asked(s.Has("source"))
		if s.Has("decision") == "reject" {
			s.Lift, s.Failed, s.ErrorType = true, true, "denied"
		}
	case "tool.execution":
		s.Kind, s.Lift = otlp.Step, true
	default:
		if strings.HasPrefix(s.Name, "claude_code.") {
			s.Kind = otlp.Step
		}
		return
	}
	subagent(s)
}

// asked reports whether a person decided on a call: a span of each call has the time of the decision, also of one that the configuration,
// the mode or a hook made at once.
func asked(source string) bool { return source == "" || strings.HasPrefix(source, "user") }

// subagent makes the run of a sub-agent that of its spans.
func subagent(s *otlp.Span) {
	if s.AgentID == "" {
		return
	}
	s.Above = cmp.Or(s.Above, s.Run)
	s.Run = s.AgentID // as in transcripts
}

// delegate marks the calls that run a sub-agent.
func delegate(s *otlp.Span) {
	if s.Tool != "Agent" && s.Tool != "Task" {
		if s.To != "" {
			s.Attr("subagent_type", s.To)
			s.To = ""
		}
		return
	}
	if s.To == "" {
		s.To = "agent"
	}
	s.Task = otlp.Member(s.Args, "prompt")
	if to := otlp.Member(s.Args, "subagent_type"); to != "" && s.To == "agent" {
		s.To = to
	}
}

// event completes a log event.
func event(s *otlp.Span, name string, body otlp.Value) bool {
	name = strings.TrimPrefix(name, "claude_code.")
	if text := body.Text(); text != "" && text != "claude_code."+name {
		s.Attr("body", text)
	}
	subagent(s)
	switch name {
	case "user_prompt":
		s.Kind = otlp.Prompt
	case "api_request", "assistant_response":
		s.Kind, s.Tier, s.Cost = otlp.Chat, msg.Tier(s.Has("speed")), msg.Dollars(s.Has("cost_usd"))
		if s.AgentID == "" && s.Run != "" {
			s.Agent = cmp.Or(s.Agent, "claude-code")
		}
	case "api_error", "api_retries_exhausted":
		s.Kind, s.Failed = otlp.Chat, true
	case "tool_result":
		s.Kind = otlp.Tool
		s.Succeeded("success")
		delegate(s)
	case "tool_decision":
		if s.Has("decision") != "reject" || s.Call == "" {
			return false
		}
		s.Kind, s.Failed, s.ErrorType = otlp.Tool, true, "denied"
	case "compaction":
		s.Kind, s.Signal = otlp.Note, msg.Compaction
	default:
		return false
	}
	return true
}
