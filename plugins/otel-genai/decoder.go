// Package otelgenai decodes spans and events of the GenAI conventions of OpenTelemetry (1.27 to 1.41 and
// the newest), of OpenInference, of OpenLLMetry (traceloop.*) and of Vercel's AI SDK (ai.*).
//
// Facts of the formats that are easy to get wrong:
//
//   - The cached tokens are in the input, and the reasoning is in the output. Emitters for Anthropic that
//     are older than 1.40 have them beside it: tokens that do not fit into the input, or into the total, are beside it.
//   - Two instrumentations may record one response, in spans one below the other: the inner one counts.
//   - A call may be recorded by the framework, by the client of MCP below it, and by the server below that. Only the first has the model's id.
//   - The span of an agent repeats the sum of its responses; so does Vercel's outer span.
//   - Old and new names are there at once: the new one counts.
//   - Content is in attributes (JSON text, or structured), in log records of 1.28 to 1.36 with the text in
//     the body, in gen_ai.client.inference.operation.details, or flattened into the names of attributes,
//     whose numbers are to be sorted as numbers.
//   - A request repeats the conversation: messages after the last one of the model are new.
//   - Frameworks put the session on the root span only, or nowhere.
package otelgenai

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
		Name: "otel-genai", Revision: 11,
		Summary: "OpenTelemetry of agents: the GenAI conventions, OpenInference, OpenLLMetry and Vercel's AI SDK.",
		Names:   names,
		Indexed: map[string]otlp.Field{
			"llm.input_messages.": otlp.Input, "llm.output_messages.": otlp.Output, "gen_ai.prompt.": otlp.Input, "gen_ai.completion.": otlp.Output,
		},
		Ours:  true,
		Rules: rules, Event: otlp.GenAIEvent, LeavesOut: leavesOut,
	}).Factory()
}

// details begins the counts of Pydantic AI beside those of the conventions.
const details = "gen_ai.usage.details."

// names are the attributes, the newest first.
var names = otlp.With(otlp.GenAI, map[otlp.Field][]string{
	otlp.Session:      {"session.id", "ai.telemetry.metadata.sessionId", "traceloop.association.properties.session_id", "langfuse.session.id", "langsmith.metadata.session_id", "langsmith.metadata.thread_id", "langsmith.metadata.conversation_id", "gcp.vertex.agent.session_id", "earshot.session.id"},
	otlp.Run:          {"earshot.run.id"},
	otlp.ParentAgent:  {"earshot.parent_run.id"},
	otlp.AgentID:      {"earshot.agent.id"},
	otlp.ToolServer:   {"earshot.mcp.server"},
	otlp.ChildRun:     {"earshot.child_run.id"},
	otlp.Delegate:     {"earshot.delegate.to"},
	otlp.StatedKind:   {"earshot.span.kind"},
	otlp.StatedModel:  {"earshot.model"},
	otlp.CacheWrite1h: {"earshot.usage.cache_write_1h.input_tokens"},
	otlp.TierField:    {"earshot.usage.tier"},
	otlp.StatedCost:   {"earshot.usage.stated_picodollars"},
	otlp.Operation:    {"openinference.span.kind", "traceloop.span.kind", "ai.operationId"},
	otlp.AgentName:    {"agent.name", "gen_ai.workflow.name", "ai.telemetry.functionId", "traceloop.entity.name", "traceloop.workflow.name", "agent_name"},
	otlp.ModelField:   {"llm.response.model_name", "ai.response.model"},
	otlp.AskedModel:   {"llm.request.model_name", "llm.model_name", "ai.model.id"},
	otlp.Provider:     {"llm.provider", "llm.system", "ai.model.provider"},
	otlp.ResponseID:   {"ai.response.id"},
	otlp.Finish:       {"ai.response.finishReason", "llm.finish_reason", "gen_ai.response.finish_reason", "gen_ai.response.stop_reason", "llm.response.finish_reason", "llm.response.stop_reason"},
	otlp.InputTokens:  {"llm.token_count.prompt", "ai.usage.inputTokens", "ai.usage.promptTokens", "gen_ai.response.prompt_tokens"},
	otlp.OutputTokens: {"llm.token_count.completion", "ai.usage.outputTokens", "ai.usage.completionTokens", "gen_ai.response.completion_tokens"},
	otlp.CacheRead: {"llm.token_count.prompt_details.cache_read", "ai.usage.inputTokenDetails.cacheReadTokens", "ai.usage.cachedInputTokens",
		details + "cache_read_tokens", details + "cache_read_input_tokens", details + "cached_tokens"},
	otlp.CacheWrite:      {"llm.token_count.prompt_details.cache_write", "ai.usage.inputTokenDetails.cacheWriteTokens", details + "cache_write_tokens", details + "cache_creation_input_tokens"},
	otlp.ReasoningTokens: {"llm.token_count.completion_details.reasoning", "ai.usage.outputTokenDetails.reasoningTokens", "ai.usage.reasoningTokens", "llm.usage.reasoning_tokens", details + "reasoning_tokens", details + "thoughts_tokens"},
	otlp.TotalTokens:     {"llm.token_count.total", "llm.usage.total_tokens", "ai.usage.totalTokens"},
	otlp.CallID:          {"tool.id", "ai.toolCall.id", "tool_call.id"},
	otlp.ToolName:        {"tool.name", "ai.toolCall.name"},
	otlp.Arguments:       {"tool.parameters", "ai.toolCall.args", "gcp.vertex.agent.tool_call_args", "tool_arguments", "input"},
	otlp.Result:          {"ai.toolCall.result", "gcp.vertex.agent.tool_response", "tool_response", "output", "earshot.tool.result"},
	otlp.System:          {"ai.system"},
	otlp.Input:           {"ai.prompt.messages"},
	otlp.Request:         {"input.value", "traceloop.entity.input", "ai.prompt"},
	otlp.Output:          {"ai.response.text", "ai.response.object"},
	otlp.Reply:           {"output.value", "traceloop.entity.output"},
	otlp.Tools:           {"ai.prompt.tools"},
	otlp.Thoughts:        {"ai.response.reasoning"},
	otlp.FirstChunk:      {"ai.response.msToFirstChunk", "ai.stream.msToFirstChunk", "gen_ai.server.time_to_first_token"},
	otlp.FirstSecs:       {"gen_ai.client.operation.time_to_first_chunk"},
})

// responses are operations that are no names of the conventions: those of Semantic Kernel, and the calls of LiteLLM.
var responses = map[string]bool{
	"chat.completions": true, "text.completions": true,
	"acompletion": true, "atext_completion": true, "aresponses": true, "anthropic_messages": true,
	"agenerate_content": true, "generate_content_stream": true, "agenerate_content_stream": true,
}

// rules sets the kind of a span.
func rules(s *otlp.Span) {
	if s.Serves && s.MCP { // the call is the client's
		return
	}
	byEvents := s.Kind
	s.Kind = otlp.Other
	otlp.GenAIRules(s)
	s.AddReasoning("gen_ai.usage.experimental.reasoning_tokens") // of Google's ADK, up to 2.2
	if s.Tool == "(merged tools)" {                              // ADK's sum of calls that have spans of their own
		s.Kind = otlp.Step
	}
	if s.Has("langsmith.span.kind") == "prompt" { // a template, whose operation is chat too
		s.Kind = otlp.Step
	}
	if s.Kind > otlp.Other {
		return
	}
	s.Kind = otlp.Step
	switch op := s.Op; {
	case strings.HasSuffix(op, ".doGenerate"), strings.HasSuffix(op, ".doStream"), op == "LLM":
		s.Kind = otlp.Chat
	case responses[op]:
		s.Kind = otlp.Chat
	case op == "ai.toolCall", op == "TOOL", op == "tool":
		tool(s)
	case op == "AGENT", op == "agent", op == "workflow", op == "ai.generateText", op == "ai.streamText", op == "ai.generateObject", op == "ai.streamObject":
		s.Kind = otlp.Agent
	case op != "":
	case byEvents > otlp.Other:
		s.Kind = byEvents
	case s.Name == "agent run": // of Pydantic AI, version 2 of its attributes
		s.Kind = otlp.Agent
	case s.Counted || s.Response != "" || s.Has("llm.request.type") != "":
		s.Kind = otlp.Chat
	case s.Tool != "" || s.Call != "":
		tool(s)
	case s.Session == "" && s.Agent == "" && s.Asked == "" && s.Model == "" && len(s.In)+len(s.Out) == 0:
		s.Kind = otlp.Other
	}
	if s.Kind == otlp.Chat {
		if calls := s.Take("ai.response.toolCalls"); calls != "" {
			s.AddCalls(calls)
		}
		for _, api := range [...]string{".responses", ".chat", ".messages"} {
			if vendor, ok := strings.CutSuffix(s.Provider, api); ok {
				s.Attr("provider_api", s.Provider)
				s.Provider = vendor
			}
		}
	}
}

// tool is a tool's span of a framework.
func tool(s *otlp.Span) {
	s.Kind = otlp.Tool
	s.Texts()
	if s.Tool == "" {
		s.Tool, s.Agent = s.Agent, ""
	}
}
