package semconv

import "github.com/earshot-dev/earshot/core/msg"

// traits are what is known of a format and not said in its traffic.
type traits struct {
	// provider is that of traffic that names none. The coding agents speak to their makers'
	// models unless they say otherwise.
	provider string
	// agentsStay says that its ids of agents are those of configured teams and stored agents.
	// Ids of one instance are not what the convention wants as gen_ai.agent.id.
	agentsStay bool
	// model is which one its messages name.
	model which
}

// which model messages name: the one that is configured, which the agent asks for, or the
// one that has answered.
type which uint8

const (
	unknown which = iota
	asked
	answered
)

// formats are the bundled ones. Of another one nothing is known but what it says.
var formats = map[string]traits{
	"agno":             {agentsStay: true, model: asked},
	"letta":            {agentsStay: true, model: asked},
	"grace":            {model: asked},
	"llm-message":      {agentsStay: true, model: asked},
	"legion":           {provider: "anthropic", agentsStay: true, model: answered},
	"claude-code":      {provider: "anthropic", model: answered},
	"claude-stream":    {provider: "anthropic", model: answered},
	"codex":            {provider: "openai", model: asked},
	"codex-exec":       {provider: "openai", model: asked},
	"anthropic-sse":    {model: answered},
	"openai-chat":      {model: answered},
	"openai-responses": {model: answered},
}

// RequestModel is gen_ai.request.model: the model that was asked for.
func RequestModel(s *msg.Span) string {
	if s.AskedModel == "" && formats[s.Format].model == asked {
		return s.Model
	}
	return s.AskedModel
}

// ResponseModel is gen_ai.response.model: the model that answered. Where it is not known
// of which of the two a protocol speaks, one name for both is the one that was asked for.
func ResponseModel(s *msg.Span) string {
	switch formats[s.Format].model {
	case asked:
		return ""
	case unknown:
		if s.Model == s.AskedModel && len(s.Request) == 0 {
			return ""
		}
	}
	return s.Model
}
