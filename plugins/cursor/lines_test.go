package cursor

import (
	"bytes"
	"fmt"
	"maps"
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
	return msg.Fold(decodertest.Decode(t, New(), decoder.Stream{Origin: "/var/log/cursor/out.jsonl"}, frames).Messages)
}

// counted are the calls, the results and the tokens of messages, each by its key, and how often each thought is there.
func counted(all []msg.Message) map[string]string {
	out, thoughts := make(map[string]string), 0
	for _, m := range all {
		switch m.Kind {
		case msg.ToolCall, msg.ToolResult, msg.Delegation, msg.DelegationResult, msg.Usage:
			out[m.Session+" "+m.Key] = fmt.Sprint(m.Kind, " ", m.Tool.CallID, " ", m.Content.String(), " ", m.Usage)
		case msg.Reasoning:
			thoughts++
			out[fmt.Sprint("thought ", thoughts)] = m.Content.String()
		}
	}
	return out
}

// printed are the lines of a run of cursor-agent, and those of a run that resumes its session and has the same contents.
func printed(t *testing.T) (one, two [][]byte) {
	t.Helper()
	in, err := os.ReadFile("testdata/agent/in.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for l := range bytes.Lines(in) {
		l = bytes.TrimSpace(l)
		later := strings.NewReplacer(`"timestamp_ms":17777107`, `"timestamp_ms":17777108`, "toolu_dune_0", "toolu_dune_1", "mc-0001", "mc-0002", "10e11780-0000", "10e11780-0001").Replace(string(l))
		one, two = append(one, l), append(two, []byte(later))
		if bytes.Contains(l, []byte(`"type":"result"`)) {
			return one, two
		}
	}
	t.Fatal("the case has no result")
	return nil, nil
}

// TestPrintedTwice: the calls, thoughts and tokens of a run that is there twice count once, and those of two runs of a
// session twice.
func TestPrintedTwice(t *testing.T) {
	one, two := printed(t)
	want := counted(play(t, slices.Concat(one, two)...))
	if once := counted(play(t, one...)); len(want) != 2*len(once) {
		t.Fatalf("two runs have %d rows, one has %d", len(want), len(once))
	}
	for how, got := range map[string]map[string]string{
		"appended":           counted(play(t, slices.Concat(one, two, one, two)...)),
		"each run twice":     counted(play(t, slices.Concat(one, one, two, two)...)),
		"the end again":      counted(play(t, slices.Concat(one, one[9:], two, one[12:])...)),
		"within an answer":   counted(play(t, slices.Concat(one[:7], one[5:7], one[7:], two)...)),
		"cut, then complete": counted(play(t, slices.Concat(one[:11], one, two)...)),
	} {
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", how, d)
		}
	}
	// Of a thought that is in a second file, or whose pieces follow themselves, nothing is the same.
	withoutThoughts := func(rows map[string]string) map[string]string {
		maps.DeleteFunc(rows, func(name, _ string) bool { return strings.HasPrefix(name, "thought") })
		return rows
	}
	var doubled [][]byte
	for _, l := range slices.Concat(one, two) {
		doubled = append(doubled, l, l)
	}
	want = withoutThoughts(want)
	for how, got := range map[string]map[string]string{
		"doubled":             counted(play(t, doubled...)),
		"in a file of itself": counted(append(play(t, slices.Concat(one, two)...), play(t, two...)...)),
	} {
		if d := cmp.Diff(want, withoutThoughts(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", how, d)
		}
	}
}

// TestRepeatedRunEnds: a prompt that is there twice, which nothing identifies, begins a run, and its result ends it.
func TestRepeatedRunEnds(t *testing.T) {
	one, _ := printed(t)
	began, ended := 0, 0
	for _, m := range play(t, slices.Concat(one, one, one[len(one)-1:])...) {
		switch m.Signal {
		case msg.RunStart:
			began++
		case msg.RunEnd:
			ended++
		}
	}
	if began != 2 || ended != 2 {
		t.Errorf("%d runs began, %d ended", began, ended)
	}
}

// TestPiecesAlike: two pieces of the same text in the same millisecond are two.
func TestPiecesAlike(t *testing.T) {
	one, _ := printed(t)
	ha := []byte(`{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"ha "}]},"timestamp_ms":1777710753100,"session_id":"51000000-0000-4000-8000-00000000d00e"}`)
	for _, m := range play(t, one[0], one[1], ha, ha, ha) {
		if m.Kind == msg.Assistant && m.Content.String() != "ha ha ha " {
			t.Errorf("%q", m.Content.String())
		}
	}
}
