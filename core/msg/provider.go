package msg

import "strings"

// KnownProvider returns the well-known value of gen_ai.provider.name for a provider as
// libraries, gateways and handles of models write it; empty for one that has none.
func KnownProvider(name string) string {
	switch name = strings.ToLower(name); name {
	case "openai", "anthropic", "cohere", "deepseek", "groq", "perplexity":
		return name
	case "azure", "azure_openai", "azureopenai":
		return "azure.ai.openai"
	case "azureaifoundry":
		return "azure.ai.inference"
	case "aws", "bedrock", "awsbedrock", "amazon-bedrock":
		return "aws.bedrock"
	case "google", "gemini", "google_ai":
		return "gcp.gemini"
	case "vertexai", "vertex_ai", "google_vertex":
		return "gcp.vertex_ai"
	case "mistral", "mistral_ai", "mistralai":
		return "mistral_ai"
	case "xai", "x_ai", "x-ai":
		return "x_ai"
	}
	return ""
}
