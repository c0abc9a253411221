package letta

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/ident"
)

const ids = `"date":"2026-04-02T09:00:00+00:00","run_id":"run-%d","step_id":"step-%d","otid":"o%d","id":"m%d"`

// snapshotSize is the size of the decoder's state.
func snapshotSize(t *testing.T, d decoder.Decoder) int {
	t.Helper()
	b, err := d.(decoder.Snapshotter).Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return len(b)
}

// TestTenThousandOpen: messages that begin and never end are evicted beyond the limits, for
// every kind, and each of them is emitted.
func TestTenThousandOpen(t *testing.T) {
	const n = 10000
	for name, c := range map[string]struct {
		frame func(i int) string
		kind  msg.Kind
	}{
		"texts of one run": {func(i int) string {
			return fmt.Sprintf(`{"message_type":"assistant_message","content":"text %d",`+ids+`}`, i, 1, i, i, i)
		}, msg.Assistant},
		"texts of one step": {func(i int) string {
			return fmt.Sprintf(`{"message_type":"assistant_message","content":"text %d",`+ids+`}`, i, 1, 1, i, i)
		}, msg.Assistant},
		"texts of many runs": {func(i int) string {
			return fmt.Sprintf(`{"message_type":"assistant_message","content":"text %d",`+ids+`}`, i, i, i, i, i)
		}, msg.Assistant},
		"calls of one message": {func(i int) string {
			return fmt.Sprintf(`{"message_type":"tool_call_message","tool_call":{"name":"wind","arguments":"{\"n\":","tool_call_id":"call_%d"},`+ids+`}`, i, 1, 1, 1, 1)
		}, msg.ToolCall},
		"calls that wait": {func(i int) string {
			return fmt.Sprintf(`{"message_type":"approval_request_message","tool_calls":[{"name":"wind","arguments":"{}","tool_call_id":"call_%d"}],`+ids+`}`, i, 1, i, i, i)
		}, msg.ToolCall},
		"numbers with gaps": {func(i int) string {
			return fmt.Sprintf(`{"message_type":"assistant_message","content":"text %d","seq_id":%d,`+ids+`}`, i, 3*i+1, 1, i, i, i)
		}, msg.Assistant},
		"old messages": {func(i int) string {
			return fmt.Sprintf(`{"message_type":"assistant_message","content":"text %d","id":"m%d"}`, i, i)
		}, msg.Assistant},
		"stored prompts": {func(i int) string {
			return fmt.Sprintf(`{"message_type":"user_message","content":"text %d","id":"m%d"}`, i, i)
		}, msg.User},
		"notices": {func(i int) string {
			return fmt.Sprintf(`{"message_type":"user_message","content":"{\"type\":\"heartbeat\",\"time\":\"now\",\"reason\":\"%d\"}","id":"m%d"}`, i, i)
		}, msg.Status},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, "/v1/agents/agent-1/messages")
			var out decoder.Output
			emitted := make(map[string]bool)
			half := 0
			take := func() {
				for i := range out.Messages {
					m := &out.Messages[i]
					if err := m.Validate(); err != nil {
						t.Fatal(err)
					}
					if m.Kind == c.kind {
						emitted[m.Key] = true
					}
				}
				out.Reset()
			}
			for i := range n {
				if err := d.Decode(&frame.Frame{Kind: frame.Event, Data: []byte(c.frame(i))}, &out); err != nil {
					t.Fatal(err)
				}
				take()
				if i == n/2 {
					half = snapshotSize(t, d)
				}
			}
			if err := d.Decode(&frame.Frame{Kind: frame.Close}, &out); err != nil {
				t.Fatal(err)
			}
			if err := d.Flush(&out); err != nil {
				t.Fatal(err)
			}
			take()
			if len(emitted) != n {
				t.Errorf("%d of %d messages were emitted", len(emitted), n)
			}
			if size := snapshotSize(t, d); size > half+half/4+1<<10 {
				t.Errorf("the snapshot has %d bytes after %d, %d after %d", half, n/2, size, n)
			}
		})
	}
}

// TestHugeValues: a value of 10 MiB is decoded, in every place that has one.
func TestHugeValues(t *testing.T) {
	huge := strings.Repeat("tick tock ", 1<<20)
	const head = `"id":"m1","run_id":"run-1","step_id":"step-1","date":"2026-04-02T09:00:00+00:00"`
	for _, c := range []struct{ name, data string }{
		{"text", `{"message_type":"assistant_message",` + head + `,"content":"` + huge + `"}`},
		{"reasoning", `{"message_type":"reasoning_message",` + head + `,"reasoning":" ` + huge + `\n"}`},
		{"hidden reasoning", `{"message_type":"hidden_reasoning_message",` + head + `,"state":"redacted","hidden_reasoning":"` + huge + `"}`},
		{"arguments", `{"message_type":"tool_call_message",` + head + `,"tool_call":{"name":"wind","arguments":"{\"text\": \"` + huge + `\"}","tool_call_id":"call_1"}}`},
		{"arguments that are no JSON", `{"message_type":"tool_call_message",` + head + `,"tool_call":{"name":"wind","arguments":"` + huge + `","tool_call_id":"call_1"}}`},
		{"result", `{"message_type":"tool_return_message",` + head + `,"tool_return":"` + huge + `","status":"error","tool_call_id":"call_1"}`},
		{"answer of an agent", `{"message_type":"tool_return_message",` + head + `,"name":"` + askTool + `","tool_return":"{'agent_id': 'a', 'response': ['` + huge + `']}","status":"success","tool_call_id":"call_1"}`},
		{"prompt", `{"message_type":"user_message",` + head + `,"content":"` + huge + `"}`},
		{"message of an agent", `{"message_type":"system_message",` + head + `,"content":"[Incoming message from agent with ID 'a' - x] ` + huge + `\n` + huge + `"}`},
		{"summary", `{"message_type":"summary_message",` + head + `,"summary":"` + huge + `"}`},
		{"error", `{"message_type":"error_message","run_id":"run-1","message":"` + huge + `"}`},
		{"type", `{"message_type":"` + huge + `",` + head + `}`},
		{"date", `{"message_type":"assistant_message","id":"m1","date":"` + huge + `","content":"x"}`},
		{"picture", `{"message_type":"user_message",` + head + `,"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("AAAA", len(huge)/4) + `"}}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := play(t, open(t, ""), events(c.data, `{"message_type":"stop_reason","stop_reason":"end_turn"}`))
			if len(problems) > 0 || len(got) == 0 {
				t.Errorf("%d messages, problems %v", len(got), problems)
			}
		})
	}
	for _, name := range []string{"id", "otid", "step_id", "run_id", "tool_call_id", "name", "stop_reason"} {
		t.Run("long "+name, func(t *testing.T) {
			d := open(t, "")
			for i := range 20 {
				long := fmt.Sprintf(`"%s":"%d %s"`, name, i, huge[:1<<16])
				got, _ := play(t, d, events(
					`{"message_type":"assistant_message","content":"x",`+long+`}`,
					`{"message_type":"tool_call_message","tool_call":{"name":"a","arguments":"{}",`+long+`}}`,
					`{"message_type":"stop_reason",`+long+`}`))
				for _, m := range got {
					if len(m.Key) > 2*ident.Max {
						t.Fatalf("a key of %d bytes", len(m.Key))
					}
				}
			}
			if size := snapshotSize(t, d); size > 1<<18 {
				t.Errorf("the snapshot has %d bytes", size)
			}
		})
	}
}

// TestEndlessText: a text that never ends is emitted when it reaches the limit, and later
// pieces are kept raw.
func TestEndlessText(t *testing.T) {
	d := open(t, "")
	mebibyte := strings.Repeat("x", 1<<20)
	var out decoder.Output
	var emitted, kept int
	for range maxText>>20 + 3 {
		f := frame.Frame{Kind: frame.Event, Data: []byte(`{"message_type":"assistant_message","id":"m1","content":"` + mebibyte + `"}`)}
		out.Reset()
		if err := d.Decode(&f, &out); err != nil {
			t.Fatal(err)
		}
		for i := range out.Messages {
			switch m := &out.Messages[i]; m.Kind {
			case msg.Assistant:
				emitted += m.Content.Len()
			case msg.Unknown:
				kept++
			}
		}
	}
	if emitted <= maxText || emitted > maxText+len(mebibyte) || kept != 2 {
		t.Errorf("%d bytes of text and %d pieces were emitted, want %d bytes and one piece more, and 2 pieces", emitted, kept, maxText)
	}
}

// TestDisorder: repeated, reordered or missing frames result in valid messages and no panic,
// and a complete message never changes.
func TestDisorder(t *testing.T) {
	var frames []frame.Frame
	for _, f := range runs(3) {
		if len(frames) < 200 || f.Data[0] == '[' || strings.Contains(string(f.Data), "tool_") || strings.Contains(string(f.Data), "stop_reason") {
			frames = append(frames, f)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		shuffled := append([]frame.Frame(nil), frames...)
		for i := range shuffled {
			switch random.IntN(6) {
			case 0:
				shuffled[i] = frames[random.IntN(len(frames))]
			case 1:
				j := min(i+random.IntN(4), len(frames)-1)
				shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
			}
		}
		d := open(t, "")
		var out decoder.Output
		complete := make(map[string]string)
		for i := range shuffled {
			out.Reset()
			if err := d.Decode(&shuffled[i], &out); err != nil {
				t.Fatal(err)
			}
			for i := range out.Messages {
				m := &out.Messages[i]
				if err := m.Validate(); err != nil {
					t.Fatal(err)
				}
				if m.Complete != msg.Complete {
					continue
				}
				now, err := json.Marshal(m.Row())
				if err != nil {
					t.Fatal(err)
				}
				key := m.Session + m.Key
				if before := complete[key]; before != "" && before != string(now) {
					t.Fatalf("round %d: complete message changes\n%s\n%s", round, before, now)
				}
				complete[key] = string(now)
			}
		}
	}
}
