package semconv

import (
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// Provider is gen_ai.provider.name of a chat or a run, empty where the version has none:
// the new repository took it off agents within the process. It is the provider that the traffic
// names; else the one that the model's handle begins with, as in openai/gpt-5; else the
// agent system that the traffic is of, which is a value of our own. The convention
// requires one, and wants the best that is known.
func (p *Profile) Provider(s *msg.Span) string {
	if p.dev && s.Kind != msg.SpanChat {
		return ""
	}
	return ProviderOf(s)
}

// ProviderOf is the provider that the span's tokens are of, whatever its kind.
func ProviderOf(s *msg.Span) string {
	if s.Provider != "" {
		return s.Provider
	}
	for _, model := range [...]string{s.Model, s.AskedModel} {
		if name := handle(model); name != "" {
			return name
		}
	}
	return systemOf(s.Format)
}

// handle is the provider that a model's handle begins with; empty when it is none that
// is known.
func handle(model string) string {
	name, _, ok := strings.Cut(model, "/")
	if !ok {
		return ""
	}
	switch name = strings.ToLower(name); name {
	case "openai", "anthropic", "cohere", "deepseek", "groq", "perplexity":
		return name
	case "azure", "azure_openai":
		return "azure.ai.openai"
	case "bedrock", "amazon-bedrock":
		return "aws.bedrock"
	case "google_ai", "google", "gemini":
		return "gcp.gemini"
	case "google_vertex", "vertex_ai":
		return "gcp.vertex_ai"
	case "mistral", "mistral_ai", "mistralai":
		return "mistral_ai"
	case "xai", "x_ai", "x-ai":
		return "x_ai"
	}
	return ""
}

// systemOf is the provider of a format whose traffic names none. The coding agents
// speak to their makers' models unless the traffic says otherwise.
func systemOf(format string) string {
	switch format {
	case "claude-code", "claude-stream", "legion":
		return "anthropic"
	case "codex", "codex-exec":
		return "openai"
	}
	return format
}

// stableAgent reports whether the format's ids of agents are those of agents that stay:
// configured teams, stored agents. Others are of one instance, which the convention does
// not want as gen_ai.agent.id; of a format that is not known here nobody can tell.
func stableAgent(format string) bool {
	switch format {
	case "agno", "letta", "legion", "llm-message":
		return true
	}
	return false
}
