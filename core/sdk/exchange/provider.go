package exchange

import (
	"net/url"
	"strings"
)

// services are the hosts of the providers' services, as their SDKs and those of their customers name them, and
// gen_ai.provider.name of each: a well-known value of the convention where it has one, else one of our own.
var services = map[string]string{
	"api.openai.com":                    "openai",
	"api.anthropic.com":                 "anthropic",
	"generativelanguage.googleapis.com": "gcp.gemini",
	"openai.azure.com":                  "azure.ai.openai",
	"openai.azure.us":                   "azure.ai.openai",
	"openai.azure.cn":                   "azure.ai.openai",
	"cognitiveservices.azure.com":       "azure.ai.openai",
	"services.ai.azure.com":             "azure.ai.inference",
	"models.ai.azure.com":               "azure.ai.inference",
	"ml.cloud.ibm.com":                  "ibm.watsonx.ai",
	"api.x.ai":                          "x_ai",
	"api.deepseek.com":                  "deepseek",
	"api.groq.com":                      "groq",
	"api.mistral.ai":                    "mistral_ai",
	"codestral.mistral.ai":              "mistral_ai",
	"api.perplexity.ai":                 "perplexity",
	"api.cohere.com":                    "cohere",
	"api.cohere.ai":                     "cohere",

	"openrouter.ai":               "openrouter",
	"ai-gateway.vercel.sh":        "vercel",
	"router.huggingface.co":       "hugging_face",
	"githubcopilot.com":           "github_copilot",
	"models.github.ai":            "github",
	"api.together.xyz":            "together_ai",
	"api.together.ai":             "together_ai",
	"api.fireworks.ai":            "fireworks_ai",
	"api.cerebras.ai":             "cerebras",
	"api.deepinfra.com":           "deepinfra",
	"integrate.api.nvidia.com":    "nvidia",
	"api.moonshot.ai":             "moonshot_ai",
	"api.moonshot.cn":             "moonshot_ai",
	"api.z.ai":                    "z_ai",
	"open.bigmodel.cn":            "z_ai",
	"api.minimax.io":              "minimax",
	"api.minimaxi.com":            "minimax",
	"dashscope.aliyuncs.com":      "dashscope",
	"dashscope-intl.aliyuncs.com": "dashscope",
}

// ProviderAt returns gen_ai.provider.name of the service at an address, a region's own host included; otherwise where
// it is none that is known, such as a proxy of a company's or a server of one's own.
//
//	Vertex AI  aiplatform.googleapis.com, REGION-aiplatform.googleapis.com, aiplatform.REGION.rep.googleapis.com
//	Bedrock    bedrock-runtime.REGION.amazonaws.com, bedrock-mantle.REGION.api.aws
//	Azure      RESOURCE.services.ai.azure.com/openai/… is OpenAI's API, any other path of it is not
//	Ollama     port 11434, unless it is configured otherwise
func ProviderAt(address, otherwise string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return otherwise
	}
	host := strings.ToLower(u.Hostname())
	service, _, _ := strings.Cut(host, ".")
	switch google, vertex := strings.CutSuffix(host, "googleapis.com"); {
	case vertex && (strings.HasSuffix(service, "aiplatform") && strings.Count(google, ".") == 1 || service == "aiplatform" && strings.HasSuffix(google, ".rep.")):
		return "gcp.vertex_ai"
	case strings.HasPrefix(service, "bedrock-") && (strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix(host, ".amazonaws.com.cn") || strings.HasSuffix(host, ".api.aws")):
		return "aws.bedrock"
	case strings.HasSuffix(host, ".services.ai.azure.com") && strings.HasPrefix(u.Path, "/openai/"):
		return "azure.ai.openai"
	case u.Port() == "11434":
		return "ollama"
	}
	for ok := true; ok; _, host, ok = strings.Cut(host, ".") {
		if name := services[host]; name != "" {
			return name
		}
	}
	return otherwise
}
