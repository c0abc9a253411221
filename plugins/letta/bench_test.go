package letta

import (
	"fmt"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
)

// BenchmarkStream decodes runs as a server streams them, a word at a time: a thought, a
// call, its result, and an answer of a few hundred words.
func BenchmarkStream(b *testing.B) {
	benchmark(b, runs(20))
}

// BenchmarkList decodes a list of a thousand stored messages.
func BenchmarkList(b *testing.B) {
	var list []string
	long := strings.Repeat(`It goes on, \"tick\" after tock.\n`, 40)
	for i := range 250 {
		head := fmt.Sprintf(`"date":"2026-04-02T%02d:%02d:00+00:00","name":null,"sender_id":null,"is_err":null,"seq_id":null,"run_id":"run-%d"`, i/60, i%60, i)
		list = append(list,
			fmt.Sprintf(`{"id":"message-u%d","message_type":"user_message",%s,"otid":"o%d","step_id":null,"content":"%s"}`, i, head, i, long[:120]),
			fmt.Sprintf(`{"id":"message-a%d","message_type":"tool_call_message",%s,"otid":"p%d","step_id":"step-%d","tool_call":null,"tool_calls":[{"name":"listen","arguments":"{\"text\": \"%s\"}","tool_call_id":"call_%d"}]}`, i, head, i, i, strings.Repeat("tick ", 60), i),
			fmt.Sprintf(`{"id":"message-t%d","message_type":"tool_return_message",%s,"otid":"q%d","step_id":"step-%d","tool_returns":[{"type":"tool","tool_return":"%s","status":"success","tool_call_id":"call_%d","stdout":null,"stderr":null}]}`, i, head, i, i, long, i),
			fmt.Sprintf(`{"id":"message-b%d","message_type":"assistant_message",%s,"otid":"r%d","step_id":"step-b%d","content":"%s"}`, i, head, i, i, long))
	}
	benchmark(b, []frame.Frame{{Kind: frame.Body, Data: []byte("[" + strings.Join(list, ",") + "]")}})
}

func benchmark(b *testing.B, frames []frame.Frame) {
	size := 0
	for i := range frames {
		size += len(frames[i].Data)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	var out decoder.Output
	for b.Loop() {
		d := open(b, "")
		for i := range frames {
			if i%256 == 0 {
				out.Reset()
			}
			if err := d.Decode(&frames[i], &out); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(len(frames)*b.N), "ns/frame")
}

// runs returns the frames of the streams of n runs.
func runs(n int) []frame.Frame {
	var out []frame.Frame
	add := func(format string, args ...any) {
		out = append(out, frame.Frame{Kind: frame.Event, Data: fmt.Appendf(nil, format, args...)})
	}
	words := strings.Fields(strings.Repeat("the pendulum swings as long as it is long and no longer ", 20))
	for i := range n {
		piece := func(typ string, block int, own string) {
			add(`{"id":"message-c10c0000-0000-4000-8000-%012x00","date":"2026-04-02T%02d:%02d:%02d+00:00","name":null,"message_type":%q,"otid":"c10c0000-0000-4000-8000-%012x%02x","sender_id":null,"step_id":"step-c10c0000-0000-4000-8000-%012x","is_err":null,"seq_id":null,"run_id":"run-c10c0000-0000-4000-8000-%012x",%s}`,
				i, i/60, i%60, len(out)/20%60, typ, i, block, i, i, own)
		}
		for _, w := range words[:40] {
			piece("reasoning_message", 0, `"source":"reasoner_model","reasoning":" `+w+`","signature":null`)
		}
		piece("tool_call_message", 1, fmt.Sprintf(`"tool_call":{"name":"swing","tool_call_id":"call_%d"},"tool_calls":{"name":"swing","tool_call_id":"call_%d"}`, i, i))
		for _, w := range []string{`{\"turns\"`, `: [1, 2`, `, 3], \"gently\"`, `: true}`} {
			piece("tool_call_message", 1, fmt.Sprintf(`"tool_call":{"arguments":"%s","tool_call_id":"call_%d"},"tool_calls":{"arguments":"%s","tool_call_id":"call_%d"}`, w, i, w, i))
		}
		piece("tool_return_message", 0, fmt.Sprintf(`"tool_return":"swung","status":"success","tool_call_id":"call_%d","stdout":null,"stderr":null,"tool_returns":[{"type":"tool","tool_return":"swung","status":"success","tool_call_id":"call_%d","stdout":null,"stderr":null}]`, i, i))
		for _, w := range words {
			piece("assistant_message", 2, `"content":" `+w+`"`)
		}
		add(`{"message_type":"stop_reason","stop_reason":"end_turn"}`)
		add(`{"message_type":"usage_statistics","completion_tokens":400,"prompt_tokens":9000,"total_tokens":9400,"step_count":2,"run_ids":null,"cached_input_tokens":8000,"cache_write_tokens":null,"reasoning_tokens":60,"context_tokens":9100}`)
		add(`[DONE]`)
	}
	return out
}
