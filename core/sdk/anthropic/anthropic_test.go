package anthropic

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
	for in, want := range map[string]conversation.Counts{
		`{"input_tokens":1,"output_tokens":9,"cache_read_input_tokens":3,"cache_creation_input_tokens":4,"output_tokens_details":{"thinking_tokens":5}}`: {Input: 1, Output: 9, CacheRead: 3, CacheWrite: 4, Reasoning: 5},
		`{"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":5}}`:                                                               {CacheWrite: 7, CacheWrite1h: 5},
		`{"cache_creation_input_tokens":8,"cache_creation":{"ephemeral_1h_input_tokens":5}}`:                                                             {CacheWrite: 8, CacheWrite1h: 5},
		`{"input_tokens":-1,"output_tokens":"9"}`:                                                                                                        {Output: 9},
		`null`: {}, `[]`: {},
	} {
		if got := Usage(parse(t, in)); got != want {
			t.Errorf("%s: %+v, want %+v", in, got, want)
		}
	}
	_, x := UsageAndExtra(parse(t, `{"server_tool_use":{"web_search_requests":2,"web_fetch_requests":5}}`))
	attrs := x.Set([]msg.Attr{{Key: "web_search_requests", Value: "1"}})
	if d := cmp.Diff([]msg.Attr{{Key: "web_search_requests", Value: "2"}, {Key: "web_fetch_requests", Value: "5"}}, attrs); d != "" {
		t.Error(d)
	}
}

// TestBill: the tokens of a response are those that the provider bills, each at the price of its model.
func TestBill(t *testing.T) {
	for name, c := range map[string]struct {
		usage string
		want  Billed
	}{
		"none": {`{"input_tokens":5,"output_tokens":2,"iterations":null}`, Billed{Counts: conversation.Counts{Input: 5, Output: 2}}},
		"one": {`{"input_tokens":5,"output_tokens":2,"iterations":[{"type":"message","input_tokens":5,"output_tokens":1}]}`,
			Billed{Counts: conversation.Counts{Input: 5, Output: 2}}},
		"a summary": {`{"input_tokens":230,"output_tokens":10,"output_tokens_details":{"thinking_tokens":4},"iterations":[
			{"type":"compaction","input_tokens":1800,"output_tokens":35,"cache_read_input_tokens":7},{"type":"message","input_tokens":230,"output_tokens":10}]}`,
			Billed{Counts: conversation.Counts{Input: 2030, Output: 45, CacheRead: 7, Reasoning: 4}, Several: true}},
		"nothing but a summary": {`{"input_tokens":0,"output_tokens":0,"iterations":[{"type":"compaction","input_tokens":1800,"output_tokens":35}]}`,
			Billed{Counts: conversation.Counts{Input: 1800, Output: 35}, Several: true}},
		"a loop that is summed up": {`{"input_tokens":4,"output_tokens":9,"cache_read_input_tokens":17,"iterations":[
			{"type":"message","model":"oak","input_tokens":2,"output_tokens":8,"cache_read_input_tokens":8},
			{"type":"message","model":"oak","input_tokens":2,"output_tokens":1,"cache_read_input_tokens":9}]}`,
			Billed{Counts: conversation.Counts{Input: 4, Output: 9, CacheRead: 17}, Several: true}},
		"an advisor, and the input of the first pass alone": {`{"input_tokens":412,"output_tokens":531,"iterations":[
			{"type":"message","input_tokens":412,"output_tokens":89},
			{"type":"advisor_message","model":"elm","input_tokens":823,"output_tokens":1612,"cache_creation":{"ephemeral_1h_input_tokens":6}},
			{"type":"message","input_tokens":1348,"cache_read_input_tokens":412,"output_tokens":442},
			{"type":"advisor_message","model":"elm","input_tokens":7,"output_tokens":1}]}`,
			Billed{Counts: conversation.Counts{Input: 1760, Output: 531, CacheRead: 412}, Several: true,
				Passes: []conversation.Pass{{Model: "elm", Counts: conversation.Counts{Input: 830, Output: 1613, CacheWrite: 6, CacheWrite1h: 6}}}}},
		"declined before a word": {`{"input_tokens":412,"output_tokens":264,"iterations":[
			{"type":"message","model":"ash","input_tokens":408,"output_tokens":0},{"type":"fallback_message","model":"oak","input_tokens":412,"output_tokens":264}]}`,
			Billed{Counts: conversation.Counts{Input: 412, Output: 264}, Several: true}},
		"declined in the middle": {`{"input_tokens":412,"output_tokens":264,"iterations":[
			{"type":"message","model":"ash","input_tokens":408,"output_tokens":31},{"type":"fallback_message","model":"oak","input_tokens":412,"output_tokens":264}]}`,
			Billed{Counts: conversation.Counts{Input: 412, Output: 264}, Several: true,
				Passes: []conversation.Pass{{Model: "ash", Counts: conversation.Counts{Input: 408, Output: 31}}}}},
	} {
		got := Bill(parse(t, c.usage))
		if above := Usage(parse(t, c.usage)); got.Above != above {
			t.Errorf("%s: above are %+v, want %+v", name, got.Above, above)
		}
		got.Above = conversation.Counts{}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestContent(t *testing.T) {
	image := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"YWJj"},"title":"x.png"}`
	for in, want := range map[string]struct {
		text  string
		files int
	}{
		`"a"`:                          {"a", 0},
		`[{"type":"text","text":"a"}]`: {"a", 0},
		`[{"type":"text","text":"a"},` + image + `,{"type":"text","text":"b"},{"type":"tool_reference","tool_name":"c"}]`: {"a\nb\nc", 1},
		`[{"type":"document","source":{"type":"text","data":"d"}}]`:                                                       {`{"type":"document","source":{"type":"text","data":"d"}}`, 0},
		`[{"type":"hologram"},"e"]`: {"{\"type\":\"hologram\"}\ne", 0},
		`[]`:                        {"", 0}, `null`: {"", 0},
	} {
		text, files := Content(parse(t, in))
		if text.String() != want.text || len(files) != want.files {
			t.Errorf("%s: %q and %d files, want %q and %d", in, text.String(), len(files), want.text, want.files)
		}
	}
	f, ok := File(parse(t, image))
	if want := (msg.Attachment{Name: "x.png", MediaType: "image/png", Size: 3, SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}); !ok || f != want {
		t.Errorf("%+v", f)
	}
}

func TestNames(t *testing.T) {
	for tool, want := range map[string]string{"mcp__barn__open": "barn", "mcp__barn": "barn", "Bash": "", "mcp__a__b__c": "a"} {
		if got := conversation.ToolServer(tool); got != want {
			t.Errorf("ToolServer(%q) = %q, want %q", tool, got, want)
		}
	}
	for _, c := range [][3]string{
		{"msg_bdrk_1", "claude-x", "aws.bedrock"}, {"msg_vrtx_1", "claude-x", "gcp.vertex_ai"}, {"msg_1", "us.anthropic.claude-x", "anthropic"}, {"", "other", ""},
	} {
		if got := Provider(c[0], c[1]); got != c[2] {
			t.Errorf("Provider(%q, %q) = %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
