package codexexec

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/snapshot"
)

func play(t *testing.T, name string) []msg.Message {
	t.Helper()
	in, err := os.ReadFile(filepath.Join("testdata", name, "in.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := New().New(decoder.Stream{})
	if err != nil {
		t.Fatal(err)
	}
	var out decoder.Output
	for l := range bytes.Lines(in) {
		n := len(out.Messages)
		if err := d.Decode(&frame.Frame{Data: bytes.TrimSuffix(l, []byte("\n"))}, &out); err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == n {
			t.Errorf("%s: line gives nothing: %s", name, l)
		}
	}
	return msg.Fold(out.Messages)
}

// TestTurnsOfAThread: the usage of a turn is the growth of the thread's sum,
// and turns that begin with the same words are not one.
func TestTurnsOfAThread(t *testing.T) {
	var got []string
	runs := make(map[string]bool)
	for _, m := range play(t, "resumed") {
		if m.Kind == msg.Usage {
			runs[m.Run] = true
			got = append(got, fmt.Sprintf("%s %d+%d %d", m.Session[len(m.Session)-1:], m.Usage.Input, m.Usage.CacheRead, m.Usage.Output))
		}
	}
	if d := cmp.Diff([]string{"7 1000+0 10", "7 300+900 15", "7 0+100 5", "8 1000+0 10"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(runs) != 4 {
		t.Errorf("%d runs, want 4", len(runs))
	}
}

// TestUnusedTurn: a turn of a process that was told of no tokens has none, and the turn after it those that the thread grew by.
func TestUnusedTurn(t *testing.T) {
	var got []uint64
	for _, m := range play(t, "unused") {
		if m.Kind == msg.Usage {
			got = append(got, m.Usage.Input+m.Usage.CacheRead)
		}
	}
	if d := cmp.Diff([]uint64{1000, 500}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestAnswersOfAgents: an agent that was spawned answers through another call, and
// its answer is the result of the call that began it.
func TestAnswersOfAgents(t *testing.T) {
	got := make(map[string]string)
	for _, m := range play(t, "agents") {
		if m.Kind == msg.DelegationResult {
			got[m.Tool.CallID[strings.LastIndexByte(m.Tool.CallID, '/')+1:]] = m.Content.String() + "|" + m.Tool.ErrorType
		}
	}
	want := map[string]string{
		"item_0": "Forty jars.|", "item_1": "|cancelled", "item_2": "|tool_error",
		"item_3": `{"019d1111-2222-7333-8444-00000000c002":{"status":"running","message":null}}|`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestMemoryIsBounded: calls that never end are forgotten beyond the limit, and
// with their turn.
func TestMemoryIsBounded(t *testing.T) {
	d, err := New().New(decoder.Stream{})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 1<<12)
	var out decoder.Output
	for i := range 3 * conversation.MaxCalls {
		out.Reset()
		line := fmt.Appendf(nil, `{"type":"item.started","item":{"id":"%d%s","type":"collab_tool_call","tool":"spawn_agent","receiver_thread_ids":["%s"]}}`, i, long, long)
		if err := d.Decode(&frame.Frame{Data: line}, &out); err != nil {
			t.Fatal(err)
		}
	}
	open := func() int {
		t.Helper()
		var s state
		b, err := d.(decoder.Snapshotter).Snapshot()
		if err != nil || len(b) > 2*conversation.MaxCalls*ident.Max {
			t.Errorf("a snapshot of %d bytes: %v", len(b), err)
		} else if err := snapshot.Restore(version, b, &s); err != nil {
			t.Error(err)
		}
		return len(s.Calls.Open)
	}
	if n := open(); n == 0 || n > conversation.MaxCalls {
		t.Errorf("%d open calls", n)
	}
	if err := d.Decode(&frame.Frame{Data: []byte(`{"type":"thread.started","thread_id":"t"}`)}, &out); err != nil || open() > 0 {
		t.Errorf("%d calls are left of the thread before: %v", open(), err)
	}
}
