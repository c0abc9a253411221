package gemini

import (
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// TestUsageSumsToTheTotal has the counts as Gemini writes them, and as a client writes those of
// a provider whose output includes the thoughts.
func TestUsageSumsToTheTotal(t *testing.T) {
	for name, c := range map[string]struct {
		usage string
		want  msg.Tokens
	}{
		"apart":    {`{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":7,"thoughtsTokenCount":9,"toolUsePromptTokenCount":30,"totalTokenCount":146}`, msg.Tokens{Input: 70, CacheRead: 60, Output: 7, Reasoning: 9}},
		"included": {`{"promptTokenCount":100,"candidatesTokenCount":20,"thoughtsTokenCount":9,"totalTokenCount":120}`, msg.Tokens{Input: 100, Output: 11, Reasoning: 9}},
		"no total": {`{"promptTokenCount":100,"candidatesTokenCount":20,"thoughtsTokenCount":9}`, msg.Tokens{Input: 100, Output: 20, Reasoning: 9}},
	} {
		var doc jsonv.Doc
		if err := doc.Parse([]byte(c.usage)); err != nil {
			t.Fatal(err)
		}
		if got := UsageOf(doc.Root()).Counts().Tokens(msg.NoProvenance); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := (Usage{Prompt: 3, Cached: 9}).Counts(); got != (conversation.Counts{CacheRead: 3}) {
		t.Errorf("more cached than sent: %+v", got)
	}
}

func TestTier(t *testing.T) {
	for in, want := range map[string]string{`{"serviceTier":"flex"}`: "flex", `{"trafficType":"ON_DEMAND_PRIORITY"}`: "priority", `{"trafficType":"ON_DEMAND"}`: "", `{}`: "", `{"serviceTier":"standard"}`: ""} {
		var doc jsonv.Doc
		if err := doc.Parse([]byte(in)); err != nil {
			t.Fatal(err)
		}
		if got := msg.Tier(Tier(doc.Root())); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
