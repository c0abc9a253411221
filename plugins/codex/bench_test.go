package codex

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
)

// BenchmarkLongTranscript decodes turns of a command with some output and an
// answer, as their lines are in a transcript of version 0.146: 1.7 kB on average.
func BenchmarkLongTranscript(b *testing.B) {
	output, err := json.Marshal("Exit code: 0\nWall time: 0.1 seconds\nOutput:\n" + strings.Repeat("trees.txt:12:\t\"pear\" in row 4\n", 200))
	if err != nil {
		b.Fatal(err)
	}
	var frames []frame.Frame
	size := 0
	for i := range 400 {
		for _, l := range []string{
			`{"timestamp":"2026-03-04T09:10:12.000Z","type":"event_msg","payload":{"type":"task_started","turn_id":"t{i}","model_context_window":258400}}`,
			`{"timestamp":"2026-03-04T09:10:12.100Z","type":"response_item","payload":{"type":"message","id":"u{i}","role":"user","content":[{"type":"input_text","text":"Where are the pears?"}]}}`,
			`{"timestamp":"2026-03-04T09:10:12.100Z","type":"event_msg","payload":{"type":"user_message","message":"Where are the pears?","images":[]}}`,
			`{"timestamp":"2026-03-04T09:10:13.000Z","type":"response_item","payload":{"type":"reasoning","id":"r{i}","summary":[],"encrypted_content":"` + strings.Repeat("gAAAAABcipher", 120) + `"}}`,
			`{"timestamp":"2026-03-04T09:10:13.100Z","type":"response_item","payload":{"type":"function_call","id":"f{i}","call_id":"c{i}","name":"shell","arguments":"{\"command\":[\"grep\",\"-rn\",\"pear\"]}"}}`,
			`{"timestamp":"2026-03-04T09:10:13.200Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":{n}00,"output_tokens":5},"last_token_usage":{"input_tokens":100,"output_tokens":5}}}}`,
			`{"timestamp":"2026-03-04T09:10:13.900Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c{i}","output":{output}}}`,
			`{"timestamp":"2026-03-04T09:10:15.000Z","type":"response_item","payload":{"type":"message","id":"a{i}","role":"assistant","content":[{"type":"output_text","text":"In row 4."}]}}`,
			`{"timestamp":"2026-03-04T09:10:15.000Z","type":"event_msg","payload":{"type":"agent_message","message":"In row 4."}}`,
			`{"timestamp":"2026-03-04T09:10:15.300Z","type":"event_msg","payload":{"type":"task_complete","turn_id":"t{i}","last_agent_message":"In row 4."}}`,
		} {
			l = strings.NewReplacer("{i}", strconv.Itoa(i), "{n}", strconv.Itoa(i+1), "{output}", string(output)).Replace(l)
			f := frame.Frame{Data: []byte(l)}
			frames = append(frames, f)
			size += len(f.Data)
		}
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
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(len(frames))/float64(b.N), "ns/line")
}
