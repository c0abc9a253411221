package attach

import (
	"fmt"
	"net/url"
	"strings"
)

// Provider is a model provider, and how a program's traffic with it is recorded.
type Provider struct {
	Name     string
	Variable string  // of the environment, by which programs take the base URL
	Base     string  // base URL by default
	Routes   []Route // of the traffic that is recorded; the first match wins
}

// Route is a glob of request paths and the format of their responses.
type Route struct{ Path, Format string }

var (
	// A response in the background is asked for by its id.
	openAI    = []Route{{"**/responses{,/*}", "openai-responses"}, {"**/chat/completions", "openai-chat"}}
	anthropic = Route{"**/v1/messages", "anthropic-sse"}
)

// Providers are those whose traffic there is a decoder for. The variables are those of the providers' own
// SDKs and of Ollama's clients.
func Providers() []Provider {
	return []Provider{
		{"anthropic", "ANTHROPIC_BASE_URL", "https://api.anthropic.com", []Route{anthropic}},
		{"openai", "OPENAI_BASE_URL", "https://api.openai.com/v1", openAI},
		{"gemini", "GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com", []Route{
			{"**/models/*enerateContent", "gemini-api"}, {"**/interactions{,/*}", "gemini-api"}, {"/ws/*.BidiGenerateContent*", "gemini-live"},
		}},
		{"ollama", "OLLAMA_HOST", "http://127.0.0.1:11434", append([]Route{{"/api/chat", "ollama"}, {"/api/generate", "ollama"}, anthropic}, openAI...)},
	}
}

// FindProvider returns the provider of a name.
func FindProvider(name string) (Provider, bool) {
	for _, p := range Providers() {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}

// Through returns the base URL that leads through a tap at the address, and the tap's upstream: the tap
// takes the place of scheme and host, and the path stays.
func Through(base, listen string) (through, upstream string, err error) {
	if !strings.Contains(base, "://") {
		base = "http://" + base // OLLAMA_HOST may be host:port
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" {
		return "", "", fmt.Errorf("the base URL %q is not http:// or https:// with a host", base)
	}
	return "http://" + listen + u.EscapedPath(), u.Scheme + "://" + u.Host, nil
}

// TapSource is the item of a configuration's sources for a tap, in flow style.
func TapSource(name, listen, upstream string, routes []Route) string {
	var r []string
	for _, x := range routes {
		if x.Path == "" {
			return fmt.Sprintf("{name: %s, type: tap, format: %s, listen: %q, upstream: %q}", name, x.Format, listen, upstream)
		}
		r = append(r, fmt.Sprintf("{path: %q, format: %s}", x.Path, x.Format))
	}
	return fmt.Sprintf("{name: %s, type: tap, listen: %q, upstream: %q, routes: [%s]}", name, listen, upstream, strings.Join(r, ", "))
}
