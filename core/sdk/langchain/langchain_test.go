package langchain

import (
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
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
	ttl := Counts(value(t, `{"input_tokens":300,"output_tokens":5,"input_token_details":{"cache_read":200,"cache_creation":0,"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":30}}`), conversation.Counts{})
	if want := (conversation.Counts{Input: 50, Output: 5, CacheRead: 200, CacheWrite: 50, CacheWrite1h: 30}); ttl != want {
		t.Errorf("%+v, want %+v", ttl, want)
	}
}

func TestContent(t *testing.T) {
	c := ContentOf(value(t, `{"content":["a",{"type":"text","text":"b"},{"type":"thinking","thinking":"c"},{"type":"tool_use","id":"t"},{"type":"image_url","image_url":{"url":"https://e.example/x.png"}}]}`))
	if string(c.Text) != "ab" || string(c.Thought) != "c" || len(c.Files) != 1 || c.Files[0].URL == "" {
		t.Errorf("%+v", c)
	}
}

// TestReply holds the three ways in which a reply comes against each other.
func TestReply(t *testing.T) {
	var chunks, sofar, events Reply
	for _, c := range []string{
		`{"content":"Let ","usage_metadata":{"input_tokens":30,"output_tokens":4}}`,
		`{"content":"us see.","tool_call_chunks":[{"index":0,"id":"call_ripe_pears","name":"weigh","args":"{\"box\":"}]}`,
		`{"content":"","tool_call_chunks":[{"index":0,"args":"7}"}],"usage_metadata":{"input_tokens":0,"output_tokens":5},"response_metadata":{"finish_reason":"tool_calls"}}`,
	} {
		chunks.Add(value(t, c), conversation.Time{})
	}
	for _, c := range []string{
		`{"content":"Let ","usage_metadata":{"input_tokens":30,"output_tokens":2}}`,
		`{"content":"Let us see.","tool_calls":[{"id":"call_ripe_pears","name":"weigh","args":{"box":7}}],"usage_metadata":{"input_tokens":30,"output_tokens":9},"response_metadata":{"stop_reason":"tool_calls"}}`,
	} {
		sofar.Set(value(t, c), conversation.Time{})
	}
	events.Start(value(t, `{"event":"message-start","run_id":"r","usage":{"input_tokens":30,"output_tokens":1}}`), conversation.Time{})
	for i, c := range []string{
		`{"event":"content-block-start","index":0,"content":{"type":"text","text":""}}`,
		`{"event":"content-block-delta","index":0,"delta":{"type":"text-delta","text":"Let us"}}`,
		`{"event":"content-block-finish","index":0,"content":{"type":"text","text":"Let us see."}}`,
		`{"event":"usage","usage":{"input_tokens":30,"output_tokens":6}}`,
		`{"event":"content-block-start","index":1,"content":{"type":"tool_call_chunk","id":"call_ripe_pears","name":"weigh"}}`,
		`{"event":"content-block-delta","index":1,"delta":{"fields":{"type":"tool_call_chunk","args":"{\"box\":7"}}}`,
		`{"event":"content-block-finish","index":1,"content":{"type":"tool_call","args":{"box":7}}}`,
		`{"event":"message-finish","reason":"tool_calls","usage":{"input_tokens":30,"output_tokens":9}}`,
	} {
		if known, over := events.Event(value(t, c), conversation.Time{}); !known || over != (i == 7) {
			t.Errorf("%s: known %t, over %t", c, known, over)
		}
	}
	if known, _ := events.Event(value(t, `{"event":"content-block-lost"}`), conversation.Time{}); known {
		t.Error("an event that is not known")
	}
	for name, r := range map[string]*Reply{"chunks": &chunks, "so far": &sofar, "events": &events} {
		want := conversation.Counts{Input: 30, Output: 9}
		if text := r.Text(msg.Assistant); text != "Let us see." || r.Text(msg.ToolCall) != `{"box":7}` || !r.Has("call_ripe_pears") || r.Counts != want || r.Stop != "tool_calls" {
			t.Errorf("%s: %q %q %+v %q", name, text, r.Text(msg.ToolCall), r.Counts, r.Stop)
		}
	}
}

// TestSofar: servers that count in each chunk send the tokens of the reply so far, and others those of the chunk.
func TestSofar(t *testing.T) {
	for name, chunks := range map[string][]string{
		"so far": {`{"input_tokens":30,"output_tokens":4}`, `{"input_tokens":30,"output_tokens":9}`, `{"input_tokens":30,"output_tokens":9}`},
		"added":  {`{"input_tokens":30,"output_tokens":4}`, `{"input_tokens":0,"output_tokens":5}`},
		"apart":  {`{"input_tokens":30,"output_tokens":0}`, `{"input_tokens":0,"output_tokens":9}`},
	} {
		var r Reply
		for _, c := range chunks {
			r.Add(value(t, `{"content":"","usage_metadata":`+c+`}`), conversation.Time{})
		}
		if want := (conversation.Counts{Input: 30, Output: 9}); r.Counts != want {
			t.Errorf("%s: %+v, want %+v", name, r.Counts, want)
		}
	}
}

func TestTranscript(t *testing.T) {
	var all Transcript
	first := all.Open("a", "", "task")
	if list := all.Before("other"); list != nil {
		t.Errorf("%d replies of another task are complete", len(list))
	}
	if list := all.Before("task"); len(list) != 0 {
		t.Error("the task makes another reply, and the one before it is complete, of which more may come")
	}
	first.Stop = "stop"
	if list := all.Before("task"); len(list) != 1 || list[0] != first {
		t.Error("the task makes another reply, and the one that the model stopped is not complete")
	}
	first.Stop = ""
	for range maxReplies - 1 {
		all.Open("b", "", "")
	}
	if list := all.Before("other"); len(list) != 1 || list[0] != first {
		t.Error("the oldest of too many replies is not complete")
	}
	if !all.Drop(first) || all.Drop(first) {
		t.Error("a reply is dropped once")
	}
	if all.Once("a"); all.Going("a") || !all.Going("b") || !all.Going("c") {
		t.Error("a reply that was complete may open again, or another may not")
	}
	list := `[{"type":"human","content":"x","id":"1"},{"type":"ai","content":"y","id":"2"},{"type":"human","content":"z","id":"3"},{"type":"ai","content":"v","id":"4"}]`
	for whole, old := range map[bool]string{true: "12", false: "1234"} {
		var of Transcript
		of.Skip(value(t, list), whole)
		got := ""
		for m := range value(t, list).Elems() {
			if _, repeats := of.Repeats(m); repeats {
				got += ID(m)
			}
		}
		if got != old {
			t.Errorf("whole %t: %q are of earlier runs, want %q", whole, got, old)
		}
	}
}
