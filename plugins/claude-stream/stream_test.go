package claudestream

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

func lines(t testing.TB, name string) [][]byte {
	t.Helper()
	in, err := os.ReadFile(filepath.Join("testdata", name, "in.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSuffix(in, []byte("\n")), []byte("\n"))
}

func open(t testing.TB) decoder.Decoder {
	t.Helper()
	d, err := New().New(decoder.Stream{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// play decodes lines and returns the folded messages, open ones included.
func play(t testing.TB, all ...[]byte) []msg.Message {
	t.Helper()
	d := open(t)
	var out decoder.Output
	for _, l := range all {
		if err := d.Decode(&frame.Frame{Data: l}, &out); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Flush(&out); err != nil {
		t.Fatal(err)
	}
	return msg.Fold(out.Messages)
}

// TestKeysAreThoseOfTheTranscript: the keys of texts, of calls, results and
// usage are made of the ids that the transcript of the same session has, in the
// same way as the decoder claude-code makes them.
func TestKeysAreThoseOfTheTranscript(t *testing.T) {
	want := []string{
		"reasoning msg_01Hedge1/thinking", "assistant msg_01Hedge1/text", "tool_call call:toolu_hedge1", "tool_call call:toolu_hedge2",
		"tool_result result:toolu_hedge2", "tool_result result:toolu_hedge1", "usage usage:msg_01Hedge1",
		"assistant msg_01Hedge2/text", "usage usage:msg_01Hedge2",
	}
	var got []string
	for _, m := range play(t, lines(t, "turn")...) {
		if m.Kind != msg.Status && m.Kind != msg.Stop && m.Attr("of") == "" {
			got = append(got, m.Kind.String()+" "+m.Key)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestPartialMessagesChangeNothing: a stream has the same messages with partial
// messages as without them, up to the first response of which only pieces have come.
func TestPartialMessagesChangeNothing(t *testing.T) {
	var whole [][]byte
	for _, l := range lines(t, "partial_messages") {
		if !bytes.Contains(l, []byte(`"stream_event"`)) {
			whole = append(whole, l)
		}
	}
	said := func(all []msg.Message) (out []string) {
		for _, m := range all {
			if m.Role == msg.RoleAssistant && m.ResponseID == "msg_01Peas1" {
				out = append(out, m.Kind.String()+" "+m.Key+" "+m.Content.String())
			}
		}
		return out
	}
	with, without := said(play(t, lines(t, "partial_messages")...)), said(play(t, whole...))
	if d := cmp.Diff(without, with); d != "" || len(with) != 3 {
		t.Errorf("(-without +with):\n%s", d)
	}
}

// counts are those of the classes input, output, cache read, cache write and reasoning.
type counts [5]uint64

// TestTokensAreThoseOfTheResult: the usage of a turn's main conversation sums up to
// the count of the result line, however low the counts of its responses are, and whether
// that line sums up the turn or all turns so far.
func TestTokensAreThoseOfTheResult(t *testing.T) {
	for name, want := range map[string][]counts{
		"turn":               {{15, 96, 3000, 3120, 0}},
		"partial_messages":   {{15, 73, 1850, 0, 0}},
		"agents":             {{22, 60, 500, 540, 0}},
		"agents_unannounced": {{22, 30, 0, 0, 0}},
		"prompts":            {{10, 20, 0, 100, 0}, {11, 30, 100, 5, 0}, {12, 40, 105, 5, 0}}, // as totals: 20, 50, 90
		"failures":           {{10, 12, 0, 0, 0}, {5, 8, 0, 0, 0}, {5, 2, 0, 0, 0}},           // turn by turn
	} {
		var runs []string
		sum := make(map[string]counts)
		responses := make(map[string]bool)
		for _, m := range play(t, lines(t, name)...) {
			if m.Kind != msg.Usage || m.Agent.Name != "claude-code" {
				continue
			}
			if m.ResponseID != "" && responses[m.ResponseID] {
				t.Errorf("%s: response %s counts twice", name, m.ResponseID)
			}
			responses[m.ResponseID] = true
			if _, seen := sum[m.Run]; !seen {
				runs = append(runs, m.Run)
			}
			u := m.Usage
			c := sum[m.Run]
			for i, n := range [...]uint64{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning} {
				c[i] += n
			}
			sum[m.Run] = c
		}
		var got []counts
		for _, run := range runs {
			got = append(got, sum[run])
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestAgentsHaveTheirPlace: every run of a sub-agent names the call that caused it,
// and the call's result names the run.
func TestAgentsHaveTheirPlace(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"agents":             {"toolu_moss1": "a11111111111111aa", "toolu_fern1": "a22222222222222bb"},
		"agents_unannounced": {"toolu_rake1": "agent:toolu_rake1"},
	} {
		begun, answered := make(map[string]string), make(map[string]string)
		for _, m := range play(t, lines(t, name)...) {
			if m.ParentCall != "" && m.ParentRun != msg.UnknownRun {
				begun[m.ParentCall] = m.Run
			}
			if m.Kind == msg.DelegationResult {
				answered[m.Tool.CallID] = m.Delegation.ChildRun
			}
		}
		if d := cmp.Diff(want, begun); d != "" {
			t.Errorf("%s: runs (-want +got):\n%s", name, d)
		}
		if d := cmp.Diff(want, answered); d != "" {
			t.Errorf("%s: results (-want +got):\n%s", name, d)
		}
	}
}

// TestEveryLineIsAccountedFor: lines without a message are pieces of a message and
// the rest of its events, and lines that add to the usage only.
func TestEveryLineIsAccountedFor(t *testing.T) {
	silent := map[string]int{"partial_messages": 21, "cut_off": 2, "unknown": 1}
	for _, name := range []string{"turn", "short", "partial_messages", "cut_off", "agents", "agents_unannounced", "prompts", "failures", "unknown"} {
		d := open(t)
		none := 0
		for _, l := range lines(t, name) {
			var out decoder.Output
			if err := d.Decode(&frame.Frame{Data: l}, &out); err != nil {
				t.Fatal(err)
			}
			own := 0
			for _, m := range out.Messages {
				if m.Kind != msg.Usage { // of the response before, which the line ends
					own++
				}
			}
			if own == 0 {
				none++
			}
		}
		if none != silent[name] {
			t.Errorf("%s: %d lines give nothing, want %d", name, none, silent[name])
		}
	}
}

// rows are what the messages of a stream come to: by key the kind, the text and the tokens.
func rows(all []msg.Message) map[string]string {
	out := make(map[string]string)
	for _, m := range all {
		out[m.Session+" "+m.Key] = fmt.Sprint(m.Kind, " ", m.Run, " ", m.Tool.CallID, " ", m.Content.String(), " ", m.Usage)
	}
	return out
}

// TestLinesThatAreThereTwice: a stream that is there twice has the same rows, whether each line follows itself, a part of
// it was sent again, it was appended as a whole, or it stands in two files; with the uuids of its lines and, as older
// versions write it, without.
func TestLinesThatAreThereTwice(t *testing.T) {
	for _, name := range []string{"turn", "short", "partial_messages", "cut_off", "agents", "agents_unannounced", "prompts", "failures", "origins", "unknown"} {
		for _, older := range []bool{false, true} {
			if older && !slices.Contains([]string{"turn", "short", "agents_unannounced"}, name) {
				continue // the others have lines that nothing but the uuid identifies
			}
			all := lines(t, name)
			if older {
				for i := range all {
					all[i] = withoutID.ReplaceAll(all[i], nil)
				}
			}
			want := rows(play(t, all...))
			var doubled [][]byte
			for _, l := range all {
				doubled = append(doubled, l, l)
			}
			for how, got := range map[string]map[string]string{
				"doubled":  rows(play(t, doubled...)),
				"appended": rows(play(t, slices.Concat(all, all)...)),
				"in parts": rows(play(t, slices.Concat(all[:len(all)/3], all[len(all)/3:2*len(all)/3], all[len(all)/3:2*len(all)/3], all[2*len(all)/3:])...)),
				"thrice":   rows(play(t, slices.Concat(all, all[:len(all)/2], all)...)),
				"copied":   rows(append(play(t, all...), play(t, all...)...)),
			} {
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s, %s, older %t (-once +%s):\n%s", name, how, older, how, d)
				}
			}
		}
	}
}

var withoutID = regexp.MustCompile(`,"uuid":"[^"]*"`)

// TestLongStreamIsThereTwice: beyond the lines that are remembered the keys are the same.
func TestLongStreamIsThereTwice(t *testing.T) {
	all := [][]byte{[]byte(`{"type":"system","subtype":"init","model":"claude-sonnet-4-5","session_id":"long","uuid":"u-init"}`)}
	const responses = 2 * maxSeen
	for i := range responses {
		all = append(all, fmt.Appendf(nil, `{"type":"assistant","message":{"id":"msg_%d","model":"claude-sonnet-4-5","role":"assistant","content":[{"type":"text","text":"Leaf %d."}],"usage":{"input_tokens":3,"output_tokens":1}},"session_id":"long","uuid":"u-%d"}`, i, i, i))
	}
	all = append(all, fmt.Appendf(nil, `{"type":"result","subtype":"success","usage":{"input_tokens":%d,"output_tokens":%d},"session_id":"long","uuid":"u-result"}`, 3*responses, 5*responses))
	want := rows(play(t, all...))
	if got := rows(play(t, slices.Concat(all, all)...)); len(want) < 2*responses || !maps.Equal(want, got) {
		t.Errorf("%d rows once, %d twice: %s", len(want), len(got), cmp.Diff(want, got))
	}
}

// TestRunsInOneFile: two runs that resume one session, appended to one file, both count, of versions without uuids too.
func TestRunsInOneFile(t *testing.T) {
	for _, id := range []string{"", `,"uuid":""`, "$0"} {
		var all [][]byte
		for _, run := range []string{"a", "b"} {
			for _, l := range []string{
				`{"type":"system","subtype":"init","model":"claude-sonnet-4-5","session_id":"resumed","uuid":"init-RUN"}`,
				`{"type":"assistant","message":{"id":"msg_RUN","model":"claude-sonnet-4-5","role":"assistant","content":[{"type":"text","text":"All is well."}],"usage":{"input_tokens":9,"output_tokens":1}},"session_id":"resumed","uuid":"text-RUN"}`,
				`{"type":"result","subtype":"success","duration_ms":8,"usage":{"input_tokens":9,"output_tokens":5},"result":"All is well.","session_id":"resumed","uuid":"result-RUN"}`,
			} {
				all = append(all, withoutID.ReplaceAll([]byte(strings.ReplaceAll(l, "RUN", run)), []byte(id)))
			}
		}
		var tokens msg.Tokens
		texts := 0
		for _, m := range play(t, all...) {
			tokens.Input, tokens.Output = tokens.Input+m.Usage.Input, tokens.Output+m.Usage.Output
			if m.Kind == msg.Assistant {
				texts++
			}
		}
		if tokens.Input != 18 || tokens.Output != 10 || texts != 2 {
			t.Errorf("ids %q: input %d, output %d, texts %d; want 18, 10, 2", id, tokens.Input, tokens.Output, texts)
		}
	}
}

// TestMemoryIsBounded: open state is evicted beyond the limits.
func TestMemoryIsBounded(t *testing.T) {
	d := open(t)
	var out decoder.Output
	long := strings.Repeat("x", 1<<12)
	feed := func(format string, args ...any) {
		t.Helper()
		out.Reset()
		if err := d.Decode(&frame.Frame{Data: fmt.Appendf(nil, format, args...)}, &out); err != nil {
			t.Fatal(err)
		}
	}
	size := func() int {
		b, err := d.(decoder.Snapshotter).Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		return len(b)
	}
	half := 0
	const rounds = 4000
	for i := range rounds {
		feed(`{"type":"assistant","session_id":"%[2]s","message":{"id":"m%[1]d","content":[{"type":"tool_use","id":"c%[1]d%[2]s","name":"Task","input":{"subagent_type":"%[2]s"}}],"usage":{"output_tokens":1}}}`, i, long)
		feed(`{"type":"assistant","parent_tool_use_id":"c%[1]d%[2]s","message":{"id":"n%[1]d","content":[{"type":"text","text":"x"}]}}`, i, long)
		feed(`{"type":"control_request","request_id":"q%[1]d%[2]s","request":{"subtype":"can_use_tool","tool_use_id":"c%[1]d%[2]s"}}`, i, long)
		if i == rounds/2 {
			half = size()
		}
	}
	if n := size(); n > half+half/10 {
		t.Errorf("snapshot of %d bytes after %d rounds, %d after %d", half, rounds/2, n, rounds)
	}
	feed(`{"type":"stream_event","event":{"type":"message_start","message":{"id":"p"}}}`)
	for i := range 512 {
		feed(`{"type":"stream_event","event":{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}}`, i)
		feed(`{"type":"stream_event","event":{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":"%s"}}}`, i, strings.Repeat(long, 2))
	}
	if n := size(); n > half+2*maxPieces {
		t.Errorf("snapshot of %d bytes with pieces, %d without", n, half)
	}
}
