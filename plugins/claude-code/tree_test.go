package claudecode

import (
	"bytes"
	"slices"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestFilesOfASessionFitTogether: the main file, the sub-agents' files and their
// metadata files name the same session, call and run of a child, so that the tree can be
// built from any of them.
func TestFilesOfASessionFitTogether(t *testing.T) {
	const session = "5e550000-0000-4000-8000-0000000000a1"
	for _, c := range []struct{ parent, child, companion, call string }{
		{"main_with_agent", "subagent_file", "meta", "toolu_hives"},
		{"subagent_file", "", "meta_nested", "toolu_keeper"},
		{"workflow", "workflow_agent", "meta_workflow", ""},
		{"background", "send_message_receiver", "", "toolu_sheep"},
	} {
		t.Run(c.parent, func(t *testing.T) {
			links := make(map[string]string) // call to run
			runs := make(map[string]bool)
			for _, m := range play(t, load(t, c.parent)) {
				if m.Delegation.ChildRun != "" {
					links[m.Tool.CallID] = m.Delegation.ChildRun
				}
				runs[m.Run] = true
			}
			if c.companion != "" {
				meta := play(t, load(t, c.companion))[0]
				if meta.Run != "" || meta.Session != session || meta.Time != 0 {
					t.Errorf("companion: run %q, session %q, time %d: want the session and nothing else", meta.Run, meta.Session, meta.Time)
				}
				if meta.Tool.CallID != c.call {
					t.Errorf("companion names call %q, want %q", meta.Tool.CallID, c.call)
				}
				if c.call != "" && (meta.Signal != msg.Link || meta.Delegation.ChildRun != links[c.call]) {
					t.Errorf("companion links %s to run %q, the parent's file to %q", c.call, meta.Delegation.ChildRun, links[c.call])
				}
			}
			if c.child == "" {
				return
			}
			first := play(t, load(t, c.child))[0]
			if first.Session != session {
				t.Errorf("child is in session %q", first.Session)
			}
			switch {
			case c.call != "" && first.Run != links[c.call]:
				t.Errorf("child is run %q, its call links to %q", first.Run, links[c.call])
			case c.call != "" && first.ParentRun != msg.UnknownRun:
				t.Errorf("child's parent is %q before anything links it, want unknown", first.ParentRun)
			case c.call == "" && !runs[first.ParentRun]:
				t.Errorf("child's parent %q is no run of the parent's file", first.ParentRun)
			}
		})
	}
}

// TestForkRepeatsItsOrigin: a fork's copy of a line has the messages of the
// line itself, under the same session and keys, and the original replaces them.
func TestForkRepeatsItsOrigin(t *testing.T) {
	s := load(t, "forked")
	d := open(t, "/p/5e550000-0000-4000-8000-0000000000a1.jsonl")
	var original decoder.Output
	for _, l := range []string{
		`{"parentUuid":null,"isSidechain":false,"sessionId":"5e550000-0000-4000-8000-0000000000a1","type":"user","message":{"role":"user","content":"Plan the harvest."},"uuid":"0a0a0a01-0000-4000-8000-000000000001","timestamp":"2026-03-02T08:00:01.000Z"}`,
		`{"parentUuid":"0a0a0a01-0000-4000-8000-000000000001","isSidechain":false,"sessionId":"5e550000-0000-4000-8000-0000000000a1","type":"assistant","message":{"id":"msg_01Harv001","model":"claude-sonnet-4-5-20250929","content":[{"type":"text","text":"Start with the cherries."}]},"uuid":"0a0a0a02-0000-4000-8000-000000000002","timestamp":"2026-03-02T08:00:02.000Z"}`,
	} {
		if err := d.Decode(&frame.Frame{Data: []byte(l)}, &original); err != nil {
			t.Fatal(err)
		}
	}
	copies := play(t, s)
	for i, m := range original.Messages {
		c := copies[i]
		if c.Session != m.Session || c.Key != m.Key || c.Run != m.Run || c.Time != m.Time || c.Content.String() != m.Content.String() {
			t.Errorf("copy %d is %s %s, the original %s %s", i, c.Session, c.Key, m.Session, m.Key)
		}
		if c.Complete >= m.Complete {
			t.Errorf("copy %d is %s, the original %s: the original must stand", i, c.Complete, m.Complete)
		}
	}
}

// TestNoticeIsGivenOnce: the end of a task is written four times and is one result.
func TestNoticeIsGivenOnce(t *testing.T) {
	results := make(map[string]int)
	for _, m := range play(t, load(t, "background")) {
		if m.Kind == msg.DelegationResult {
			results[m.Tool.CallID]++
		}
	}
	for _, id := range []string{"toolu_sheep", "toolu_goats"} {
		if results[id] != 1 {
			t.Errorf("%s has %d results, want 1", id, results[id])
		}
	}
}

// TestTeammateIsFoundByItsName: the call that spawned a teammate and the first run of the
// teammate's own session have the same name, and no later run has it.
func TestTeammateIsFoundByItsName(t *testing.T) {
	var names []string
	for _, m := range play(t, load(t, "team_lead")) {
		if m.Delegation.CorrelationID != "" {
			names = append(names, m.Tool.CallID+" "+m.Delegation.CorrelationID)
		}
	}
	for _, m := range play(t, load(t, "teammate")) {
		if m.Delegation.CorrelationID != "" {
			names = append(names, m.Run+" "+m.Delegation.CorrelationID)
		}
	}
	const name = "claude-teammate:pruner@session-5e550000"
	if want := []string{"toolu_pruner " + name, "c0de0004-7ea1-4000-8000-000000000004 " + name}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
}

// TestReadMessagesAreTheSame: an inbox is written again when a message in it was read.
func TestReadMessagesAreTheSame(t *testing.T) {
	s := load(t, "team_inbox")
	before := play(t, s)
	s.frames[0].Data = bytes.ReplaceAll(s.frames[0].Data, []byte(`"read": false`), []byte(`"read": true`))
	after := play(t, s)
	for i := range before {
		if before[i].Key != after[i].Key {
			t.Errorf("message %d: key %s, and %s once it was read", i, before[i].Key, after[i].Key)
		}
	}
}

// TestACopiedConversationYields: what the file of a helper has of the conversation is that of the session's own file, and not of
// the helper's run.
func TestACopiedConversationYields(t *testing.T) {
	s := load(t, "helper_copies")
	var original []msg.Message
	d := open(t, "/p/5e550000-0000-4000-8000-0000000000a1.jsonl")
	var out decoder.Output
	for _, f := range s.frames[:5] {
		f.Data = bytes.Replace(f.Data, []byte(`"isSidechain":true`), []byte(`"isSidechain":false`), 1)
		f.Data = bytes.Replace(f.Data, []byte(`"agentId":"acompact-0badf00d0badf00d",`), nil, 1)
		if err := d.Decode(&f, &out); err != nil {
			t.Fatal(err)
		}
	}
	d.Decoder.Flush(&out)
	original = msg.Fold(out.Messages)
	var own []string
	for i, c := range play(t, s) {
		if i >= len(original) {
			if own = append(own, c.Key); c.Run != "acompact-0badf00d0badf00d" || c.Complete == msg.Summary {
				t.Errorf("%s is of the run %q, %s: want the helper's, and no summary", c.Key, c.Run, c.Complete)
			}
			continue
		}
		m := original[i]
		if c.Session != m.Session || c.Key != m.Key || c.Time != m.Time || c.Content.String() != m.Content.String() || c.Usage != m.Usage {
			t.Errorf("copy %d is %s, the original %s", i, c.Key, m.Key)
		}
		if c.Run != "" || c.Complete != msg.Summary || c.Agent.Name != "" {
			t.Errorf("copy %s is of the run %q by %q, %s: want none, a summary", c.Key, c.Run, c.Agent.Name, c.Complete)
		}
	}
	if want := []string{"c0de0009-0bea-4000-8000-000000000009", "msg_05Bees003/text", "usage:msg_05Bees003"}; !slices.Equal(own, want) {
		t.Errorf("the helper has %q, want %q", own, want)
	}
}
