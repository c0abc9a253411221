package langchain

import (
	"testing"

	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

func value(t *testing.T, s string) jsonv.Value {
	t.Helper()
	var d jsonv.Doc
	if err := d.Parse([]byte(s)); err != nil {
		t.Fatal(err)
	}
	return d.Root()
}

func TestMessage(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"AIMessageChunk","content":""}`: "ai",
		`{"role":"user","content":"x"}`:          "human",
		`{"type":"tool"}`:                        "",
		`{"type":"remove","id":"m"}`:             "remove",
		`{"type":"text","text":"x"}`:             "",
		`{"lc":1,"type":"constructor","id":["langchain","schema","messages","ToolMessage"],"kwargs":{"content":"x"}}`: "tool",
		`[]`: "",
	} {
		if _, got := Message(value(t, in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func TestCounts(t *testing.T) {
	first := Counts(value(t, `{"input_tokens":300,"output_tokens":5,"input_token_details":{"cache_read":200,"cache_creation":20}}`), conversation.Counts{})
	last := Counts(value(t, `{"input_tokens":300,"output_tokens":44,"output_token_details":{"reasoning":11}}`), first)
	if want := (conversation.Counts{Input: 80, Output: 44, CacheRead: 200, CacheWrite: 20, Reasoning: 11}); last != want {
		t.Errorf("%+v, want %+v", last, want)
	}
}

func TestContent(t *testing.T) {
	c := ContentOf(value(t, `{"content":["a",{"type":"text","text":"b"},{"type":"thinking","thinking":"c"},{"type":"tool_use","id":"t"},{"type":"image_url","image_url":{"url":"https://e.example/x.png"}}]}`))
	if string(c.Text) != "ab" || string(c.Thought) != "c" || len(c.Files) != 1 || c.Files[0].URL == "" {
		t.Errorf("%+v", c)
	}
}
