package codex

import (
	"testing"

	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// TestProvider: the providers that Codex has another name for have that of the conventions, in each framing.
func TestProvider(t *testing.T) {
	for text, want := range map[string]string{`"azure"`: "azure.ai.openai", `"amazon-bedrock"`: "aws.bedrock", `"openai"`: "openai", `"of-us"`: "of-us", `null`: "", `7`: ""} {
		var d jsonv.Doc
		if err := d.Parse([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := Provider(d.Root()); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
