package agno

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
)

// BenchmarkDeltas decodes the most frequent events of a stream: pieces of a text, of a few
// bytes each in an envelope of four hundred.
func BenchmarkDeltas(b *testing.B) {
	const envelope = `{"created_at":1790000000,"event":%q,"agent_id":"web-researcher","agent_name":"Web Researcher","run_id":"b4c6839d-f672-4f06-a7a2-4146278ff794","parent_run_id":"935ba8ab-0fbd-45b0-b317-41807fa49b85","session_id":"1266aaef-00f9-4536-8ff9-255ab4f2eea2"%s}`
	var frames []frame.Frame
	add := func(name, rest string) {
		frames = append(frames, frame.Frame{Kind: frame.Event, Name: name, Data: fmt.Appendf(nil, envelope, name, rest)})
	}
	add("RunStarted", `,"model":"oak-2","model_provider":"OpenAI"`)
	for range 1000 {
		add("RunContent", `,"content":" experimental","content_type":"str","reasoning_content":""`)
	}
	add("RunCompleted", `,"content":"`+strings.Repeat(" experimental", 1000)+`","content_type":"str","metrics":{"input_tokens":266,"output_tokens":15,"total_tokens":281}`)
	bench(b, frames)
}

// BenchmarkReload decodes the whole body of a session of fifty turns, each of a team and its
// members.
func BenchmarkReload(b *testing.B) {
	var runs []map[string]any
	for seed := range uint64(50) {
		runs = append(runs, newGenerator(seed).stored...)
	}
	body, err := json.Marshal(runs)
	if err != nil {
		b.Fatal(err)
	}
	bench(b, []frame.Frame{{Kind: frame.Body, Data: body}})
}

func bench(b *testing.B, frames []frame.Frame) {
	size := 0
	for i := range frames {
		size += len(frames[i].Data)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	var out decoder.Output
	for b.Loop() {
		d, err := New().New(decoder.Stream{Origin: "bench"})
		if err != nil {
			b.Fatal(err)
		}
		out.Reset()
		for i := range frames {
			if err := d.Decode(&frames[i], &out); err != nil {
				b.Fatal(err)
			}
		}
	}
	if len(out.Messages) == 0 || len(out.Problems) > 0 {
		b.Fatalf("%d messages, problems %v", len(out.Messages), out.Problems)
	}
}
