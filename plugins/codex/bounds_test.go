package codex

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
)

// TestMemoryIsBounded: calls, turns and texts are forgotten beyond the limits.
func TestMemoryIsBounded(t *testing.T) {
	d := open(t, "")
	var out decoder.Output
	feed := func(format string, args ...any) {
		t.Helper()
		out.Reset()
		if err := d.Decode(&frame.Frame{Data: fmt.Appendf(nil, format, args...)}, &out); err != nil {
			t.Fatal(err)
		}
		if len(out.Problems) > 0 || len(out.Messages) == 0 {
			t.Fatalf("%d messages, problems %v", len(out.Messages), out.Problems)
		}
	}
	long := strings.Repeat("x", 1<<12)
	size := 0
	const rounds = 3000
	for i := range rounds {
		feed(`{"type":"event_msg","payload":{"type":"task_started","turn_id":"%d%s"}}`, i, long)
		feed(`{"type":"response_item","payload":{"type":"function_call","name":"spawn_agent","call_id":"open%d%s","arguments":"{\"task_name\":\"%s\",\"message\":\"go\"}"}}`, i, long, long)
		feed(`{"type":"event_msg","payload":{"type":"sub_agent_activity","event_id":"open%d%s","agent_thread_id":"%s","agent_path":"%s","kind":"started"}}`, i, long, long, long)
		feed(`{"type":"response_item","payload":{"type":"function_call","name":"f","call_id":"c%d","arguments":"{}"}}`, i)
		feed(`{"type":"response_item","payload":{"type":"function_call_output","call_id":"c%d","output":"o"}}`, i)
		feed(`{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"%d"}]}}`, i)
		if i == rounds/2 {
			size = snapshotSize(t, d)
		}
	}
	if n := snapshotSize(t, d); n > size+size/10 || n > 4*conversation.MaxCalls*ident.Max {
		t.Errorf("snapshot of %d bytes after %d rounds, %d after %d", size, rounds/2, n, rounds)
	}
}

func snapshotSize(t *testing.T, d decoder.Snapshotter) int {
	t.Helper()
	b, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return len(b)
}

// FuzzLines: any lines decode without a panic, to valid messages, and a decoder that is
// restored before each line emits the same messages.
func FuzzLines(f *testing.F) {
	for _, name := range cases(f) {
		all, origin := lines(f, name)
		f.Add(origin, bytes.Join(all, []byte("\n")))
	}
	f.Fuzz(func(t *testing.T, origin string, in []byte) {
		d := open(t, origin)
		for line := range bytes.Lines(in) {
			fr := frame.Frame{Data: bytes.TrimSuffix(line, []byte("\n"))}
			snapshot, err := d.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			again := open(t, origin)
			if snapshot != nil {
				if err := again.Restore(snapshot); err != nil {
					t.Fatal(err)
				}
			}
			var got, other decoder.Output
			if err := d.Decode(&fr, &got); err != nil {
				t.Fatal(err)
			}
			if err := again.Decode(&fr, &other); err != nil {
				t.Fatal(err)
			}
			if len(got.Problems) > 1 || len(got.Messages) != len(other.Messages) {
				t.Fatalf("line %s\ngives %d messages and %d problems, restored %d", fr.Data, len(got.Messages), len(got.Problems), len(other.Messages))
			}
			for i := range got.Messages {
				a, b := &got.Messages[i], &other.Messages[i]
				if err := a.Validate(); err != nil {
					t.Fatal(err)
				}
				if a.Key != b.Key || a.Run != b.Run || a.Usage != b.Usage || a.Signal != b.Signal {
					t.Fatalf("line %s\ngives    %s in %s\nrestored %s in %s", fr.Data, a.Key, a.Run, b.Key, b.Run)
				}
			}
		}
	})
}
