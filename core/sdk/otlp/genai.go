package otlp

import (
	"cmp"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// GenAI are the names of the GenAI conventions, the newest first.
var GenAI = map[Field][]string{
	Session:         {"gen_ai.conversation.id"},
	Operation:       {"gen_ai.operation.name"},
	AgentID:         {"gen_ai.agent.id"},
	AgentName:       {"gen_ai.agent.name"},
	ModelField:      {"gen_ai.response.model"},
	AskedModel:      {"gen_ai.request.model"},
	Provider:        {"gen_ai.provider.name", "gen_ai.system"},
	ResponseID:      {"gen_ai.response.id"},
	Finish:          {"gen_ai.response.finish_reasons"},
	InputTokens:     {"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"},
	OutputTokens:    {"gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"},
	CacheRead:       {"gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"},
	CacheWrite:      {"gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens", "gen_ai.usage.cache_write_input_tokens"},
	ReasoningTokens: {"gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"},
	TotalTokens:     {"gen_ai.usage.total_tokens"},
	CallID:          {"gen_ai.tool.call.id", "gen_ai.tool.call_id"},
	ToolName:        {"gen_ai.tool.name"},
	Arguments:       {"gen_ai.tool.call.arguments"},
	Result:          {"gen_ai.tool.call.result"},
	ErrorType:       {"error.type"},
	System:          {"gen_ai.system_instructions"},
	Tools:           {"gen_ai.tool.definitions"},
	Input:           {"gen_ai.input.messages", "gen_ai.prompt"},
	Output:          {"gen_ai.output.messages", "gen_ai.completion"},
	FirstSecs:       {"gen_ai.response.time_to_first_chunk"},
	EventName:       {"event.name"},
	Timestamp:       {"event.timestamp"},
}

// With returns the names with more of them behind.
func With(names, more map[Field][]string) map[Field][]string {
	out := make(map[Field][]string, len(names)+len(more))
	for f, list := range names {
		out[f] = append(out[f], list...)
	}
	for f, list := range more {
		out[f] = append(out[f], list...)
	}
	return out
}

// GenAIRules finds the kind of a span of the conventions by its operation; Other, if it has none of theirs.
func GenAIRules(s *Span) {
	switch s.Op {
	case "chat", "generate_content", "text_completion", "streamText", "generateText", "completion", "responses":
		s.Kind = Chat
	case "execute_tool":
		s.Kind = Tool
		s.fromMessages()
	case "invoke_agent", "invoke_workflow":
		s.Kind = Agent
	case "embeddings", "create_agent", "retrieval", "plan", "agent_step":
		s.Kind = Step
	}
}

// GenAIEvent completes an event of the conventions: the messages of 1.28 to 1.36, whose content is the body of a
// log record or an attribute, and the details of a response.
func GenAIEvent(s *Span, name string, body Value) bool {
	kind, ok := strings.CutPrefix(name, "gen_ai.")
	if !ok {
		return false
	}
	var doc jsonv.Doc
	v := body.parsed(&doc)
	defer func() { s.Attr("body", unread(&doc)) }()
	switch kind {
	case "client.inference.operation.details":
		if s.Kind = Chat; body.Exists() {
			s.Attr("body", body.Text())
		}
		return true
	case "content.prompt", "content.completion": // their text is read as an attribute
		return len(s.In)+len(s.Out) > 0
	case "system.message", "user.message", "assistant.message", "tool.message":
		role, _, _ := strings.Cut(kind, ".")
		r, err := msg.ParseRole(role)
		if err != nil {
			return false
		}
		if text := cmp.Or(s.Take("content"), s.Take("gen_ai.event.content")); text != "" {
			if list := s.blocks("content", text, r); list != nil {
				s.In = append(s.In, list...)
				break
			}
			part := Part{Kind: kindOf(r), Text: text}
			if r == msg.RoleTool {
				part.Call = s.Take("id")
			}
			s.In = append(s.In, part)
		}
		if v.Exists() {
			s.In = appendMessage(s.In, v, r)
			body.read()
		} else {
			s.In = appendText(s.In, kindOf(r), body.Text())
		}
	case "choice":
		if text := s.Take("message"); text != "" {
			var inner jsonv.Doc
			if list := s.blocks("message", text, msg.RoleAssistant); list != nil {
				s.Out = append(s.Out, list...)
			} else if inner.Parse([]byte(text)) == nil && inner.Root().Is(jsonv.Object) {
				s.Out = appendMessage(s.Out, inner.Root(), msg.RoleAssistant)
				s.Attr("message", unread(&inner))
			} else {
				s.Out = append(s.Out, Part{Kind: msg.Assistant, Text: text})
			}
		}
		if s.Finish = cmp.Or(s.Finish, s.Take("finish_reason")); v.Exists() {
			s.Finish = cmp.Or(s.Finish, v.Get("finish_reason").Str())
			s.Out = appendMessage(s.Out, v, msg.RoleAssistant)
			body.read()
		} else {
			s.Out = appendText(s.Out, msg.Assistant, body.Text())
		}
	default:
		return false
	}
	s.Kind = Chat
	return true
}

// blocks are the parts of a text that is a list of them in JSON, as Strands has the messages of its events; nil if it is none.
func (s *Span) blocks(name, text string, role msg.Role) (list []Part) {
	var doc jsonv.Doc
	if text[0] != '[' || doc.Parse([]byte(text)) != nil {
		return nil
	}
	for b := range doc.Root().Elems() {
		if !b.First("text", "type", "toolUse", "toolResult", "reasoningContent", "image", "document").Exists() {
			return nil
		}
		list = appendPart(list, b, role)
	}
	s.Attr(name, unread(&doc))
	return list
}

// fromMessages takes the arguments and the result of a call from the messages of its span, where they are no attributes.
func (s *Span) fromMessages() {
	for _, p := range s.In {
		s.Args = cmp.Or(s.Args, p.Text)
	}
	for _, p := range s.Out {
		s.Result = cmp.Or(s.Result, p.Text)
	}
}

// AddCalls adds the calls of a response, a list in JSON.
func (s *Span) AddCalls(list string) {
	var doc jsonv.Doc
	if doc.Parse([]byte(list)) != nil {
		s.Attr("tool_calls", list)
		return
	}
	defer func() { s.Attr("tool_calls", unread(&doc)) }()
	for c := range doc.Root().Elems() {
		args := c.First("input", "args", "arguments")
		s.Out = append(s.Out, Part{Kind: msg.ToolCall, Call: c.First("toolCallId", "id").Str(), Tool: c.First("toolName", "name").Str(), Text: args.Text().String()})
	}
}
