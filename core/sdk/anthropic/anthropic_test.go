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
