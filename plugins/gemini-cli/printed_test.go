package geminicli

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/decodertest"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// play decodes lines of one file and returns the folded messages.
func play(t *testing.T, all ...[]byte) []msg.Message {
	t.Helper()
	var frames []frame.Frame
	for _, l := range all {
		frames = append(frames, frame.Frame{Kind: frame.Line, Data: l})
	}
	return msg.Fold(decodertest.Decode(t, New(), decoder.Stream{Origin: "/var/log/gemini/out.jsonl"}, frames).Messages)
}

// rows are the outcome of messages: by key the kind, the text and the tokens.
func rows(all []msg.Message) map[string]string {
	out := make(map[string]string)
	for _, m := range all {
		out[m.Session+" "+m.Key] = fmt.Sprint(m.Kind, " ", m.Run, " ", m.Tool.CallID, " ", m.Content.String(), " ", m.Usage)
	}
	return out
}

// printedRun is the output of one run, of which every content is the same as that of another one.
func printedRun(minute int) (all [][]byte) {
	for _, l := range []string{
		`{"type":"init","timestamp":"T:01.000Z","session_id":"5e550000-0000-4000-8000-00000000ce12","model":"gemini-2.5-pro"}`,
		`{"type":"message","timestamp":"T:01.001Z","role":"user","content":"Which tide is it?"}`,
		`{"type":"message","timestamp":"T:02.000Z","role":"assistant","content":"I look ","delta":true}`,
		`{"type":"message","timestamp":"T:02.100Z","role":"assistant","content":"it up.","delta":true}`,
		`{"type":"tool_use","timestamp":"T:02.200Z","tool_name":"tide","tool_id":"tide-M-1","parameters":{"at":"now"}}`,
		`{"type":"tool_result","timestamp":"T:03.000Z","tool_id":"tide-M-1","status":"success","output":"ebb"}`,
		`{"type":"error","timestamp":"T:03.500Z","severity":"warning","message":"The table is old"}`,
		`{"type":"message","timestamp":"T:04.000Z","role":"assistant","content":"It ","delta":true}`,
		`{"type":"message","timestamp":"T:04.100Z","role":"assistant","content":"is ebb.","delta":true}`,
		`{"type":"result","timestamp":"T:04.100Z","status":"success","stats":{"models":{"gemini-2.5-pro":{"total_tokens":130,"input_tokens":100,"output_tokens":30,"cached":40}}}}`,
	} {
		l = strings.ReplaceAll(l, "T:", fmt.Sprintf("2026-05-05T08:%02d:", minute))
		all = append(all, []byte(strings.ReplaceAll(l, "-M-", fmt.Sprintf("-%d-", minute))))
	}
	return all
}

// TestPrintedTwice: a run that is there twice has the same rows, in one file or in two, whatever was printed
// between; a part of it that was sent again adds nothing.
func TestPrintedTwice(t *testing.T) {
	one, two := printedRun(1), printedRun(2)
	want := rows(play(t, slices.Concat(one, two)...))
	for how, got := range map[string]map[string]string{
		"appended":            rows(play(t, slices.Concat(one, two, one, two)...)),
		"each run twice":      rows(play(t, slices.Concat(one, one, two, two)...)),
		"the first again":     rows(play(t, slices.Concat(one, two, one)...)),
		"the end again":       rows(play(t, slices.Concat(one, one[4:], two, one[7:])...)),
		"within a text":       rows(play(t, slices.Concat(one[:9], one[3:9], one[9:], two)...)),
		"after a text":        rows(play(t, slices.Concat(one[:5], one[2:5], one[5:], two)...)),
		"cut, then complete":  rows(play(t, slices.Concat(one[:8], one, two)...)),
		"files of their own":  rows(append(play(t, one...), play(t, two...)...)),
		"another file of two": rows(append(play(t, slices.Concat(one, two)...), play(t, slices.Concat(two, one)...)...)),
	} {
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", how, d)
		}
	}
}

// TestPrintedLinesTwice: where each line follows itself, calls and tokens count once.
func TestPrintedLinesTwice(t *testing.T) {
	var doubled [][]byte
	for _, l := range slices.Concat(printedRun(1), printedRun(2)) {
		doubled = append(doubled, l, l)
	}
	calls, results := 0, 0
	var input, output uint64
	for _, m := range play(t, doubled...) {
		switch m.Kind {
		case msg.ToolCall:
			calls++
		case msg.ToolResult:
			results++
		}
		input, output = input+m.Usage.Input+m.Usage.CacheRead, output+m.Usage.Output
	}
	if calls != 2 || results != 2 || input != 200 || output != 60 {
		t.Errorf("%d calls, %d results, input %d, output %d; want 2, 2, 200, 60", calls, results, input, output)
	}
}

// TestPiecesAlike: two pieces of the same text in the same millisecond are two.
func TestPiecesAlike(t *testing.T) {
	one := printedRun(1)
	ha := []byte(`{"type":"message","timestamp":"2026-05-05T08:01:02.000Z","role":"assistant","content":"ha ","delta":true}`)
	for _, m := range play(t, one[0], one[1], ha, ha, ha) {
		if m.Kind == msg.Assistant && m.Content.String() != "ha ha ha " {
			t.Errorf("%q", m.Content.String())
		}
	}
}

// TestMetadataIsWrittenAgain: the file beside a sub-agent's transcript is written again when the agent ends; only what is
// new in it is emitted.
func TestMetadataIsWrittenAgain(t *testing.T) {
	ended, err := os.ReadFile("testdata/qwen_meta/in.json")
	if err != nil {
		t.Fatal(err)
	}
	begun := bytes.Replace(ended, []byte(`"lastError": "the foreman went home early",`), nil, 1)
	var frames []frame.Frame
	for _, b := range [][]byte{begun, begun, ended, ended} {
		frames = append(frames, frame.Frame{Kind: frame.Body, Data: b})
	}
	var got []string
	for _, m := range decodertest.Decode(t, New(), decoder.Stream{Origin: "/home/ada/.qwen/projects/p/subagents/s/agent-pilot.meta.json"}, frames).Messages {
		kind, _, _ := strings.Cut(m.Key, ":")
		got = append(got, kind)
	}
	if d := cmp.Diff([]string{"link", "failed"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
