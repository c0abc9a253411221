package attach

import (
	"testing"

	"github.com/bmatcuk/doublestar/v4"
)

// TestProvidersAreRecorded has the paths of each provider's APIs that there is a decoder for, also those that are compatible with the API of
// another, and paths that are none of a conversation.
func TestProvidersAreRecorded(t *testing.T) {
	for _, c := range []struct{ provider, path, format string }{
		{"anthropic", "/v1/messages", "anthropic-sse"},
		{"anthropic", "/v1/messages/count_tokens", ""},
		{"openai", "/v1/responses", "openai-responses"},
		{"openai", "/v1/responses/resp_0001", "openai-responses"},
		{"openai", "/v1/responses/compact", "openai-responses"},
		{"openai", "/v1/responses/resp_0001/input_items", ""},
		{"openai", "/v1/chat/completions", "openai-chat"},
		{"openai", "/v1/models", ""},
		{"gemini", "/v1beta/models/gemini-9-flash:generateContent", "gemini-api"},
		{"gemini", "/v1beta/models/gemini-9-flash:streamGenerateContent", "gemini-api"},
		{"gemini", "/v1beta/interactions", "gemini-api"},
		{"gemini", "/v1beta/interactions/v1_0001", "gemini-api"},
		{"gemini", "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent", "gemini-live"},
		{"gemini", "/v1beta/models", ""},
		{"ollama", "/api/chat", "ollama"},
		{"ollama", "/api/generate", "ollama"},
		{"ollama", "/v1/chat/completions", "openai-chat"},
		{"ollama", "/v1/responses", "openai-responses"},
		{"ollama", "/v1/messages", "anthropic-sse"},
		{"ollama", "/api/tags", ""},
	} {
		p, _ := FindProvider(c.provider)
		format := ""
		for _, r := range p.Routes {
			if format == "" && doublestar.MatchUnvalidated(r.Path, c.path) {
				format = r.Format
			}
		}
		if format != c.format {
			t.Errorf("%s %s is recorded as %q, want %q", c.provider, c.path, format, c.format)
		}
	}
}
