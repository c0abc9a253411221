package exchange

import "testing"

// TestProviderAt: a gateway that speaks the API of another provider is not that provider.
func TestProviderAt(t *testing.T) {
	for address, want := range map[string]string{
		"https://api.openai.com/v1/responses": "openai",
		"https://harbour.openai.azure.com/openai/deployments/tides/chat/completions?api-version=2025-04-01": "azure.ai.openai",
		"https://harbour.services.ai.azure.com/openai/v1/chat/completions":                                  "azure.ai.openai",
		"https://harbour.services.ai.azure.com/anthropic/v1/messages":                                       "azure.ai.inference",
		"https://openrouter.ai/api/v1/chat/completions":                                                     "openrouter",
		"https://API.X.AI/v1/chat/completions":                                                              "x_ai",
		"https://eu-west-1.api.x.ai/v1/chat/completions":                                                    "x_ai",
		"https://api.deepseek.com/anthropic/v1/messages":                                                    "deepseek",
		"https://api.groq.com/openai/v1/chat/completions":                                                   "groq",
		"https://api.mistral.ai:443/v1/chat/completions":                                                    "mistral_ai",
		"https://generativelanguage.googleapis.com/v1beta/openai/chat/completions":                          "gcp.gemini",
		"wss://generativelanguage.googleapis.com/ws/x":                                                      "gcp.gemini",
		"https://aiplatform.googleapis.com/v1/projects/p":                                                   "gcp.vertex_ai",
		"https://us-east5-aiplatform.googleapis.com/v1/projects/p":                                          "gcp.vertex_ai",
		"https://aiplatform.eu.rep.googleapis.com/v1/projects/p":                                            "gcp.vertex_ai",
		"https://cloudcode-pa.googleapis.com/v1internal:streamGenerateContent":                              "other",
		"https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse":                                  "aws.bedrock",
		"https://bedrock-mantle.us-east-1.api.aws/v1/responses":                                             "aws.bedrock",
		"http://127.0.0.1:11434/v1/chat/completions":                                                        "ollama",
		"http://127.0.0.1:8000/v1/chat/completions":                                                         "other",
		"https://gateway.example/v1/chat/completions":                                                       "other",
		"https://notopenrouter.ai/v1/chat/completions":                                                      "other",
		"https://api.openai.com.example/v1/chat/completions":                                                "other",
		"https://xaiplatform.example.googleapis.com/":                                                       "other",
		"/srv/harbour/recording.jsonl":                                                                      "other",
		"::":                                                                                                "other",
		"":                                                                                                  "other",
	} {
		if got := ProviderAt(address, "other"); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
