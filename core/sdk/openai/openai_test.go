package openai

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

func parse(t *testing.T, s string) jsonv.Value {
	t.Helper()
	var doc jsonv.Doc
	if err := doc.Parse([]byte(s)); err != nil {
		t.Fatal(err)
	}
	return doc.Root()
}

func TestUsage(t *testing.T) {
	want := conversation.Counts{Input: 100, Output: 20, CacheRead: 60, Reasoning: 5}
	for _, in := range []string{
		`{"input_tokens":100,"output_tokens":20,"input_tokens_details":{"cached_tokens":60},"output_tokens_details":{"reasoning_tokens":5},"total_tokens":120}`,
		`{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":5}}`,
		`{"prompt_tokens":100,"completion_tokens":20,"prompt_cache_hit_tokens":60,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":5}}`,
		`{"input_tokens":100,"cached_input_tokens":60,"output_tokens":20,"reasoning_output_tokens":5}`,
	} {
		if got := Usage(parse(t, in)); got != want {
			t.Errorf("%s: %+v", in, got)
		}
	}
	for in, want := range map[string]conversation.Counts{
		// LiteLLM and Qwen, before Anthropic's cache and their own
		`{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"cache_read_input_tokens":60,"cache_creation_input_tokens":30}`: {Input: 100, Output: 20, CacheRead: 60, CacheWrite: 30},
		`{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":60,"cache_creation_tokens":30,"cache_creation_token_details":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20}}}`: {
			Input: 100, Output: 20, CacheRead: 60, CacheWrite: 30, CacheWrite1h: 20},
		`{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":30},"cache_type":"ephemeral"}}`: {Input: 100, Output: 20, CacheWrite: 30},
		// Gemini's Chat API, and a total that no count explains
		`{"prompt_tokens":20,"completion_tokens":198,"total_tokens":623}`: {Input: 20, Output: 603, Reasoning: 405},
		`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":81}`:     {},
		// a gateway whose input is without the cache of Anthropic
		`{"prompt_tokens":100,"completion_tokens":20,"total_tokens":5150,"cache_read_input_tokens":5000,"cache_creation_input_tokens":30}`: {Input: 5130, Output: 20, CacheRead: 5000, CacheWrite: 30},
		`{"input_tokens":0,"output_tokens":0,"total_tokens":272000}`:                                                                       {},
		// Perplexity and SGLang
		`{"prompt_tokens":33,"completion_tokens":7163,"total_tokens":7196,"citation_tokens":20016,"reasoning_tokens":73997}`: {Input: 33, Output: 81160, Reasoning: 73997},
		`{"prompt_tokens":33,"completion_tokens":71,"total_tokens":104,"reasoning_tokens":40}`:                               {Input: 33, Output: 71, Reasoning: 40},
	} {
		if got := Usage(parse(t, in)); got != want {
			t.Errorf("%s: %+v, want %+v", in, got, want)
		}
	}
	for _, in := range []string{`null`, `{}`, `{"input_tokens":-1,"prompt_tokens_details":null}`, `[]`} {
		if got := Usage(parse(t, in)); got != (conversation.Counts{}) {
			t.Errorf("%s: %+v", in, got)
		}
	}
}

func TestCost(t *testing.T) {
	for in, want := range map[string]string{
		`{"cost":0.0125}`: "0.0125", `{"cost":{"total_cost":0.006}}`: "0.006", `{"cost_in_usd_ticks":37756000}`: "0.0037756", `{}`: "", `{"cost":0}`: "0",
		`{"cost":0.001,"is_byok":true,"cost_details":{"upstream_inference_cost":0.02}}`:   "0.021",
		`{"cost":0.02,"is_byok":false,"cost_details":{"upstream_inference_cost":0.02}}`:   "0.02",
		`{"cost":0.02,"is_byok":true,"cost_details":{"upstream_inference_cost":null}}`:    "0.02",
		`{"cost":0.02,"cost_details":{"upstream_inference_cost":0.019},"is_byok":"true"}`: "0.02",
	} {
		if got := Cost(parse(t, in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		in   conversation.Counts
		want msg.Tokens
	}{
		{conversation.Counts{Input: 100, CacheRead: 60, CacheWrite: 30, Output: 20, Reasoning: 5}, msg.Tokens{Input: 10, CacheRead: 60, CacheWrite: 30, Output: 15, Reasoning: 5}},
		{conversation.Counts{Input: 10, CacheRead: 60, CacheWrite: 5, Output: 2, Reasoning: 5}, msg.Tokens{CacheRead: 10, Reasoning: 2}},
		{conversation.Counts{}, msg.Tokens{}},
	} {
		c.want.Provenance = msg.TranscriptFinal
		if got := Tokens(c.in, msg.TranscriptFinal); got != c.want {
			t.Errorf("%+v: got %+v, want %+v", c.in, got, c.want)
		}
	}
}

func TestContent(t *testing.T) {
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	for _, c := range []struct {
		in, text string
		files    []msg.Attachment
	}{
		{`"a\nb"`, "a\nb", nil},
		{`null`, "", nil},
		{`[]`, "", nil},
		{`[{"type":"text","text":"a"}]`, "a", nil},
		{`[{"type":"input_text","text":"a"},{"type":"output_text","text":"b\"c"},{"type":"text","text":"d"}]`, "a\nb\"c\nd", nil},
		{`[{"type":"new","x":1}]`, `{"type":"new","x":1}`, nil},
		{`[{"type":"image_url","image_url":{"url":"https://a.example/x"}},{"type":"input_image","image_url":"https://a.example/y"}]`, "",
			[]msg.Attachment{{URL: "https://a.example/x"}, {URL: "https://a.example/y"}}},
		{`[{"type":"file","file":{"file_data":"data:text/plain;base64,YWJj","filename":"x.txt"}},{"type":"input_audio","input_audio":{"data":"YWJj","format":"wav"}}]`, "",
			[]msg.Attachment{{Name: "x.txt", MediaType: "text/plain", Size: 3, SHA256: abc}, {MediaType: "audio/wav", Size: 3, SHA256: abc}}},
		{`{"type":"computer_screenshot","image_url":"data:image/png;base64,YWJj"}`, "", []msg.Attachment{{MediaType: "image/png", Size: 3, SHA256: abc}}},
		{`{"type":"computer_screenshot","file_id":"file-7"}`, `{"type":"computer_screenshot","file_id":"file-7"}`, nil},
		{`[{"type":"input_file","file_id":"file-7"}]`, `{"type":"input_file","file_id":"file-7"}`, nil},
	} {
		text, files := Content(parse(t, c.in))
		if text.String() != c.text {
			t.Errorf("%s: %s", c.in, text)
		}
		if d := cmp.Diff(c.files, files); d != "" {
			t.Errorf("%s: %s", c.in, d)
		}
	}
}

func TestNames(t *testing.T) {
	if id := Session(parse(t, `{"thread_id":"t","conversation_id":"c"}`)); id != "c" {
		t.Error(id)
	}
}
