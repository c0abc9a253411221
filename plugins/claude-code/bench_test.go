package claudecode

import (
	"fmt"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
)

// BenchmarkLongTranscript decodes a long transcript: turns of a prompt, a thought, a text,
// a tool call with its hook, a result and an answer, in lines of 1.8 kB on
// average, most of which is content that is only passed on.
func BenchmarkLongTranscript(b *testing.B) {
	frames := turns(500)
	bytesIn := 0
	for i := range frames {
		bytesIn += len(frames[i].Data)
	}
	b.SetBytes(int64(bytesIn))
	b.ReportAllocs()
	var out decoder.Output
	for b.Loop() {
		d := open(b, "/p/5e55.jsonl")
		for i := range frames {
			if i%256 == 0 {
				out.Reset()
			}
			if err := d.Decode(&frames[i], &out); err != nil {
				b.Fatal(err)
			}
		}
	}
	lines := float64(len(frames)) * float64(b.N)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/lines, "ns/line")
	b.ReportMetric(float64(bytesIn)/float64(len(frames)), "B/line")
}

// turns returns the lines of n turns.
func turns(n int) []frame.Frame {
	long := strings.Repeat(`Pruned the row and watered it.\nNext: \"apples\" and a pear. `, 30)
	var out []frame.Frame
	line, second := 0, 0
	add := func(typ, rest string) {
		line++
		second++
		out = append(out, frame.Frame{Data: fmt.Appendf(nil,
			`{"parentUuid":"c0de%04x-0000-4000-8000-%012x","isSidechain":false,"userType":"external","cwd":"/srv/orchard","sessionId":"5e550000-0000-4000-8000-0000000000a1","version":"2.1.230","gitBranch":"main","type":%q,%s,"uuid":"c0de%04x-0000-4000-8000-%012x","timestamp":"2026-03-02T%02d:%02d:%02d.123Z"}`,
			(line-1)%65536, line-1, typ, rest, line%65536, line, second/3600%24, second/60%60, second%60)})
	}
	assistant := func(id, block string) {
		add("assistant", fmt.Sprintf(`"message":{"id":%q,"type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[%s],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":4,"cache_creation_input_tokens":300,"cache_read_input_tokens":12000,"cache_creation":{"ephemeral_5m_input_tokens":300,"ephemeral_1h_input_tokens":0},"output_tokens":25,"service_tier":"standard"}},"requestId":"req_%s"`, id, block, id))
	}
	for i := range n {
		a, z, call := fmt.Sprintf("msg_01A%08d", i), fmt.Sprintf("msg_01Z%08d", i), fmt.Sprintf("toolu_01%08d", i)
		add("user", `"message":{"role":"user","content":"`+long[:len(long)/4]+`"}`)
		assistant(a, `{"type":"thinking","thinking":"`+long+`","signature":"`+strings.Repeat("c2ln", 100)+`"}`)
		assistant(a, `{"type":"text","text":"`+long[:len(long)/3]+`"}`)
		assistant(a, `{"type":"tool_use","id":"`+call+`","name":"Bash","input":{"command":"water --row 3","description":"`+long[:60]+`"}}`)
		add("progress", `"data":{"type":"hook_progress","hookEvent":"PostToolUse","hookName":"PostToolUse:Bash","command":"audit"},"parentToolUseID":"`+call+`","toolUseID":"`+call+`"`)
		add("user", `"message":{"role":"user","content":[{"tool_use_id":"`+call+`","type":"tool_result","content":"`+long+`","is_error":false}]},"toolUseResult":{"stdout":"`+long+`","stderr":"","interrupted":false,"isImage":false}`)
		assistant(z, `{"type":"text","text":"`+long+`"}`)
	}
	return out
}
